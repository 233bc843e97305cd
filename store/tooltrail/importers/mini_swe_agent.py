"""mini-swe-agent: one JSON document for each run, in files `*.traj.json`.

Version 1 has the commands in the texts of the model, in a block of code, and the next message is
what the model saw of the output. An answer without exactly one such block runs nothing. Version 2
lists the commands in `extra.actions`, and keeps beside each receipt the output (`extra.raw_output`)
and the exit status. Documents before version 1 are only the list of messages.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from tooltrail.importers.blocks import (
    blocks_of,
    command_block,
    exit_status_of,
    kind_of,
    named_texts,
    origin_of,
    role_of,
    session_name,
    spelled,
    text_of,
    time_of,
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

_HAS_PLACE: Final = frozenset(
    {"actions", "raw_output", "response", "returncode", "timestamp", "tool_call_id"}
)
"""Members of `extra` that have a place in our records."""


def recognizes(value: Any) -> bool:
    """Whether a JSON value is a run of mini-swe-agent."""
    if isinstance(value, list):
        texts = (object_of(one).get("content") for one in list_of(value))
        return any(isinstance(text, str) and _MARK in text for text in texts)
    return str(object_of(value).get("trajectory_format")).startswith(NAME)


class Reader:
    """Reads a document.

    Args:
        path: the file; its name is a part of the name of the session.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._session = path.stem
        self._config: Json = NOTHING
        self._waiting: list[tuple[CallFound, OutputFound | None]] = []

    def events(self, line: Line) -> Iterator[Event]:
        """The events of one document."""
        value = object_of(line.value)
        messages = [*map(object_of, list_of(value.get("messages", line.value)))]
        if not messages:
            yield Skipped(type(line.value).__name__, is_known=False)
            return
        info = object_of(value.get("info"))
        self._config = object_of(info.get("config"))
        self._session = session_name(self._path, *messages[:3])
        version, where = info.get("mini_version"), {"cwd": "cwd", "image": "image"}
        yield SessionFound(
            self._session,
            next(filter(None, map(_at, messages)), None),
            agent=f"{NAME} {version}" if version else NAME,
            title=named_texts(value, {"title": "instance_id"}).get("title"),
            environment=named_texts(self._environment(), where),
        )
        for number, message in enumerate(messages):
            yield from self._message(str(number), message)

    def _environment(self) -> Json:
        return object_of(self._config.get("environment"))

    def _message(self, name: str, message: Json) -> Iterator[Event]:
        is_answer = message.get("role") == "assistant" or message.get("object") == "response"
        result = None if is_answer else self._result(message)
        if result is not None:
            yield result
            return
        if is_answer:
            self._waiting = [*self._calls(name, message)]
        calls = [call for call, _ in self._waiting] if is_answer else []
        response = _response(message)
        yield MessageFound(
            self._session,
            name,
            _at(message),
            "assistant" if is_answer else role_of(message.get("role")),
            [*_reasoning(response), *blocks_of(_content(message)), *map(command_block, calls)],
            self._origin(response) if is_answer else NOTHING,
            without(object_of(message.get("extra")), _HAS_PLACE),
        )
        yield from calls

    def _calls(self, name: str, message: Json) -> Iterator[tuple[CallFound, OutputFound | None]]:
        """The calls in an answer, each with what is known of its output if that is kept."""
        actions = object_of(message.get("extra")).get("actions")
        has_output, arguments = isinstance(actions, list), _arguments(message)
        found = _COMMAND.findall(text_of(_content(message)) or "")
        in_text = [{"command": one.strip()} for one in found] if len(found) == 1 else []
        for position, action in enumerate(list_of(actions) if has_output else in_text):
            command = str(object_of(action).get("command"))
            call_id = str(object_of(action).get("tool_call_id") or f"{name}/{position}")
            given, at = arguments.get(call_id, command), _at(message)
            call = CallFound(self._session, call_id, at, _TOOL, given, name, position, True)
            where = named_texts(self._environment(), {"cwd": "cwd"})
            yield call, OutputFound(command=command, **where) if has_output else None

    def _result(self, message: Json) -> ResultFound | None:
        """The result in a message; None if there is none."""
        extra = object_of(message.get("extra"))
        call_id = message.get("tool_call_id") or message.get("call_id")
        is_result = call_id is not None or "raw_output" in extra
        waiting = (
            number
            for number, (call, output) in enumerate(self._waiting)
            if call_id in (None, call.call_id) and (is_result or output is None)
        )
        number, output = next(waiting, None), None
        if number is not None:
            call, output = self._waiting.pop(number)
            call_id = call.call_id
        if call_id is None:
            return None
        if output is not None:
            streams = {"combined": encoded(str(extra.get("raw_output") or ""))}
            status = exit_status_of(extra.get("returncode"))
            output = output._replace(streams=streams, exit_status=status)
        receipt, problem = text_of(_content(message)), extra.get("exception_info")
        is_late = extra.get("exception_type") == "TimeoutExpired"
        kind = "tool_timed_out" if is_late else kind_of(problem or receipt, _KINDS)
        return ResultFound(
            self._session,
            str(call_id),
            _at(message),
            receipt,
            output,
            is_error=bool(problem or kind),
            kind=kind or "tool_execution_failed",
            extras=without(extra, _HAS_PLACE),
        )

    def _origin(self, response: Json) -> Json:
        choice = object_of(next(iter(list_of(response.get("choices"))), None))
        model = object_of(self._config.get("model")).get("model_name")
        names = {"provider": "provider", "model": "model", "response_id": "id"}
        names["finish_reason"] = "finish_reason"
        found = {"model": model, **without(response, frozenset()), **without(choice, frozenset())}
        return origin_of(NAME, found, names, response.get("usage"))


def _content(message: Json) -> Any:
    """The content of a message; an answer of the Responses API has items instead."""
    return message.get("content", message.get("output"))


def _response(message: Json) -> Json:
    """What the provider answered; an answer of the Responses API is the message itself."""
    if message.get("object") == "response":
        return message
    return object_of(object_of(message.get("extra")).get("response"))


def _at(message: Json) -> str | None:
    at = object_of(message.get("extra")).get("timestamp")
    return time_of(at or _response(message).get("created"))


def _arguments(message: Json) -> dict[str, str]:
    """The arguments of the calls of tools in an answer, by the ids of the calls."""
    calls = [*map(object_of, list_of(message.get("tool_calls")))]
    items = [*map(object_of, list_of(message.get("output")))]
    return {
        **{str(one.get("id")): _given(object_of(one.get("function"))) for one in calls},
        **{str(one.get("call_id")): _given(one) for one in items},
    }


def _given(function: Json) -> str:
    return spelled(function.get("arguments"))


def _reasoning(response: Json) -> Iterator[Json]:
    """The reasoning in the provider's answer."""
    for choice in map(object_of, list_of(response.get("choices"))):
        message = object_of(choice.get("message"))
        text, details = message.get("reasoning"), message.get("reasoning_details")
        if isinstance(text, str):
            more = {"extras": {"reasoning_details": details}} if details else {}
            yield {"type": "reasoning", "text": text, **more}
