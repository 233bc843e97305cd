"""OpenCode: one JSON document for each session, as `opencode export SESSION` writes it.

A part `tool` of a message is a call together with its result: `state.output` is what the model saw,
and `state.metadata` what the tool itself returned. For a command, `metadata.output` is its output.
Of another tool, the text is the complete output unless OpenCode cut it: then `metadata.outputPath`
names a file with the whole.
"""

from collections.abc import Iterator
from typing import Any, Final

from tooltrail.importers.blocks import (
    call_block,
    exit_status_of,
    kind_of,
    milliseconds_of,
    named_texts,
    role_of,
    spelled,
    time_of,
    without,
)
from tooltrail.importers.events import (
    NOTHING,
    CallFound,
    Event,
    Json,
    Line,
    MessageFound,
    OutputFound,
    ResultFound,
    SessionFound,
    Skipped,
    list_of,
    object_of,
)
from tooltrail.importers.parts import encoded

NAME: Final = "opencode"

_COMMAND_TOOL: Final = "bash"
_SHOWN_CHARS: Final = 30_000
"""OpenCode cuts `metadata.output` of a command at about this many characters, and adds `...`."""

_NO_CONVERSATION: Final = frozenset(
    {"compaction", "patch", "retry", "snapshot", "step-finish", "step-start"}
)
"""Types of parts that are about the agent's own state."""

_PROVIDER: Final = frozenset({"agent", "file", "subtask"})
"""Types of parts that only OpenCode understands."""

_OF_PART: Final = frozenset({"id", "messageID", "sessionID", "time", "type"})
_OF_TEXT: Final = _OF_PART | {"text"}
_OF_CALL: Final = _OF_PART | {"callID", "state", "tool"}
_OF_STATE: Final = frozenset({"error", "input", "metadata", "output", "raw", "status"})
_OF_MESSAGE: Final = frozenset(
    {"cost", "finish", "id", "modelID", "providerID", "role", "sessionID", "tokens"}
)
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
    info = object_of(document.get("info"))
    return isinstance(document.get("messages"), list) and info.keys() >= {"id", "time", "version"}


class Reader:
    """Reads a document."""

    def events(self, line: Line) -> Iterator[Event]:
        """The events of one document."""
        value = object_of(line.value)
        info = object_of(value.get("info"))
        if "id" not in info:
            yield Skipped(type(line.value).__name__, is_known=False)
            return
        session = str(info["id"])
        yield _opening(session, info)
        for number, message in enumerate(map(object_of, list_of(value.get("messages")))):
            yield from _message(session, str(number), message)


def _opening(session: str, info: Json) -> SessionFound:
    found = named_texts(info, {"parent": "parentID", "title": "title", "version": "version"})
    return SessionFound(
        session,
        _time(info, "created"),
        agent=f"{NAME} {found['version']}" if "version" in found else NAME,
        parent=found.get("parent"),
        title=found.get("title"),
        environment=named_texts(info, {"cwd": "directory", "project": "projectID"}),
    )


def _message(session: str, number: str, message: Json) -> Iterator[Event]:
    info = object_of(message.get("info"))
    name, at, role = (
        str(info.get("id") or number),
        _time(info, "created"),
        role_of(info.get("role")),
    )
    cwd = object_of(info.get("path")).get("cwd")
    blocks: list[Json] = []
    others: list[Event] = []
    position = 0
    for part in map(object_of, list_of(message.get("parts"))):
        kind = str(part.get("type"))
        if kind == "tool":
            call = _call(session, f"{name}/{position}", part, at)
            call = call._replace(message=name, position=position)
            position += 1
            blocks.append(call_block(call))
            others += [call, *_result(call, part, cwd)]
        elif kind in _NO_CONVERSATION:
            others.append(Skipped(kind, is_known=True))
        else:
            blocks.append(_block(part))
            if blocks[-1]["type"] == "provider" and kind not in _PROVIDER:
                others.append(Skipped(f"part {kind}", is_known=False))
    origin = _origin(info) if role == "assistant" else NOTHING
    extras = without(info, _OF_MESSAGE)
    yield MessageFound(session, name, at, role, blocks, origin, extras)
    yield from others


