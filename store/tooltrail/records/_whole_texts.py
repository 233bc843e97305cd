"""Texts of others, kept whole: a failure is cut when it is projected, and not before."""

from tooltrail.records._error_details import escaped
from tooltrail.records._model import spelled_out


def whole(text: str) -> str:
    """The text without the white space around it, in lines that end in a newline.

    All other control characters are escaped, and so are lone surrogates.
    """
    text = str.__str__(text).strip()  # a subclass could lie about itself
    return escaped(spelled_out(text.replace("\r\n", "\n")))
