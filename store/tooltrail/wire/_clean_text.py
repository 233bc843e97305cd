"""Text and JSON that every provider accepts: unsendable characters are replaced and counted.

Two kinds of characters become U+FFFD, also when they are escapes in JSON text:

- lone surrogates. Clients raise, since UTF-8 cannot encode them, and Anthropic's server answers 400
  (github.com/anthropics/claude-code/issues/1939);
- NUL. A llama.cpp server silently dropped the rest of a prompt after it
  (github.com/ggml-org/llama.cpp/issues/25543).

Every other character is sent unchanged, including terminal escapes and bells. Numbers with more
digits than a double holds are sent unchanged and reported, since most readers round them.
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
"""17 digits, or an exponent of two digits. A shorter number keeps its value as a double."""

_SUSPECT_ESCAPE = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")
"""Escapes in JSON text that may be such a character; also matches pairs of surrogates."""

_ESCAPE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r"|\\u(?P<code>[0-9a-fA-F]{4})|\\."
)
"""One escape in JSON text; a pair of surrogates counts as one."""


def sendable(text: str) -> str:
    """The text with unsendable characters replaced, unreported; for texts that we make."""
    return _cleaned(text)[0]


def _cleaned(text: str) -> tuple[str, int]:
    """The text with unsendable characters replaced, and the number of replacements."""
    if text.isascii() and text.isprintable():
        return text, 0
    return _UNSENDABLE.subn(_REPLACEMENT, text)


class CleanText:
    """Cleans the texts and JSON values of one export, and reports replacements."""

    def __init__(self, report: ExportReport) -> None:
        self._report = report

    def text(self, text: str, where: str) -> str:
        """The text with unsendable characters replaced."""
        clean, count = _cleaned(text)
        if count:
            self._replaced(count, where)
        return clean

    def json_text(self, text: str, where: str) -> str:
        """Clean a text that should be JSON; everything sendable in it stays unchanged."""
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
        # If the text is not JSON, no reader decodes its escapes.
        if not count or not _is_json(clean):
            return clean
        self._replaced(count, where)
        if _is_read(clean) and not _is_read(spelled):
            # Keys that differ only in unsendable characters must stay different.
            return compact(_Mapping().of(read_json(clean)))
        return spelled

    def value(self, value: JsonValue, where: str) -> JsonValue:
        """A JSON value with clean texts and keys, and with NaN and infinities as text."""
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
    """Cleans a JSON value and counts the replacements."""

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
                # Keys that differ only in unsendable characters must stay different.
                name += _REPLACEMENT
            members[name] = self.of(member)
        return members

    def _text(self, text: str) -> str:
        clean, count = _cleaned(text)
        self.count += count
        return clean


def _is_json(text: str) -> bool:
    """Whether a lenient or a strict reader could read the text as JSON."""
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
    """The value as JSON without white space; members keep their order, characters are unescaped."""
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
        except InvalidOperation:  # an exponent with more digits than a decimal accepts
            rounded.append(spelled)
        return value

    json.loads(text, parse_float=read)
    return rounded
