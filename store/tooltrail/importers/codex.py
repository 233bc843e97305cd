"""Codex: one JSON line for each event, in `~/.codex/sessions/YYYY/MM/DD/rollout-*.jsonl`.

A `response_item` is what the model and the agent said to each other: calls, their outputs as the
model saw them, messages. An `event_msg` is what happened meanwhile: `exec_command_end` holds the
complete output of a command, `mcp_tool_call_end` and `patch_apply_end` those of other tools. The
event of a call may stand before or after the output, so it is kept until the output comes.
Versions before 2025-10 wrote the items without the wrapper `{timestamp, type, payload}`.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

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

NAME: Final = "codex"

_ENDS: Final = frozenset({"exec_command_end", "mcp_tool_call_end", "patch_apply_end"})
_CALLS: Final = {
    "function_call": "arguments",
    "custom_tool_call": "input",
    "local_shell_call": "action",
    "tool_search_call": "arguments",
}
"""The member of each kind of call that holds its arguments."""

_COMMANDS: Final = frozenset({"exec_command", "local_shell", "shell", "shell_command"})

_OUTPUTS: Final = frozenset(
    {
        *("function_call_output", "custom_tool_call_output", "local_shell_call_output"),
        "tool_search_output",
    }
)
_ITEMS: Final = frozenset({"message", "reasoning", "web_search_call", "image_generation_call"})
_REPEATING: Final = frozenset(
    {
        *("agent_message", "agent_reasoning", "context_compacted", "exec_command_begin", "error"),
        *("mcp_tool_call_begin", "patch_apply_begin", "task_complete", "task_started"),
        *("token_count", "turn_aborted", "user_message", "web_search_begin", "web_search_end"),
    }
)
"""Events that say again what items say, or that are about the agent's own state."""


def recognizes(value: Any) -> bool:
    """Whether a JSON value is a line of Codex, of this or an older version."""
    line = object_of(value)
    is_wrapped = isinstance(line.get("payload"), dict) and "type" in line
    is_bare_head = line.keys() >= {"instructions", "id", "timestamp"}
    return is_wrapped or is_bare_head or line.get("record_type") == "state"


class Reader:
    """Reads the lines of one file.

    Args:
        path: the file; its name is the id of a session that has none.
    """

    def __init__(self, path: Path) -> None:
        self._session = path.stem
        self._is_open = False
        self._model: str | None = None
        self._ends: dict[str, Json] = {}

    def events(self, line: Line) -> Iterator[Event]:
        """The events of one line."""
        value = object_of(line.value)
        if not value:
            yield Skipped(type(line.value).__name__, is_known=False)
            return
        at, kind, item = value.get("timestamp"), value.get("type"), object_of(value.get("payload"))
        if "payload" not in value:  # before 2025-10
            kind, item = ("session_meta" if "instructions" in value else "response_item"), value
        what = item.get("type")
        if kind == "session_meta":
            if not self._is_open:
                self._is_open = True
                self._session = str(item.get("id", self._session))
                yield _opening(self._session, item)
            return
        if kind == "turn_context":
            self._model = item.get("model")
            yield Skipped("turn_context", is_known=True)
        elif kind == "event_msg" and what in _ENDS and isinstance(item.get("call_id"), str):
            self._ends[item["call_id"]] = item
        elif kind == "event_msg":
            yield Skipped(f"event {what}", is_known=what in _REPEATING)
        elif kind == "response_item":
            yield from self._item(str(what), item, at, f"{self._session}/{line.offset}")
        else:
            yield Skipped(str(kind), is_known=kind in ("compacted", "state"))

    def _item(self, what: str, item: Json, at: str | None, name: str) -> Iterator[Event]:
        call_id = item.get("call_id") or item.get("id")
        if what in _OUTPUTS and isinstance(call_id, str):
            yield self._result(call_id, item, at)
        elif what in _CALLS and isinstance(call_id, str):
            tool, arguments = _called(what, item)
            call = {"tool_name": tool, "call_id": call_id, "arguments_raw": arguments}
            if item.get("namespace"):
                call["namespace"] = item["namespace"]
            if what == "custom_tool_call":
                call["kind"] = "custom"
            block = {"type": "tool_call", "call": call}
            yield MessageFound(self._session, name, at, "assistant", [block], self._origin())
            yield CallFound(
                self._session, call_id, at, tool, arguments, name, is_command=tool in _COMMANDS
            )
        elif what in _ITEMS:
            role = str(item.get("role") or "assistant")
            origin = self._origin() if role == "assistant" else NOTHING
            yield MessageFound(self._session, name, at, role, _blocks(what, item), origin)
        else:
            yield Skipped(what, is_known=False)

    def _origin(self) -> Json:
        return {
            "wire_format": "openai-responses",
            **({"model": self._model} if self._model else {}),
        }

    def _result(self, call_id: str, item: Json, at: str | None) -> ResultFound:
        end = self._ends.pop(call_id, None)
        receipt, is_error = _receipt(item.get("output", item.get("tools")))
        output = None if end is None else _output(end)
        return ResultFound(
            self._session,
            call_id,
            at,
            receipt,
            output,
            is_error=is_error or (end is not None and _has_failed(end)),
            duration_ms=None if end is None else _duration(end.get("duration")),
        )


