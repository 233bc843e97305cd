"""Answers of text as a stream in the shape of a chat: pieces of text, whose calls come at the end.

A call in text is known only when its end was seen, and whether it stands in a code block only from
what stands before it; so the text is put together first, and read as a whole.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby

from pydantic import JsonValue

from tooltrail.records import Message
from tooltrail.wire._reading import REASONING, origin_of_choice
from tooltrail.wire.members import JsonObject, object_in
from tooltrail.wire.responses import Oddities, ProviderFailure, Response
from tooltrail.wire.text_fallback.family import TextFamily
from tooltrail.wire.text_fallback.limits import NAME
from tooltrail.wire.text_fallback.reading import (
    read_answer,
    read_failure,
    read_response,
)

_JOINED = ("content", *REASONING)


@dataclass(slots=True)
class _Choice:
    pieces: dict[str, list[JsonValue]] = field(default_factory=dict[str, list[JsonValue]])
    head: JsonObject = field(default_factory=dict[str, JsonValue])
    extras: JsonObject = field(default_factory=dict[str, JsonValue])

    def native(self) -> JsonObject:
        """The message as an answer that is not streamed has it."""
        members = {name: _put_together(pieces) for name, pieces in self.pieces.items()}
        return {**self.extras, "role": "assistant", **members}

    def take(self, delta: JsonObject) -> None:
        """Take what is new in one chunk."""
        for name, value in delta.items():
            if name in _JOINED and value is not None:
                parts = value if isinstance(value, list) else [value]
                self.pieces.setdefault(name, []).extend(map(_text_or_part, parts))
            elif name not in ("role", *_JOINED) and value is not None:
                self.extras[name] = value


def _text_or_part(part: JsonValue) -> JsonValue:
    """A part of a content that is a text as that, any other as it is."""
    text = object_in(part).get("text")
    return text if isinstance(text, str) else part


def _put_together(pieces: list[JsonValue]) -> JsonValue:
    """One text, or parts where there is something else among its pieces."""
    parts: list[JsonValue] = []
    for is_text, run in groupby(pieces, key=lambda piece: isinstance(piece, str)):
        if is_text:
            parts.append({"type": "text", "text": "".join(map(str, run))})
        else:
            parts.extend(run)
    match parts:
        case [{"type": "text", "text": str() as text}]:
            return text
        case _:
            return parts


class TextAssembler:
    """Puts the chunks of one answer together."""

    def __init__(self, family: TextFamily) -> None:
        self._family = family
        self._choices: dict[int, _Choice] = {}
        self._head: JsonObject = {}
        self._failure: ProviderFailure | None = None
        self._wholes: list[JsonObject] = []
        self._texts: list[JsonObject] = []
        self._odd = Oddities()

    def feed(self, event: JsonObject) -> None:
        """Take one chunk."""
        self._failure = self._failure or read_failure(event)
        choices = event.get("choices")
        if not isinstance(choices, list):
            if choices is not None:
                self._odd.unread.append("the choices of an event are no array")
            elif "content" in event:
                self._texts.append(event)
            return
        if choices and not self._head:
            self._head = event
        for choice in choices:
            if isinstance(choice, dict):
                self._take(choice, event)
            else:
                self._odd.unread.append("a choice is no object")

    def _take(self, choice: JsonObject, event: JsonObject) -> None:
        self._failure = self._failure or read_failure(choice)
        delta, index = choice.get("delta"), choice.get("index", 0)
        if delta is None and "message" in choice:
            if not (self._wholes and self._wholes[-1] is event):
                self._wholes.append(event)
            return
        if not isinstance(delta, dict | None):
            self._odd.unread.append("the delta of a choice is no object")
        if not isinstance(index, int):
            self._odd.unread.append("the index of a choice is no number")
        state = self._choices.setdefault(index if isinstance(index, int) else 0, _Choice())
        if choice.get("finish_reason"):
            state.head = choice
        state.take(object_in(delta))

    def finish(self, *, is_done: bool = False) -> Response:
        """The answer; calls of one that did not come to its end are incomplete."""
        if self._texts:
            self._wholes.append(self._whole_text(is_done=is_done))
        if len(self._wholes) + bool(self._choices) > 1:
            self._odd.unread.append("the stream has more than one answer; one of them is read")
        if self._wholes and not self._choices:
            whole = read_response(self._family, self._wholes[-1])
            unread = (*self._odd.unread, *whole.unread)
            failure = self._failure or whole.failure
            return Response.of(whole.messages, failure, unread, whole.remarks)
        if not self._choices and self._failure is None:
            self._odd.unread.append("the stream has no choices")
        messages = tuple(self._messages(is_done=is_done))
        return Response.of(messages, self._failure, self._odd.unread, self._odd.remarks)

    def _whole_text(self, *, is_done: bool) -> JsonObject:
        """The answer whose events have a text each, as servers stream that complete a prompt."""
        state = _Choice()
        for event in self._texts:
            state.take(event)
        # One event alone may be an answer that is not streamed; it says so when it is not the last.
        is_last = self._texts[-1].get("stop", len(self._texts) == 1) is not False
        if not (is_last or is_done):
            self._odd.unread.append("the answer does not say that it is done")
        return state.native()

    def _messages(self, *, is_done: bool) -> Iterator[Message]:
        for index, choice in sorted(self._choices.items()):
            yield read_answer(
                self._family,
                choice.native(),
                origin_of_choice(NAME, self._head, {**choice.head, "index": index}, index),
                self._odd,
                is_complete=(is_done or bool(choice.head)) and self._failure is None,
            )
