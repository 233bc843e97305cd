"""Claude Code: one JSON line for each content block, in `~/.claude/projects/*/SESSION.jsonl`.

A call is a block `tool_use` of an `assistant` line. Its result is a block `tool_result` of a `user`
line: `content` is what the model saw, `toolUseResult` beside it is what the tool returned. Long
output is in a file that `toolUseResult` or the text names. The lines of a sub-agent are in a file
of their own (`agentId`) or in `progress` lines of its parent.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from tooltrail.importers.events import (
    CallFound,
    Event,
    Json,
    Line,
    MessageFound,
    OutputFound,
    ResultFound,
    SessionFound,
    Skipped,
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
        *("promptId", "requestId", "sessionId", "slug", "sourceToolAssistantUUID", "timestamp"),
        *("todos", "toolUseResult", "type", "userType", "uuid", "version"),
    }
)
"""Members of a line that have a place in our records, or repeat what another line says."""

_SPILLED: Final = re.compile(r"<persisted-output>[^\n]*\n[^\n]*Full output saved to: ([^\n]+)")
_EXIT: Final = re.compile(r"(?:Error: )?Exit code (\d{1,3})\n?")


def recognizes(value: Any) -> bool:
    """Whether a JSON value is a line of Claude Code."""
    return isinstance(value, dict) and "sessionId" in value and "type" in value


def read(lines: Iterable[Line], path: Path) -> Iterator[Event]:
    """The events of a file."""
    seen: set[str] = set()
    commands: dict[str, str] = {}
    for line in lines:
        value = line.value
        if not isinstance(value, dict):
            yield Skipped(type(value).__name__, is_known=False)
            continue
        kind = value.get("type")
        inner = _agent_progress(value)
        if inner is None and kind not in ("user", "assistant"):
            yield Skipped(str(kind), is_known=kind in _NO_CONVERSATION)
            continue
        value = inner or value
        session = _session_of(value)
        if session not in seen:
            seen.add(session)
            yield _opening(session, value)
        yield from _message(session, value, path, commands)


def _agent_progress(value: Json) -> Json | None:
    """The line of a sub-agent inside a `progress` line of its parent."""
    data = value.get("data")
    if value.get("type") != "progress" or not isinstance(data, dict):
        return None
    message = data.get("message")
    if data.get("type") != "agent_progress" or not isinstance(message, dict):
        return None
    return {**value, **message, "agentId": data.get("agentId") or value.get("parentToolUseID")}


def _session_of(value: Json) -> str:
    session, agent = str(value.get("sessionId")), value.get("agentId")
    return f"{session}/{agent}" if agent else session


def _opening(session: str, value: Json) -> SessionFound:
    named = {"cwd": "cwd", "git_branch": "gitBranch", "entrypoint": "entrypoint"}
    return SessionFound(
        session,
        value.get("timestamp"),
        agent=f"{NAME} {value['version']}" if value.get("version") else NAME,
        parent=session.rpartition("/")[0] or None,
        environment={ours: value[name] for ours, name in named.items() if value.get(name)},
    )


def _message(session: str, value: Json, path: Path, commands: dict[str, str]) -> Iterator[Event]:
    message = value.get("message")
    message = message if isinstance(message, dict) else {}
    content = message.get("content")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
    at, name = value.get("timestamp"), str(value.get("uuid"))
    said: list[Json] = []
    calls: list[CallFound] = []
    for block in blocks:
        match block:
            case {"type": "tool_result", "tool_use_id": str(call_id)}:
                yield _result(session, call_id, block, value, path, commands.pop(call_id, None))
            case {"type": "tool_use", "id": str(call_id), "name": str(tool)}:
                given = block.get("input")
                if isinstance(given, dict) and isinstance(given.get("command"), str):
                    commands[call_id] = given["command"]
                spelled = json.dumps(given, ensure_ascii=False, separators=(",", ":"))
                calls.append(CallFound(session, call_id, at, tool, spelled, name, len(calls)))
                said.append(_call_block(call_id, tool, spelled, len(calls) - 1))
            case _:
                said.append(_block(block))
    if said:
        origin = _origin(message) if value.get("type") == "assistant" else {}
        extras = {key: one for key, one in value.items() if key not in _KNOWN and key != "data"}
        role = message.get("role") or value.get("type")
        yield MessageFound(session, name, at, str(role), said, origin, extras)
    yield from calls


def _block(block: Any) -> Json:
    match block:
        case {"type": "text", "text": str(text)}:
            return {"type": "text", "text": text}
        case {"type": "thinking", "thinking": str(text)}:
            extras = {key: one for key, one in block.items() if key not in ("type", "thinking")}
            return {"type": "reasoning", "text": text, **({"extras": extras} if extras else {})}
        case _:
            return {"type": "provider", "native": block}


def _call_block(call_id: str, tool: str, arguments: str, position: int) -> Json:
    call: dict[str, Any] = {"tool_name": tool, "call_id": call_id, "arguments_raw": arguments}
    if position:
        call["position"] = position
    return {"type": "tool_call", "call": call}


def _origin(message: Json) -> Json:
    named = {"model": "model", "response_id": "id", "finish_reason": "stop_reason"}
    found = {ours: message[name] for ours, name in named.items() if message.get(name)}
    usage = message.get("usage")
    extras = {"extras": {"usage": usage}} if usage else {}
    return {"wire_format": "anthropic", **found, **extras}


def _result(
    session: str, call_id: str, block: Json, value: Json, path: Path, command: str | None
) -> ResultFound:
    content = block.get("content")
    receipt = content if isinstance(content, str) else _texts(content)
    returned = value.get("toolUseResult")
    is_error = block.get("is_error") is True
    output = _output(returned, receipt, path, command, is_error=is_error)
    return ResultFound(
        session,
        call_id,
        value.get("timestamp"),
        receipt,
        output,
        # A command that exits with a status did run: the tool succeeded.
        is_error=is_error and (output is None or not output.is_command),
        kind="cancelled"
        if isinstance(returned, str) and "rejected" in returned
        else "tool_execution_failed",
        duration_ms=_duration(returned),
        extras={key: one for key, one in value.items() if key not in _KNOWN},
    )


def _texts(content: Any) -> str | None:
    """The texts of a list of blocks; other blocks are in what the tool returned."""
    if not isinstance(content, list):
        return None
    texts = [one["text"] for one in content if isinstance(one, dict) and "text" in one]
    return "\n".join(map(str, texts)) if texts else None


def _output(
    returned: Any, receipt: str | None, path: Path, command: str | None, *, is_error: bool
) -> OutputFound | None:
    """What the tool returned. A command that failed has its status and output in the receipt."""
    match returned:
        case {"stdout": str(stdout), "stderr": str(stderr)}:
            spilled = _spilled(returned.get("persistedOutputPath"), receipt, path)
            streams = {"stdout": spilled or _encoded(stdout), "stderr": _encoded(stderr)}
            others = {k: v for k, v in returned.items() if k not in ("stdout", "stderr")}
            return OutputFound(streams, others, command, is_command=True)
        case str() if is_error and command is not None and (found := _EXIT.match(returned)):
            streams = {"combined": _encoded(returned[found.end() :])}
            return OutputFound(streams, None, command, exit_status=int(found[1]), is_command=True)
        case None:
            return None
        case _:
            spilled = _spilled(None, receipt, path)
            return OutputFound({"content": spilled} if spilled else {}, returned)


def _spilled(named: Any, receipt: str | None, path: Path) -> bytes | None:
    """The bytes of the file that holds the complete output; None if there is none any more."""
    if not isinstance(named, str):
        found = _SPILLED.match(receipt or "")
        named = found[1] if found else None
    if named is None:
        return None
    # The folder may have been copied from another machine.
    beside = path.with_suffix("") / "tool-results" / Path(named).name
    for one in (Path(named), beside):
        try:
            return one.read_bytes()
        except OSError:
            continue
    return None


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _duration(returned: Any) -> int | None:
    if isinstance(returned, Mapping):
        for name in ("durationMs", "totalDurationMs"):
            if isinstance(returned.get(name), int):
                return int(returned[name])
    return None
