"""Replaces secrets in bytes, at once or piece by piece."""

import json
import re
from collections import Counter, deque
from collections.abc import Sequence
from functools import cache
from typing import Final, NamedTuple

from tooltrail.records.facts import RedactionFact
from tooltrail.records.plain_text import text_from
from tooltrail.redaction.credentials import Rule
from tooltrail.redaction.rules import RuleSet

_END_BYTES: Final = 64
"""Bytes that decide how a match of several lines ends: the last line of a private key."""

_VALUE: Final = re.compile(
    rb'(?P<value>"[^"\\]*+(?:\\.[^"\\]*+)*+"|[^\s\[\]{},:"]+)(?P<is_name>\s*:)?', re.DOTALL
)
"""A string or another value without parts in JSON."""


class Finding(NamedTuple):
    """One replaced secret.

    Attributes:
        rule: name of the rule.
        offset: where the replacement begins in the redacted bytes.
    """

    rule: str
    offset: int


class Redacted(NamedTuple):
    """Bytes without secrets, and what was replaced, in order."""

    data: bytes
    found: tuple[Finding, ...]


def redactions(field: str, found: Sequence[Finding]) -> tuple[RedactionFact, ...]:
    """What a fact says of the secrets that were replaced in one part of a record."""
    first = {one.rule: one.offset for one in reversed(found)}
    return tuple(
        RedactionFact(field=field, rule=rule, count=count, offset=first[rule])
        for rule, count in Counter(one.rule for one in found).items()
    )


class _Span(NamedTuple):
    """A secret, by its offsets in the searched bytes; `begin` is where its match begins."""

    start: int
    end: int
    rule: str
    begin: int


def redact(data: bytes, rules: RuleSet) -> Redacted:
    """The bytes with each secret replaced by `[REDACTED:RULE]`."""
    if not rules.may_match(data):
        return Redacted(data, ())
    redactor = StreamRedactor(rules)
    return Redacted(redactor.finish(data), tuple(redactor.found))


def redact_json(data: bytes, rules: RuleSet) -> Redacted:
    """The bytes with each secret replaced. JSON stays JSON.

    A match can go on behind the string that holds the secret, such as that of a private key without
    its end. An expression of a user may match a text only as it is without the escapes of JSON.
    Then each value is redacted by itself.
    """
    redacted = redact(data, rules)
    is_done = not rules.unmarked and (not redacted.found or _is_json(redacted.data))
    return redacted if is_done or not _is_json(data) else _redact_values(data, rules)


def _redact_values(data: bytes, rules: RuleSet) -> Redacted:
    """JSON with the secrets in each string replaced, and each value that is a part of a match.

    A match that begins with a secret of one string says nothing about the values behind it.
    """
    spans = deque(StreamRedactor(rules).search(data, is_last=True)[0])
    clean, found, at = bytearray(), list[Finding](), 0
    settled: _Span | None = None
    for value in _VALUE.finditer(data):
        begin, end = value.span("value")
        while spans and spans[0].end <= begin:
            spans.popleft()
        first = spans[0] if spans and spans[0].start < end else None
        if first is None and not _needs_search(data[begin:end], rules):
            continue
        kept, secrets = _redact_value(data[begin:end], rules)
        while spans and spans[0].end < end:
            spans.popleft()
        last = spans[0] if spans and spans[0].start < end else None
        part = first if first is not None and first.start <= begin else last
        if part is settled or value["is_name"]:
            part = None
        if secrets and (part is None or part.start > begin):
            settled = last if last and last.rule in {one.rule for one in secrets} else settled
        elif part is None:
            continue
        else:
            kept, secrets = _mark(part.rule), (Finding(part.rule, 0),)
        clean += data[at:begin] + b'"'
        at, done = end, 0
        for one in secrets:
            clean += _spelled(kept[done : one.offset])
            found.append(Finding(one.rule, len(clean)))
            done = one.offset
        clean += _spelled(kept[done:]) + b'"'
    return Redacted(bytes(clean) + data[at:], tuple(found))


def _needs_search(value: bytes, rules: RuleSet) -> bool:
    """Whether a value without a match in the JSON around it may have one in its text."""
    if b"\\" in value:
        return True
    text = value.strip(b'"')
    return any(_compiled(rule.pattern).search(text) for rule in rules.unmarked)


def _redact_value(data: bytes, rules: RuleSet) -> Redacted:
    """The text of a value in JSON; the text may be an object or an array in JSON itself."""
    if data.startswith(b'"'):
        text: str = json.loads(data.decode("utf-8", "surrogatepass"))
        data = text.encode("utf-8", "surrogatepass")
    return redact_json(data, rules) if data.startswith((b"{", b"[")) else redact(data, rules)


def _spelled(text: bytes) -> bytes:
    """A text in JSON, without quotes."""
    spelled = json.dumps(text_from(text), ensure_ascii=False)[1:-1]
    return spelled.encode("utf-8", "backslashreplace")


