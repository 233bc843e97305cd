"""Replaces secrets in bytes, at once or piece by piece."""

import json
import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import takewhile
from typing import Final, NamedTuple

from tooltrail.records.facts import RedactionFact
from tooltrail.records.plain_text import text_from
from tooltrail.redaction.credentials import Rule
from tooltrail.redaction.rules import RuleSet

_END_BYTES: Final = 64
"""Bytes that decide how a match of several lines ends: the last line of a private key."""

_TEXT: Final = re.compile(rb'"(?P<text>[^"\\]*+(?:\\.[^"\\]*+)*+)"', re.DOTALL)
"""A string in JSON."""

_VALUE: Final = re.compile(
    rb'(?:%b|(?P<bare>[^\s\[\]{},:"]+))(?P<is_name>\s*:)?' % _TEXT.pattern, re.DOTALL
)
"""A string or another value without parts in JSON."""

_MARK: Final = re.compile(rb"\[REDACTED:[a-z0-9-]+\]")
"""What was replaced before."""


class Finding(NamedTuple):
    """One replaced secret.

    Attributes:
        rule: name of the rule.
        offset: where the replacement begins in the redacted bytes.
    """

    rule: str
    offset: int


class ReplacedSecret(NamedTuple):
    """A replaced secret of a stream.

    Attributes:
        rule: name of the rule.
        offset: where the replacement begins in the redacted stream.
        size: bytes of the replacement.
        start: where the secret began in the stream as it was.
        end: where the secret ended there.
    """

    rule: str
    offset: int
    size: int
    start: int
    end: int


class Redacted(NamedTuple):
    """Bytes without secrets, and what was replaced, in order."""

    data: bytes
    found: tuple[Finding, ...]


def redactions(field: str, found: Sequence[Finding]) -> tuple[RedactionFact, ...]:
    """What a fact says of the secrets that were replaced in one part of a record."""
    first = {one.rule: one.offset for one in reversed(found)}
    return _facts(field, Counter(one.rule for one in found), first)


def _facts(
    field: str, counts: Mapping[str, int], first: Mapping[str, int]
) -> tuple[RedactionFact, ...]:
    return tuple(
        RedactionFact(field=field, rule=rule, count=count, offset=first[rule])
        for rule, count in counts.items()
    )


class _Span(NamedTuple):
    """A secret, by its offsets in the searched bytes; its match is from `begin` to `stop`."""

    start: int
    end: int
    rule: str
    begin: int
    stop: int


def redact(data: bytes, rules: RuleSet) -> Redacted:
    """The bytes with each secret replaced by `[REDACTED:RULE]`."""
    if not rules.may_match(data):
        return Redacted(data, ())
    redactor = StreamRedactor(rules)
    clean = redactor.finish(data)
    return Redacted(clean, tuple(Finding(one.rule, one.offset) for one in redactor.secrets))


def redact_json(data: bytes, rules: RuleSet) -> Redacted:
    """The bytes with each secret replaced. JSON stays JSON.

    Expressions of a user come last, so that they hide no known secret. They may match a text of
    JSON only as it is by itself, without escapes. So each text is searched for them, too.
    """
    known, own = rules.parts
    redacted = redact(data, known)
    if not (redacted.found or own.rules) or not _is_json(data):
        return redact(data, rules) if own.rules else redacted
    clean, names = redacted.data, [one.rule for one in redacted.found]
    if not _is_json(clean):
        clean, names = _redact_values(data, known)
    if own.rules:
        clean, more = _redact_values(clean, own)
        names += more
    return Redacted(clean, _findings(clean, names))


def _redact_values(data: bytes, rules: RuleSet) -> tuple[bytes, list[str]]:
    """JSON with the secrets replaced, and the rule of each.

    Each text is searched by itself. Then a match that is not within one text, such as a key whose
    lines are texts, replaces each value that has a part of the secret; names of members stay.
    """
    names: list[str] = []

    def redact_text(value: re.Match[bytes]) -> bytes:
        kept, found = _redact_text(value[0], rules)
        names.extend(found)
        return kept

    clean = _TEXT.sub(redact_text, data)
    spans = deque(_outside_marks(clean, rules))

    def replace_value(value: re.Match[bytes]) -> bytes:
        is_text = value["text"] is not None
        begin, end = value.span("text" if is_text else "bare")
        while spans and spans[0].end <= begin:
            spans.popleft()
        here = _before(end, spans)
        if is_text:  # what is within the text was found there, or cuts an escape
            here = [one for one in here if one.begin < begin or end < one.stop]
        if not here or value["is_name"]:
            return value[0]
        names.append(here[0].rule)
        return b'"%b"' % b"".join([_mark(here[0].rule), *_MARK.findall(value[0])])

    return _VALUE.sub(replace_value, clean), names


