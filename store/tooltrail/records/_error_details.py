"""What an error says, in text: on one line, as JSON, and never as another line of a receipt."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from tooltrail.records import canonical_json
from tooltrail.records._acting_chars import ACTING
from tooltrail.records._model import spelled_out
from tooltrail.records._text_cuts import shorten
from tooltrail.records.errors import InvalidRecordError

_READ_PER_SHOWN = 16
"""Characters that are read for each one shown; no run of white space that matters is longer."""

_CONTROL = re.compile(f"[\x00-\x08\x0b-\x1f{ACTING}]")
"""What could move a cursor, end a line or turn the direction of what follows."""

MOST_PER_CHAR = 6
"""Characters that one character has at most when it is escaped."""


def escaped(text: str) -> str:
    r"""A text whose control characters other than newline and tab are spelled `\x1b`, `\u2028`."""
    return _CONTROL.sub(_spelling, text)


def one_line(text: str, limit: int | None = None) -> str:
    """A text on one line that cannot pass for another line, in at most `limit` characters.

    White space is collapsed; control characters and lone surrogates are escaped. A text that is
    cut ends in an ellipsis.
    """
    text = str.__str__(text)  # a subclass could lie about itself
    beginning = text if limit is None else text[: _READ_PER_SHOWN * limit]
    line = escaped(" ".join(spelled_out(beginning).split()))
    if limit is None:
        return line
    return shorten(line if len(beginning) == len(text) else line + "…", limit)


def type_name(thing: object, limit: int | None = None) -> str:
    """The class of a value with its module, which is left out when it is built in."""
    kind = type(thing)
    module, name = read(kind, "__module__"), read(kind, "__qualname__")
    # Of exactly this type: a subclass could define what comparing and joining do.
    parts = [part for part in (module, name) if type(part) is str and part != "builtins"]
    return one_line(".".join(parts), limit)


def read(thing: object, name: str) -> object:
    """An attribute, None when there is none or when it cannot be read."""
    try:
        return cast("object", getattr(thing, name, None))
    except (Exception, SystemExit):  # noqa: BLE001  a class may define any property
        return None


def beginning_of(value: object, limit: int) -> str:
    """At most `limit` characters of a value as JSON; what JSON cannot hold is named by its type."""
    text = ""
    for lexeme in _lexemes(value):
        text += lexeme
        if len(text) > limit:
            break
    return shorten(text, limit)


def json_text(value: object) -> str:
    """The JSON of a plain value of any depth, the members of objects in their order."""
    return "".join(_lexemes(value))


def _spelling(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def _lexemes(value: object) -> Iterator[str]:
    """A value of any depth, even one that contains itself, as JSON would have it."""
    levels = [(iter([("", value)]), "")]
    while levels:
        members, end = levels[-1]
        member = next(members, None)
        if member is None:
            levels.pop()
            yield end
            continue
        prefix, part = member
        if isinstance(part, dict):
            yield prefix + "{"
            levels.append((_named_members(cast("Mapping[object, object]", part)), "}"))
        elif isinstance(part, list | tuple):
            yield prefix + "["
            levels.append((_members(cast("Sequence[object]", part)), "]"))
        else:
            yield prefix + _scalar(part)


def _named_members(value: Mapping[object, object]) -> Iterator[tuple[str, object]]:
    for n, (key, member) in enumerate(value.items()):
        yield f"{',' if n else ''}{_name(key)}:", member


def _members(value: Sequence[object]) -> Iterator[tuple[str, object]]:
    return (("," if n else "", member) for n, member in enumerate(value))


def _name(key: object) -> str:
    # A key has its own spelling of a lone surrogate.
    return canonical_json.encode_text({key: 0})[1:-3] if isinstance(key, str) else _scalar(key)


def _scalar(value: object) -> str:
    try:
        return canonical_json.encode_text(value)
    except InvalidRecordError:
        return f"<{type(value).__name__}>"
