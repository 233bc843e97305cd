"""mini-swe-agent: one JSON document for each run, in files `*.traj.json`.

Version 1 has the commands in the texts of the model, in a block of code, and the next message is
what the model saw of the output. An answer without exactly one such block runs nothing. Version 2
lists the commands in `extra.actions`, and keeps beside each receipt the output (`extra.raw_output`)
and the exit status. Documents before version 1 are only the list of messages.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from tooltrail.importers import events
from tooltrail.importers.blocks import kind_of, origin_of, reasoning_part, session_name, text_of
from tooltrail.importers.members import named_texts, names_in, without
from tooltrail.importers.values import NOTHING, Json, first_of, list_of, object_of, objects_of

NAME: Final = "mini-swe-agent"

_TOOL: Final = "bash"

_MARK: Final = "```mswea_bash_command"
_COMMAND: Final = re.compile(r"```(?:mswea_bash_command|bash)\s*\n(.*?)\n```", re.DOTALL)

_KINDS: Final = {
    "The last command <command>": "tool_timed_out",
    "Command not executed.": "permission_denied",
    "action was not executed": "cancelled",
}
"""The kinds of failures, by the words with which mini-swe-agent begins."""

_HAS_PLACE: Final = names_in("actions raw_output response returncode timestamp tool_call_id")
"""Members of `extra` that have a place in our records."""


def recognizes(value: Any) -> bool:
    """Whether a JSON value is a run of mini-swe-agent."""
    if isinstance(value, list):
        texts = (object_of(one).get("content") for one in list_of(value))
        return any(isinstance(text, str) and _MARK in text for text in texts)
    return str(object_of(value).get("trajectory_format")).startswith(NAME)


class Reader(events.FileReader):
    """Reads a document. The name of the file is a part of the name of the session."""

    _environment: Json = NOTHING
    _model: Any = None
    _waiting: Sequence[tuple[events.Call, events.Output | None]] = ()

    def read(self, line: events.Line) -> Iterator[events.Event]:
        """The events of one document."""
        value = object_of(line.value)
        messages = objects_of(value.get("messages", line.value))
        if not messages:
            return
        self._environment = object_of(value, "info", "config", "environment")
        self._model = object_of(value, "info", "config", "model").get("model_name")
        self._session = session_name(self._path, *messages[:3])
        where = {**self._environment, **object_of(value, "info")}
        where = named_texts(where, "cwd", "image", agent_version="mini_version")
        began = next((at for one in messages if (at := _at(one))), None)
        title = value.get("instance_id")
        yield events.Session(self._session, began, NAME, None, title, where)
        for number, message in enumerate(messages):
            yield self._message(str(number), message)

    def _message(self, name: str, message: Json) -> events.Event:
        is_answer = message.get("role") == "assistant" or message.get("object") == "response"
        calls: list[events.Call] = []
        if is_answer:
            self._waiting = [*self._calls(name, message)]
            calls = [call for call, _ in self._waiting]
        elif (result := self._result(message)) is not None:
            return result
        response, at = _response(message), _at(message)
        said = (*_reasoning(response), _content(message), *calls)
        role = "assistant" if is_answer else message.get("role")
        choice = without(first_of(response, "choices"))
        about = {"model": self._model, **without(response), **choice}
        names, usage = ("provider", "model", "finish_reason"), response.get("usage")
        origin = origin_of(NAME, about, usage, *names, response_id="id")
        extras = without(object_of(message, "extra"), _HAS_PLACE)
        return events.Message(self._session, name, at, role, said, origin, extras)

    def _calls(
        self, name: str, message: Json
    ) -> Iterator[tuple[events.Call, events.Output | None]]:
        """The calls in an answer, each with what is known of its output if that is kept."""
        actions = object_of(message, "extra").get("actions")
        has_output, arguments = isinstance(actions, list), _arguments(message)
        found = _COMMAND.findall(text_of(_content(message)) or "")
        in_text = [{"command": one.strip()} for one in found] if len(found) == 1 else []
        for position, action in enumerate(objects_of(actions) if has_output else in_text):
            command, given_id = str(action.get("command")), action.get("tool_call_id")
            call_id = str(given_id or f"{name}/{position}")
            more = NOTHING if given_id else {"kind": "custom"}
            call = events.Call(call_id, _TOOL, arguments.get(call_id, command), True, more=more)
            known = events.Output(command=command, cwd=self._environment.get("cwd"))
            yield call, known if has_output else None

    def _result(self, message: Json) -> events.Result | None:
        """The result in a message; None if there is none."""
        extra = object_of(message, "extra")
        call_id = message.get("tool_call_id") or message.get("call_id")
        is_result = call_id is not None or "raw_output" in extra
        output: events.Output | None = None
        for number, (call, known) in enumerate(self._waiting):
            if call_id in (None, call.call_id) and (is_result or known is None):
                self._waiting = [*self._waiting[:number], *self._waiting[number + 1 :]]
                call_id, output = call.call_id, known
                break
        if call_id is None:
            return None
        if output is not None:
            streams = {"combined": str(extra.get("raw_output") or "")}
            output = output._replace(streams=streams, exit_status=extra.get("returncode"))
        receipt, problem = text_of(_content(message)), extra.get("exception_info")
        is_late = extra.get("exception_type") == "TimeoutExpired"
        kind = "tool_timed_out" if is_late else kind_of(problem or receipt, _KINDS)
        kind, at = kind or (events.FAILED if problem else None), _at(message)
        session, extras = self._session, without(extra, _HAS_PLACE)
        return events.Result(session, str(call_id), at, receipt, output, kind, extras=extras)


def _content(message: Json) -> Any:
    """The content of a message; an answer of the Responses API has items instead."""
    return message.get("content", message.get("output"))


def _response(message: Json) -> Json:
    """What the provider answered; an answer of the Responses API is the message itself."""
    if message.get("object") == "response":
        return message
    return object_of(message, "extra", "response")


def _at(message: Json) -> Any:
    return object_of(message, "extra").get("timestamp") or _response(message).get("created")


def _arguments(message: Json) -> dict[str, Any]:
    """The arguments of the calls of tools in an answer, by the ids of the calls."""
    calls, items = objects_of(message, "tool_calls"), objects_of(message, "output")
    return {
        **{str(one.get("id")): object_of(one, "function").get("arguments") for one in calls},
        **{str(one.get("call_id")): one.get("arguments") for one in items},
    }


def _reasoning(response: Json) -> Iterator[Json | None]:
    """The reasoning in the provider's answer."""
    for choice in objects_of(response, "choices"):
        message = object_of(choice, "message")
        text, details = message.get("reasoning"), message.get("reasoning_details")
        yield reasoning_part(text, {"reasoning_details": details} if details else NOTHING)
