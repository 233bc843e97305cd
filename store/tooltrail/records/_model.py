"""The base of every record: frozen, and unknown fields are an error."""

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict


class Record(BaseModel):
    """An immutable value with named fields; equality is by value."""

    # "constants" because the default would silently turn NaN and infinities into null.
    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")


def spelled_out(text: str) -> str:
    r"""Lone surrogates, which no UTF-8 can hold, written as `\udxxx`."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def _spell_out(value: object) -> object:
    return spelled_out(value) if isinstance(value, str) else value


Sentence = Annotated[str, BeforeValidator(_spell_out)]
"""Text for people and models. It may quote a file name or an exception, so it is made encodable
here: a failure that cannot be worded would be lost."""
