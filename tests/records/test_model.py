"""What every record has in common."""

from typing import Any

import pytest
from pydantic import SerializerFunctionWrapHandler, model_serializer
from pydantic_core import PydanticSerializationError

from tooltrail.records._model import Record


class Stopped(Record):
    by: str

    @model_serializer(mode="wrap")
    def _stop(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        if self.by == "a signal":
            raise KeyboardInterrupt
        if self.by == "an error":
            raise ZeroDivisionError
        members: dict[str, Any] = handler(self)
        return members


class Holder(Record):
    held: Stopped


def test_ctrl_c_while_a_record_is_written_out_is_no_error() -> None:
    with pytest.raises(KeyboardInterrupt):
        Holder(held=Stopped(by="a signal")).model_dump()


def test_an_error_there_is_that_of_pydantic() -> None:
    with pytest.raises(PydanticSerializationError):
        Holder(held=Stopped(by="an error")).model_dump()
    assert Holder(held=Stopped(by="nobody")).model_dump() == {"held": {"by": "nobody"}}
