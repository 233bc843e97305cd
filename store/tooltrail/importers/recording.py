"""Turns what an importer found into facts, and appends them to the journal.

Ids are derived from the format and the ids of the source. So importing a source again, or a longer
version of it, adds only what is new. A secret is replaced before anything is stored.
"""

import re
from collections import Counter, defaultdict, deque
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple
from uuid import UUID

from tooltrail.importers.documents import failure_document, output_document
from tooltrail.importers.events import (
    CallFound,
    Event,
    Line,
    MessageFound,
    OutputFound,
    ResultFound,
    SessionFound,
)
from tooltrail.journal.log import Entry, JournalLog
from tooltrail.records.canonical_json import encode, encode_simple
from tooltrail.records.counted_streams import INLINE_BYTES, CountedStream
from tooltrail.records.default_policy_document import default_policy_json
from tooltrail.records.digests import digest_of
from tooltrail.records.errors import UnavailableError
from tooltrail.records.facts import (
    CallEnded,
    CallStarted,
    MessageAdded,
    RedactionFact,
    SessionOpened,
    SourceFact,
    StreamFact,
)
from tooltrail.records.ids import MAX_KEY_CHARS, keyed_id
from tooltrail.records.plain_text import storable
from tooltrail.records.states import InvocationState
from tooltrail.redaction import RuleSet, may_have_secrets, redact

_STATES: Final[dict[str, InvocationState]] = {
    "permission_denied": "denied",
    "cancelled": "cancelled",
    "interrupted": "interrupted",
}

_LOSS: Final = "the source of the import has only a part"

_ASTRAL_KEY: Final = re.compile(rb'[\xf0-\xf4][^"]*"\s*:')
"""A key beyond the Basic Multilingual Plane, whose order in canonical JSON differs."""

_TOGETHER: Final = 512
"""The most facts that are appended together."""

_BYTES_TOGETHER: Final = 8 << 20
"""A batch ends at about this many bytes, since the journal is locked while it is written."""

_COMMAND: Final = "command"
_OTHER: Final = "generic"


class _WaitingCall(NamedTuple):
    """A call that waits for its result."""

    id: UUID
    tool_name: str
    at: datetime
    is_command: bool


