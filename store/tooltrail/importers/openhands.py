"""OpenHands: the history of a session as a list of actions and observations.

A trajectory file has the list itself; each line of an evaluation's `output.jsonl` has it as
`history`. An action of the agent is a call. Its observation says in `content` what the tool
returned. The model saw the same text, except of a command: OpenHands adds lines with the status and
the folder, which are not in the file. So a command has no receipt. OpenHands cuts long outputs.

Versions before 2025 wrote no ids: an observation belongs to the action before it. A session has no
id either: it is the digest of the first events.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from tooltrail.importers.blocks import (
    call_block,
    exit_status_of,
    named_texts,
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
from tooltrail.importers.openai_chat import origin_of_answer
from tooltrail.importers.parts import encoded
from tooltrail.records.digests import digest_of

NAME: Final = "openhands"

_EVENTS_OF_ID: Final = 3
"""Events that make the id of a session: the task, the first answer and its result."""

_NO_CONVERSATION: Final = frozenset(
    {
        *("agent_state_changed", "change_agent_state", "condensation", "condensation_request"),
        *("loop_recovery", "null", "pause", "recall", "resume"),
    }
)
"""Types of events that are about the agent's own state."""

_SAID: Final = frozenset({"message", "system"})
_RETURNING: Final = frozenset({"browse", "browse_interactive", "edit"})
"""Observations whose `extras` are what the tool returned beside the text."""

_KNOWN: Final = frozenset(
    {
        *("action", "args", "cause", "content", "id", "message", "observation", "source"),
        *("timestamp", "tool_call_metadata"),
    }
)
_CUT: Final = "[... Observation truncated due to length ...]"


def recognizes(value: Any) -> bool:
    """Whether a JSON value is a history, or the line of an evaluation that has one."""
    events = _events_in(value)
    return bool(events) and all(map(_is_event, events))


class Reader:
    """Reads the histories of one file."""

    def __init__(self) -> None:
        self._session = ""
        self._calls: dict[str, str] = {}
        self._last_call: str | None = None
        self._commands: set[str] = set()

    def events(self, line: Line) -> Iterator[Event]:
        """The events of one history."""
        found = _events_in(line.value)
        if not any(map(_is_event, found)):
            yield Skipped(type(line.value).__name__, is_known=False)
            return
        self._session = digest_of(json.dumps(found[:_EVENTS_OF_ID]).encode())
        self._calls, self._last_call, self._commands = {}, None, set()
        yield _opening(self._session, object_of(line.value), found)
        for position, event in enumerate(found):
            name = str(position if event.get("id") is None else event["id"])
            what = event.get("action", event.get("observation"))
            if not _is_event(event) or what in _NO_CONVERSATION:
                yield Skipped(str(what), is_known=_is_event(event))
            elif "observation" in event:
                yield self._observed(name, event)
            elif what in _SAID:
                yield self._said(name, event)
            else:
                yield from self._called(name, event)

    def _said(self, name: str, event: Json) -> MessageFound:
        content = object_of(event.get("args", event)).get("content")
        is_first = name == "0"
        if event.get("action") == "system":
            role = "system"
        elif event.get("source", "user" if is_first else "agent") == "user":
            role = "user"
        else:
            role = "assistant"
        return self._message(name, event, role, _texts(content))

    def _called(self, name: str, event: Json) -> Iterator[Event]:
        metadata = object_of(event.get("tool_call_metadata"))
        given = object_of(event.get("args", event))
        call_id, tool = metadata.get("tool_call_id"), metadata.get("function_name")
        call = CallFound(
            self._session,
            call_id if isinstance(call_id, str) else f"event-{name}",
            event.get("timestamp"),
            tool if isinstance(tool, str) else str(event.get("action")),
            _arguments(metadata) or spelled(without(given, frozenset({"thought", "action"}))),
            name,
            is_command=event.get("action") == "run",
        )
        self._calls[name] = self._last_call = call.call_id
        if call.is_command:
            self._commands.add(call.call_id)
        origin = origin_of_answer(object_of(metadata.get("model_response")))
        blocks = [*_texts(given.get("thought")), call_block(call)]
        yield self._message(name, event, "assistant", blocks, origin)
        yield call

    def _observed(self, name: str, event: Json) -> Event:
        call_id = object_of(event.get("tool_call_metadata")).get("tool_call_id")
        if call_id is None:
            cause = event.get("cause")
            has_ids = "id" in event
            call_id = self._calls.get(str(cause)) if has_ids else self._last_call
        if isinstance(call_id, str):
            is_command = call_id in self._commands
            return _result(self._session, call_id, event, is_command=is_command)
        return self._message(name, event, "user", _texts(event.get("content")))

    def _message(
        self, name: str, event: Json, role: str, blocks: Sequence[Json], origin: Json = NOTHING
    ) -> MessageFound:
        extras = without(event, _KNOWN) if "id" in event else NOTHING
        at = event.get("timestamp")
        return MessageFound(self._session, name, at, role, blocks, origin, extras)


