"""Inspect: the log of an evaluation, an `.eval` archive or one JSON document.

An archive has a JSON file for each sample, and first of all one that names the evaluation. Each run
of a sample is a session. `messages` holds the calls, and the results as the model saw them. The
events `tool` say what the tools returned and how long they ran; of an output that Inspect cut
(`truncated`), they have only what the model saw. The events `model` have the usage of tokens, and
what was sent to the provider. Long texts of events stand in `attachments`. A call that has an event
but no message was made by another agent, or its message was removed from the conversation.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from tooltrail.importers import events
from tooltrail.importers.blocks import origin_of, others_than_text, text_of
from tooltrail.importers.members import named_texts, names_in, without
from tooltrail.importers.values import NOTHING, Json, list_of, object_of, objects_of, type_name

NAME: Final = "inspect"
SUFFIX: Final = ".eval"
"""Ending of the name of an archive, which is a zip file."""

_KINDS: Final = {
    "approval": "permission_denied",
    "parsing": "invalid_tool_input",
    "timeout": "tool_timed_out",
}
"""Our kinds for the types of errors of Inspect."""

_KNOWN: Final = names_in("content error function id model role tool_call_id tool_calls")
_OF_TOOL: Final = names_in("arguments completed error function id result timestamp truncated")
_ATTACHED: Final = ("attachment://", "tc://")


def recognizes(value: Any) -> bool:
    """Whether a JSON value is the log of an evaluation, or the head of one."""
    log = object_of(value)
    has_head = {"task", "model"} <= object_of(log, "eval").keys()
    return has_head and not {"plan", "samples"}.isdisjoint(log)


class Reader(events.FileReader):
    """Reads the log in one file."""

    _about: Json = NOTHING

    def read(self, line: events.Line) -> Iterator[events.Event]:
        """The events of all samples of a log, or of one sample in an archive."""
        value, samples = object_of(line.value), list[dict[str, Any]]()
        if recognizes(value):
            self._about, samples = object_of(value, "eval"), objects_of(value, "samples")
        elif {"epoch", "messages"} <= value.keys():
            samples = [value]
        elif isinstance(line.value, list):
            yield events.Skipped("summaries", is_known=True)
        if "eval" in value:
            yield None
        for one in samples:
            opening = _opening(self._about, one)
            yield opening
            yield from _Sample(opening.session, one).read()


class _Sample:
    """One run of a sample."""

    def __init__(self, session: str, sample: Json) -> None:
        self._session = session
        self._messages = list_of(sample, "messages")
        old = object_of(sample, "transcript")  # before 2025
        attachments = object_of(sample, "attachments") or object_of(old, "content")
        self._tools: defaultdict[str, list[Json]] = defaultdict(list)
        self._answers: dict[str, Json] = {}
        self._sent: dict[str, str | None] = {}
        for event in objects_of(sample, "events") or objects_of(old, "events"):
            if event.get("event") == "tool":
                called = {name: one for name, one in event.items() if name in _OF_TOOL}
                self._tools[str(event.get("id"))].append(_attached(called, attachments))
            elif event.get("event") == "model":
                for choice in objects_of(event, "output", "choices"):
                    answer = {**event, "choice": choice}
                    self._answers[str(object_of(choice, "message").get("id"))] = answer
                for message in objects_of(event, "call", "request", "messages"):
                    self._sent[str(message.get("tool_call_id"))] = text_of(message.get("content"))

    def read(self) -> Iterator[events.Event]:
        """The messages, and the calls of which no message speaks."""
        for position, value in enumerate(self._messages):
            message = object_of(value)
            name, call_id = str(message.get("id") or position), message.get("tool_call_id")
            if "role" not in message:
                yield events.Skipped(type_name(value), is_known=False)
            elif message.get("role") == "tool" and isinstance(call_id, str):
                found = self._tools.get(call_id)
                yield self._result(call_id, found.pop(0) if found else NOTHING, message)
            else:
                yield self._message(name, message)
        for call_id, found in self._tools.items():
            for event in found:
                yield _call(event)._replace(at=event.get("timestamp"), session=self._session)
                yield self._result(call_id, event, None)

    def _message(self, name: str, message: Json) -> events.Message:
        answer = self._answers.get(name, NOTHING)
        at = answer.get("completed") or answer.get("timestamp")
        calls = [*map(_call, objects_of(message, "tool_calls"))]
        content, extras = (message.get("content"), *calls), without(message, _KNOWN)
        output, choice = object_of(answer, "output"), object_of(answer, "choice")
        value, usage = {**output, **message, **choice}, output.get("usage")
        origin = origin_of(NAME, value, usage, "model", finish_reason="stop_reason")
        role = message.get("role")
        return events.Message(self._session, name, at, role, content, origin, extras)

    def _result(self, call_id: str, event: Json, message: Json | None) -> events.Result:
        said, result = message or NOTHING, event.get("result")
        has_all = not event.get("truncated") and (result or not event.get("error"))
        error = object_of(said, "error") or object_of(event, "error")
        content = said.get("content")
        # Of a failed call the model saw the error, with or without a word before it.
        shown = (self._sent.get(call_id) or error.get("message")) if error else content
        cut = {"truncated": event["truncated"]} if event.get("truncated") else NOTHING
        receipt = None if message is None else shown or content
        output = events.output_of(result) if has_all else None
        failure = _KINDS.get(str(error.get("type")), events.FAILED) if error else None
        extras = {**without(said, _KNOWN), **others_than_text(content), **cut}
        at, took = event.get("completed") or event.get("timestamp"), _duration(event)
        return events.Result(self._session, call_id, at, receipt, output, failure, took, extras)


def _call(call: Json) -> events.Call:
    return events.Call(str(call.get("id")), str(call.get("function")), call.get("arguments"))


def _opening(about: Json, sample: Json) -> events.Session:
    run, number = (f"{sample.get(name)}" for name in ("id", "epoch"))
    ids = [about.get("eval_id") or about.get("run_id"), about.get("task_id"), run, number]
    where = {**object_of(about, "revision"), **object_of(about, "packages"), **about}
    same = {"agent_version": "inspect_ai", "git_commit": "commit", "repository": "origin"}
    session, began = str(sample.get("uuid") or "/".join(map(str, ids))), about.get("created")
    title = f"{about.get('task')} {run} ({number})"
    where = named_texts(where, "task", "model", **same)
    return events.Session(session, began, NAME, None, title, where)


def _attached(value: Any, attachments: Mapping[str, Any]) -> Any:
    """A value with the texts that stand elsewhere in the sample."""
    if isinstance(value, str) and value.startswith(_ATTACHED):
        return attachments.get(value.partition("://")[2], value)
    if isinstance(value, list):
        return [_attached(one, attachments) for one in list_of(value)]
    if isinstance(value, dict):
        return {name: _attached(one, attachments) for name, one in object_of(value).items()}
    return value


def _duration(event: Json) -> float | None:
    """How long a tool ran, in milliseconds."""
    try:
        begin, end = (datetime.fromisoformat(event[one]) for one in ("timestamp", "completed"))
        return max(0, (end - begin).total_seconds() * 1000)
    except (LookupError, ValueError, TypeError):
        return None
