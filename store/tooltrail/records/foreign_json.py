"""JSON that others wrote: read strictly, and what cannot be carried on is said and not mended.

Python's reader takes `NaN`, turns `1e400` into an infinity and keeps the last of two equal keys,
all without a word. Here each of them is an error, so that a value that was read means what its text
says. Text in canonical JSON is for `canonical_json`, which also turns its marks back.
"""

import json
import math
from collections import Counter
from typing import TYPE_CHECKING, cast

from tooltrail.records.canonical_json import MAX_EMBEDDED_DEPTH, is_deeper_than
from tooltrail.records.errors import InvalidRecordError

if TYPE_CHECKING:
    from pydantic import JsonValue

_SHOWN_CHARS = 40


def read_json(data: str | bytes) -> "JsonValue":
    """The value of a JSON text (RFC 8259).

    Raises:
        InvalidRecordError: it is no JSON in UTF-8, a key stands twice in one object, a number is no
            number or beyond a double, or it is nested deeper than a record can hold. The message
            says where, and repeats nothing of the text but a number or a key.
    """
    try:
        text = data if isinstance(data, str) else data.decode()
        value = _DECODER.decode(text)
    except RecursionError as error:
        raise InvalidRecordError("nested too deep") from error
    except ValueError as error:
        raise InvalidRecordError(str(error)) from error
    # Counting brackets is quick, and nearly always enough.
    is_suspect = text.count("[") + text.count("{") > MAX_EMBEDDED_DEPTH
    if is_suspect and is_deeper_than(value, MAX_EMBEDDED_DEPTH):
        raise InvalidRecordError(f"nested deeper than {MAX_EMBEDDED_DEPTH} levels")
    return cast("JsonValue", value)


def _members(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs):
        counts = Counter(key for key, _ in pairs)
        twice = next(key for key, _ in pairs if counts[key] > 1)
        raise ValueError(f"the key {twice[:_SHOWN_CHARS]!a} stands twice in an object")
    return members


def _finite(spelling: str) -> float:
    number = float(spelling)
    if math.isinf(number):
        raise ValueError(f"the number {spelling[:_SHOWN_CHARS]} is beyond a double")
    return number


def _no_number(name: str) -> object:
    raise ValueError(f"{name} is no JSON")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_members, parse_float=_finite, parse_constant=_no_number
)
