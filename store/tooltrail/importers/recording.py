"""Turns what an importer found into facts, and appends them to the journal.

Ids are derived from the format and the ids of the source. So importing a source again, or a longer
version of it, adds only what is new. A secret is replaced before anything is stored.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple
from uuid import UUID

from tooltrail.importers import events
from tooltrail.importers.blocks import (
    block_of,
    call_block,
    others_than_text,
    parts_of,
    size_before_cut,
    text_of,
)
from tooltrail.importers.members import milliseconds_of, spelled
from tooltrail.importers.parts import Parts, encoded, failure_document, success_document
from tooltrail.importers.values import NOTHING, Json
from tooltrail.journal.clock import new_id
from tooltrail.journal.environment import NOT_REDACTED
from tooltrail.journal.log import Entry
from tooltrail.records import facts
from tooltrail.records.canonical_json import encode
from tooltrail.records.default_policy_document import default_policy_json
from tooltrail.records.digests import digest_of
from tooltrail.records.ids import MAX_KEY_CHARS, keyed_id
from tooltrail.records.plain_text import recordable_name
from tooltrail.records.states import InvocationState
from tooltrail.redaction import RuleSet

_STATES: Final[dict[str, InvocationState]] = {
    "permission_denied": "denied",
    "cancelled": "cancelled",
    "interrupted": "interrupted",
}
"""The state of a call by the kind of its error; of all other kinds, `error`."""

_ROLES: Final = ("system", "developer", "user", "assistant", "tool")
_EARLIEST: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TYPE_CHARS: Final = 40
"""Characters of an unknown type that a report shows."""

_TOGETHER: Final = 512
"""The most facts that are appended together."""

_BYTES_TOGETHER: Final = 8 << 20
"""A batch ends at about this many bytes, since the journal is locked while it is written."""


class _WaitingCall(NamedTuple):
    """A call that waits for its result."""

    id: UUID
    tool_name: str
    at: datetime
    is_command: bool


class Source(NamedTuple):
    """The file that is imported.

    Attributes:
        format: name of its format, which is a part of every id.
        path: absolute path of the file.
        since: offset up to which it was imported before.
    """

    format: str
    path: str
    since: int = 0


class Recording:
    """Records the events of one file.

    Args:
        append: appends facts to the journal; None to count only.
        spool: folder of the spool with the journal.
        source: the file.
        rules: the secrets to replace; None for none.

    Attributes:
        counts: events by kind: `sessions`, `messages`, `calls`, `results`, `incomplete_outputs`,
            `unpaired_calls`, `unpaired_results`, `other_lines`; `unknown: TYPE` for lines of types
            that this program does not know; and the facts, `new` and `known`.
        calls: the number of calls with an id, by the session and the id in the source.
        results: the calls with a result, each by its session and its id in the source.
    """

    def __init__(
        self,
        append: Callable[[Sequence[Entry]], object] | None,
        spool: Path,
        source: Source,
        rules: RuleSet | None,
    ) -> None:
        self.counts: Counter[str] = Counter()
        self.calls: Counter[tuple[str, str]] = Counter()
        self.results: set[tuple[str, str]] = set()
        self._record = append
        self._spool = spool
        self._source = source
        self._rules = rules
        self._policy = default_policy_json()
        self._policy_digest = digest_of(self._policy)
        self._entries: list[Entry] = []
        self._size = 0
        self._waiting: defaultdict[tuple[str, str], deque[_WaitingCall]] = defaultdict(deque)
        self._unseen: dict[tuple[str, str], tuple[_WaitingCall, events.Result]] = {}
        self._unasked: Counter[tuple[str, str]] = Counter()  # calls of which no message spoke
        self._at = _EARLIEST  # the last time that the source says
        self._sessions: dict[str, UUID] = {}
        self._opened: set[str] = set()
        self._current = ""  # the session of the last event
        self._line: events.Line | None = None

    def add(self, event: events.Found, line: events.Line) -> None:
        """Record one event, which was found in a line.

        Raises:
            UnavailableError: the spool cannot be written.
        """
        if isinstance(event, events.Skipped):
            what = Parts(self._rules).clean_text("type", event.what)[:_TYPE_CHARS]
            self.counts["other_lines" if event.is_known else f"unknown: {what}"] += 1
            if event.is_known or not self._current:
                return
        else:
            self._current = event.session
            self._at = _time(event.at) or self._at
        self._begin_line(line)
        match event:
            case events.Message():
                self._add_message(event)
            case events.Call():
                self._add_call(event, event.session)
            case events.Result():
                self._add_result(event)
            case events.Session():
                self._add_session(event)
            case events.SessionEnd():
                if self._begin_fact():
                    reason = event.reason if isinstance(event.reason, str) else None
                    fact = facts.SessionClosed(self._session(event.session), self._at, reason)
                    self._append(fact, Parts(self._rules))
            case events.Skipped():
                session = self._session(self._current)
                name = self._id("line", str(session), digest_of(line.data))
                self.keep(line, session, name, self._at)

    def _begin_fact(self, kind: str | None = None) -> bool:
        """Count a fact of the line, and return whether to make the fact: it is new."""
        if kind:
            self.counts[kind] += 1
        self.counts["new" if self._is_new else "known"] += 1
        return self._is_new and self._record is not None

    def finish(self) -> None:
        """Append everything that was recorded."""
        self._flush()
        self.counts["unpaired_calls"] += sum(map(len, self._waiting.values()))

    def keep(self, line: events.Line, session: UUID, message_id: UUID, at: datetime) -> None:
        """Keep a line verbatim, as a message that no model is shown, unless it is known."""
        self._begin_line(line)
        if not self._begin_fact():
            return
        parts = Parts(self._rules)
        fact = facts.MessageAdded(
            session=session,
            id=message_id,
            at=at,
            role="unknown",
            text=parts.add("text", b""),
            document=parts.add("document", encode({"role": "tool"})),
            payload=parts.add("payload", line.data),
            wire_format=self._source.format,
            source=self._place,
            redacted=parts.redacted,
        )
        self._append(fact, parts)

    def _begin_line(self, line: events.Line) -> None:
        if line is self._line:
            return
        source, digest = self._source, digest_of(line.data)
        self._line, self._is_new = line, line.offset >= source.since
        self._place = facts.SourceFact(source.format, source.path, line.offset, digest)

    def _add_session(self, found: events.Session) -> None:
        if found.session in self._opened:
            return
        self._opened.add(found.session)
        if not self._begin_fact("sessions"):
            return
        parts = Parts(self._rules)
        more = NOT_REDACTED if self._rules is None else NOTHING
        environment = parts.add("environment", encode({**found.environment, **more}))
        fact = facts.SessionOpened(
            session=self._session(found.session),
            at=self._at,
            title=parts.clean_text("title", found.title) if isinstance(found.title, str) else None,
            agent=found.agent and parts.clean_text("agent", found.agent),
            parent=self._session(found.parent) if isinstance(found.parent, str) else None,
            environment=environment,
        )
        self._append(fact, parts)

    def _add_message(self, found: events.Message) -> None:
        found = found._replace(role=found.role if found.role in _ROLES else "user")
        blocks: list[Json] = []
        calls: list[events.Call] = []
        for one in parts_of(found.content or None):
            if isinstance(one, events.Call):
                given_id = one.call_id if isinstance(one.call_id, str) else None
                call_id = given_id or f"{found.message}/{len(calls)}"
                call = one._replace(call_id=call_id, arguments=spelled(one.arguments))
                blocks.append(call_block(call, len(calls)))
                calls.append(call)
            else:
                blocks.append(block_of(one))
        if self._begin_fact("messages"):
            self._append_message(found, blocks)
        for position, call in enumerate(calls):
            self._at = _time(call.at) or self._at
            self._add_call(call, found.session, found.message, position)

    def _append_message(self, found: events.Message, blocks: Sequence[Json]) -> None:
        if found.role != "assistant" and (blocks or found.role != "tool"):
            found = found._replace(origin=NOTHING)
        parts = Parts(self._rules)
        text = "".join(one["text"] for one in blocks if one["type"] == "text")
        is_text = not found.origin and blocks == [{"type": "text", "text": text}]
        members: dict[str, object] = {"role": found.role, "blocks": blocks}
        if found.origin:
            members["origin"] = found.origin
        fact = facts.MessageAdded(
            session=self._session(found.session),
            id=self._id("message", found.session, found.message),
            at=self._at,
            role=found.role,
            text=parts.add("text", encoded(text)),
            document=None if is_text else parts.add("document", encode(members)),
            source=self._place,
            extras=parts.add("extras", encode(dict(found.extras))) if found.extras else None,
            redacted=parts.redacted,
        )
        self._append(fact, parts)

    def _add_call(
        self, found: events.Call, session: str, message: str | None = None, position: int = 0
    ) -> None:
        name = (session, found.call_id)
        if message is None:
            if self._waiting[name]:  # a message asked for it
                return
            self._unasked[name] += 1
        elif self._unasked[name]:  # the message comes after the call that it asks for
            self._unasked[name] -= 1
            return
        is_made = self._begin_fact("calls")
        number, self.calls[name] = self.calls[name], self.calls[name] + 1
        call_id = self._id("call", *name, *([str(number)] if number else []))
        parts = Parts(self._rules)
        tool_name = recordable_name(parts.clean_text("tool_name", found.tool_name))
        self._waiting[name].append(_WaitingCall(call_id, tool_name, self._at, found.is_command))
        if not is_made:
            return
        fact = facts.CallStarted(
            session=self._session(session),
            id=call_id,
            at=self._at,
            tool_name=tool_name,
            family="command" if found.is_command else "generic",
            arguments=parts.add("arguments", encoded(spelled(found.arguments))),
            policy=self._policy_digest,
            call_id=parts.clean_text("call_id", found.call_id),
            message=None if message is None else self._id("message", session, message),
            position=position,
            source=self._place,
            redacted=parts.redacted,
        )
        self._append(fact, parts, self._policy)

    def _add_result(self, found: events.Result) -> None:
        extras = {**found.extras, **others_than_text(found.receipt)}
        output = found.output and _with_cuts(found.output)
        found = found._replace(receipt=text_of(found.receipt), output=output, extras=extras)
        name = (found.session, found.call_id)
        waiting = self._waiting.get(name)
        call = waiting.popleft() if waiting else None
        is_receipt = call is None and found.output is None and found.receipt is not None
        kind: str | None = "unpaired_results" if call is None else "results"
        if is_receipt and name in self._unseen:  # of a result that was found before
            call, ended = self._unseen.pop(name)
            found = ended._replace(at=found.at, receipt=found.receipt, extras=found.extras)
            kind = None
        else:
            self.results.add(name)
            self.counts["incomplete_outputs"] += bool(found.output and found.output.lost)
            if call is not None and found.receipt is None:
                self._unseen[name] = call, found._replace(output=None)
        if not self._begin_fact(kind):
            return
        if call is None:
            self._append_unpaired(found)
            return
        parts, output = Parts(self._rules), found.output
        streams = self._streams_of(found, call, parts)
        receipt = None if found.receipt is None else parts.add("receipt", encoded(found.receipt))
        document = _document(found, call, streams, parts)
        status = events.exit_status_of(found.exit_status if output is None else output.exit_status)
        is_error = found.failure is not None
        fact = facts.CallEnded(
            session=self._session(found.session),
            id=call.id,
            at=max(self._at, call.at),
            state=_STATES.get(found.failure, "error") if found.failure else "success",
            output=digest_of(document),
            streams=streams,
            duration_ms=milliseconds_of(found.duration_ms),
            error_kind=found.failure,
            exit_status=None if is_error else status,
            timed_out=False if call.is_command and document and not is_error else None,
            source=self._place,
            receipt=receipt,
            extras=parts.add("extras", encode(dict(found.extras))) if found.extras else None,
            redacted=parts.redacted,
        )
        parts.bodies.append(document)
        self._append(fact, parts)

    def _append_unpaired(self, found: events.Result) -> None:
        """Append a result without a call as a message, so that it is not lost."""
        content = [block_of(one) for one in parts_of(found.receipt or None)]
        block = {"type": "tool_result", "call_id": found.call_id, "content": content}
        if found.failure:
            block["status"] = "error"
        name = f"result/{found.call_id}/{self._place.offset}"
        message = events.Message(found.session, name, None, "tool", None, extras=found.extras)
        self._append_message(message, [block])

    def _streams_of(
        self, found: events.Result, call: _WaitingCall, parts: Parts
    ) -> tuple[facts.StreamFact, ...]:
        """The streams of an output, in the order of its document."""
        output = found.output
        if output is None:
            return ()
        streams = {
            role: encoded(data) if isinstance(data, str) else data
            for role, data in output.streams.items()
            if isinstance(data, str | bytes)
        }
        if output.structured is not None and not call.is_command:
            streams["structured"] = encode(output.structured)
        # If the call is recorded already, the ingester may remove its folder at any time.
        folder = self._spool / f"{call.id}.{new_id()}"
        return tuple(parts.stream(role, data, output, folder) for role, data in streams.items())

    def _append(self, fact: facts.Fact, parts: Parts, *repeated: bytes) -> None:
        self._entries.append(Entry(fact, parts.bodies, repeated, parts.files))
        self._size += sum(map(len, parts.bodies))
        if len(self._entries) >= _TOGETHER or self._size >= _BYTES_TOGETHER:
            self._flush()

    def _flush(self) -> None:
        if self._record is not None:
            self._record(self._entries)
        self._entries, self._size = [], 0

    def _session(self, name: str) -> UUID:
        if name not in self._sessions:
            self._sessions[name] = self._id("session", name)
        return self._sessions[name]

    def _id(self, kind: str, *parts: str) -> UUID:
        # With their lengths: an id may hold any separator.
        key = "".join([f"{len(part)}:{part}" for part in (self._source.format, *parts)])
        return keyed_id(kind, key if len(key) <= MAX_KEY_CHARS else digest_of(encoded(key)))


def _time(given: object) -> datetime | None:
    """A time of the source; None for an impossible one."""
    with suppress(ValueError, OverflowError, OSError):
        if isinstance(given, int | float):
            at = datetime.fromtimestamp(given, UTC)
        else:
            at = datetime.fromisoformat(given if isinstance(given, str) else "")
            at = at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
        return at if at >= _EARLIEST else None
    return None


def _with_cuts(output: events.Output) -> events.Output:
    """An output with the sizes of its texts that the agent cut."""
    texts = output.streams or {"structured": output.structured}
    sizes = ((role, size_before_cut(text)) for role, text in texts.items())
    cut = {role: size for role, size in sizes if size is not None}
    return output._replace(lost={**cut, **output.lost}) if cut else output


def _document(
    found: events.Result, call: _WaitingCall, streams: tuple[facts.StreamFact, ...], parts: Parts
) -> bytes:
    """The complete output; empty if the source does not have it."""
    output = found.output
    if output is None and not found.message:
        return b""
    if output is None or found.failure:
        # Redacted first: a secret that is cut would not be found.
        text = parts.clean_text("message", found.receipt or found.message)
        return failure_document(call.tool_name, found.failure or events.FAILED, text, streams)
    command, cwd = (
        parts.clean_text(name, text) if isinstance(text, str) else None
        for name, text in (("command", output.command), ("cwd", output.cwd))
    )
    status = events.exit_status_of(output.exit_status)
    output = output._replace(command=command, cwd=cwd, exit_status=status)
    return success_document(call.tool_name, output, streams, is_command=call.is_command)
