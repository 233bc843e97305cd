"""Copilot CLI: one JSON line for each event, in `~/.copilot/session-state/SESSION/events.jsonl`.

An `assistant.message` has its calls in `toolRequests`; `tool.execution_start` repeats them. The end
of a call is `tool.execution_complete`: of its `result`, `content` is what the model saw, and
`detailedContent` the complete text. A failed call has only an `error`: what the model saw is not in
the file. The events of a sub-agent name it in `agentId`, or its call in `parentToolCallId`.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from tooltrail.importers.blocks import (
    call_block,
    named_texts,
    origin_of,
    spelled,
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

NAME: Final = "copilot-cli"

_STATE: Final = (
    *("abort", "assistant.intent", "assistant.reasoning", "assistant.turn_", "assistant.usage"),
    *("command.", "hook.", "permission.", "session.", "skill.", "subagent.", "tool.execution_"),
    *("tool.user_requested", "user_input."),
)
"""What the types of events begin with that are about the agent's own state."""

_ROLES: Final = {
    "assistant.message": "assistant",
    "system.message": "system",
    "system.notification": "system",
    "user.message": "user",
}
"""The types of events that are messages, and their authors."""

_SAID: Final = frozenset(
    {
        *("apiCallId", "content", "interactionId", "messageId", "model", "outputTokens"),
        *("parentToolCallId", "reasoningOpaque", "reasoningText", "role", "toolRequests", "turnId"),
    }
)
_DONE: Final = frozenset(
    {
        *("error", "interactionId", "model", "parentToolCallId", "result", "success"),
        *("toolCallId", "turnId"),
    }
)
"""Members that have a place in our records, or repeat what another line says."""

_TEXTS: Final = frozenset({"content", "detailedContent"})
_KINDS: Final = {"denied": "permission_denied", "rejected": "permission_denied"}
"""The kind of a failure, by the code of its error."""


def recognizes(value: Any) -> bool:
    """Whether a JSON value is a line of Copilot CLI."""
    line = object_of(value)
    is_event = "." in str(line.get("type")) and isinstance(line.get("data"), dict)
    return is_event and line.keys() >= {"id", "parentId", "timestamp"}


class Reader:
    """Reads the lines of one file.

    Args:
        path: the file; the name of its folder is the id of a session that has none.
    """

    def __init__(self, path: Path) -> None:
        self._session = path.parent.name
        self._opened: set[str] = set()
        self._calls: set[tuple[str, str]] = set()
        self._denied: set[str] = set()

    def events(self, line: Line) -> Iterator[Event]:
        """The events of one line."""
        value = object_of(line.value)
        kind, data = str(value.get("type")), object_of(value.get("data"))
        at, name = value.get("timestamp"), str(value.get("id") or line.offset)
        if kind == "session.start":
            self._session = str(data.get("sessionId") or self._session)
            yield from self._open(_opening(self._session, at, data))
            return
        agent = value.get("agentId") or data.get("parentToolCallId")
        session = f"{self._session}/{agent}" if agent else self._session
        if agent:
            yield from self._open(SessionFound(session, at, agent=NAME, parent=self._session))
        call_id = data.get("toolCallId")
        if kind in _ROLES:
            yield from self._message(session, name, at, _ROLES[kind], data)
        elif kind == "tool.execution_start" and (session, str(call_id)) not in self._calls:
            yield from self._call(session, at, {**data, "name": data.get("toolName")})
        elif kind == "tool.execution_complete" and isinstance(call_id, str):
            yield _result(session, call_id, at, data, is_denied=call_id in self._denied)
        else:
            if str(object_of(data.get("result")).get("kind")).startswith("denied"):
                self._denied.add(str(call_id))
            yield Skipped(kind, is_known=kind.startswith(_STATE))

    def _open(self, found: SessionFound) -> Iterator[SessionFound]:
        """A session, if it was not found before."""
        if found.session not in self._opened:
            self._opened.add(found.session)
            yield found

    def _message(self, session: str, name: str, at: Any, role: str, data: Json) -> Iterator[Event]:
        requests = list_of(data.get("toolRequests"))
        calls = [
            call._replace(position=position)
            for position, one in enumerate(requests)
            for call in self._call(session, at, object_of(one), name)
        ]
        extras = {"signature": data["reasoningOpaque"]} if data.get("reasoningOpaque") else {}
        blocks: list[Json] = []
        if extras or data.get("reasoningText"):
            text = str(data.get("reasoningText") or "")
            block = {"type": "reasoning", "text": text}
            blocks.append({**block, "extras": extras} if extras else block)
        if data.get("content"):
            blocks.append({"type": "text", "text": spelled(data["content"])})
        blocks += map(call_block, calls)
        origin = _origin(data) if role == "assistant" else NOTHING
        yield MessageFound(session, name, at, role, blocks, origin, without(data, _SAID))
        yield from calls

    def _call(
        self, session: str, at: Any, request: Json, message: str | None = None
    ) -> Iterator[CallFound]:
        """The call of a request, if it is one."""
        match request:
            case {"toolCallId": str(call_id), "name": str(tool)}:
                self._calls.add((session, call_id))
                given = spelled(request.get("arguments"))
                yield CallFound(session, call_id, at, tool, given, message)
            case _:
                pass


def _opening(session: str, at: Any, data: Json) -> SessionFound:
    version = data.get("copilotVersion")
    named = {
        "cwd": "cwd",
        "agent_version": "version",
        "git_branch": "branch",
        "git_commit": "headCommit",
        "git_root": "gitRoot",
        "repository": "repository",
    }
    return SessionFound(
        session,
        data.get("startTime") or at,
        agent=NAME,
        environment=named_texts({**object_of(data.get("context")), "version": version}, named),
    )


def _origin(data: Json) -> Json:
    usage = {"outputTokens": data["outputTokens"]} if data.get("outputTokens") is not None else {}
    return origin_of(NAME, data, {"model": "model", "response_id": "apiCallId"}, usage)


def _result(session: str, call_id: str, at: Any, data: Json, *, is_denied: bool) -> ResultFound:
    result, error = object_of(data.get("result")), object_of(data.get("error"))
    receipt, complete = result.get("content"), result.get("detailedContent")
    structured = error or without(result, _TEXTS)
    streams = {"content": encoded(complete)} if isinstance(complete, str) else {}
    kind = _KINDS.get(str(error.get("code")), "tool_execution_failed")
    return ResultFound(
        session,
        call_id,
        at,
        receipt if isinstance(receipt, str) else None,
        OutputFound(streams, structured or None) if streams or structured else None,
        is_error=data.get("success") is False,
        kind="permission_denied" if is_denied else kind,
        message=str(error.get("message") or ""),
        extras=without(data, _DONE),
    )
