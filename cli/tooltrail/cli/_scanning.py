"""The work of `tooltrail redact --scan`: search a store for secrets that it should not hold."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from uuid import UUID

from tooltrail.records.errors import NotFoundError, TooltrailError
from tooltrail.records.facts import RedactionFact
from tooltrail.records.frozen import Frozen
from tooltrail.redaction import RuleSet, StreamRedactor, redact_json, redactions
from tooltrail.store import InvocationView, Reader, SessionView, StreamView

_CHUNK_BYTES = 1 << 20


class Secret(Frozen):
    """Secrets of one rule in one part of a session, a call or a message.

    Attributes:
        session: id of the session.
        kind: `session`, `call` or `message`.
        id: id of that.
        field: the part: `title`, `environment`, `arguments`, `receipt`, the role of a stream, …
        rule: name of the rule.
        count: number of secrets.
        offset: offset of the first one in the part, if those before it were replaced.
    """

    session: UUID
    kind: str
    id: UUID
    field: str
    rule: str
    count: int
    offset: int


class Scan:
    """Searches everything that a store holds.

    Args:
        reader: the reader.
        rules: the secrets to search for.
        on_progress: called after each call and message, with their number so far.

    Attributes:
        counts: `session`, `call` and `message`, and `replaced`: secrets in calls that were replaced
            before they were stored.
        unread: why a call, a message or a stream could not be read.
    """

    def __init__(self, reader: Reader, rules: RuleSet, on_progress: Callable[[int], None]) -> None:
        self.counts: Counter[str] = Counter()
        self.unread: list[str] = []
        self._reader = reader
        self._rules = rules
        self._on_progress = on_progress

    def secrets(self) -> Iterator[Secret]:
        """The secrets, session by session.

        Raises:
            TooltrailError: the store cannot be read.
        """
        for session in self._reader.sessions():
            yield from self._in_session(session)

    def _in_session(self, session: SessionView) -> Iterator[Secret]:
        yield from self._in_record(session.id, "session", session.id, _texts_of(session))
        if session.damage is not None:
            self.unread.append(session.damage)
        try:
            _, messages, calls = self._reader.conversation(session.id, payloads=True)
        except NotFoundError as error:  # the id of the session is damaged
            if session.damage is None:
                self.unread.append(str(error))
            return
        self.unread += filter(None, (one.damage or one.summary.damage for one in calls))
        self.unread += filter(None, (one.damage for one in messages))
        for call in calls:
            self.counts["replaced"] += sum(one.count for one in call.redacted)
            texts = {
                **_texts_of(call.summary),
                "environment": call.environment,
                "arguments": call.arguments,
                "output": call.complete_json,
                "canonical": call.canonical_json,
                "receipt": None if call.receipt is None else call.receipt.text,
                "extras": call.extras,
            }
            yield from self._in_record(session.id, "call", call.summary.id, texts, call.streams)
        for one in messages:
            texts = {
                "text": one.text,
                "document": one.document,
                "payload": one.payload,
                "extras": one.extras,
            }
            yield from self._in_record(session.id, "message", one.id, texts)

    def _in_record(
        self,
        session: UUID,
        kind: str,
        owner: UUID,
        texts: Mapping[str, str | bytes | None],
        streams: Sequence[StreamView] = (),
    ) -> Iterator[Secret]:
        """The secrets in the parts of a session, a call or a message."""
        found: list[RedactionFact] = []
        for field, text in texts.items():
            data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text or b""
            found += redactions(field, redact_json(data, self._rules).found)
        found += [one for stream in streams for one in self._in_stream(stream)]
        self.counts[kind] += 1
        self._on_progress(self.counts["call"] + self.counts["message"])
        for one in found:
            yield Secret(session, kind, owner, one.field, one.rule, one.count, one.offset)

    def _in_stream(self, stream: StreamView) -> tuple[RedactionFact, ...]:
        redactor = StreamRedactor(self._rules)
        try:
            with self._reader.open_stream(stream) as source:
                while chunk := source.read(_CHUNK_BYTES):
                    redactor.feed(chunk)
        except TooltrailError as error:
            self.unread.append(f"stream {stream.role}: {error}")
        redactor.finish()
        return redactor.redactions(stream.role)


def _texts_of(view: SessionView | InvocationView) -> dict[str, str]:
    return {name: value for name, value in view.as_dict().items() if isinstance(value, str)}
