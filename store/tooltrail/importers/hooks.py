"""Hook events of Claude Code and Codex: one JSON object for each step of a tool call.

Both agents send the same members. Each line of the log holds an event, and the time at which it
came: `{"at": 1795000000.123456, "event": {…}}`.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from tooltrail.importers import claude_code, codex, events
from tooltrail.importers.members import milliseconds_of, named_texts, names_in, without
from tooltrail.importers.values import Json, object_of

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
            name = (session, str(event.get("tool_use_id")))
            if name not in self.begun and name not in self.ended:
                yield _call(session, event, at)
        elif kind in _ENDS:
            yield from self._end(session, kind, event, at)
        elif kind == "PostToolBatch":
            for call in event.get("tool_calls") or ():
                if "tool_response" in call:
                    yield from self._end(session, "PostToolUse", {**event, **call}, at)
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
        session, agent = str(event.get("session_id")), event.get("agent_id")
        if not agent:
            return session
        return f"{session}/{agent}" if self._agent == claude_code.NAME else str(agent)

    def _opening(self, session: str, event: Json, at: Any) -> events.Session:
        parent = event["session_id"] if event.get("agent_id") else None
        where = named_texts(event, "cwd")
        return events.Session(session, at, self._agent, parent, environment=where)

    def _end(self, session: str, kind: str, event: Json, at: Any) -> Iterator[events.Event]:
        """The end of a call, and its start, of which there may be no event."""
        call_id = str(event.get("tool_use_id"))
        if (session, call_id) in self.ended:
            return
        self.ended.add((session, call_id))
        duration = milliseconds_of(event.get("duration_ms"))
        yield _call(session, event, at if duration is None else at - duration / 1000)
        found = events.Result(session, call_id, at, None, extras=without(event, _RECORDED))
        if kind == "PermissionDenied":
            why = str(event.get("reason") or "")
            found = found._replace(failure="permission_denied", message=why)
        else:
            found = self._completed(found, kind, event)
        yield found._replace(duration_ms=duration)

    def _completed(self, found: events.Result, kind: str, event: Json) -> events.Result:
        """The result with what the tool returned."""
        returned = event.get("tool_response" if kind == "PostToolUse" else "error")
        output = self._output(returned, event)
        has_failed = kind == "PostToolUseFailure" and (output is None or output.exit_status is None)
        failure, extras = claude_code.early_end(object_of(returned)), found.extras
        failure = failure or (events.FAILED if has_failed else None)
        if output is not None and output.command is not None and isinstance(returned, dict):
            members = without(object_of(returned), frozenset({"stdout", "stderr"}))
            extras = {**extras, **({"tool_response": members} if members else {})}
        return found._replace(
            output=output,
            failure="interrupted" if event.get("is_interrupt") is True else failure,
            extras=extras,
            message=returned if has_failed and isinstance(returned, str) else "",
        )

    def _output(self, returned: Any, event: Json) -> events.Output | None:
        path = Path(str(event.get("transcript_path")))
        if event.get("tool_name") != _COMMAND_TOOL:
            return claude_code.output_of(returned, None, path)
        command = str(object_of(event.get("tool_input")).get("command"))
        if self._agent == codex.NAME and isinstance(returned, str):
            return events.Output({"combined": returned}, command=command)
        if isinstance(returned, dict) and returned.keys() & {"stdout", "stderr"}:
            returned = {"stdout": "", "stderr": "", **object_of(returned)}
        return claude_code.command_output_of(returned, None, path, command)


def _call(session: str, event: Json, at: Any) -> events.Call:
    call_id, tool = str(event.get("tool_use_id")), str(event.get("tool_name"))
    return events.Call(call_id, tool, event.get("tool_input"), tool == _COMMAND_TOOL, at, session)
