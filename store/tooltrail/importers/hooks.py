"""Imports the events that hooks logged, each after the transcript that it names.

Claude Code and Codex send the same members: one JSON object for each step of a tool call. Each line
of the log holds an event, and the time at which it came: `{"at": 1795000000.123456, "event": {…}}`.

The transcript of a session says more than its events: what the model saw, messages, the exit
status. So an event adds only what the transcript does not have: a call that still runs, one whose
result was never written, a denied one, or a complete session whose transcript is gone.

An agent writes its transcript after its events. So an event waits for two seconds.
"""

import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

from tooltrail.importers import claude_code, codex, events
from tooltrail.importers.cursors import Cursor
from tooltrail.importers.hook_log import AGENTS, FOLDER, UNREDACTED
from tooltrail.importers.importing import UNEXPECTED, Importer, ImportResult
from tooltrail.importers.lines import read_lines
from tooltrail.importers.members import milliseconds_of, named_texts, names_in, without
from tooltrail.importers.recording import Source
from tooltrail.importers.values import Json, list_of, object_of
from tooltrail.records.errors import TooltrailError, UnavailableError
from tooltrail.redaction import RuleSet

_SETTLE_S: Final = 2.0
_COARSE_S: Final = 0.1
"""Seconds by which the times of a file system may be behind."""
_KEPT_S: Final = 2 * 24 * 3600.0
"""Seconds after its last event at which a log that was imported is deleted."""

_COMMAND_TOOL: Final = "Bash"
_ENDS: Final = frozenset({"PostToolUse", "PostToolUseFailure", "PermissionDenied"})
_IN_TRANSCRIPT: Final = names_in(
    "Notification PermissionRequest PostCompact PreCompact Stop UserPromptSubmit"
)
"""Events that are not recorded, because the transcript has their content."""

_RECORDED: Final = names_in(
    "agent_id agent_type cwd duration_ms error hook_event_name is_interrupt reason session_id "
    "tool_input tool_name tool_response tool_use_id transcript_path"
)
"""Members of an event that are recorded elsewhere than in `extras`."""


class Reader(events.FileReader):
    """Reads the log of the events of one agent.

    Attributes:
        begun: the calls that transcripts have, each by its session and its id.
        ended: the calls whose results transcripts or events have.
    """

    def __init__(self, path: Path, agent: str) -> None:
        super().__init__(path)
        self.begun, self.ended = set[tuple[str, str]](), set[tuple[str, str]]()
        self._agent = agent

    def transcripts(self, lines: Iterable[events.Line]) -> list[Path]:
        """The existing transcripts that events name, each once."""
        found: dict[Path, None] = {}
        for line in lines:
            event = object_of(line.value, "event")
            named = [event.get("transcript_path"), event.get("agent_transcript_path")]
            paths = [Path(one) for one in named if isinstance(one, str) and one]
            with suppress(OSError, ValueError):  # a name that no file can have
                if paths and self._agent == claude_code.NAME and event.get("agent_id"):
                    paths.append(claude_code.sub_agent_path(paths[0], str(event["agent_id"])))
                found.update(dict.fromkeys(path for path in paths if path.is_file()))
        return list(found)

    def read(self, line: events.Line) -> Iterator[events.Event]:
        """What one line of the log says."""
        event, at = object_of(line.value, "event"), object_of(line.value).get("at")
        session, kind = self._session_of(event), str(event.get("hook_event_name"))
        if kind == "PreToolUse":
            yield from self._begin(session, event, at)
        elif kind in _ENDS:
            yield from self._end(session, kind, event, at)
        elif kind == "PostToolBatch":
            yield from self._batch(session, event, at)
        elif kind in ("SessionEnd", "SubagentStop"):
            yield self._opening(session, event, at)
            yield events.SessionEnd(session, at, event.get("reason"))
        elif kind in ("SessionStart", "SubagentStart"):
            # The transcript of Codex may name a parent that its events do not.
            if self._agent == claude_code.NAME:
                yield self._opening(session, event, at)
        else:
            yield events.Skipped(f"event {kind}", is_known=kind in _IN_TRANSCRIPT)
            return
        yield None  # the type is known, even if the transcript has the content of the event

    def _session_of(self, event: Json) -> str:
        session, agent = _text(event, "session_id"), event.get("agent_id")
        if not agent:
            return session
        return f"{session}/{agent}" if self._agent == claude_code.NAME else str(agent)

    def _opening(self, session: str, event: Json, at: Any) -> events.Session:
        parent = event["session_id"] if event.get("agent_id") else None
        where = named_texts(event, "cwd")
        return events.Session(session, at, self._agent, parent, environment=where)

    def _batch(self, session: str, event: Json, at: Any) -> Iterator[events.Event]:
        """The ends of several calls. A damaged one costs only itself."""
        calls, damaged = event.get("tool_calls") or (), list[str]()
        for call in calls:
            try:
                one = {**event, **call}
                if "tool_response" in call:
                    yield from self._end(session, "PostToolUse", one, at)
                else:
                    yield from self._begin(session, one, at)
            except UNEXPECTED as error:
                damaged.append(str(error))
        if damaged:
            raise TypeError(f"in {len(damaged)} of {len(calls)} calls: {damaged[0]}")

    def _begin(self, session: str, event: Json, at: Any) -> Iterator[events.Event]:
        """The start of a call, unless a transcript has recorded it."""
        name = (session, _text(event, "tool_use_id"))
        if name not in self.begun and name not in self.ended:
            yield _call(session, event, at)

    def _end(self, session: str, kind: str, event: Json, at: Any) -> Iterator[events.Event]:
        """The end of a call, and its start, of which there may be no event."""
        call_id = _text(event, "tool_use_id")
        if (session, call_id) in self.ended:
            return
        duration = milliseconds_of(event.get("duration_ms"))
        yield _call(session, event, at if duration is None else at - duration / 1000)
        self.ended.add((session, call_id))
        extras = without(event, _RECORDED)
        found = events.Result(session, call_id, at, None, duration_ms=duration, extras=extras)
        if kind == "PermissionDenied":
            why = str(event.get("reason") or "")
            yield found._replace(failure="permission_denied", message=why)
        else:
            yield self._completed(found, kind, event)

    def _completed(self, found: events.Result, kind: str, event: Json) -> events.Result:
        """The result with what the tool returned."""
        returned = event.get("tool_response" if kind == "PostToolUse" else "error")
        has_failed, extras = kind == "PostToolUseFailure", found.extras
        output = self._output(returned, event, has_failed=has_failed)
        has_failed = has_failed and (output is None or output.exit_status is None)
        message = returned if has_failed and isinstance(returned, str) else ""
        failure = events.FAILED if has_failed else None
        failure = claude_code.early_end(object_of(returned)) or failure
        if event.get("is_interrupt") is True:
            failure = "interrupted"
        if event.get("tool_name") == _COMMAND_TOOL:
            others = without(object_of(returned), claude_code.STREAMS) or list_of(returned)
            extras = {**extras, **({"tool_response": others} if others else {})}
        return found._replace(output=output, failure=failure, extras=extras, message=message)

    def _output(self, returned: Any, event: Json, *, has_failed: bool) -> events.Output | None:
        path = Path(str(event.get("transcript_path")))
        if event.get("tool_name") != _COMMAND_TOOL:
            return claude_code.output_of(returned, None, path)
        command = str(object_of(event.get("tool_input")).get("command"))
        if self._agent == codex.NAME and isinstance(returned, str):
            return events.Output({"combined": returned}, command=command)
        return claude_code.output_of(returned, None, path, command, has_failed=has_failed)


