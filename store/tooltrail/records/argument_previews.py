"""The short form of arguments that a list of calls shows."""

from typing import Final

from tooltrail.records._text_cuts import shorten
from tooltrail.records.plain_text import storable

ARGUMENTS_PREVIEW_CHARS: Final = 240
"""Characters of the arguments that a list shows."""

PREVIEWED_CHARS: Final = 16 * ARGUMENTS_PREVIEW_CHARS
"""Characters of the arguments that are read to make a preview."""


def preview_arguments(text: str) -> str:
    """Arguments, or their title, on one line of at most `ARGUMENTS_PREVIEW_CHARS` characters."""
    # Arguments can hold a complete file; no relevant run of white space is this long.
    line = " ".join(text[:PREVIEWED_CHARS].split())
    return shorten(storable(line), ARGUMENTS_PREVIEW_CHARS)
