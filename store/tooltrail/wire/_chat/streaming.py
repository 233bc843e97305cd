"""Assembles a streamed answer with `choices`, chunk by chunk.

Texts are joined, `fragments` assembles calls, and the result is read like an answer that was not
streamed. An error may come before, between or after the chunks, in a separate event or in a
choice; it is found in every case.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from pydantic import JsonValue

from tooltrail.records import Message
from tooltrail.wire._chat.answers import (
    ODD_CALLS,
    ChatSpelling,
    asks_for_call,
    choice_failure,
    read_response,
)
from tooltrail.wire._chat.fragments import LEGACY, Calls, place_in
from tooltrail.wire._reading import origin_of_choice
from tooltrail.wire.members import JsonObject, are_objects, list_in, object_in, objects_in
from tooltrail.wire.responses import ProviderFailure, Response, failure_in

_DELTA = frozenset({"role", "content", "refusal", "tool_calls", "function_call"})
_SOUND = ("data", "transcript")
"""Members of `audio` that come in pieces; each piece of base64 has complete groups."""


def _joined(pieces: list[JsonValue]) -> JsonValue:
    """Join the pieces of a member: lists and texts of sound are joined, others are replaced."""
    last = pieces[-1]
    if isinstance(last, list):
        return [item for piece in pieces for item in list_in(piece)]
    if not isinstance(last, dict):
        return last
    objects = [object_in(piece) for piece in pieces]
    whole = {name: value for one in objects for name, value in one.items()}
    for name in _SOUND:
        texts = [one[name] for one in objects if name in one]
        if texts and all(isinstance(text, str) for text in texts):
            whole[name] = "".join(map(str, texts))
    return whole


@dataclass(slots=True)
class Choice:
    """A choice, as far as it was received."""

    spelling: ChatSpelling
    texts: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    parts: list[JsonValue] = field(default_factory=list[JsonValue])
    calls: Calls = field(default_factory=Calls)
    head: JsonObject = field(default_factory=dict[str, JsonValue])
    members: dict[str, list[JsonValue]] = field(default_factory=dict[str, list[JsonValue]])
    odd: dict[str, None] = field(default_factory=dict[str, None])

    def native(self) -> JsonObject:
        """The message in the form of an answer that is not streamed."""
        members: JsonObject = {name: "".join(pieces) for name, pieces in self.texts.items()}
        if self.parts:
            self._end_part()
            members["content"] = self.parts
        if self.calls.calls:
            members["tool_calls"] = [call.native() for call in self.calls.calls]
        return {**{name: _joined(pieces) for name, pieces in self.members.items()}, **members}

    def unread(self) -> Iterator[str]:
        """The notes on malformed deltas and on doubts."""
        yield from self.odd
        yield from self.calls.unread()

    def take(self, delta: JsonObject) -> None:
        """Add the delta of one chunk."""
        for name, value in delta.items():
            if name in self.spelling.texts:
                self._take_text(name, value)
            elif name == "tool_calls":
                if not are_objects(value):
                    self.odd[ODD_CALLS] = None
                self.calls.take(objects_in(value))
            elif name == "function_call":
                if asks_for_call(value):
                    self.calls.take([{"index": LEGACY, "function": value}])
                elif value and not isinstance(value, dict):
                    self.odd["function_call of a delta is not an object"] = None
            elif name not in _DELTA and value is not None:
                self.members.setdefault(name, []).append(value)

    def _take_text(self, name: str, value: JsonValue) -> None:
        if isinstance(value, str):
            self.texts.setdefault(name, []).append(value)
        elif value is None:
            return
        elif name != "content":
            self.members.setdefault(name, []).append(value)
        elif isinstance(value, list) or self.spelling.is_part(value):
            for part in value if isinstance(value, list) else [value]:
                match part:
                    case {"type": "text", "text": str(text), **rest} if not rest:
                        self.texts.setdefault(name, []).append(text)
                    case _:
                        self._end_part()
                        self.parts.append(part)
        else:
            self.odd["content of a delta is not a string"] = None

    def _end_part(self) -> None:
        """Turn the text so far into a part, before a part that is not text."""
        if text := "".join(self.texts.pop("content", ())):
            self.parts.append({"type": "text", "text": text})


class ChatAssembler:
    """Assembles the chunks of one answer."""

    def __init__(self, spelling: ChatSpelling) -> None:
        self._spelling = spelling
        self._choices: dict[int, Choice] = {}
        self._head: JsonObject = {}
        self._failure: ProviderFailure | None = None
        self._wholes: list[JsonObject] = []
        self._unread: dict[str, None] = {}

    def feed(self, event: JsonObject) -> None:
        """Add one chunk."""
        self._failure = self._failure or failure_in(event)
        choices = event.get("choices")
        if not choices:
            return
        if not isinstance(choices, list):
            self._unread["choices of an event is not a list"] = None
            return
        if not self._head:
            self._head = event
        for choice in choices:
            if isinstance(choice, dict):
                self._take(choice, event)
            else:
                self._unread["a choice is not an object"] = None

    def _take(self, choice: JsonObject, event: JsonObject) -> None:
        self._failure = self._failure or choice_failure(choice)
        delta, index = choice.get("delta"), place_in(choice.get("index"))
        if delta is None and "message" in choice:
            if not (self._wholes and self._wholes[-1] is event):
                self._wholes.append(event)
            return
        if index is None and choice.get("index") is not None:
            self._unread["the index of a choice is not a number"] = None
        state = self._choices.setdefault(index or 0, Choice(self._spelling))
        if choice.get("finish_reason"):
            state.head = choice
        if isinstance(delta, dict):
            state.take(delta)
        elif delta is not None:
            self._unread["a delta is not an object"] = None

    def finish(self, *, is_done: bool = False) -> Response:
        """Return the answer; if its end was not received, its calls are incomplete."""
        if len(self._wholes) + bool(self._choices) > 1:
            self._unread["the stream has more than one answer; one of them is read"] = None
        if self._wholes and not self._choices:
            whole = read_response(self._spelling, self._wholes[-1])
            return whole.with_more(self._failure, self._unread)
        unread = [*self._unread]
        for choice in self._choices.values():
            unread += choice.unread()
        messages = [
            self._message(choice, index, unread, is_done=is_done)
            for index, choice in sorted(self._choices.items())
        ]
        return Response.of(messages, self._failure, unread)

    def _message(self, choice: Choice, index: int, unread: list[str], *, is_done: bool) -> Message:
        head = {**choice.head, "index": index}
        return self._spelling.read_message(
            choice.native(),
            origin_of_choice(self._spelling.name, self._head, head, index),
            unread,
            is_complete=(is_done or bool(choice.head)) and self._failure is None,
            flags={n: call.flags() for n, call in enumerate(choice.calls.calls)},
        )
