"""Logs of Chat Completions: conversations as lists of messages, in whatever file a program chose.

A conversation is a list of messages, or an object that holds it: a request, a request with its
`response` (as LiteLLM and the OpenHands SDK log them), or a run of tau-bench (`traj`). A file has
one conversation, a list of conversations, or one on each line. The source has only what the model
saw: the complete output is not recorded.

Neither conversations nor messages have ids. The id of a message is the digest of everything that
was said up to it. The id of a session is the id of the first message that asks for a call. So the
log of a later request, which repeats all messages before it, adds only what is new.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from tooltrail.importers import events
from tooltrail.importers.blocks import origin_of, reasoning_part, text_of
from tooltrail.importers.members import names_in, without
from tooltrail.importers.values import NOTHING, Json, first_of, list_of, object_of, objects_of
from tooltrail.records.digests import digest_of

NAME: Final = "openai-chat"

_LISTS: Final = ("raw_messages", "messages", "traj")
"""Members that hold the messages. `raw_messages` has the calls that `messages` spells as text."""

_ROLES: Final = ("system", "developer", "user", "assistant", "tool", "function")
_FOREIGN: Final = ("tool_use", "tool_result")
"""Types of parts of Anthropic's messages, which have the same roles."""

_KNOWN: Final = names_in("role content tool_calls tool_call_id name reasoning_content")


class _Conversation(NamedTuple):
    messages: Sequence[Json]
    response: Json = NOTHING
    holder: Json = NOTHING


def recognizes(value: Any) -> bool:
    """Whether a JSON value has conversations of this format."""
    found = _conversations(value)
    return bool(found) and all(_is_message(one) for each in found for one in each.messages)


class Reader(events.FileReader):
    """Reads the conversations of one file."""

    def read(self, line: events.Line) -> Iterator[events.Event]:
        """The events of all conversations in one value."""
        for one in _conversations(line.value):
            yield from self._conversation(one)

    def _conversation(self, found: _Conversation) -> Iterator[events.Event]:
        response, holder = found.response, found.holder
        at = holder.get("timestamp")
        at = at if isinstance(at, int | float) else response.get("created")
        names = names_of(found.messages, holder.get("task_id"), holder.get("trial"))
        named = [*zip(names, found.messages, strict=True)]
        session = next((name for name, one in named if list_of(one, "tool_calls")), names[-1])
        yield events.Session(session, at)
        for name, message in named:
            if not self._is_new(session, name):
                continue  # the log of a later request repeats it
            if not _is_message(message):
                yield events.Skipped(str(message.get("role")), is_known=False)
                continue
            origin = origin_of_answer(response if name == names[-1] else NOTHING)
            yield event_of(session, name, at, message, origin)


def _conversations(value: Any) -> list[_Conversation]:
    """The conversations in a value; none if it is something else."""
    items = list_of(value)
    if any(map(_is_message, items)):
        return [_Conversation([object_of(one) for one in items])]
    return [*filter(None, (_conversation(object_of(one)) for one in (items or [value])))]


def _conversation(holder: Json) -> _Conversation | None:
    for name in _LISTS:
        messages = objects_of(holder, name)
        if any(map(_is_message, messages)) and "trajectory_format" not in holder:
            response = object_of(holder, "response")
            answer = object_of(first_of(response, "choices"), "message")
            answers = [{"role": "assistant", **answer}] if answer else []
            return _Conversation([*messages, *answers], response if answers else NOTHING, holder)
    return None


def _is_message(value: Any) -> bool:
    message = object_of(value)
    parts = objects_of(message, "content")
    is_ours = message.get("role") in _ROLES and ("content" in message or "tool_calls" in message)
    return is_ours and not any(one.get("type") in _FOREIGN for one in parts)


def names_of(messages: Sequence[Json], *run: Any) -> list[str]:
    """The ids of the messages: digests of everything that was said up to each.

    Args:
        messages: the conversation, from its beginning.
        run: what tells this conversation from others that begin alike.
    """
    name = json.dumps(run)
    names: list[str] = []
    for one in messages:
        calls = [call.get("id") for call in objects_of(one, "tool_calls")]
        said = [name, one.get("role"), text_of(one.get("content")), calls, one.get("tool_call_id")]
        name = digest_of(json.dumps(said).encode()).removeprefix("sha256:")[:32]
        names.append(name)
    return names


def event_of(
    session: str, name: str, at: Any, message: Json, origin: Json
) -> events.Message | events.Result:
    """A message with the calls that it asks for, or a result.

    Args:
        session: id of the session.
        name: id of the message.
        at: time of the message.
        message: the message.
        origin: its origin, if the message is an answer.
    """
    content, call_id = message.get("content"), message.get("tool_call_id")
    extras = without(message, _KNOWN)
    if message.get("role") == "tool" and isinstance(call_id, str):
        return events.Result(session, call_id, at, content, extras=extras)
    reasoning, role = reasoning_part(message.get("reasoning_content")), message.get("role")
    said = (reasoning, content, *map(_call, objects_of(message, "tool_calls")))
    return events.Message(session, name, at, role, said, origin, extras)


def _call(call: Json) -> events.Call:
    called = object_of(call, "function") or object_of(call, "custom")
    given = called.get("arguments", called.get("input"))
    return events.Call(call.get("id"), str(called.get("name")), given)


def origin_of_answer(response: Json) -> Json:
    """The origin of a message, from the provider's answer."""
    value, usage = {**response, **first_of(response, "choices")}, response.get("usage")
    return origin_of("openai", value, usage, "model", "finish_reason", response_id="id")
