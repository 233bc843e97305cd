"""Answers of text as a stream in the shape of a chat: pieces of text, whose calls come at the end.

A call in text is known only when its end was seen, and whether it stands in a code block only from
what stands before it; so the text is put together first, and read as a whole.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from pydantic import JsonValue

from tooltrail.records import Message
from tooltrail.wire.members import JsonObject, object_in
from tooltrail.wire.responses import ProviderFailure, Response
from tooltrail.wire.text_fallback.reading import (
    REASONING,
    origin_of,
    read_answer,
    read_failure,
    read_response,
)
from tooltrail.wire.text_fallback.telling import TextFamily

_JOINED = ("content", *REASONING)


@dataclass(slots=True)
class _Choice:
    texts: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    head: JsonObject = field(default_factory=dict[str, JsonValue])
    extras: JsonObject = field(default_factory=dict[str, JsonValue])

    def native(self) -> JsonObject:
        """The message as an answer that is not streamed has it."""
        texts: JsonObject = {name: "".join(pieces) for name, pieces in self.texts.items()}
        return {**self.extras, "role": "assistant", **texts}

    def take(self, delta: JsonObject) -> None:
        """Take what is new in one chunk."""
        for name, value in delta.items():
            if name in _JOINED:
                if isinstance(value, str):
                    self.texts.setdefault(name, []).append(value)
            elif name != "role" and value is not None:
                self.extras[name] = value


class TextAssembler:
    """Puts the chunks of one answer together.

    Args:
        family: of its text.
    """

    def __init__(self, family: TextFamily) -> None:
        self._family = family
        self._choices: dict[int, _Choice] = {}
        self._head: JsonObject = {}
        self._failure: ProviderFailure | None = None
        self._whole: JsonObject | None = None

    def feed(self, event: JsonObject) -> None:
        """Take one chunk."""
        if "error" in event:
            self._failure = self._failure or read_failure(event)
        choices = event.get("choices")
        if not isinstance(choices, list):
            if isinstance(event.get("content"), str):
                self._whole = event
            return
        if choices and not self._head:
            self._head = event
        for choice in choices:
            if isinstance(choice, dict):
                self._take(choice, event)

    def _take(self, choice: JsonObject, event: JsonObject) -> None:
        if choice.get("delta") is None and "message" in choice:
            self._whole = event
            return
        index = choice.get("index")
        state = self._choices.setdefault(index if isinstance(index, int) else 0, _Choice())
        if choice.get("finish_reason"):
            state.head = choice
        state.take(object_in(choice.get("delta")))

    def finish(self, *, is_done: bool = False) -> Response:
        """The answer; calls of one that did not come to its end are incomplete."""
        if self._whole is not None and not self._choices:
            whole = read_response(self._family, self._whole)
            return Response.of(whole.messages, self._failure or whole.failure, whole.unread)
        unread: list[str] = []
        if not self._choices and self._failure is None:
            unread.append("the stream has no choices")
        messages = tuple(self._messages(unread, is_done=is_done))
        return Response.of(messages, self._failure, tuple(unread))

    def _messages(self, unread: list[str], *, is_done: bool) -> Iterator[Message]:
        for index, choice in sorted(self._choices.items()):
            yield read_answer(
                self._family,
                choice.native(),
                origin_of(self._head, {**choice.head, "index": index}, index),
                unread,
                is_complete=(is_done or bool(choice.head)) and self._failure is None,
            )
