from .calls_in_text import TextWithCalls, read_calls
from .families import FAMILIES, text_family
from .family import TextCall, TextFamily, TextResult
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
