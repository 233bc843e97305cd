"""JSON that others wrote: read strictly, and what cannot be carried on is said and not mended.

A value that was read means what its text says. Text in canonical JSON is for `canonical_json`,
which also turns its marks back.
"""

from typing import TYPE_CHECKING, cast

from tooltrail.records.canonical_json import MAX_EMBEDDED_DEPTH, read_strictly
from tooltrail.records.errors import InvalidRecordError

if TYPE_CHECKING:
    from pydantic import JsonValue


def read_json(data: str | bytes) -> "JsonValue":
    """The value of a JSON text (RFC 8259).

    Raises:
        InvalidRecordError: it is no JSON in UTF-8, a key stands twice in one object, a number is no
            number or beyond a double, or it is nested deeper than a record can hold. The message
            says where, and repeats nothing of the text but a number or a key.
    """
    try:
        text = data if isinstance(data, str) else data.decode()
        return cast("JsonValue", read_strictly(text, MAX_EMBEDDED_DEPTH))
    except RecursionError as error:
        raise InvalidRecordError("nested too deep") from error
    except ValueError as error:
        raise InvalidRecordError(str(error)) from error