def _opening(session: str, item: Json) -> SessionFound:
    git = object_of(item.get("git"))
    where = {
        "agent_version": item.get("cli_version"),
        "cwd": item.get("cwd"),
        "git_branch": git.get("branch"),
        "git_commit": git.get("commit_hash"),
        "repository": git.get("repository_url"),
        "originator": item.get("originator"),
    }
    return SessionFound(
        session,
        item.get("timestamp"),
        agent=NAME,
        parent=_parent(item.get("source")) or item.get("forked_from_id"),
        environment={name: one for name, one in where.items() if one},
    )


def _parent(source: Any) -> str | None:
    """The session that started a sub-agent."""
    match source:
        case {"subagent": {"thread_spawn": {"parent_thread_id": str(parent)}}}:
            return parent
        case _:
            return None


def _called(what: str, item: Json) -> tuple[str, str]:
    """The name and the arguments of a call."""
    given = item.get(_CALLS[what])
    text = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
    return str(item.get("name") or what.removesuffix("_call")), text


def _blocks(what: str, item: Json) -> list[Json]:
    if what == "message":
        content = item.get("content")
        return [_part(one) for one in list_of(content) or [content]]
    if what == "reasoning":
        texts = [str(object_of(one).get("text", "")) for one in list_of(item.get("summary"))]
        extras = {key: item[key] for key in ("encrypted_content", "content") if item.get(key)}
        more = {"extras": extras} if extras else {}
        return [{"type": "reasoning", "text": "\n\n".join(texts), **more}]
    return [{"type": "provider", "native": dict(item)}]


def _part(part: Any) -> Json:
    match part:
        case str():
            return {"type": "text", "text": part}
        case {"type": "input_text" | "output_text" | "text", "text": str(text)}:
            return {"type": "text", "text": text}
        case _:
            return {"type": "provider", "native": part}


def _receipt(output: Any) -> tuple[str | None, bool]:
    """The text that the model saw, and whether it was reported as a failure."""
    match output:
        case str():
            return output, False
        case {"content": content, **others}:
            return _receipt(content)[0], others.get("success") is False
        case list():
            texts = [str(one["text"]) for one in map(object_of, list_of(output)) if "text" in one]
            return "\n".join(texts) if texts else json.dumps(output, ensure_ascii=False), False
        case None:
            return None, False
        case _:
            return json.dumps(output, ensure_ascii=False), False


def _output(end: Json) -> OutputFound:
    match end:
        case {"type": "exec_command_end"}:
            return _command_output(end)
        case {"type": "mcp_tool_call_end", "result": {"Ok": result}}:
            return OutputFound(structured=result)
        case _:
            named = ("stdout", "stderr")
            streams = {
                name: str(end[name]).encode("utf-8", "surrogatepass")
                for name in named
                if end.get(name)
            }
            others = {
                key: one
                for key, one in end.items()
                if key not in (*named, "type", "call_id", "turn_id")
            }
            return OutputFound(streams, others)


def _command_output(end: Json) -> OutputFound:
    stdout, stderr = str(end.get("stdout") or ""), str(end.get("stderr") or "")
    combined = str(end.get("aggregated_output") or "")
    # The streams are empty where the command ran in a terminal.
    texts = {"stdout": stdout, "stderr": stderr} if stdout or stderr else {"combined": combined}
    command, status = end.get("command"), end.get("exit_code")
    return OutputFound(
        {role: text.encode("utf-8", "surrogatepass") for role, text in texts.items()},
        command=" ".join(map(str, list_of(command))) or str(command),
        cwd=end.get("cwd"),
        exit_status=status if isinstance(status, int) and 0 <= status <= 255 else None,
    )


def _has_failed(end: Json) -> bool:
    """Whether the tool failed; a command that exits with a status did not."""
    match end:
        case {"type": "mcp_tool_call_end", "result": {"Err": _} | {"Ok": {"isError": True}}}:
            return True
        case {"type": "patch_apply_end", "success": False}:
            return True
        case _:
            return False


def _duration(spelled: Any) -> int | None:
    match spelled:
        case {"secs": int(seconds), "nanos": int(nanos)}:
            return seconds * 1000 + nanos // 1_000_000
        case _:
            return None