def _events_in(value: Any) -> list[Json]:
    """The events of a history, which was once a list of pairs."""
    history = list_of(value) or list_of(object_of(value).get("history"))
    return [object_of(one) for each in history for one in (list_of(each) or [each])]


def _is_event(value: Json) -> bool:
    kinds = [value.get(name) for name in ("action", "observation") if name in value]
    return len(kinds) == 1 and isinstance(kinds[0], str) and "role" not in value


def _opening(session: str, value: Json, events: Sequence[Json]) -> SessionFound:
    issue = object_of(value.get("issue"))
    title = named_texts({**value, **issue}, {"title": "title", "instance": "instance_id"})
    versions = (object_of(one.get("args")).get("openhands_version") for one in events)
    version = next((one for one in versions if isinstance(one, str)), None)
    return SessionFound(
        session,
        events[0].get("timestamp"),
        agent=f"{NAME} {version}" if version else NAME,
        title=title.get("title") or title.get("instance"),
    )


def _texts(content: Any) -> list[Json]:
    return [{"type": "text", "text": content}] if content and isinstance(content, str) else []


def _arguments(metadata: Json) -> str | None:
    """The arguments as the model sent them."""
    for choice in list_of(object_of(metadata.get("model_response")).get("choices")):
        for call in list_of(object_of(object_of(choice).get("message")).get("tool_calls")):
            if object_of(call).get("id") == metadata.get("tool_call_id"):
                given = object_of(object_of(call).get("function")).get("arguments")
                return None if given is None else spelled(given)
    return None


def _result(session: str, call_id: str, event: Json, *, is_command: bool) -> ResultFound:
    what, text = event.get("observation"), event.get("content")
    receipt, returned = text if isinstance(text, str) else None, event.get("extras")
    output, extras = None, without(event, _KNOWN)
    if what == "run":
        receipt, output = (
            None,
            _command_output(receipt or "", object_of(event.get("extras", event))),
        )
    elif what in _RETURNING and returned and not is_command:
        output, extras = OutputFound(structured=returned), without(event, _KNOWN | {"extras"})
    has_failed = what == "error" or (
        what in ("edit", "read") and (receipt or "").startswith("ERROR:")
    )
    return ResultFound(
        session,
        call_id,
        event.get("timestamp"),
        receipt,
        output,
        is_error=has_failed or what == "user_rejected",
        kind="permission_denied" if what == "user_rejected" else "tool_execution_failed",
        extras=extras,
    )


def _command_output(text: str, returned: Json) -> OutputFound:
    metadata = object_of(returned.get("metadata"))
    status = metadata.get("exit_code", returned.get("exit_code"))
    where = named_texts({**returned, **metadata}, {"command": "command", "cwd": "working_dir"})
    return OutputFound(
        {"combined": encoded(text)},
        command=where.get("command"),
        cwd=where.get("cwd"),
        exit_status=exit_status_of(status),
        lost={"combined": 0} if _CUT in text else NOTHING,
    )
