"""Claude Code: one JSON line for each content block, in `~/.claude/projects/*/SESSION.jsonl`.

A call is a block `tool_use` of an `assistant` line. Its result is a block `tool_result` of a `user`
line: `content` is what the model saw, `toolUseResult` beside it is what the tool returned. Long
output is in a file that `toolUseResult` or the text names. The lines of a sub-agent are in a file
of their own (`agentId`) or in `progress` lines of its parent.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import Any, Final

from tooltrail.importers.blocks import call_block, spelled
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

NAME: Final = "claude-code"

_NO_CONVERSATION: Final = frozenset(
    {
        *("ai-title", "attachment", "custom-title", "file-history-snapshot", "last-prompt", "mode"),
        *("permission-mode", "pr-link", "progress", "queue-operation", "summary", "system", "tag"),
    }
)
"""Types of lines that are about the agent's own state."""

_KNOWN: Final = frozenset(
    {
        *("agentId", "cwd", "entrypoint", "gitBranch", "isSidechain", "message", "parentUuid"),
        *(
            "parentToolUseID",
            "promptId",
            "requestId",
            "sessionId",
            "slug",
            "sourceToolAssistantUUID",
            "timestamp",
        ),
        *("todos", "toolUseResult", "type", "userType", "uuid", "version"),
    }
)
"""Members of a line that have a place in our records, or repeat what another line says."""

_COMMAND_TOOL: Final = "Bash"
_MOST_STATUS: Final = 255
_SPILL_FOLDER: Final = "tool-results"

_KINDS: Final = {
    "The user doesn't want to proceed": "permission_denied",
    "Sibling tool call errored": "cancelled",
    "Request interrupted by user": "interrupted",
}
_WORDS_IN: Final = 200
"""Characters of a receipt in which Claude Code says why a call did not run."""

_SPILLED: Final = re.compile(r"<persisted-output>[^\n]*\n[^\n]*Full output saved to: ([^\n]+)")
_EXIT: Final = re.compile(r"(?:Error: )?Exit code (\d{1,3})\n?")


def recognizes(value: Any) -> bool:
    """Whether a JSON value is a line of Claude Code."""
    return object_of(value).keys() >= {"sessionId", "type"}


