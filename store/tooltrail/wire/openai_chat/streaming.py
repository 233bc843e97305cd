"""Chat Completions as a stream, put together chunk by chunk.

Texts are joined, calls are put together in `fragments`, and the answer is read as one that was not
streamed. An error may come before the chunks, among them or behind them, in an event of its own or
in a choice; wherever it stands, it counts.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from pydantic import JsonValue

from tooltrail.records import Message
from tooltrail.wire.members import JsonObject, objects_in
from tooltrail.wire.openai_chat.fragments import Calls, place_in
from tooltrail.wire.openai_chat.reading import (
    REASONING,
    asks_for_call,
    choice_failure,
    odd_calls,
    origin_of,
    read_choice_message,
    read_failure,
    read_response,
    unread_of,
)
from tooltrail.wire.responses import ProviderFailure, Response

_DELTA = frozenset({"role", "content", "refusal", "tool_calls", "function_call"})
_JOINED = ("content", "refusal", *REASONING)
"""Members of a delta whose texts are pieces of one text."""

_SOUND = ("data", "transcript")
"""Members of `audio` that come in pieces; base64 does too, in whole groups of characters."""


@dataclass(slots=True)
class _Choice:
    """A choice as far as it has come."""

    texts: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    parts: list[JsonValue] = field(default_factory=list[JsonValue])
    calls: Calls = field(default_factory=Calls)
    head: JsonObject = field(default_factory=dict[str, JsonValue])
    extras: JsonObject = field(default_factory=dict[str, JsonValue])
    odd: dict[str, None] = field(default_factory=dict[str, None])

    def native(self) -> JsonObject:
        """The message as an answer that is not streamed has it."""
        told: JsonObject = {name: "".join(pieces) for name, pieces in self.texts.items()}
        if self.parts:
            self._end_part()
            told["content"] = self.parts
        calls: list[JsonValue] = [call.native() for call in self.calls.calls]
        return {**self.extras, **told, "tool_calls": calls}

    def unread(self) -> Iterator[str]:
        """What of it was not as a delta is, or is in doubt."""
        yield from self.odd
        yield from self.calls.unread()

    def take(self, delta: JsonObject) -> None:
        """Take what is new in one chunk."""
        for name, value in delta.items():
            if name in _JOINED:
                self._take_text(name, value)
            elif name == "tool_calls":
                self.odd.update(dict.fromkeys(odd_calls(delta)))
                self.calls.take(objects_in(value))
            elif name == "function_call":
                if asks_for_call(value):
                    self.calls.take_legacy(value)
                elif value and not isinstance(value, dict):
                    self.odd["function_call of a delta is no object"] = None
            elif name not in _DELTA and value is not None:
                self.extras[name] = _put_together(self.extras.get(name), value)

    def _take_text(self, name: str, value: JsonValue) -> None:
        if isinstance(value, str):
            self.texts.setdefault(name, []).append(value)
        elif name == "content" and isinstance(value, list):
            for part in value:
                match part:
                    case {"type": "text", "text": str(text), **rest} if not rest:
                        self.texts.setdefault(name, []).append(text)
                    case _:
                        self._end_part()
                        self.parts.append(part)
        elif value is not None:
            self.odd[f"{name} of a delta is no text"] = None

    def _end_part(self) -> None:
        """What was said up to a part that is no text is a part in front of it."""
        if text := "".join(self.texts.pop("content", ())):
            self.parts.append({"type": "text", "text": text})


def _put_together(so_far: JsonValue, value: JsonValue) -> JsonValue:
    """A member that comes in pieces: lists go on, and so do the texts of sound; others are said."""
    if isinstance(so_far, list) and isinstance(value, list):
        return [*so_far, *value]
    if isinstance(so_far, dict) and isinstance(value, dict):
        return {**so_far, **{name: _joined(so_far, name, one) for name, one in value.items()}}
    return value


def _joined(so_far: JsonObject, name: str, value: JsonValue) -> JsonValue:
    before = so_far.get(name)
    if name in _SOUND and isinstance(before, str) and isinstance(value, str):
        return before + value
    return value


class ChatAssembler:
    """Puts the chunks of one answer together."""

    def __init__(self) -> None:
        self._choices: dict[int, _Choice] = {}
        self._head: JsonObject = {}
        self._failure: ProviderFailure | None = None
        self._whole: JsonObject | None = None
        self._unread: dict[str, None] = {}

    def feed(self, event: JsonObject) -> None:
        """Take one chunk."""
        self._failure = self._failure or read_failure(event)
        choices = event.get("choices")
        if not choices:
            return
        if not isinstance(choices, list):
            self._unread["choices of an event is no list"] = None
            return
        if not self._head:
            self._head = event
        for choice in choices:
            if isinstance(choice, dict):
                self._take(choice, event)
            else:
                self._unread["a choice is no object"] = None

    def _take(self, choice: JsonObject, event: JsonObject) -> None:
        delta, index = choice.get("delta"), place_in(choice.get("index"))
        if delta is None and "message" in choice:
            self._whole = event
            return
        self._failure = self._failure or choice_failure(choice)
        if index is None and choice.get("index") is not None:
            self._unread["the index of a choice is no number"] = None
        state = self._choices.get(index or 0)
        if state is None:
            state = self._choices[index or 0] = _Choice()
        if choice.get("finish_reason"):
            state.head = choice
        if isinstance(delta, dict):
            state.take(delta)
        elif delta is not None:
            self._unread["a delta is no object"] = None

    def finish(self, *, is_done: bool = False) -> Response:
        """The answer; calls of one that did not come to its end are incomplete."""
        if self._whole is not None and not self._choices:
            whole = read_response(self._whole)
            failure = whole.failure or self._failure
            return Response.of(whole.messages, failure, (*whole.unread, *self._unread))
        if not self._choices and self._failure is None:
            self._unread["the stream has no choices"] = None
        if self._whole is not None:
            self._unread["a whole answer stands amid the pieces of one"] = None
        unread = [*self._unread]
        for choice in self._choices.values():
            unread += choice.unread()
        messages: list[Message] = []
        for index, choice in sorted(self._choices.items()):
            native = choice.native()
            unread += unread_of(native)
            messages.append(self._message(native, choice, index, is_done=is_done))
        return Response.of(messages, self._failure, unread)

    def _message(
        self, native: JsonObject, choice: _Choice, index: int, *, is_done: bool
    ) -> Message:
        return read_choice_message(
            native,
            origin_of(self._head, {**choice.head, "index": index}, index),
            is_complete=(is_done or bool(choice.head)) and self._failure is None,
            flags={n: call.flags() for n, call in enumerate(choice.calls.calls)},
        )
