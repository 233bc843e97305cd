"""Copilot CLI: one JSON line for each event, in `~/.copilot/session-state/SESSION/events.jsonl`.

An `assistant.message` has its calls in `toolRequests`; `tool.execution_start` repeats them. The end
of a call is `tool.execution_complete`: of its `result`, `content` is what the model saw, and
`detailedContent` the complete text. A failed call has only an `error`: what the model saw is not in
the file. The events of a sub-agent name it in `agentId`, or its call in `parentToolCallId`.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from tooltrail.importers import events
from tooltrail.importers.blocks import origin_of, reasoning_part
from tooltrail.importers.members import named_texts, names_in, spelled, without
from tooltrail.importers.values import Json, object_of, objects_of

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

_OF_GIT: Final = {"git_branch": "branch", "git_commit": "headCommit", "git_root": "gitRoot"}
_SAID: Final = names_in(
    "apiCallId content interactionId messageId model outputTokens parentToolCallId reasoningOpaque "
    "reasoningText role toolRequests turnId"
)
_DONE: Final = names_in(
    "error interactionId model parentToolCallId result success toolCallId turnId"
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


class Reader(events.FileReader):
    """Reads the lines of one file. The name of its folder is the id of a session that has none."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._session = path.parent.name
        self._denied: set[str] = set()

    def read(self, line: events.Line) -> Iterator[events.Event]:
        """The events of one line."""
        value = object_of(line.value)
        kind, data = str(value.get("type")), object_of(value, "data")
        at, name = value.get("timestamp"), str(value.get("id") or line.offset)
        if kind == "session.start":
            self._session = str(data.get("sessionId") or self._session)
            about = {**object_of(data, "context"), "agent_version": data.get("copilotVersion")}
            where = named_texts(about, "cwd", "agent_version", "repository", **_OF_GIT)
            began = data.get("startTime") or at
            yield events.Session(self._session, began, NAME, environment=where)
            return
        agent = value.get("agentId") or data.get("parentToolCallId")
        session = f"{self._session}/{agent}" if agent else self._session
        if agent:
            yield events.Session(session, at, NAME, self._session)
        call_id = data.get("toolCallId")
        if kind in _ROLES:
            yield _message(session, name, at, _ROLES[kind], data)
        elif kind == "tool.execution_start":
            yield None  # the type is known, even if the call has no name
            for call in _calls_in([{**data, "name": data.get("toolName")}]):
                yield call._replace(session=session, at=at)
        elif kind == "tool.execution_complete" and isinstance(call_id, str):
            yield _result(session, call_id, at, data, is_denied=call_id in self._denied)
        else:
            if str(object_of(data, "result").get("kind")).startswith("denied"):
                self._denied.add(str(call_id))
            yield events.Skipped(kind, is_known=kind.startswith(_STATE))


def _message(session: str, name: str, at: Any, role: str, data: Json) -> events.Message:
    signature = named_texts(data, signature="reasoningOpaque")
    text, content = str(data.get("reasoningText") or ""), data.get("content")
    reasoning = reasoning_part(text, signature) if text or signature else None
    calls, extras = _calls_in(objects_of(data, "toolRequests")), without(data, _SAID)
    sent = data.get("transformedContent")
    if role == "user" and isinstance(sent, str) and sent:
        # The model was sent more than the user wrote.
        extras = {**without(extras, frozenset({"transformedContent"})), "content": content}
        content = sent
    said = (reasoning, spelled(content) if content else None, *calls)
    usage = without({"outputTokens": data.get("outputTokens")})
    origin = origin_of(NAME, data, usage, "model", response_id="apiCallId")
    return events.Message(session, name, at, role, said, origin, extras)


def _calls_in(requests: Iterable[Json]) -> Iterator[events.Call]:
    for request in requests:
        call_id, tool = request.get("toolCallId"), request.get("name")
        if isinstance(call_id, str) and isinstance(tool, str):
            yield events.Call(call_id, tool, request.get("arguments"))


def _result(session: str, call_id: str, at: Any, data: Json, *, is_denied: bool) -> events.Result:
    result, error = object_of(data, "result"), object_of(data, "error")
    complete, structured = result.get("detailedContent"), error or without(result, _TEXTS)
    has_output = isinstance(complete, str) or structured
    output = events.Output({"content": complete}, structured or None) if has_output else None
    kind = "permission_denied" if is_denied else _KINDS.get(str(error.get("code")), events.FAILED)
    failure = kind if data.get("success") is False else None
    shown, why = result.get("content"), str(error.get("message") or "")
    extras = without(data, _DONE)
    return events.Result(session, call_id, at, shown, output, failure, None, extras, why)
