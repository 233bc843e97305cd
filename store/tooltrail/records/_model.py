"""The base of every record: frozen, and unknown fields are an error."""

import sys
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, StringConstraints
from pydantic_core import PydanticSerializationError

from tooltrail.records._text_cuts import spelled_out
from tooltrail.records.digests import Digest
from tooltrail.records.errors import UnavailableError
from tooltrail.records.plain_text import recordable_name


class Record(BaseModel):
    """An immutable value with named fields; equality is by value."""

    # "constants", since the default would silently turn NaN and infinities into null.
    # Inputs are hidden, since the text of an error goes to logs, and inputs are output of tools.
    model_config = ConfigDict(
        frozen=True, extra="forbid", ser_json_inf_nan="constants", hide_input_in_errors=True
    )

    def model_dump(self, **options: Any) -> dict[str, Any]:
        """The members by name, as plain values; see pydantic.

        Raises:
            KeyboardInterrupt: a signal arrived; pydantic alone would raise its own error instead.
            UnavailableError: the interpreter is exiting, so pydantic cannot import its parts.
        """
        try:
            return super().model_dump(**options)
        except PydanticSerializationError as error:
            if error.__cause__ is None or isinstance(error.__cause__, Exception):
                raise
            raise error.__cause__ from None
        except ImportError as error:
            if not sys.is_finalizing():
                raise
            problem = "nothing can be recorded while Python is exiting; record before that"
            raise UnavailableError(problem) from error


def _written(write: Callable[[str], str]) -> BeforeValidator:
    """Rewrites a text before pydantic would refuse it for a lone surrogate."""
    return BeforeValidator(lambda value: write(value) if isinstance(value, str) else value)


Sentence = Annotated[str, _written(spelled_out)]
"""Text for people and models. It may quote a file name or an exception, so lone surrogates are
escaped: a failure whose text cannot be encoded would be lost."""


Message = Annotated[
    str, _written(lambda text: spelled_out(text) if text.strip() else "(no message)")
]
"""A sentence that is never blank: `str(ValueError())` is blank, but must be recorded too."""


ToolName = Annotated[str, _written(recordable_name)]
"""The name of a tool as a model may spell it. Every call must be recorded, so no name is refused:
a blank name becomes `(unnamed)`, a long one ends in an ellipsis, NUL and lone surrogates are
escaped. The original of a changed name is not kept."""


DigestField = Annotated[Digest, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]
"""A digest whose spelling is checked."""
