"""Texts of others, kept whole: a failure is cut when it is projected, and not before."""

from tooltrail.records._error_details import escaped
from tooltrail.records._model import spelled_out

MAX_TEXT_CHARS = 1_000_000
"""Characters of one text that are kept; beyond them the middle is left out, and counted in it."""


def whole(text: str) -> str:
    """The text without the white space around it, in lines that end in a newline.

    All other control characters are escaped, and so are lone surrogates.
    """
    text = str.__str__(text).strip()  # a subclass could lie about itself
    left_out = len(text) - MAX_TEXT_CHARS
    if left_out > 0:
        half = MAX_TEXT_CHARS // 2
        text = f"{text[:half]}\n[{left_out:,} characters are not recorded]\n{text[-half:]}"
    return escaped(spelled_out(text.replace("\r\n", "\n")))
