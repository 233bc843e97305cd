"""OpenCode: one JSON document for each session, as `opencode export SESSION` writes it.

A part `tool` of a message is a call together with its result: `state.output` is what the model saw,
and `state.metadata` what the tool itself returned. For a command, `metadata.output` is its output.
Of another tool, the text is the complete output unless OpenCode cut it: then `metadata.outputPath`
names a file with the whole.
"""

from collections.abc import Iterator
from typing import Any, Final

from tooltrail.importers import events
from tooltrail.importers.blocks import kind_of
from tooltrail.importers.members import (
    milliseconds_of,
    named_texts,
    names_in,
    version_of,
    without,
)
from tooltrail.importers.values import NOTHING, Json, object_of, objects_of

NAME: Final = "opencode"

_COMMAND_TOOL: Final = "bash"
_SHOWN_CHARS: Final = 30_000
"""OpenCode cuts `metadata.output` of a command at about this many characters, and adds `...`."""

_NO_CONVERSATION: Final = names_in("compaction patch retry snapshot step-finish step-start")
"""Types of parts that are about the agent's own state."""

_TEXTS: Final = frozenset({"reasoning", "text"})
_PROVIDER: Final = frozenset({"agent", "file", "subtask"})
"""Types of parts that only OpenCode understands."""

_OF_PART: Final = frozenset({"id", "messageID", "sessionID", "time", "type"})
_OF_CALL: Final = _OF_PART | {"callID", "state", "tool"}
_OF_STATE: Final = frozenset({"error", "input", "metadata", "output", "raw", "status"})
_OF_MESSAGE: Final = names_in("cost finish id modelID providerID role sessionID tokens")
"""Members that have a place in our records."""

_KINDS: Final = {
    "Permission denied": "permission_denied",
    "Rule prevents": "permission_denied",
    "The user has specified a rule": "permission_denied",
    "The user rejected permission": "permission_denied",
    "Tool execution aborted": "interrupted",
    "User aborted the command": "interrupted",
    "bash tool terminated": "tool_timed_out",
}
"""The kinds of failures, by the words with which OpenCode begins."""

_COMMAND_NOTE: Final = "<bash_metadata>"
"""Begins what OpenCode adds to the output of a command that it ended."""


def recognizes(value: Any) -> bool:
    """Whether a JSON value is an exported session of OpenCode."""
    document = object_of(value)
    info = object_of(value, "info")
    return isinstance(document.get("messages"), list) and info.keys() >= {"id", "time", "version"}


class Reader(events.FileReader):
    """Reads a document."""

    def read(self, line: events.Line) -> Iterator[events.Event]:
        """The events of one document."""
        info = object_of(line.value, "info")
        if "id" not in info:
            return
        self._session = str(info["id"])
        at, parent, title = _time(info, "created"), info.get("parentID"), info.get("title")
        where = named_texts(info, agent_version="version", cwd="directory", project="projectID")
        yield events.Session(self._session, at, NAME, parent, title, where)
        for number, message in enumerate(objects_of(line.value, "messages")):
            yield from self._message(str(number), message)

    def _message(self, number: str, message: Json) -> Iterator[events.Event]:
        info = object_of(message, "info")
        name, at, role = str(info.get("id") or number), _time(info, "created"), info.get("role")
        said: list[Any] = []
        others: list[events.Event] = []
        parts = objects_of(message, "parts")
        for position, part in enumerate(parts):
            kind = str(part.get("type"))
            if kind == "tool":
                call = _call(f"{name}/{position}", part)
                said.append(call)
                others += self._result(call, part, object_of(info, "path").get("cwd"))
            elif kind in _NO_CONVERSATION:
                others.append(events.Skipped(kind, is_known=True))
            else:
                is_text = kind in _TEXTS and isinstance(part.get("text"), str)
                said.append({"type": kind, **without(part, _OF_PART)} if is_text else part)
                if not is_text and kind not in _PROVIDER:
                    others.append(events.Skipped(f"part {kind}", is_known=False))
        named = named_texts(info, provider="providerID", model="modelID", finish_reason="finish")
        spent = without({"usage": info.get("tokens"), "cost": info.get("cost")})
        origin = {"wire_format": NAME, **named, **({"extras": spent} if spent else {})}
        extras = without(info, _OF_MESSAGE)
        name = version_of(name, [one["text"] for one in parts if isinstance(one.get("text"), str)])
        yield events.Message(self._session, name, at, role, said, origin, extras)
        yield from others

    def _result(self, call: events.Call, part: Json, cwd: Any) -> Iterator[events.Result]:
        """The result of a call that has ended."""
        state = object_of(part, "state")
        status = state.get("status")
        if status not in ("completed", "error"):
            return
        receipt = state.get("output" if status == "completed" else "error")
        receipt = receipt if isinstance(receipt, str) else None
        metadata = object_of(state, "metadata")
        if call.is_command:
            output = _command_output(metadata, object_of(state, "input"), cwd)
            others = without(metadata, frozenset({"exit", "output"}))
        else:
            is_known = status == "completed" and "truncated" in metadata
            is_whole = is_known and "outputPath" not in metadata
            output = events.Output({"content": receipt}, metadata) if is_whole else None
            others = {} if is_whole else metadata
        extras = without(part, _OF_CALL)
        extras["state"] = {**without(state, _OF_STATE), **({"metadata": others} if others else {})}
        note = (receipt or "").rpartition(_COMMAND_NOTE)[2]
        has_failed = status == "error" or (call.is_command and note != receipt)
        times = object_of(state, "time")
        begin, end = (milliseconds_of(times.get(one)) for one in ("start", "end"))
        took = None if begin is None or end is None else max(end - begin, 0)
        failure = (kind_of(note, _KINDS) or events.FAILED) if has_failed else None
        call_id, at = call.call_id, _time(state, "end")
        yield events.Result(self._session, call_id, at, receipt, output, failure, took, extras)


def _call(name: str, part: Json) -> events.Call:
    tool, state = str(part.get("tool")), object_of(part, "state")
    given = state.get("raw") or state.get("input", {})  # `raw` until the arguments are complete
    call_id, at = str(part.get("callID") or name), _time(state, "start")
    return events.Call(call_id, tool, given, tool == _COMMAND_TOOL, at)


def _command_output(metadata: Json, given: Json, cwd: Any) -> events.Output | None:
    text = metadata.get("output")
    if not isinstance(text, str):
        return None
    is_cut = len(text) >= _SHOWN_CHARS and "..." in (text[:3], text[-3:])
    return events.Output(
        {"combined": text},
        command=str(given.get("command", "")),
        cwd=given.get("workdir") or cwd,
        exit_status=metadata.get("exit"),
        lost={"combined": 0} if is_cut or metadata.get("truncated") is True else NOTHING,
    )


def _time(members: Json, name: str) -> float | None:
    """A time among the times of a session, a message or a call, in seconds."""
    at_ms = milliseconds_of(object_of(members, "time").get(name))
    return None if at_ms is None else at_ms / 1000
