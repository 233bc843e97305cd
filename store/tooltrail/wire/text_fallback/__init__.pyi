from .calls_in_text import TextWithCalls, read_calls
from .family import FAMILIES, TextCall, TextFamily, TextResult, text_family
from .text_format import FORMAT, text_format

__all__ = [
    "FAMILIES",
    "FORMAT",
    "TextCall",
    "TextFamily",
    "TextResult",
    "TextWithCalls",
    "read_calls",
    "text_family",
    "text_format",
]
