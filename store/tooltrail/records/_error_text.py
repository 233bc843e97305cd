"""Texts of errors: on one line or on several, and never as another line of a receipt."""

import re

from tooltrail.records._text_cuts import ACTING, shorten, spelled_out

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
    beginning = text if limit is None else text[: _READ_PER_SHOWN * limit]
    line = escaped(" ".join(spelled_out(beginning).split()))
    if limit is None:
        return line
    return shorten(line if len(beginning) == len(text) else line + "…", limit)


def full_text(text: str) -> str:
    """All of a text without the white space around it, in lines that end in a newline.

    Other control characters and lone surrogates are escaped.
    """
    return escaped(spelled_out(text.strip().replace("\r\n", "\n")))


def type_name(thing: object, limit: int | None = None) -> str:
    """The class of a value with its module, which is left out when it is built in."""
    kind = type(thing)
    is_built_in = kind.__module__ == "builtins"
    name = kind.__qualname__ if is_built_in else f"{kind.__module__}.{kind.__qualname__}"
    return one_line(name, limit)


def _spelling(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
