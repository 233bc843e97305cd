"""pi: one JSON line for each entry, in `~/.pi/agent/sessions/*/TIME_SESSION.jsonl`.

The first line is the head of the session. An assistant's message has its calls as blocks
`toolCall`. The result of a call is a message with the role `toolResult`: `content` is what the
model saw, `details` beside it is what the tool returned for people. Long output is cut, and pi
keeps all of it in a temporary file elsewhere, which is not read. Version 1 has no ids of entries.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from tooltrail.importers import events
from tooltrail.importers.blocks import origin_of, parts_of, text_of
from tooltrail.importers.members import named_texts, names_in, without
from tooltrail.importers.values import Json, object_of

NAME: Final = "pi"

_NO_CONVERSATION: Final = names_in(
    "branch_summary compaction context_edit custom label model_change session session_info "
    "thinking_level_change usage"
)
"""Types of entries that are about the agent's own state, such as a second head."""

_WIRE_FORMATS: Final = {
    "anthropic-messages": "anthropic",
    "openai-completions": "openai",
    "openai-codex-responses": "openai-responses",
    "google-generative-ai": "gemini",
    "bedrock-converse-stream": "bedrock",
}
"""Our names for the APIs that pi names otherwise."""

_ROLES: Final = {"assistant": "assistant", "toolResult": "tool"}
"""Our names for authors; everything else is of the user."""

_NAMED: Final = {"response_id": "responseId", "finish_reason": "stopReason"}
_ENTRY: Final = frozenset({"id", "parentId", "timestamp", "type"})
_MESSAGE: Final = names_in("api content model provider responseId role stopReason timestamp usage")
_RESULT: Final = names_in("content details isError role timestamp toolCallId toolName")
"""Members that have a place in our records, or repeat what another line says."""

_CUTTING: Final = frozenset({"fullOutputPath", "truncation"})
"""Members of `details` that say how the text was cut: the rest of the output is not there."""

_ENDED: Final = re.compile(r"(?:^|\n)Command (aborted|exited|timed out)[^\n]*\n?\Z")
_KINDS: Final = {"aborted": "interrupted", "timed out": "tool_timed_out"}
"""The kind of a failure, by the word with which pi ends the text of a command that failed."""


def recognizes(value: Any) -> bool:
    """Whether a JSON value is a line of pi."""
    line = object_of(value)
    if line.get("type") == "session":
        return line.keys() >= {"id", "timestamp", "cwd"}
    return line.get("type") == "message" and "role" in object_of(line, "message")


class Reader(events.FileReader):
    """Reads the lines of one file; the session's id is a part of its name."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._session = _session_in(path)

    def read(self, line: events.Line) -> Iterator[events.Event]:
        """The events of one line."""
        value = object_of(line.value)
        kind, message = str(value.get("type")), object_of(value, "message")
        at, name = value.get("timestamp"), str(value.get("id") or line.offset)
        if kind == "session" and self._is_new(kind):
            self._session = str(value.get("id") or self._session)
            parent = value.get("parentSession") or value.get("branchedFrom")
            parent = _session_in(Path(parent)) if isinstance(parent, str) else None
            where = named_texts(value, "cwd")
            yield events.Session(self._session, at, NAME, parent, environment=where)
        elif kind == "custom_message":
            yield self._message(name, at, without(value, _ENTRY))
        elif kind != "message" or "role" not in message:
            yield events.Skipped(kind, is_known=kind in _NO_CONVERSATION)
        elif message.get("role") == "toolResult" and isinstance(message.get("toolCallId"), str):
            yield self._result(at, message)
        else:
            yield self._message(name, at, message)

    def _message(self, name: str, at: Any, message: Json) -> events.Message:
        role, said = message.get("role"), [*map(_part, parts_of(message.get("content")))]
        extras = without(message, _MESSAGE)
        if role == "bashExecution":  # a command that the user ran
            said, extras = [message], {}
        author, api = _ROLES.get(str(role), "user"), str(message.get("api"))
        api, usage = _WIRE_FORMATS.get(api, api), message.get("usage")
        origin = origin_of(api, message, usage, "provider", "model", **_NAMED)
        return events.Message(self._session, name, at, author, said, origin, extras)

    def _result(self, at: Any, message: Json) -> events.Result:
        content, details = message.get("content"), message.get("details")
        extras = without(message, _RESULT)
        if is_cut := not _CUTTING.isdisjoint(object_of(details)):
            extras["details"] = details
        ended = _ENDED.search(text_of(content) or "")
        word = ended[1] if ended else ""
        has_failed = message.get("isError") is True and word != "exited"
        failure = _KINDS.get(word, events.FAILED) if has_failed else None
        output = events.Output(structured=details) if details and not is_cut else None
        call_id = str(message["toolCallId"])
        return events.Result(self._session, call_id, at, content, output, failure, extras=extras)


def _session_in(path: Path) -> str:
    """The id of a session in the name of its file."""
    return path.stem.rpartition("_")[2]


def _part(part: Any) -> Any:
    match part:
        case {"type": "toolCall", "id": str(call_id), "name": str(tool)}:
            return events.Call(call_id, tool, part.get("arguments"))
        case _:
            return part
