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

from tooltrail.importers.blocks import (
    blocks_of,
    call_block,
    origin_of,
    role_of,
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
    ResultFound,
    SessionFound,
    Skipped,
    list_of,
    object_of,
)
from tooltrail.records.digests import digest_of

NAME: Final = "openai-chat"

_LISTS: Final = ("raw_messages", "messages", "traj")
"""Members that hold the messages. `raw_messages` has the calls that `messages` spells as text."""

_ROLES: Final = ("system", "developer", "user", "assistant", "tool", "function")
_FOREIGN: Final = ("tool_use", "tool_result")
"""Types of parts of Anthropic's messages, which have the same roles."""

_KNOWN: Final = frozenset(
    {"role", "content", "tool_calls", "tool_call_id", "name", "reasoning_content"}
)


class _Conversation(NamedTuple):
    messages: Sequence[Json]
    response: Json = NOTHING
    holder: Json = NOTHING


def recognizes(value: Any) -> bool:
    """Whether a JSON value has conversations of this format."""
    found = _conversations(value)
    return bool(found) and all(_is_message(one) for each in found for one in each.messages)


class Reader:
    """Reads the conversations of one file."""

    def __init__(self) -> None:
        self._seen: set[str] = set()

    def events(self, line: Line) -> Iterator[Event]:
        """The events of all conversations in one value."""
        found = _conversations(line.value)
        if not found:
            yield Skipped(type(line.value).__name__, is_known=False)
        for one in found:
            yield from self._conversation(one)

    def _conversation(self, found: _Conversation) -> Iterator[Event]:
        response, holder = found.response, found.holder
        at = time_of(holder.get("timestamp")) or time_of(response.get("created"))
        names = names_of(found.messages, holder.get("task_id"), holder.get("trial"))
        asks = (name for name, one in zip(names, found.messages, strict=True) if _calls(one))
        session = next(asks, names[-1])
        if session not in self._seen:
            self._seen.add(session)
            yield SessionFound(session, at)
        for name, message in zip(names, found.messages, strict=True):
            if f"{session}/{name}" in self._seen:
                continue  # the log of a later request repeats it
            self._seen.add(f"{session}/{name}")
            if not _is_message(message):
                yield Skipped(str(message.get("role")), is_known=False)
                continue
            is_answer = bool(response) and name == names[-1]
            origin = origin_of_answer(response if is_answer else NOTHING)
            yield from events_of(session, name, at, message, origin)


def _conversations(value: Any) -> list[_Conversation]:
    """The conversations in a value; none if it is something else."""
    items = list_of(value)
    if any(map(_is_message, items)):
        return [_Conversation([object_of(one) for one in items])]
    found = [_conversation(object_of(one)) for one in (items or [value])]
    return [one for one in found if one]


def _conversation(holder: Json) -> _Conversation | None:
    for name in _LISTS:
        messages = [object_of(one) for one in list_of(holder.get(name))]
        if any(map(_is_message, messages)) and "trajectory_format" not in holder:
            response = object_of(holder.get("response"))
            choices = list_of(response.get("choices"))
            answer = object_of(object_of(choices[0]).get("message")) if choices else {}
            answers = [{"role": "assistant", **answer}] if answer else []
            return _Conversation([*messages, *answers], response if answers else NOTHING, holder)
    return None


def _is_message(value: Any) -> bool:
    message = object_of(value)
    parts = map(object_of, list_of(message.get("content")))
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
        calls = [call.get("id") for call in _calls(one)]
        said = [name, one.get("role"), text_of(one.get("content")), calls, one.get("tool_call_id")]
        name = digest_of(json.dumps(said).encode()).removeprefix("sha256:")[:32]
        names.append(name)
    return names


def _calls(message: Json) -> list[Json]:
    return [object_of(one) for one in list_of(message.get("tool_calls"))]


def events_of(
    session: str, name: str, at: str | None, message: Json, origin: Json
) -> Iterator[Event]:
    """A message and the calls that it asks for, or a result.

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
        yield ResultFound(session, call_id, at, text_of(content), extras=extras)
        return
    calls = [
        _call(session, name, at, one, position) for position, one in enumerate(_calls(message))
    ]
    reasoning = message.get("reasoning_content")
    blocks = [
        *([{"type": "reasoning", "text": reasoning}] if isinstance(reasoning, str) else []),
        *blocks_of(content),
        *map(call_block, calls),
    ]
    role = role_of(message.get("role"))
    yield MessageFound(
        session, name, at, role, blocks, origin if role == "assistant" else NOTHING, extras
    )
    yield from calls


def _call(session: str, name: str, at: str | None, call: Json, position: int) -> CallFound:
    called = object_of(call.get("function")) or object_of(call.get("custom"))
    call_id, tool = call.get("id"), str(called.get("name"))
    given = spelled(called.get("arguments", called.get("input")))
    call_id = call_id if isinstance(call_id, str) else f"{name}/{position}"
    return CallFound(session, call_id, at, tool, given, name, position)


def origin_of_answer(response: Json) -> Json:
    """The origin of a message, from the provider's answer."""
    choices = list_of(response.get("choices"))
    reason = object_of(choices[0]).get("finish_reason") if choices else None
    names = {"model": "model", "response_id": "id", "finish_reason": "reason"}
    return origin_of("openai", {**response, "reason": reason}, names, response.get("usage"))
