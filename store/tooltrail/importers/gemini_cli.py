"""Gemini CLI: one JSON document or many JSON lines, in `~/.gemini/tmp/PROJECT/chats/session-*`.

A message `gemini` has its calls in `toolCalls`, each with its result: the parts in `result` are
what the model saw, `resultDisplay` is what the tool returned for people. Since 2026 each message is
a line, which is written again when the calls of the message have ended, or all messages are in the
member `$set` of a line. So only calls and results that were not seen before are new.
"""

from collections.abc import Iterator
from typing import Any, Final

from tooltrail.importers import events
from tooltrail.importers.blocks import origin_of, parts_of, reasoning_part, text_of
from tooltrail.importers.members import named_texts, names_in, spelled, version_of, without
from tooltrail.importers.values import Json, object_of, objects_of, type_name

NAME: Final = "gemini-cli"

_ROLES: Final = {"user": "user", "gemini": "assistant"}
_NO_CONVERSATION: Final = frozenset({"error", "info", "warning"})
"""Types of messages that the agent shows to people."""

_ENDED: Final = frozenset({"success", "error", "cancelled"})
"""The states of a call that has a result."""

_COMMAND_TOOL: Final = "run_shell_command"
_DENIED: Final = "User denied execution."

_MESSAGE: Final = names_in("content id model thoughts timestamp tokens toolCalls type")
_CALL: Final = frozenset({"args", "id", "name", "result", "resultDisplay", "status", "timestamp"})
_OF_THOUGHT: Final = frozenset({"description"})
"""Members that have a place in our records."""


def recognizes(value: Any) -> bool:
    """Whether a JSON value is a session of Gemini CLI, or its first line."""
    return object_of(value).keys() >= {"sessionId", "projectHash"}


class Reader(events.FileReader):
    """Reads one file. That of a sub-agent is in a folder with the name of its parent."""

    def read(self, line: events.Line) -> Iterator[events.Event]:
        """The events of one line, or of the only document."""
        value = object_of(line.value)
        messages = objects_of(value, "messages") or objects_of(value, "$set", "messages")
        if recognizes(value):
            self._session = str(value["sessionId"])
            parent = self._path.parent.name if value.get("kind") == "subagent" else None
            at, where = value.get("startTime"), named_texts(value, project_hash="projectHash")
            yield events.Session(self._session, at, NAME, parent, environment=where)
        elif "type" in value:
            yield from self._message(value, str(line.offset))
        elif not messages:
            what = next(iter(value), type_name(line.value))
            yield events.Skipped(what, is_known=what in ("$set", "$rewindTo"))
        for position, message in enumerate(messages):
            yield from self._message(message, str(position))

    def _message(self, message: Json, place: str) -> Iterator[events.Event]:
        kind, name = str(message.get("type")), str(message.get("id") or place)
        if kind not in _ROLES:
            yield events.Skipped(kind, is_known=kind in _NO_CONVERSATION)
            return
        yield None  # the type is known, even if the message repeats an earlier one
        said_name = version_of(name, message["content"]) if message.get("content") else name
        at, is_new = message.get("timestamp"), self._is_new("message", said_name)
        thoughts = [
            reasoning_part(str(one.get("description") or ""), without(one, _OF_THOUGHT))
            for one in objects_of(message, "thoughts")
        ]
        content = (thoughts, message.get("content")) if is_new else ()
        results: list[events.Result] = []
        calls: list[events.Call] = []
        for position, one in enumerate(objects_of(message, "toolCalls")):
            call_id, tool = str(one.get("id") or f"{name}/{position}"), str(one.get("name"))
            if self._is_new("call", name, call_id):
                calls.append(events.Call(call_id, tool, one.get("args")))
            if str(one.get("status")) in _ENDED and self._is_new("result", name, call_id):
                results.append(self._result(call_id, tool, one))
        if calls and not is_new:  # the message was recorded before it had these calls
            said_name = f"{said_name}/{calls[0].call_id}"
        if calls or is_new:
            origin = origin_of("gemini", message, message.get("tokens"), "model")
            extras = without(message, _MESSAGE)
            said = (*content, *calls)
            yield events.Message(self._session, said_name, at, _ROLES[kind], said, origin, extras)
        yield from results

    def _result(self, call_id: str, tool: str, call: Json) -> events.Result:
        shown, display = [*map(_shown, parts_of(call.get("result")))], call.get("resultDisplay")
        extras = without(call, _CALL)
        is_command = tool == _COMMAND_TOOL
        if isinstance(display, str) and display and not is_command:
            extras["resultDisplay"] = display  # a remark, such as how many lines were read
        is_denied, at = (text_of(shown) or "").endswith(_DENIED), call.get("timestamp")
        stopped = "permission_denied" if is_denied else "cancelled"
        failure = {"success": None, "error": events.FAILED}.get(str(call.get("status")), stopped)
        output = events.output_of(None if isinstance(display, str) and not is_command else display)
        return events.Result(self._session, call_id, at, shown, output, failure, extras=extras)


def _shown(part: Any) -> Any:
    match part:
        case {"functionResponse": {"response": {"output": str(text)} | {"error": str(text)}}}:
            return {"text": text}
        case {"functionResponse": {"response": response}}:
            return {"text": spelled(response)}
        case _:
            return part
