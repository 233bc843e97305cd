"""Text and JSON that every provider takes: what none of them can carry is replaced, and counted.

Lone surrogates make clients raise and servers answer 400 to each later request of the conversation,
also where they are escapes in a text of JSON. NUL and other control characters are legal JSON, but
not every server keeps them. All become U+FFFD; tab, newline and carriage return stay.
"""

import json
import math
import re
from collections.abc import Callable

from pydantic import JsonValue

from tooltrail.records import InvalidRecordError, read_json
from tooltrail.wire.exports import ExportReport

_REPLACEMENT = "\ufffd"
_UNSENDABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
_SUSPECT_ESCAPE = re.compile(r"\\u(?:00[01]|007f|[dD][89a-fA-F])")
"""Escapes in a text of JSON that may spell such a character; pairs of surrogates are among them."""


class CleanText:
    """Cleans what goes into one export."""

    def __init__(self, report: ExportReport) -> None:
        self._report = report

    def text(self, text: str, where: str) -> str:
        """The text with every character replaced that cannot be sent."""
        if text.isascii() and text.isprintable():
            return text
        clean, count = _UNSENDABLE.subn(_REPLACEMENT, text)
        if count:
            self._replaced(count, where)
        return clean

    def json_text(self, text: str, where: str) -> str:
        """A text that is JSON, or was to be: clean, and still the same text where it was."""
        clean = self.text(text, where)
        if _SUSPECT_ESCAPE.search(clean) is None:
            return clean
        try:
            value = read_json(clean)
        except InvalidRecordError:
            # Not JSON, so nobody turns the escapes into characters.
            return clean
        cleaned = self.value(value, where)
        return clean if cleaned == value else compact(cleaned)

    def value(self, value: JsonValue, where: str) -> JsonValue:
        """A JSON value with clean texts and keys, and no number that JSON does not have."""
        count = 0

        def clean(text: str) -> str:
            nonlocal count
            cleaned, more = _UNSENDABLE.subn(_REPLACEMENT, text)
            count += more
            return cleaned

        cleaned = _mapped(value, clean)
        if count:
            self._replaced(count, where)
        return cleaned

    def _replaced(self, count: int, where: str) -> None:
        noun = "character" if count == 1 else "characters"
        self._report.add("text_replaced", where, f"{count:,} {noun} that cannot be sent")


def _mapped(value: JsonValue, clean: Callable[[str], str]) -> JsonValue:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [_mapped(item, clean) for item in value]
    if isinstance(value, dict):
        return {clean(key): _mapped(member, clean) for key, member in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def compact(value: JsonValue) -> str:
    """JSON without white space, in the order of its members, with characters as they are."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
