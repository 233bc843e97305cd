"""OpenHands: the history of a session as a list of actions and observations.

A trajectory file has the list itself; each line of an evaluation's `output.jsonl` has it as
`history`. An action of the agent is a call. Its observation says in `content` what the tool
returned. The model saw the same text, except of a command: OpenHands adds lines with the status and
the folder, which are not in the file. So a command has no receipt. OpenHands cuts long outputs.

Versions before 2025 wrote no ids: an observation belongs to the action before it. A session has no
id either: it is the digest of the first events.
"""

import json
from collections.abc import Iterator
from typing import Any, Final

from tooltrail.importers import events
from tooltrail.importers.members import named_texts, names_in, without
from tooltrail.importers.openai_chat import origin_of_answer
from tooltrail.importers.values import NOTHING, Json, list_of, object_of, objects_of
from tooltrail.records.digests import digest_of

NAME: Final = "openhands"

_EVENTS_OF_ID: Final = 3
"""Events that make the id of a session: the task, the first answer and its result."""

_NO_CONVERSATION: Final = names_in(
    "agent_state_changed change_agent_state condensation condensation_request loop_recovery null "
    "pause recall resume"
)
"""Types of events that are about the agent's own state."""

_SAID: Final = frozenset({"message", "system"})
_RETURNING: Final = frozenset({"browse", "browse_interactive", "edit"})
"""Observations whose `extras` are what the tool returned beside the text."""

_KNOWN: Final = names_in(
    "action args cause content id message observation source timestamp tool_call_metadata"
)
_CUT: Final = "[... Observation truncated due to length ...]"


def recognizes(value: Any) -> bool:
    """Whether a JSON value is a history, or the line of an evaluation that has one."""
    events = _events_in(value)
    return bool(events) and all(map(_is_event, events))


class Reader(events.FileReader):
    """Reads the histories of one file."""

    _calls: dict[str, str]
    _last_call: str | None

    def read(self, line: events.Line) -> Iterator[events.Event]:
        """The events of one history."""
        found = _events_in(line.value)
        if not any(map(_is_event, found)):
            return
        self._session = digest_of(json.dumps(found[:_EVENTS_OF_ID]).encode())
        self._calls, self._last_call = {}, None
        about = {**object_of(line.value), **object_of(line.value, "issue")}
        title = about.get("title") or about.get("instance_id")
        versions = (object_of(one, "args").get("openhands_version") for one in found)
        version = next((one for one in versions if isinstance(one, str)), None)
        where = {"agent_version": version} if version else NOTHING
        yield events.Session(self._session, found[0].get("timestamp"), NAME, None, title, where)
        for position, event in enumerate(found):
            name = str(position if event.get("id") is None else event["id"])
            what = event.get("action", event.get("observation"))
            if not _is_event(event) or what in _NO_CONVERSATION:
                yield events.Skipped(str(what), is_known=_is_event(event))
            elif "observation" in event:
                yield self._observed(name, event)
            elif what in _SAID:
                yield self._said(name, event)
            else:
                yield self._called(name, event)

    def _said(self, name: str, event: Json) -> events.Message:
        content = object_of(event.get("args", event)).get("content")
        source = event.get("source", "user" if name == "0" else "agent")
        role = "user" if source == "user" else "assistant"
        role = "system" if event.get("action") == "system" else role
        return self._message(name, event, role, content)

    def _called(self, name: str, event: Json) -> events.Message:
        metadata = object_of(event, "tool_call_metadata")
        given = object_of(event.get("args", event))
        named = named_texts(metadata, id="tool_call_id", tool="function_name")
        call_id, is_command = named.get("id", f"event-{name}"), event.get("action") == "run"
        choices = objects_of(metadata, "model_response", "choices")
        calls = [call for one in choices for call in objects_of(one, "message", "tool_calls")]
        same = (one for one in calls if one.get("id") == metadata.get("tool_call_id"))
        arguments = object_of(next(same, None), "function").get("arguments")
        if arguments is None:  # not as the model sent them
            arguments = without(given, frozenset({"thought", "action"}))
        tool = named.get("tool") or str(event.get("action"))
        self._calls[name] = self._last_call = call_id
        origin = origin_of_answer(object_of(metadata, "model_response"))
        said = (given.get("thought"), events.Call(call_id, tool, arguments, is_command))
        return self._message(name, event, "assistant", said, origin)

    def _observed(self, name: str, event: Json) -> events.Event:
        last = self._calls.get(str(event.get("cause"))) if "id" in event else self._last_call
        call_id = object_of(event, "tool_call_metadata").get("tool_call_id") or last
        if isinstance(call_id, str):
            return self._result(call_id, event)
        return self._message(name, event, "user", event.get("content"))

    def _message(
        self, name: str, event: Json, role: str, content: Any, origin: Json = NOTHING
    ) -> events.Message:
        extras = without(event, _KNOWN) if "id" in event else NOTHING
        at = event.get("timestamp")
        return events.Message(self._session, name, at, role, content, origin, extras)

    def _result(self, call_id: str, event: Json) -> events.Result:
        what, text = event.get("observation"), event.get("content")
        receipt, returned = text if isinstance(text, str) else None, event.get("extras")
        output, extras = None, without(event, _KNOWN)
        if what == "run":
            returned = object_of(event.get("extras", event))
            about = {**returned, **object_of(returned, "metadata")}
            lost = {"combined": 0} if _CUT in (receipt or "") else NOTHING
            command, cwd, status = map(about.get, ("command", "working_dir", "exit_code"))
            output = events.Output({"combined": receipt or ""}, None, command, cwd, status, lost)
            receipt = None
        elif what in _RETURNING and returned:
            output, extras = events.Output(structured=returned), without(event, _KNOWN | {"extras"})
        failure = "permission_denied" if what == "user_rejected" else None
        if what == "error" or (what in ("edit", "read") and (receipt or "").startswith("ERROR:")):
            failure = events.FAILED
        at = event.get("timestamp")
        return events.Result(self._session, call_id, at, receipt, output, failure, extras=extras)


def _events_in(value: Any) -> list[Json]:
    """The events of a history, which was once a list of pairs."""
    history = list_of(value) or list_of(value, "history")
    return [object_of(one) for each in history for one in (list_of(each) or [each])]


def _is_event(value: Json) -> bool:
    kinds = [value.get(name) for name in ("action", "observation") if name in value]
    return len(kinds) == 1 and isinstance(kinds[0], str) and "role" not in value
