"""Texts of errors, on one or several lines, that cannot look like another line of a receipt."""

import re

from tooltrail.records._text_cuts import ACTING, shorten, spelled_out

_READ_PER_SHOWN = 16
"""Characters that are read for each one shown, which leaves room for runs of white space."""

_CONTROL = re.compile(f"[\x00-\x08\x0b-\x1f{ACTING}]")
"""Characters that could move a cursor, end a line or change the direction of text."""


def escaped(text: str) -> str:
    r"""A text with control characters escaped as `\x1b` or `\u2028`, except newline and tab."""
    return _CONTROL.sub(_spelling, text)


def one_line(text: str, limit: int | None = None) -> str:
    """A text on one line of at most `limit` characters, which cannot look like several lines.

    White space is collapsed; control characters and lone surrogates are escaped. A text that is
    cut ends in an ellipsis.
    """
    beginning = text if limit is None else text[: _READ_PER_SHOWN * limit]
    line = escaped(" ".join(spelled_out(beginning).split()))
    if limit is None:
        return line
    return shorten(line if len(beginning) == len(text) else line + "…", limit)


def full_text(text: str) -> str:
    r"""The complete text without leading and trailing white space, with `\r\n` as a newline.

    Other control characters and lone surrogates are escaped.
    """
    return escaped(spelled_out(text.strip().replace("\r\n", "\n")))


def type_name(thing: object) -> str:
    """The class of a value with its module; the module is left out for built-in classes."""
    kind = type(thing)
    is_built_in = kind.__module__ == "builtins"
    name = kind.__qualname__ if is_built_in else f"{kind.__module__}.{kind.__qualname__}"
    return one_line(name)


def _spelling(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