class Recording:
    """Records the events of one file.

    Args:
        log: the journal.
        spool: folder of the spool with the journal.
        source: name of the format, which is a part of every id.
        file: path of the file.
        rules: the secrets to replace; None for none.
        since: offset in the file; what stands before it is recorded already.
        is_dry_run: whether to count only.

    Attributes:
        counts: events by kind: `sessions`, `messages`, `calls`, `results`, `unpaired_calls`,
            `unpaired_results`, `other_lines`; `unknown: TYPE` for lines of types that this program
            does not know; and the facts, `new` and `known`.
    """

    def __init__(
        self,
        log: JournalLog,
        spool: Path,
        source: str,
        file: str,
        rules: RuleSet | None,
        *,
        since: int = 0,
        is_dry_run: bool = False,
    ) -> None:
        self.counts: Counter[str] = Counter()
        self._spool = spool
        self._log = log
        self._source = source
        self._file = file
        self._rules = rules
        self._since = since
        self._is_dry_run = is_dry_run
        self._policy = default_policy_json()
        self._policy_digest = digest_of(self._policy)
        self._entries: list[Entry] = []
        self._size = 0
        self._waiting: defaultdict[tuple[str, str], deque[_WaitingCall]] = defaultdict(deque)
        self._repeats: Counter[tuple[str, str]] = Counter()
        self._last_at = datetime(1970, 1, 1, tzinfo=UTC)
        self._sessions: dict[str, UUID] = {}
        self._line: Line | None = None

    def add(self, event: Event, line: Line) -> None:
        """Record one event, which was found in a line."""
        if line is not self._line:
            self._line = line
            self._place = SourceFact(
                format=self._source,
                file=self._file,
                offset=line.offset,
                digest=digest_of(line.data),
            )
            self._encode = encode if _is_odd(line) else encode_simple
            self._has_secrets = self._rules is not None and may_have_secrets(line.data, self._rules)
        match event:
            case SessionFound():
                self._add_session(event, line)
            case MessageFound():
                self._add_message(event, line)
            case CallFound():
                self._add_call(event, line)
            case ResultFound():
                self._add_result(event, line)
            case _:
                self.counts["other_lines" if event.is_known else f"unknown: {event.what}"] += 1

    def finish(self) -> None:
        """Append everything that was recorded."""
        self._flush()
        self.counts["unpaired_calls"] += sum(map(len, self._waiting.values()))

    def _add_session(self, found: SessionFound, line: Line) -> None:
        self.counts["sessions"] += 1
        environment, _ = self._redacted("environment", self._encode(dict(found.environment)))
        fact = SessionOpened(
            session=self._session(found.session),
            at=self._at(found.at),
            title=found.title,
            agent=found.agent,
            parent=None if found.parent is None else self._session(found.parent),
            environment=digest_of(environment),
        )
        self._append(line, Entry(fact, [environment]))

    def _add_message(self, found: MessageFound, line: Line) -> None:
        self.counts["messages"] += 1
        plain = "".join(one["text"] for one in found.blocks if one["type"] == "text")
        is_plain = len(found.blocks) == 1 and found.blocks[0]["type"] == "text" and not found.origin
        text, redacted = self._redacted("text", _encoded(plain))
        bodies, document, extras = [text], None, None
        if not is_plain:
            members = {"role": found.role, "blocks": found.blocks}
            if found.origin:
                members["origin"] = found.origin
            spelled, more = self._redacted("document", self._encode(members))
            bodies.append(spelled)
            document, redacted = digest_of(spelled), redacted + more
        if found.extras:
            spelled, more = self._redacted("extras", self._encode(dict(found.extras)))
            bodies.append(spelled)
            extras, redacted = digest_of(spelled), redacted + more
        fact = MessageAdded(
            session=self._session(found.session),
            id=self._id("message", found.session, found.message),
            at=self._at(found.at),
            role=found.role,
            text=digest_of(text),
            document=document,
            source=self._place,
            extras=extras,
            redacted=redacted,
        )
        self._append(line, Entry(fact, bodies))

    def _add_call(self, found: CallFound, line: Line) -> None:
        self.counts["calls"] += 1
        name = (found.session, found.call_id)
        number, self._repeats[name] = self._repeats[name], self._repeats[name] + 1
        parts = (found.session, found.call_id, *([str(number)] if number else []))
        call_id = self._id("call", *parts)
        arguments, redacted = self._redacted("arguments", _encoded(found.arguments))
        at = self._at(found.at)
        tool_name = storable(found.tool_name)
        self._waiting[name].append(_WaitingCall(call_id, tool_name, at, found.is_command))
        message = found.message
        fact = CallStarted(
            session=self._session(found.session),
            id=call_id,
            at=at,
            tool_name=tool_name,
            family=_COMMAND if found.is_command else _OTHER,
            arguments=digest_of(arguments),
            policy=self._policy_digest,
            call_id=found.call_id,
            message=None if message is None else self._id("message", found.session, message),
            position=found.position,
            source=self._place,
            redacted=redacted,
        )
        self._append(line, Entry(fact, [arguments], [self._policy]))

    def _add_result(self, found: ResultFound, line: Line) -> None:
        waiting = self._waiting.get((found.session, found.call_id))
        if not waiting:
            self.counts["unpaired_results"] += 1
            self._add_unpaired(found, line)
            return
        self.counts["results"] += 1
        call = waiting.popleft()
        bodies: list[bytes] = []
        files: list[Path] = []
        redacted: tuple[RedactionFact, ...] = ()
        streams: list[StreamFact] = []
        for role, data in self._streams_of(found, call):
            content, more = self._redacted(role, data)
            stream, file = self._stream(call, role, content)
            streams.append(_with_loss(stream, found.output))
            redacted += more
            if file is None:
                bodies.append(content)
            else:
                files.append(file)
        receipt, text = None, ""
        if found.receipt is not None:
            seen, more = self._redacted("receipt", _encoded(found.receipt))
            bodies.append(seen)
            receipt, redacted = digest_of(seen), redacted + more
            text = found.receipt if not more else seen.decode("utf-8", "surrogatepass")
        output, more = self._cleaned(found.output)
        redacted += more
        document = _document(found, text, output, call, streams)
        extras = None
        if found.extras:
            spelled, more = self._redacted("extras", self._encode(dict(found.extras)))
            bodies.append(spelled)
            extras, redacted = digest_of(spelled), redacted + more
        fact = CallEnded(
            session=self._session(found.session),
            id=call.id,
            at=max(self._at(found.at), call.at),
            state=_STATES.get(found.kind, "error") if found.is_error else "success",
            output=digest_of(document),
            streams=tuple(streams),
            duration_ms=found.duration_ms,
            error_kind=found.kind if found.is_error else None,
            exit_status=None if output is None or found.is_error else output.exit_status,
            timed_out=False if call.is_command and document and not found.is_error else None,
            source=self._place,
            receipt=receipt,
            extras=extras,
            redacted=redacted,
        )
        self._append(line, Entry(fact, [document, *bodies], files=files))

    def _add_unpaired(self, found: ResultFound, line: Line) -> None:
        """Record a result without a call as a message, so that it is not lost."""
        content = [{"type": "text", "text": found.receipt}] if found.receipt else []
        block = {"type": "tool_result", "call_id": found.call_id, "content": content}
        if found.is_error:
            block["status"] = "error"
        message = MessageFound(
            found.session, f"result/{found.call_id}/{line.offset}", found.at, "tool", [block]
        )
        self._add_message(message, line)
        self.counts["messages"] -= 1

    def _cleaned(
        self, output: OutputFound | None
    ) -> tuple[OutputFound | None, tuple[RedactionFact, ...]]:
        """An output without the secrets in its command line."""
        if output is None or output.command is None:
            return output, ()
        command, redacted = self._redacted("command", _encoded(output.command))
        return output._replace(command=command.decode("utf-8", "surrogatepass")), redacted

    def _streams_of(self, found: ResultFound, call: _WaitingCall) -> list[tuple[str, bytes]]:
        """The streams of an output by role, in the order of its document."""
        output = found.output
        if output is None:
            return []
        streams = list(output.streams.items())
        if output.structured is not None and not call.is_command:
            spelled = self._encode({"value": output.structured})
            streams.append(("structured", spelled[len(b'{"value":') : -1]))
        return streams

    def _stream(self, call: _WaitingCall, role: str, data: bytes) -> tuple[StreamFact, Path | None]:
        """The fact of a stream; a long stream is written to a file in the spool."""
        if len(data) <= INLINE_BYTES:
            return StreamFact.of(CountedStream.of(role, data)), None
        from tooltrail.artifacts.capture import Capture  # noqa: PLC0415  loads the codec

        path = self._spool / str(call.id) / f"{role}.zst"
        path.unlink(missing_ok=True)  # of an import that was interrupted
        with Capture(role, path, edge_bytes=0) as capture:
            capture.write(data)
        kept = capture.close()
        if kept.staged is None:
            raise UnavailableError(f"{path} cannot be written: {kept.counted.loss_reason}")
        return StreamFact.of(kept.counted, f"{call.id}/{kept.staged.name}"), kept.staged

    def _append(self, line: Line, entry: Entry) -> None:
        if line.offset < self._since:
            self.counts["known"] += 1
            return
        self.counts["new"] += 1
        if self._is_dry_run:
            return
        self._entries.append(entry)
        self._size += sum(map(len, entry.bodies))
        if len(self._entries) >= _TOGETHER or self._size >= _BYTES_TOGETHER:
            self._flush()

    def _flush(self) -> None:
        self._log.record(self._entries)
        self._entries, self._size = [], 0

    def _redacted(self, field: str, data: bytes) -> tuple[bytes, tuple[RedactionFact, ...]]:
        """A part without its secrets, and the secrets by rule."""
        if self._rules is None or not self._has_secrets:
            return data, ()
        redacted = redact(data, self._rules)
        if not redacted.found:
            return data, ()
        counts = Counter(one.rule for one in redacted.found)
        first = {one.rule: one.offset for one in reversed(redacted.found)}
        return redacted.data, tuple(
            RedactionFact(field=field, rule=rule, count=count, offset=first[rule])
            for rule, count in counts.items()
        )

    def _session(self, name: str) -> UUID:
        if name not in self._sessions:
            self._sessions[name] = self._id("session", name)
        return self._sessions[name]

    def _id(self, kind: str, *parts: str) -> UUID:
        key = "/".join((self._source, *parts))
        return keyed_id(kind, key if len(key) <= MAX_KEY_CHARS else digest_of(_encoded(key)))

    def _at(self, spelled: str | None) -> datetime:
        """A time of the source; if it has none, the last one."""
        if isinstance(spelled, str):
            try:
                at = datetime.fromisoformat(spelled)
            except ValueError:
                return self._last_at
            self._last_at = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
        return self._last_at


def _document(
    found: ResultFound,
    receipt: str,
    output: OutputFound | None,
    call: _WaitingCall,
    streams: Sequence[StreamFact],
) -> bytes:
    """The complete output; empty if the source does not have it."""
    if found.is_error:
        return failure_document(call.tool_name, found.kind, receipt, streams)
    if output is None:
        return b""
    return output_document(call.tool_name, output, streams, is_command=call.is_command)


def _with_loss(stream: StreamFact, output: OutputFound | None) -> StreamFact:
    """The fact of a stream, with the bytes that the source does not have."""
    if output is None or stream.role not in output.lost:
        return stream
    return stream.replaced(
        produced_size=max(output.lost[stream.role], stream.size + 1), loss_reason=_LOSS
    )


def _is_odd(line: Line) -> bool:
    """Whether the canonical JSON of the values in a line needs more than sorted keys."""
    data = line.data
    if line.has_floats or b"$tooltrail." in data:
        return True
    return not data.isascii() and _ASTRAL_KEY.search(data) is not None


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