def _mark(rule: str) -> bytes:
    return b"[REDACTED:%b]" % rule.encode()


def _is_json(data: bytes) -> bool:
    try:
        json.loads(data.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        return False
    return True


class StreamRedactor:
    """Replaces the secrets of one stream. For one thread.

    A byte is held back while it may belong to a secret that is not complete yet. So the redacted
    stream is at most some hundred bytes behind, or the longest match of a rule after its marker.
    Complete lines without a marker are never held back.

    Attributes:
        found: the replaced secrets so far, in order.
        removed: bytes by which their replacements made the stream shorter.
    """

    def __init__(self, rules: RuleSet) -> None:
        self.found: list[Finding] = []
        self.removed = 0
        self._rules = rules
        self._held = b""
        self._sent = 0  # bytes at the start of `_held` that were returned already
        self._offset = 0

    def feed(self, data: bytes) -> bytes:
        """Add a piece of the stream, and return the next redacted bytes."""
        return self._advance(data, is_last=False)

    def finish(self, data: bytes = b"") -> bytes:
        """Add the last piece of the stream, and return the redacted rest."""
        return self._advance(data, is_last=True)

    def _advance(self, data: bytes, *, is_last: bool) -> bytes:
        held = self._held + data
        spans, until = self.search(held, is_last=is_last)
        redacted, at = bytearray(), self._sent
        for span in spans:
            if span.end > until:
                break
            redacted += held[at : span.start]
            self.found.append(Finding(span.rule, self._offset + len(redacted)))
            mark = _mark(span.rule)
            self.removed += span.end - span.start - len(mark)
            redacted += mark
            at = span.end
        redacted += held[at:until]
        self._offset += len(redacted)
        # A match may depend on bytes before it: its beginning, or a byte that it must not follow.
        kept_from = max(0, until - self._rules.margin)
        self._held, self._sent = held[kept_from:], until - kept_from
        return bytes(redacted)

    def search(self, data: bytes, *, is_last: bool) -> tuple[list[_Span], int]:
        """The secrets in `data` in order, and the end of the bytes that can be sent now.

        Only in the last bytes, a match of an expression of a user may be longer than its rule says.
        """
        until = len(data) if is_last else self._safe_end(data)
        found: list[_Span] = []
        for rule, marker in self._rules.marked(data):
            if marker < self._sent:
                continue
            match = _match_at(rule, data, marker)
            if is_last or _is_decided(rule, data, marker, match):
                found += [_span_of(rule, match)] if match else []
            else:
                until = min(until, max(0, marker - max(rule.distances)))
        for rule in self._rules.unmarked:
            matches = _compiled(rule.pattern).finditer(data, self._sent)
            most = len(data) if is_last else rule.most
            found += [_span_of(rule, one) for one in matches if 0 < len(one[0]) <= most]
        spans = _merged(found, self._sent)
        for span in reversed(spans):
            if span.begin < until < span.end:
                until = span.begin
        return spans, max(until, self._sent)

    def _safe_end(self, data: bytes) -> int:
        """The end of the bytes that no incomplete marker can concern."""
        end = len(data) - self._rules.margin
        if self._rules.unmarked:
            return end - max(rule.most for rule in self._rules.unmarked)
        # No marker, and no bytes before a marker, hold a newline.
        return max(end, data.rfind(b"\n") + 1) if self._rules.is_marked_by_line else end


def _is_decided(rule: Rule, data: bytes, marker: int, match: re.Match[bytes] | None) -> bool:
    """Whether no more bytes can complete or lengthen a match with a marker."""
    if match is not None:
        return match.end() + (_END_BYTES if rule.is_multiline else 1) <= len(data)
    has_all = len(data) - marker > rule.most
    return has_all or (not rule.is_multiline and data.find(b"\n", marker) >= 0)


_compiled = cache(re.compile)


def _match_at(rule: Rule, data: bytes, marker: int) -> re.Match[bytes] | None:
    """The match of a rule with the marker at an offset."""
    match = _compiled(rule.pattern).match
    begins = (marker - distance for distance in rule.distances if distance <= marker)
    return next((found for begin in begins if (found := match(data, begin))), None)


def _span_of(rule: Rule, match: re.Match[bytes]) -> _Span:
    start, end = match.span("secret" if "secret" in match.re.groupindex else 0)
    return _Span(start, end, rule.name, match.start())


def _merged(found: list[_Span], begin: int) -> list[_Span]:
    """The spans that end after `begin`, in order; overlapping ones become one."""
    merged: list[_Span] = []
    for span in sorted(found):
        if span.end <= begin:
            continue
        if merged and span.start < merged[-1].end:
            last = merged[-1]
            end, begins = max(last.end, span.end), min(last.begin, span.begin)
            merged[-1] = last._replace(end=end, begin=begins)
        else:
            merged.append(span._replace(start=max(span.start, begin)))
    return merged
