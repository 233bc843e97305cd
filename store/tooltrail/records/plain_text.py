"""Makes text storable in every database, and any text the name of a tool."""

from contextlib import suppress
from typing import Final

from tooltrail.records._text_cuts import shorten, spelled_out

TOOL_NAME_CHARS: Final = 256
"""Longest name of a tool, in characters."""

UNNAMED: Final = "(unnamed)"
"""The name that replaces a blank name of a tool."""


def storable(text: str) -> str:
    """A copy of a text that every database can store: NUL and lone surrogates become escapes."""
    return text.replace("\0", "\\0").encode("utf-8", "backslashreplace").decode()


def text_from(data: bytes) -> str:
    """Decode any bytes to a text: lone surrogates and other bytes survive."""
    for errors in ("strict", "surrogatepass"):
        with suppress(UnicodeDecodeError):
            return data.decode("utf-8", errors)
    return data.decode("utf-8", "surrogateescape")


def recordable_name(text: str) -> str:
    """The name of a tool as it is recorded; see `ToolCall.tool_name`."""
    name = spelled_out(text).replace("\0", "\\0")
    return shorten(name, TOOL_NAME_CHARS) if name.strip() else UNNAMED
