r"""Canonical JSON: equal values give equal bytes, in any process, on any machine.

The text follows RFC 8785 (JSON Canonicalization Scheme): no white space, keys sorted by their
UTF-16 code units, ECMAScript number spelling, minimal escapes, UTF-8. JSON from other programs
can hold values that RFC 8785 cannot represent, so these are written differently, and reversibly:

- integers beyond 2**53 keep all their digits; RFC 8785 would round them to a double;
- NaN and the infinities become `{"$tooltrail.float": "NaN" | "Infinity" | "-Infinity"}`;
- a string with lone surrogates becomes `{"$tooltrail.text": "…\\ud800…"}`, and such a key becomes
  `$tooltrail.key:…`; in both, a backslash is doubled and a surrogate is written `\\\\udxxx`;
- a key that itself looks like such a mark gets one more `$` in front.

As in RFC 8785, negative zero is written `0` and `1.0` is written `1`: an integral float below 1e21
is read back as the integer of the same spelling.

JSON from other programs is read just as strictly, but without marks. Faulty JSON is an error and is
never repaired.
"""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import repeat
from json.encoder import encode_basestring as _quote
from typing import TYPE_CHECKING, Any, cast

from tooltrail.records.errors import InvalidRecordError

if TYPE_CHECKING:
    # Needed for type annotations only: a program that only writes JSON skips the slow import.
    from pydantic import JsonValue

MAX_DEPTH = 256
"""Most levels of nesting. Common parsers fail at 500 to 1000, and an envelope adds its own."""

MAX_EMBEDDED_DEPTH = MAX_DEPTH - 6
"""Most levels of a foreign value, which is inside a result, which is inside an envelope."""

_FLOAT_MARK = "$tooltrail.float"
_TEXT_MARK = "$tooltrail.text"
_KEY_MARK = "$tooltrail.key:"
# Compiled on first use, since most programs need none of these patterns.
_LOOKS_LIKE_MARK = r"\$+tooltrail\."
_SURROGATE = "[\ud800-\udfff]"
_ESCAPE = r"\\\\|\\u(d[89a-f][0-9a-f]{2})"
_NON_FINITE = ("NaN", "Infinity", "-Infinity")

_encoder = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, sort_keys=True, separators=(",", ":")
)

_SCALARS = (str, int, float, type(None))


def encode(value: object) -> bytes:
    """The canonical JSON of a value made of dict, list, tuple, str, int, float, bool and None.

    Raises:
        InvalidRecordError: the value has another type, a key that is not a string, nesting deeper
            than `MAX_DEPTH` or than the caller's stack allows, or an integer too long for Python
            to print.
    """
    try:
        return _spelled(value, MAX_DEPTH).encode()
    except InvalidRecordError:
        raise
    except RecursionError as error:
        raise InvalidRecordError(f"nested too deep for this stack: {error}") from error
    except ValueError as error:
        raise InvalidRecordError(f"an integer is too long to be written: {error}") from error


def encode_simple(members: Mapping[str, object]) -> bytes:
    """Like `encode`, but four times as fast.

    Args:
        members: an object without floats, at any depth. All keys are ASCII, and none looks like a
            mark.
    """
    try:
        return _encoder.encode(members).encode()
    except UnicodeEncodeError:  # a lone surrogate
        return encode(members)


def encode_text(value: object) -> str:
    """Like `encode`, but returns text."""
    return encode(value).decode()


def decode(data: bytes | str) -> "JsonValue":
    """Read canonical JSON and restore the values that its marks stand for.

    Raises:
        InvalidRecordError: `data` is not JSON in UTF-8, or has a duplicate key, a bare NaN, a
            number beyond a double, or nesting deeper than `MAX_DEPTH`.
    """
    try:
        # json.loads would accept the UTF-8 encoding of a lone surrogate.
        text = data if isinstance(data, str) else data.decode()
        value = _read(text, MAX_DEPTH)
        return _restore(value) if "$tooltrail." in text else value
    except (ValueError, RecursionError) as error:
        raise InvalidRecordError(f"not canonical JSON: {error}") from error


def read_json(data: str | bytes) -> "JsonValue":
    """Read a JSON text (RFC 8259) of another program.

    Raises:
        InvalidRecordError: `data` is not JSON in UTF-8, has a duplicate key, NaN or an infinity, a
            number beyond a double, or nesting deeper than a record can hold. The message quotes
            nothing from the text.
    """
    try:
        return _read(data if isinstance(data, str) else data.decode(), MAX_EMBEDDED_DEPTH)
    except RecursionError as error:
        raise InvalidRecordError("nested too deep") from error
    except ValueError as error:
        raise InvalidRecordError(str(error)) from error


def _read(text: str, levels: int) -> "JsonValue":
    """Read JSON, leaving its marks as they are.

    Python's reader silently accepts `NaN`, turns `1e400` into an infinity and keeps the last of two
    equal keys. Here each of these is an error.
    """
    value = cast("JsonValue", _decoder.decode(text))
    # Counting brackets is fast, and nearly always sufficient.
    if text.count("[") + text.count("{") > levels and is_deeper_than(value, levels):
        raise ValueError(f"nested deeper than {levels} levels")
    return value


def with_lists(value: object) -> object:
    """A copy of a value with lists in place of tuples, as in JSON.

    Used for dumped records: pydantic's own JSON mode turns lone surrogates in keys into
    replacement characters.
    """
    if isinstance(value, dict):
        members = cast("dict[str, object]", value)
        return {
            name: member if isinstance(member, _SCALARS) else with_lists(member)
            for name, member in members.items()
        }
    if isinstance(value, list | tuple):
        return [with_lists(member) for member in cast("Sequence[object]", value)]
    return value


