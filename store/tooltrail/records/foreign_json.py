"""A strict reader for JSON from other programs: faulty JSON is an error and is never repaired.

The value is exactly what the text says. To read canonical JSON, use `canonical_json`, which also
restores the values that its marks stand for.
"""

from typing import TYPE_CHECKING, cast

from tooltrail.records.canonical_json import MAX_EMBEDDED_DEPTH, read_strictly
from tooltrail.records.errors import InvalidRecordError

if TYPE_CHECKING:
    from pydantic import JsonValue


def read_json(data: str | bytes) -> "JsonValue":
    """Read a JSON text (RFC 8259).

    Raises:
        InvalidRecordError: `data` is not JSON in UTF-8, has a duplicate key, NaN or an infinity, a
            number beyond a double, or nesting deeper than a record can hold. The message gives
            the position, and quotes nothing from the text but a number or a key.
    """
    try:
        text = data if isinstance(data, str) else data.decode()
        return cast("JsonValue", read_strictly(text, MAX_EMBEDDED_DEPTH))
    except RecursionError as error:
        raise InvalidRecordError("nested too deep") from error
    except ValueError as error:
        raise InvalidRecordError(str(error)) from error
