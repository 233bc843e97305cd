from .calls_in_text import TextWithCalls, read_calls
from .families import FAMILIES, text_family
from .family import TextCall, TextFamily, TextResult, spelled_name, split_name
from .text_format import FORMAT, text_format

__all__ = [
    "FAMILIES",
    "FORMAT",
    "TextCall",
    "TextFamily",
    "TextResult",
    "TextWithCalls",
    "read_calls",
    "spelled_name",
    "split_name",
    "text_family",
    "text_format",
]