class Reader:
    """Reads the lines of one file.

    Args:
        path: the file; long outputs are in a folder beside it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._sessions: set[str] = set()
        self._commands: dict[str, str] = {}

    def events(self, line: Line) -> Iterator[Event]:
        """The events of one line."""
        value = object_of(line.value)
        if not value:
            yield Skipped(type(line.value).__name__, is_known=False)
            return
        kind = value.get("type")
        inner = _agent_progress(value) if kind == "progress" else None
        if inner is None and kind not in ("user", "assistant"):
            yield Skipped(str(kind), is_known=str(kind) in _NO_CONVERSATION)
            return
        value = inner or value
        session = _session_of(value)
        if session not in self._sessions:
            self._sessions.add(session)
            yield _opening(session, value)
        yield from self._message(session, value)

    def _message(self, session: str, value: Json) -> Iterator[Event]:
        message = object_of(value.get("message"))
        content = message.get("content")
        is_text = isinstance(content, str)
        blocks = [{"type": "text", "text": content}] if is_text else list_of(content)
        at, name = value.get("timestamp"), str(value.get("uuid"))
        said: list[Json] = []
        calls: list[CallFound] = []
        for block in blocks:
            match block:
                case {"type": "tool_result", "tool_use_id": str(call_id)}:
                    yield self._result(session, call_id, block, value)
                case {"type": "tool_use", "id": str(call_id), "name": str(tool)}:
                    call = self._call(session, call_id, tool, block.get("input"))
                    calls.append(call._replace(at=at, message=name, position=len(calls)))
                    said.append(call_block(calls[-1]))
                case _:
                    said.append(_block(block))
        if said:
            origin = _origin(message) if value.get("type") == "assistant" else NOTHING
            extras = {key: one for key, one in value.items() if key not in _KNOWN}
            role = message.get("role") or value.get("type")
            yield MessageFound(session, name, at, str(role), said, origin, extras)
        yield from calls

    def _call(self, session: str, call_id: str, tool: str, given: Any) -> CallFound:
        is_command = tool == _COMMAND_TOOL
        if is_command:
            self._commands[call_id] = str(object_of(given).get("command"))
        return CallFound(session, call_id, None, tool, spelled(given), is_command=is_command)

    def _result(self, session: str, call_id: str, block: Json, value: Json) -> ResultFound:
        content, returned = block.get("content"), value.get("toolUseResult")
        receipt = content if isinstance(content, str) else _texts(content)
        command = self._commands.get(call_id)
        is_error = block.get("is_error") is True
        output = (
            _output(returned, receipt, self._path)
            if command is None
            else _command_output(returned, receipt, self._path, command)
        )
        return ResultFound(
            session,
            call_id,
            value.get("timestamp"),
            receipt,
            output,
            is_error=is_error and (command is None or output is None),
            kind=_kind(receipt or ""),
            duration_ms=_duration(returned),
            extras=_extras(value, returned),
        )


def _agent_progress(value: Json) -> dict[str, Any] | None:
    """The line of a sub-agent inside a `progress` line of its parent."""
    data = object_of(value.get("data"))
    message = object_of(data.get("message"))
    if data.get("type") != "agent_progress" or not message:
        return None
    outer = {key: one for key, one in value.items() if key not in ("data", "toolUseID")}
    agent = data.get("agentId") or value.get("parentToolUseID")
    return {**outer, **message, "agentId": agent}


def _session_of(value: Json) -> str:
    session, agent = str(value.get("sessionId")), value.get("agentId")
    return f"{session}/{agent}" if agent else session


def _opening(session: str, value: Json) -> SessionFound:
    named = {
        "agent_version": "version",
        "cwd": "cwd",
        "entrypoint": "entrypoint",
        "git_branch": "gitBranch",
    }
    return SessionFound(
        session,
        value.get("timestamp"),
        agent=NAME,
        parent=session.rpartition("/")[0] or None,
        environment={ours: value[name] for ours, name in named.items() if value.get(name)},
    )


def _block(block: Any) -> Json:
    match block:
        case {"type": "text", "text": str(text)}:
            return {"type": "text", "text": text}
        case {"type": "thinking", "thinking": str(text)}:
            extras = {key: one for key, one in block.items() if key not in ("type", "thinking")}
            return {"type": "reasoning", "text": text, **({"extras": extras} if extras else {})}
        case _:
            return {"type": "provider", "native": block}


def _origin(message: Json) -> Json:
    named = {"model": "model", "response_id": "id", "finish_reason": "stop_reason"}
    found = {ours: message[name] for ours, name in named.items() if message.get(name)}
    usage = message.get("usage")
    extras = {"extras": {"usage": usage}} if usage else {}
    return {"wire_format": "anthropic", **found, **extras}


def _texts(content: Any) -> str | None:
    """The texts of a list of blocks; other blocks are in what the tool returned."""
    texts = [str(one["text"]) for one in map(object_of, list_of(content)) if "text" in one]
    return "\n".join(texts) if texts else None


def _output(returned: Any, receipt: str | None, path: Path) -> OutputFound | None:
    """What a tool returned; None if the source does not say."""
    if returned is None:
        return None
    spilled = _spilled(_spill_name(receipt), path)
    return OutputFound({} if spilled is None else {"content": spilled}, returned)


def _command_output(
    returned: Any, receipt: str | None, path: Path, command: str
) -> OutputFound | None:
    """The output of a command. If it failed, its status and output are in one text."""
    match returned:
        case {"stdout": str(stdout), "stderr": str(stderr)}:
            streams = {"stdout": _encoded(stdout), "stderr": _encoded(stderr)}
            name = _spill_name(receipt)
            if name is None:
                return OutputFound(streams, command=command)
            spilled, size = _spilled(name, path), returned.get("persistedOutputSize")
            if spilled is not None:
                return OutputFound({**streams, "stdout": spilled}, command=command)
            lost = {"stdout": size if isinstance(size, int) else 0}
            return OutputFound(streams, command=command, lost=lost)
        case str() if (found := _EXIT.match(returned)) and int(found[1]) <= _MOST_STATUS:
            streams = {"combined": _encoded(returned[found.end() :])}
            return OutputFound(streams, command=command, exit_status=int(found[1]))
        case _:
            return None


def _extras(value: Json, returned: Any) -> Json:
    """The members of a result that no record has."""
    extras = {key: one for key, one in value.items() if key not in _KNOWN}
    found = object_of(returned)
    if "stdout" in found:
        others = {key: one for key, one in found.items() if key not in ("stdout", "stderr")}
        extras["toolUseResult"] = others
    return extras


def _kind(receipt: str) -> str:
    """The kind of a failure, by the words of Claude Code."""
    found = (kind for words, kind in _KINDS.items() if words in receipt[:_WORDS_IN])
    return next(found, "tool_execution_failed")


def _spill_name(receipt: str | None) -> str | None:
    """The name of the file with the complete output, if the text that the model saw names one."""
    found = _SPILLED.match(receipt or "")
    return None if found is None else PurePath(found[1]).name


def _spilled(name: str | None, path: Path) -> bytes | None:
    """The bytes of a file with a complete output; None if the file is gone.

    A transcript must not name files elsewhere: only the folder beside it is read.
    """
    if not name:
        return None
    try:
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
        with os.fdopen(os.open(path.with_suffix("") / _SPILL_FOLDER / name, flags), "rb") as file:
            return file.read()
    except OSError:
        return None


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _duration(returned: Any) -> int | None:
    found = object_of(returned)
    times = (found.get(name) for name in ("durationMs", "totalDurationMs"))
    return next((one for one in times if isinstance(one, int)), None)
