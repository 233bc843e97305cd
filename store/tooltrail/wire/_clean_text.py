"""Text and JSON that every provider takes: what a server cannot take is replaced, and counted.

Two things become U+FFFD, also where they are escapes in a text of JSON:

- lone surrogates. Clients raise, since UTF-8 cannot carry them, and Anthropic's server answers 400
  (github.com/anthropics/claude-code/issues/1939);
- NUL. A server of llama.cpp dropped the rest of a prompt behind it, without an error
  (github.com/ggml-org/llama.cpp/issues/25543).

Every other character goes out as it is, the escapes and bells of a terminal among them. Numbers
with more digits than a double holds are sent unchanged and reported, since most readers round them.
"""

import json
import math
import re
from decimal import Decimal, InvalidOperation

from pydantic import JsonValue

from tooltrail.records import InvalidRecordError, read_json
from tooltrail.wire.exports import ExportReport

_REPLACEMENT = "\ufffd"
_UNSENDABLE = re.compile("[\x00\ud800-\udfff]")
_SUSPECT_NUMBER = re.compile(r"[\d.]{17}|[eE][-+]?\d{2}")
"""17 digits, or an exponent of two. A shorter number keeps its value as a double."""

_SUSPECT_ESCAPE = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")
"""Escapes in a text of JSON that may spell such a character; pairs of surrogates are among them."""

_ESCAPE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r"|\\u(?P<code>[0-9a-fA-F]{4})|\\."
)
"""One escape in a text of JSON, a pair of surrogates as one."""


def sendable(text: str) -> str:
    """The text with every character replaced that cannot be sent; for words of our own."""
    return _cleaned(text)[0]


def _cleaned(text: str) -> tuple[str, int]:
    """The text as it can be sent, and the number of characters that were replaced."""
    if text.isascii() and text.isprintable():
        return text, 0
    return _UNSENDABLE.subn(_REPLACEMENT, text)


class CleanText:
    """Cleans what goes into one export."""

    def __init__(self, report: ExportReport) -> None:
        self._report = report

    def text(self, text: str, where: str) -> str:
        """The text with every character replaced that cannot be sent."""
        clean, count = _cleaned(text)
        if count:
            self._replaced(count, where)
        return clean

    def json_text(self, text: str, where: str) -> str:
        """A text that is JSON, or was to be: clean, and still the same text where it was."""
        clean = self.text(text, where)
        if _SUSPECT_ESCAPE.search(clean) is None:
            return clean
        count = 0

        def mended(escape: re.Match[str]) -> str:
            nonlocal count
            code = escape["code"]
            if code is None or _UNSENDABLE.match(chr(int(code, 16))) is None:
                return escape[0]
            count += 1
            return r"\ufffd"

        spelled = _ESCAPE.sub(mended, clean)
        # Where a text is no JSON, nobody turns the escapes into characters.
        if not count or not _is_json(clean):
            return clean
        self._replaced(count, where)
        if _is_read(clean) and not _is_read(spelled):
            # Two keys that differ in what cannot be sent stay two.
            return compact(_Mapping().of(read_json(clean)))
        return spelled

    def value(self, value: JsonValue, where: str) -> JsonValue:
        """A JSON value with clean texts and keys, and no number that JSON does not have."""
        mapping = _Mapping()
        cleaned = mapping.of(value)
        if mapping.count:
            self._replaced(mapping.count, where)
        if mapping.numbers:
            self._report.add("text_replaced", where, f"{mapping.numbers} as text: no JSON has it")
        return cleaned

    def _replaced(self, count: int, where: str) -> None:
        noun = "character" if count == 1 else "characters"
        self._report.add("text_replaced", where, f"{count:,} {noun} that cannot be sent")


class _Mapping:
    """The same value, clean; counts what it replaces."""

    def __init__(self) -> None:
        self.count = 0
        self.numbers = ""

    def of(self, value: JsonValue) -> JsonValue:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, list):
            return [self.of(item) for item in value]
        if isinstance(value, dict):
            return self._members(value)
        if isinstance(value, float) and not math.isfinite(value):
            self.numbers = "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
            return self.numbers
        return value

    def _members(self, value: dict[str, JsonValue]) -> dict[str, JsonValue]:
        members: dict[str, JsonValue] = {}
        for key, member in value.items():
            name = self._text(key)
            while name in members:
                # Two keys that differ in what cannot be sent stay two.
                name += _REPLACEMENT
            members[name] = self.of(member)
        return members

    def _text(self, text: str) -> str:
        clean, count = _cleaned(text)
        self.count += count
        return clean


def _is_json(text: str) -> bool:
    """Whether anybody could read it as JSON, strictly or not."""
    try:
        json.loads(text)
    except RecursionError:
        return True
    except ValueError:
        return False
    return True


def _is_read(text: str) -> bool:
    try:
        read_json(text)
    except InvalidRecordError:
        return False
    return True


def compact(value: JsonValue) -> str:
    """JSON without white space, in the order of its members, with characters as they are."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def rounded_numbers(text: str) -> list[str]:
    """Spellings of the non-integers in a JSON text that a double cannot hold exactly, in order."""
    if _SUSPECT_NUMBER.search(text) is None:
        return []
    rounded: list[str] = []

    def read(spelled: str) -> float:
        value = float(spelled)
        try:
            if Decimal(spelled) != Decimal(repr(value)):
                rounded.append(spelled)
        except InvalidOperation:  # an exponent of more digits than a decimal takes
            rounded.append(spelled)
        return value

    json.loads(text, parse_float=read)
    return rounded
