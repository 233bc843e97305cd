"""The text that stands for calls and results where a format or a record has no native form."""

from tooltrail.wire.text_fallback.families import FAMILIES, TextFamily, text_family
from tooltrail.wire.text_fallback.markup import escape_body, unescape_body

__all__ = ["FAMILIES", "TextFamily", "escape_body", "text_family", "unescape_body"]