def _block(part: Json) -> Json:
    match part:
        case {"type": "text" | "reasoning" as kind, "text": str(text)}:
            extras = without(part, _OF_TEXT)
            return {"type": kind, "text": text, **({"extras": extras} if extras else {})}
        case _:
            return {"type": "provider", "native": dict(part)}


def _origin(info: Json) -> Json:
    named = {"provider": "providerID", "model": "modelID", "finish_reason": "finish"}
    extras = without({"usage": info.get("tokens"), "cost": info.get("cost")}, frozenset())
    origin = {"wire_format": NAME, **named_texts(info, named)}
    return {**origin, "extras": extras} if extras else origin


def _call(session: str, name: str, part: Json, at: str | None) -> CallFound:
    tool, state = str(part.get("tool")), object_of(part.get("state"))
    given = state.get("raw") or state.get("input", {})  # `raw` until the arguments are complete
    return CallFound(
        session,
        str(part.get("callID") or name),
        _time(state, "start") or at,
        tool,
        spelled(given),
        is_command=tool == _COMMAND_TOOL,
    )


def _result(call: CallFound, part: Json, cwd: Any) -> Iterator[ResultFound]:
    """The result of a call that has ended."""
    state = object_of(part.get("state"))
    status = state.get("status")
    if status not in ("completed", "error"):
        return
    receipt = state.get("output" if status == "completed" else "error")
    receipt = receipt if isinstance(receipt, str) else None
    metadata = object_of(state.get("metadata"))
    if call.is_command:
        output = _command_output(metadata, object_of(state.get("input")), cwd)
        others = without(metadata, frozenset({"exit", "output"}))
    else:
        is_whole = status == "completed" and _is_whole(metadata)
        streams = {} if receipt is None else {"content": encoded(receipt)}
        output = OutputFound(streams, metadata) if is_whole else None
        others = {} if is_whole else metadata
    extras = without(part, _OF_CALL)
    extras["state"] = {**without(state, _OF_STATE), **({"metadata": others} if others else {})}
    note = (receipt or "").rpartition(_COMMAND_NOTE)[2]
    has_failed = status == "error" or (call.is_command and note != receipt)
    yield ResultFound(
        call.session,
        call.call_id,
        _time(state, "end"),
        receipt,
        output,
        is_error=has_failed,
        kind=kind_of(note, _KINDS) or "tool_execution_failed",
        duration_ms=_duration(object_of(state.get("time"))),
        extras=extras,
    )


def _is_whole(metadata: Json) -> bool:
    """Whether the text of a tool is as the tool returned it; false if the source does not say."""
    return "truncated" in metadata and "outputPath" not in metadata


def _command_output(metadata: Json, given: Json, cwd: Any) -> OutputFound | None:
    text = metadata.get("output")
    if not isinstance(text, str):
        return None
    is_long = len(text) >= _SHOWN_CHARS
    is_cut = is_long and (text.startswith("...") or text.endswith("..."))
    where = given.get("workdir") or cwd
    return OutputFound(
        {"combined": encoded(text)},
        command=str(given.get("command", "")),
        cwd=where if isinstance(where, str) else None,
        exit_status=exit_status_of(metadata.get("exit")),
        lost={"combined": 0} if is_cut or metadata.get("truncated") is True else NOTHING,
    )


def _time(members: Json, name: str) -> str | None:
    """A time among the times of a session, a message or a call."""
    at_ms = milliseconds_of(object_of(members.get("time")).get(name))
    return None if at_ms is None else time_of(at_ms / 1000)


def _duration(times: Json) -> int | None:
    start, end = milliseconds_of(times.get("start")), milliseconds_of(times.get("end"))
    return None if start is None or end is None else max(end - start, 0)
