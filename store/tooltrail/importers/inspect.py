"""Inspect: the log of an evaluation, an `.eval` archive or one JSON document.

An archive has a JSON file for each sample, and first of all one that names the evaluation. Each run
of a sample is a session. `messages` holds the calls, and the results as the model saw them. The
events `tool` say what the tools returned and how long they ran; of an output that Inspect cut
(`truncated`), they have only what the model saw. The events `model` have the usage of tokens, and
what was sent to the provider. Long texts of events stand in `attachments`. A call that has an event
but no message was made by another agent, or its message was removed from the conversation.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from tooltrail.importers.blocks import (
    blocks_of,
    call_block,
    named_texts,
    origin_of,
    others_than_text,
    parts_of,
    role_of,
    spelled,
    text_of,
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

NAME: Final = "inspect"

_KINDS: Final = {
    "approval": "permission_denied",
    "parsing": "invalid_tool_input",
    "timeout": "tool_timed_out",
}
"""Our kinds for the types of errors of Inspect."""

_KNOWN: Final = frozenset(
    {"content", "error", "function", "id", "model", "role", "tool_call_id", "tool_calls"}
)
_ATTACHED: Final = ("attachment://", "tc://")


def recognizes(value: Any) -> bool:
    """Whether a JSON value is the log of an evaluation, or the head of one."""
    log = object_of(value)
    has_head = {"task", "model"} <= object_of(log.get("eval")).keys()
    return has_head and not {"plan", "samples"}.isdisjoint(log)


class Reader:
    """Reads the log in one file."""

    def __init__(self) -> None:
        self._about: Json = NOTHING

    def events(self, line: Line) -> Iterator[Event]:
        """The events of all samples of a log, or of one sample in an archive."""
        value = object_of(line.value)
        if recognizes(value):
            self._about = object_of(value["eval"])
            samples = list_of(value.get("samples"))
        elif {"epoch", "messages"} <= value.keys():
            samples = [value]
        else:
            is_summary = isinstance(line.value, list)
            yield Skipped(type(line.value).__name__, is_known=is_summary)
            return
        for one in map(object_of, samples):
            opening = _opening(self._about, one)
            yield opening
            yield from _Sample(opening.session, one).events()


class _Sample:
    """One run of a sample."""

    def __init__(self, session: str, sample: Json) -> None:
        self._session = session
        self._messages = list_of(sample.get("messages"))
        old = object_of(sample.get("transcript"))  # before 2025
        attachments = object_of(sample.get("attachments")) or object_of(old.get("content"))
        self._tools: defaultdict[str, list[Json]] = defaultdict(list)
        self._answers: dict[str, Json] = {}
        self._sent: dict[str, str | None] = {}
        self._asked: Counter[str] = Counter()
        for one in list_of(sample.get("events")) or list_of(old.get("events")):
            event = object_of(one)
            if event.get("event") == "tool":
                self._tools[str(event.get("id"))].append(_attached(event, attachments))
            elif event.get("event") == "model":
                for choice in list_of(object_of(event.get("output")).get("choices")):
                    message = object_of(object_of(choice).get("message"))
                    self._answers[str(message.get("id"))] = {**event, "choice": choice}
                request = object_of(object_of(event.get("call")).get("request"))
                for message in map(object_of, list_of(request.get("messages"))):
                    self._sent[str(message.get("tool_call_id"))] = text_of(message.get("content"))

    def events(self) -> Iterator[Event]:
        """The messages, and the calls of which no message speaks."""
        for position, value in enumerate(self._messages):
            message = object_of(value)
            name, call_id = str(message.get("id") or position), message.get("tool_call_id")
            if "role" not in message:
                yield Skipped(type(value).__name__, is_known=False)
            elif message.get("role") == "tool" and isinstance(call_id, str):
                found = self._tools.get(call_id)
                self._asked[call_id] -= 1
                yield self._result(call_id, found.pop(0) if found else NOTHING, message)
            else:
                yield from self._message(name, message)
        for call_id, found in self._tools.items():
            for event in found:
                if self._asked[call_id] > 0:  # its message is in the conversation
                    self._asked[call_id] -= 1
                else:
                    yield self._call(event, None, 0, event.get("timestamp"))
                yield self._result(call_id, event, None)

    def _message(self, name: str, message: Json) -> Iterator[Event]:
        answer = self._answers.get(name, NOTHING)
        at = answer.get("completed") or answer.get("timestamp")
        calls = [
            self._call(object_of(one), name, position, at)
            for position, one in enumerate(list_of(message.get("tool_calls")))
        ]
        role, extras = role_of(message.get("role")), without(message, _KNOWN)
        blocks = [*blocks_of(message.get("content")), *map(call_block, calls)]
        origin = _origin(message, answer) if role == "assistant" else NOTHING
        self._asked.update(one.call_id for one in calls)
        yield MessageFound(self._session, name, at, role, blocks, origin, extras)
        yield from calls

    def _call(self, call: Json, message: str | None, position: int, at: Any) -> CallFound:
        call_id, tool = str(call.get("id")), str(call.get("function"))
        given = spelled(call.get("arguments"))
        return CallFound(self._session, call_id, at, tool, given, message, position)

    def _result(self, call_id: str, event: Json, message: Json | None) -> ResultFound:
        said = message or NOTHING
        error = object_of(said.get("error")) or object_of(event.get("error"))
        content = said.get("content")
        # Of a failed call the model saw the error, with or without a word before it.
        shown = (self._sent.get(call_id) or error.get("message")) if error else content
        receipt = None if message is None else text_of(shown or content)
        extras = without(said, _KNOWN)
        if others := others_than_text(parts_of(content)):
            extras["content"] = others
        if event.get("truncated"):
            extras["truncated"] = event["truncated"]
        return ResultFound(
            self._session,
            call_id,
            event.get("completed") or event.get("timestamp"),
            receipt,
            _output(event),
            is_error=bool(error),
            kind=_KINDS.get(str(error.get("type")), "tool_execution_failed"),
            duration_ms=_duration(event),
            extras=extras,
        )


def _opening(about: Json, sample: Json) -> SessionFound:
    run, number = (f"{sample.get(name)}" for name in ("id", "epoch"))
    ids = [about.get("eval_id") or about.get("run_id"), about.get("task_id"), run, number]
    revision, version = object_of(about.get("revision")), object_of(about.get("packages"))
    where = {"git_commit": "commit", "repository": "origin", "task": "task", "model": "model"}
    return SessionFound(
        str(sample.get("uuid") or "/".join(map(str, ids))),
        about.get("created"),
        agent=f"{NAME} {version['inspect_ai']}" if version.get("inspect_ai") else NAME,
        title=f"{about.get('task')} {run} ({number})",
        environment=named_texts({**revision, **about}, where),
    )


def _attached(event: Json, attachments: Mapping[str, Any]) -> Json:
    """An event with the texts that stand elsewhere in the sample."""

    def resolved(value: Any) -> Any:
        if isinstance(value, str) and value.startswith(_ATTACHED):
            return attachments.get(value.partition("://")[2], value)
        if isinstance(value, list):
            return [resolved(one) for one in list_of(value)]
        if isinstance(value, dict):
            return {name: resolved(one) for name, one in object_of(value).items()}
        return value

    names = ("id", "function", "arguments", "result")
    return {**event, **{name: resolved(event[name]) for name in names if name in event}}


def _output(event: Json) -> OutputFound | None:
    """What a tool returned; None if no event has all of it."""
    result = event.get("result")
    if result is None or event.get("truncated") or (event.get("error") and not result):
        return None
    if isinstance(result, str):
        return OutputFound({"content": encoded(result)})
    return OutputFound(structured=result)


def _origin(message: Json, answer: Json) -> Json:
    output, choice = object_of(answer.get("output")), object_of(answer.get("choice"))
    names = {"model": "model", "finish_reason": "stop_reason"}
    return origin_of(NAME, {**output, **message, **choice}, names, output.get("usage"))


def _duration(event: Json) -> int | None:
    """How long a tool ran, in milliseconds."""
    begun, ended = event.get("timestamp"), event.get("completed")
    if not isinstance(begun, str) or not isinstance(ended, str):
        return None
    try:
        lasted = datetime.fromisoformat(ended) - datetime.fromisoformat(begun)
    except (ValueError, TypeError):
        return None
    return max(0, round(lasted.total_seconds() * 1000))
