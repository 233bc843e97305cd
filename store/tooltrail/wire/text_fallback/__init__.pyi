from .calls_in_text import TextWithCalls, read_calls
from .families import FAMILIES, text_family
from .names import spelled_name, split_name
from .telling import TextFamily, ToldCall, ToldResult
from .text_format import FORMAT, text_format

__all__ = [
    "FAMILIES",
    "FORMAT",
    "TextFamily",
    "TextWithCalls",
    "ToldCall",
    "ToldResult",
    "read_calls",
    "spelled_name",
    "split_name",
    "text_family",
    "text_format",
]