def is_deeper_than(value: object, levels: int) -> bool:
    """Whether objects and arrays are nested more than `levels` deep; a scalar has zero levels."""
    if not isinstance(value, dict | list | tuple):
        return False
    members = cast("dict[object, object] | list[object]", value)
    inner = members.values() if isinstance(members, dict) else members
    return levels == 0 or any(map(is_deeper_than, inner, repeat(levels - 1)))


def _spelled(value: object, levels: int) -> str:
    spell = _SPELLERS.get(type(value))
    if spell is not None:
        return spell(value)
    if not isinstance(value, dict | list | tuple):
        for kind in (str, int, float):
            if isinstance(value, kind):
                return _SPELLERS[kind](value)
        raise InvalidRecordError(f"{type(value).__name__} is not a JSON type")
    if levels == 0:
        raise InvalidRecordError(f"nested deeper than {MAX_DEPTH} levels")
    spelled: list[str] = []
    if isinstance(value, dict):
        for key, member in _sorted_members(cast("Mapping[object, object]", value)):
            spell = _SPELLERS.get(type(member))
            text = _spelled(member, levels - 1) if spell is None else spell(member)
            spelled.append(f"{_quote(key)}:{text}")
        return f"{{{','.join(spelled)}}}"
    for member in cast("Sequence[object]", value):
        spell = _SPELLERS.get(type(member))
        spelled.append(_spelled(member, levels - 1) if spell is None else spell(member))
    return f"[{','.join(spelled)}]"


def _sorted_members(value: Mapping[object, object]) -> list[tuple[str, object]]:
    """The members in canonical order, with keys as canonical JSON spells them.

    Raises:
        InvalidRecordError: a key is not a string.
    """
    try:
        keys = "".join(cast("Mapping[str, object]", value))
    except TypeError:
        wrong = next(key for key in value if not isinstance(key, str))
        kind = type(wrong).__name__
        raise InvalidRecordError(f"an object key must be a string, not {kind}") from None
    members = cast("Mapping[str, object]", value)
    if keys.isascii() and "$" not in keys:
        return sorted(members.items())  # keys differ, so members are never compared
    spelled = {_key(key): member for key, member in members.items()}
    return sorted(spelled.items(), key=lambda one: one[0].encode("utf-16-be"))


def spell_text(text: str) -> str:
    """The canonical JSON of a text."""
    if text.isascii() or re.search(_SURROGATE, text) is None:
        return _quote(text)
    return f'{{"{_TEXT_MARK}":{_quote(_escape(text))}}}'


def _key(key: str) -> str:
    if key.startswith("$") and re.match(_LOOKS_LIKE_MARK, key):
        key = "$" + key
    if key.isascii() or re.search(_SURROGATE, key) is None:
        return key
    return _KEY_MARK + _escape(key)


def _escape(text: str) -> str:
    return re.sub(_SURROGATE, lambda m: f"\\u{ord(m[0]):04x}", text.replace("\\", "\\\\"))


def _unescape(text: str) -> str:
    return re.sub(_ESCAPE, lambda m: chr(int(m[1], 16)) if m[1] else "\\", text)


def _float(value: float) -> str:
    """A float as ECMAScript's Number::toString spells it (RFC 8785 section 3.2.2.3).

    Python's repr has the same digits, but an exponent already below 1e-4 and from 1e16.
    """
    if not math.isfinite(value):
        return f'{{"{_FLOAT_MARK}":"{json.dumps(value)}"}}'
    if value == 0:
        return "0"
    mantissa, _, exponent = float.__repr__(value).removesuffix(".0").partition("e")
    if not exponent:
        return mantissa
    power, sign = int(exponent), "-" if value < 0 else ""
    digits = mantissa.removeprefix("-").replace(".", "")
    if 0 < power < 21:
        return sign + digits.ljust(power + 1, "0")
    if -7 < power < 0:
        return f"{sign}0.{'0' * (-power - 1)}{digits}"
    return f"{mantissa}e{power:+d}"


_SPELLERS: Mapping[type, Callable[[Any], str]] = {
    str: spell_text,
    int: int.__repr__,
    float: _float,
    bool: lambda value: "true" if value else "false",
    type(None): lambda _: "null",
}
"""The function that spells a scalar, by the scalar's class."""


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a key stands twice in an object")
    return members


def _finite(spelling: str) -> float:
    number = float(spelling)
    if not math.isfinite(number):
        raise ValueError("a number is not a finite double")
    return number


_decoder = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_finite, parse_float=_finite)


def _restore(value: object) -> "JsonValue":
    if isinstance(value, list):
        return [_restore(member) for member in cast("list[object]", value)]
    if not isinstance(value, dict):
        return cast("JsonValue", value)
    members = cast("dict[str, object]", value)
    match list(members.items()):
        case [(key, str(name))] if key == _FLOAT_MARK and name in _NON_FINITE:
            return float(name)
        case [(key, str(text))] if key == _TEXT_MARK:
            return _unescape(text)
        case _:
            return {_restore_key(key): _restore(member) for key, member in members.items()}


def _restore_key(key: str) -> str:
    if key.startswith(_KEY_MARK):
        key = _unescape(key.removeprefix(_KEY_MARK))
    return key[1:] if key.startswith("$$") and re.match(_LOOKS_LIKE_MARK, key) else key