def _redact_text(spelled: bytes, rules: RuleSet) -> tuple[bytes, list[str]]:
    """A string of JSON with the secrets in its text replaced, and the rule of each."""
    text: str = json.loads(spelled.decode("utf-8", "surrogatepass"))
    data = text.encode("utf-8", "surrogatepass")
    if data.startswith((b"{", b"[", b'"')) and _is_json(data):
        clean, found = redact_json(data, rules)
        names = [one.rule for one in found]
    else:
        spans = list(_outside_marks(data, rules))
        clean, names = _replaced(data, spans), [one.rule for one in spans]
    if names:
        kept = json.dumps(text_from(clean), ensure_ascii=False)
        spelled = kept.encode("utf-8", "backslashreplace")
    return spelled, names


def _outside_marks(data: bytes, rules: RuleSet) -> Iterator[_Span]:
    """The secrets in the bytes, without what was replaced before."""
    marks = deque(_Span(*one.span(), "", *one.span()) for one in _MARK.finditer(data))
    for span in StreamRedactor(rules).search(data, is_last=True)[0]:
        start = span.start
        while marks and marks[0].end <= start:
            marks.popleft()
        for mark in _before(span.end, marks):
            if data[span.start : span.end] == _mark(span.rule):
                break  # a rule that counts marks
            if start < mark.start:
                yield span._replace(start=start, end=mark.start)
            start = mark.end
        if start < span.end:
            yield span._replace(start=start)


def _before(end: int, spans: Iterable[_Span]) -> list[_Span]:
    return list(takewhile(lambda one: one.start < end, spans))


def _replaced(data: bytes, spans: Iterable[_Span]) -> bytes:
    kept, at = bytearray(), 0
    for one in spans:
        kept += data[at : one.start] + _mark(one.rule)
        at = one.end
    return bytes(kept + data[at:])


def _findings(clean: bytes, names: Sequence[str]) -> tuple[Finding, ...]:
    """The places of the replaced secrets, from the rule of each; a larger one may hold others."""
    found: list[Finding] = []
    for rule, count in Counter(names).items():
        at = -1
        for _ in range(count):
            if (at := clean.find(_mark(rule), at + 1)) < 0:
                break
            found.append(Finding(rule, at))
    return tuple(sorted(found, key=lambda one: one.offset))


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
        secrets: the secrets that the last piece completed, in order.
        read_size: bytes of the stream as it was added that were returned or replaced.
    """

    def __init__(self, rules: RuleSet) -> None:
        self.secrets: list[ReplacedSecret] = []
        self._counts: Counter[str] = Counter()
        self._first: dict[str, int] = {}
        self.read_size = 0
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
        begin = self.read_size - self._sent
        self.secrets = []
        redacted, at = bytearray(), self._sent
        for span in spans:
            if span.end > until:
                break
            redacted += held[at : span.start]
            offset, mark = self._offset + len(redacted), _mark(span.rule)
            place = (begin + span.start, begin + span.end)
            self.secrets.append(ReplacedSecret(span.rule, offset, len(mark), *place))
            self._counts[span.rule] += 1
            self._first.setdefault(span.rule, offset)
            redacted += mark
            at = span.end
        redacted += held[at:until]
        self._offset += len(redacted)
        self.read_size = begin + until
        # A match may depend on bytes before it: its beginning, or a byte that it must not follow.
        kept_from = max(0, until - self._rules.margin)
        self._held, self._sent = held[kept_from:], until - kept_from
        return bytes(redacted)

    def redactions(self, field: str) -> tuple[RedactionFact, ...]:
        """What a fact says of the secrets that were replaced so far."""
        return _facts(field, self._counts, self._first)

    def search(self, data: bytes, *, is_last: bool) -> tuple[list[_Span], int]:
        """The secrets in `data` in order, and the end of the bytes that can be sent now.

        With `is_last`, a match of an expression of a user may be longer than its rule says.
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
    return _Span(start, end, rule.name, *match.span())


def _merged(found: list[_Span], begin: int) -> list[_Span]:
    """The spans that end after `begin`, in order; overlapping ones become one."""
    merged: list[_Span] = []
    for span in sorted(found):
        if span.end <= begin:
            continue
        if merged and span.start < merged[-1].end:
            last = merged[-1]
            merged[-1] = last._replace(
                end=max(last.end, span.end),
                begin=min(last.begin, span.begin),
                stop=max(last.stop, span.stop),
            )
        else:
            merged.append(span._replace(start=max(span.start, begin)))
    return merged