def _text(event: Json, name: str) -> str:
    """A member without which an event says nothing.

    Raises:
        TypeError: the event has no such text, so it counts as damaged.
    """
    if not isinstance(text := event.get(name), str) or not text:
        raise TypeError(f"{name} is not a text")
    return text


def _call(session: str, event: Json, at: Any) -> events.Call:
    call_id, tool = _text(event, "tool_use_id"), _text(event, "tool_name")
    return events.Call(call_id, tool, event.get("tool_input"), tool == _COMMAND_TOOL, at, session)


class _Log(NamedTuple):
    """One log: its file, its agent, whether it is without secrets, and how far it was imported."""

    path: Path
    agent: str
    is_redacted: bool
    cursor: Cursor


def has_events(spool: Path) -> bool:
    """Whether a spool holds events that are not imported yet."""
    return any(log.path.stat().st_size > log.cursor.offset for log in _logs(spool))


def settle(spool: Path) -> None:
    """Wait until `import_events` imports the newest event, some two seconds at most."""
    newest = max((log.path.stat().st_mtime for log in _logs(spool)), default=0.0)
    waits = _SETTLE_S + _COARSE_S
    time.sleep(min(max(newest + waits - time.time(), 0.0), waits))


def import_events(spool: Path, rules: RuleSet) -> Iterator[ImportResult]:
    """Import what was logged with the transcripts, and delete logs that were imported days ago.

    Args:
        spool: folder of the spool.
        rules: the secrets to replace.
    """
    for log in _logs(spool):
        try:
            with log.path.open("rb") as file:
                lines, end = _settled(log, file)
                if lines:
                    yield from _import_lines(spool, rules, log, lines)
                    log.cursor.write(file, end)
                is_done = log.cursor.offset == file.seek(0, 2)
            if is_done and log.path.stat().st_mtime < time.time() - _KEPT_S:
                log.path.unlink(missing_ok=True)
        except OSError as error:
            yield UnavailableError(f"{log.path} cannot be imported: {error.strerror}")
        except TooltrailError as error:
            yield error


def _import_lines(
    spool: Path, rules: RuleSet, log: _Log, lines: list[events.Line]
) -> Iterator[ImportResult]:
    importer = Importer(spool, rules if log.is_redacted else None)
    reader = Reader(log.path, log.agent)
    for path in reader.transcripts(lines):
        try:
            imported = importer.import_file(path, log.agent)
            reader.begun |= imported.calls
            reader.ended |= imported.results
            yield imported
        except TooltrailError as error:
            yield error
    # What a mark stands for was replaced before the event was logged.
    importer = Importer(spool, rules.with_marks() if log.is_redacted else None)
    yield importer.import_lines(Source(log.agent, str(log.path.resolve())), reader, lines)


def _logs(spool: Path) -> Iterator[_Log]:
    for agent in AGENTS:
        for path in sorted((spool / FOLDER).glob(f"{agent}-*.jsonl")):
            cursor = Cursor(spool, path.resolve(), FOLDER)
            yield _Log(path, agent, UNREDACTED not in path.name, cursor)


def _settled(log: _Log, file: IO[bytes]) -> tuple[list[events.Line], int]:
    """The lines that are not imported yet, up to the first one that is too young, and their end."""
    since = log.cursor.read(file)
    file.seek(0)
    # The cursor may be within a line: an event that was cut off has the next one behind it.
    before = file.read(since).count(b"\n")
    lines: list[events.Line] = []
    for line in read_lines(file):
        if line.is_cut or _is_young(line):
            return lines, line.offset
        lines.append(line._replace(number=before + line.number))
    return lines, file.tell()


def _is_young(line: events.Line) -> bool:
    """Whether an event came in the last two seconds. A clock that was ahead does not count."""
    at, now = object_of(line.value).get("at"), time.time()
    return isinstance(at, int | float) and now - _SETTLE_S < at <= now
