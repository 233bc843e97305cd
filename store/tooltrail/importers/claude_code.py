"""Claude Code: one JSON line for each content block, in `~/.claude/projects/*/SESSION.jsonl`.

A call is a block `tool_use` of an `assistant` line. Its result is a block `tool_result` of a `user`
line: `content` is what the model saw, `toolUseResult` beside it is what the tool returned. Long
output is in a file that `toolUseResult` or the text names. The lines of a sub-agent are in a file
of their own (`agentId`) or in `progress` lines of its parent.
"""

import marshal
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePath
from typing import Any, Final, NamedTuple

from tooltrail.importers import events
from tooltrail.importers.blocks import origin_of, parts_of, text_of
from tooltrail.importers.members import milliseconds_of, named_texts, names_in, spelled
from tooltrail.importers.parts import encoded
from tooltrail.importers.values import Json, object_of

NAME: Final = "claude-code"

_NO_CONVERSATION: Final = names_in(
    "agent_metadata ai-title attachment custom-title file-history-snapshot last-prompt mode "
    "permission-mode pr-link progress queue-operation summary system tag"
)
"""Types of lines that are about the agent's own state."""

_KNOWN: Final = names_in(
    "agentId cwd entrypoint gitBranch isSidechain message parentUuid parentToolUseID promptId "
    "requestId sessionId slug sourceToolAssistantUUID timestamp todos toolUseResult type userType "
    "uuid version"
)
"""Members of a line that have a place in our records, or repeat what another line says."""

_OF_ORIGIN: Final = {"response_id": "id", "finish_reason": "stop_reason"}
_MARSHAL_VERSION: Final = 2
"""Equal values give equal bytes: later versions also say which values are the same object."""

_COMMAND_TOOL: Final = "Bash"
STREAMS: Final = frozenset({"stdout", "stderr"})
"""The members of the result of a command that are its streams."""

_SPILL_FOLDER: Final = "tool-results"
_SUB_AGENTS: Final = "subagents"

_KINDS: Final = {
    "The user doesn't want to proceed": "permission_denied",
    "Sibling tool call errored": "cancelled",
    "Request interrupted by user": "interrupted",
}
_WORDS_IN: Final = 200
"""Characters of a receipt in which Claude Code says why a call did not run."""

_SPILL: Final = re.compile(
    r"<persisted-output>[^\n]*\n(?:Output too large \((\d{1,12}(?:\.\d)?) ?(bytes|[KMG]B)\))?[^\n]*"
    r"Full output saved to: ([^\n]+)"
    r"(?:\n+Preview[^\n]*:\n(.*?)(?:\n\.\.\.)?\n</persisted-output>)?",
    re.DOTALL,
)
_UNITS: Final = {"bytes": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}
_ROUNDED: Final = 0.05
"""A size in KB or more is rounded to one digit after the point."""

_EXIT: Final = re.compile(r"(?:Error: )?Exit code (\d\d?|1\d\d|2[0-4]\d|25[0-5])(?!\d)\n?")


def recognizes(value: Any) -> bool:
    """Whether a JSON value is a line of Claude Code."""
    # A file may begin with lines of no session, or hold nothing else.
    names = object_of(value).keys()
    return "type" in names and not names.isdisjoint({"sessionId", "leafUuid", "snapshot"})


class Reader(events.FileReader):
    """Reads the lines of one file. Long outputs are in a folder beside it."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._commands: dict[str, str | None] = {}

    def read(self, line: events.Line) -> Iterator[events.Event]:
        """The events of one line. A repeated message is skipped."""
        value = object_of(line.value)
        if not value:
            return
        kind = value.get("type")
        inner = _agent_progress(value) if kind == "progress" else None
        if inner is None and kind not in ("user", "assistant"):
            yield events.Skipped(str(kind), is_known=str(kind) in _NO_CONVERSATION)
            return
        value = inner or value
        session, agent, name = value.get("sessionId"), value.get("agentId"), value.get("uuid")
        session = session if isinstance(session, str) else self._session
        session = f"{session}/{agent}" if agent else session
        message = str(hash(marshal.dumps(value.get("message"), _MARSHAL_VERSION)))
        if isinstance(name, str) and not self._is_new(session, name, message):
            yield events.Skipped("repeated line", is_known=True)
            return
        if not isinstance(name, str) or not self._is_new(session, name):
            name = str(line.offset)  # another message with the id of an earlier one
        if self._is_new(session):
            named = {"agent_version": "version", "git_branch": "gitBranch"}
            where = named_texts(value, "cwd", "entrypoint", **named)
            at, parent = value.get("timestamp"), session.rpartition("/")[0] or None
            yield events.Session(session, at, NAME, parent, environment=where)
        yield from self._message(session, name, value)

    def _message(self, session: str, name: str, value: Json) -> Iterator[events.Event]:
        message, at = object_of(value, "message"), value.get("timestamp")
        said: list[Any] = []
        for block in parts_of(message.get("content")):
            match block:
                case {"type": "tool_result", "tool_use_id": str(call_id)}:
                    yield self._result(session, call_id, block, value)
                case {"type": "tool_use", "id": str(call_id), "name": str(tool)}:
                    said.append(self._call(call_id, tool, block.get("input")))
                case _:
                    said.append(block)
        if said:
            role, usage = message.get("role") or value.get("type"), message.get("usage")
            origin = origin_of("anthropic", message, usage, "model", **_OF_ORIGIN)
            yield events.Message(session, name, at, role, said, origin, _others(value))
        elif message.get("content") == []:
            yield None  # the type is known, but the message says nothing

    def _call(self, call_id: str, tool: str, given: Any) -> events.Call:
        is_command = tool == _COMMAND_TOOL
        # None replaces the command of another call with the same id.
        self._commands[call_id] = str(object_of(given).get("command")) if is_command else None
        return events.Call(call_id, tool, given, is_command)

    def _result(self, session: str, call_id: str, block: Json, value: Json) -> events.Result:
        content, returned = block.get("content"), value.get("toolUseResult")
        receipt, command = text_of(content), self._commands.get(call_id)
        is_error = block.get("is_error") is True
        output = output_of(returned, receipt, self._path, command, has_failed=is_error)
        members, at = object_of(returned), value.get("timestamp")
        failure = early_end(members)
        if is_error and (command is None or output is None):
            said = (kind for words, kind in _KINDS.items() if words in (receipt or "")[:_WORDS_IN])
            failure = failure or next(said, events.FAILED)
        extras = _others(value)
        if command is not None and isinstance(returned, dict | list):
            others = {name: one for name, one in members.items() if name not in STREAMS}
            extras["toolUseResult"] = others if isinstance(returned, dict) else returned
        times = (milliseconds_of(members.get(one)) for one in ("durationMs", "totalDurationMs"))
        duration = next((one for one in times if one is not None), None)
        shown = content if returned is None else receipt  # `returned` has the images, too
        return events.Result(session, call_id, at, shown, output, failure, duration, extras)


def sub_agent_path(path: Path, agent: str) -> Path:
    """The file of a sub-agent, by the file of the session that started it."""
    return path.with_suffix("") / _SUB_AGENTS / f"agent-{agent}.jsonl"


def _agent_progress(value: Json) -> dict[str, Any] | None:
    """The line of a sub-agent inside a `progress` line of its parent."""
    data, message = object_of(value, "data"), object_of(value, "data", "message")
    if data.get("type") != "agent_progress" or not message:
        return None
    outer = {key: one for key, one in value.items() if key not in ("data", "toolUseID")}
    return {**outer, **message, "agentId": data.get("agentId") or value.get("parentToolUseID")}


class _Spill(NamedTuple):
    """An output that was too long for the session, so that Claude Code wrote it into a file.

    Attributes:
        data: the output; its beginning if the file is gone.
        lost: if the file is gone, the bytes that it had, at least; 0 if unknown.
    """

    data: bytes
    lost: int | None


def output_of(
    returned: Any,
    receipt: str | None,
    path: Path,
    command: str | None = None,
    *,
    has_failed: bool = False,
) -> events.Output | None:
    """What a tool returned, or a command if one is given; None if the source does not say.

    The text of a command that has failed and did not exit says why it failed.
    """
    spill = _spill_of(object_of(returned), receipt, path)
    if command is not None:
        return _command_output(returned, spill, command, has_failed=has_failed)
    output = events.Output(structured=returned)
    if spill is not None:
        return _with_spill(output, "content", spill)
    return None if returned is None else output


def _command_output(
    returned: Any, spill: _Spill | None, command: str, *, has_failed: bool
) -> events.Output | None:
    """The output of a command. If it failed, its status and output are in one text."""
    match returned:
        case dict() if not STREAMS.isdisjoint(members := object_of(returned)):
            texts = {name: members.get(name) for name in ("stdout", "stderr")}
            streams = {name: "" if one is None else spelled(one) for name, one in texts.items()}
            output = events.Output(streams, command=command)
            return output if spill is None else _with_spill(output, "stdout", spill)
        case str() if found := _EXIT.match(returned):
            streams, status = {"combined": returned[found.end() :]}, int(found[1])
            return events.Output(streams, command=command, exit_status=status)
        case None if spill is not None:
            return _with_spill(events.Output(command=command), "combined", spill)
        case str() | list() if not has_failed:
            streams = {"combined": text_of(returned) or spelled(returned)}
            return events.Output(streams, command=command)
        case _:
            return None


def early_end(returned: Json) -> str | None:
    """The kind of the failure of a tool that its time limit or the user ended.

    A command that goes on in the background was not ended.
    """
    if returned.get("interrupted") is True:
        return "interrupted"
    has_limit = type(returned.get("timedOutAfterMs")) is int
    return "tool_timed_out" if has_limit and not returned.get("backgroundTaskId") else None


def _others(value: Json) -> dict[str, Any]:
    """The members of a line that have no place in our records, including null ones."""
    return {name: one for name, one in value.items() if name not in _KNOWN}


def _spill_of(returned: Json, receipt: str | None, path: Path) -> _Spill | None:
    """The output in the file that the result names, or else the text that the model saw."""
    file, size = returned.get("persistedOutputPath"), returned.get("persistedOutputSize")
    preview = ""
    if not isinstance(file, str):
        if (found := _SPILL.match(receipt or "")) is None:
            return None
        number, unit, file, preview = found.groups("")
        rounded = 0 if unit == "bytes" else _ROUNDED
        size = max(int((float(number) - rounded) * _UNITS[unit]), 0) if number else 0
    if (data := _read_spill(PurePath(file).name, path)) is not None:
        return _Spill(data, None)
    return _Spill(encoded(preview), size if type(size) is int else 0)


def _with_spill(output: events.Output, role: str, spill: _Spill) -> events.Output:
    """An output with the stream from its file.

    If the file is gone and the output is shorter, the output is marked as lost.
    """
    if spill.lost is None:
        return output._replace(streams={**output.streams, role: spill.data})
    if 0 < spill.lost <= len(encoded(spelled(output.streams.get(role, output.structured)))):
        return output
    streams = {role: spill.data, **output.streams}
    return output._replace(streams=streams, lost={role: spill.lost})


def _read_spill(name: str, path: Path) -> bytes | None:
    """The bytes of a regular file with a complete output; None if there is none.

    A sub-agent writes its long outputs into the folder of its session. A transcript must not name
    files elsewhere, so no link below the folder of transcripts is followed.
    """
    folder, above = path.parent, path.parent.parent
    places = [(folder, path.stem, _SPILL_FOLDER, name)]
    if folder.name == _SUB_AGENTS:
        places.append((above.parent, above.name, _SPILL_FOLDER, name))
    for base, *names in places:
        with suppress(OSError, RuntimeError, ValueError):  # such as a name with NUL
            file = base.resolve().joinpath(*names)
            if file == file.resolve() and file.is_file():
                with os.fdopen(os.open(file, os.O_RDONLY | os.O_NOFOLLOW), "rb") as opened:
                    return opened.read()
    return None
