"""Chat Completions as a stream, put together chunk by chunk.

The format keys the fragments of a call by `index`. Servers leave it out, or give all calls the same
one; so a fragment begins another call when its id says so, and, without ids, when it names a tool
while the call so far is whole. Ids are never joined; a name is, unless the same one is repeated.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from pydantic import JsonValue

from tooltrail.records import CallFlag, InvalidRecordError, Message, read_json
from tooltrail.wire.members import JsonObject, object_in, objects_in, others, text_in
from tooltrail.wire.openai_chat.reading import (
    REASONING,
    asks_for_call,
    origin_of,
    raw_arguments,
    read_choice_message,
    read_failure,
    read_response,
    unread_of,
)
from tooltrail.wire.responses import ProviderFailure, Response

_CALL = frozenset({"id", "index", "type", "function", "custom"})
_DELTA = frozenset({"role", "content", "refusal", "tool_calls", "function_call", "annotations"})
_JOINED = ("content", "refusal", *REASONING)
"""Members of a delta whose texts are pieces of one text."""


@dataclass(slots=True)
class _Call:
    """A call as far as it has come."""

    call_id: str | None = None
    name: str = ""
    arguments: list[str] = field(default_factory=list[str])
    is_custom: bool = False
    is_object: bool = False
    has_index: bool = True
    extras: JsonObject = field(default_factory=dict[str, JsonValue])

    @property
    def is_whole(self) -> bool:
        """Whether its arguments could end here."""
        try:
            read_json("".join(self.arguments))
        except InvalidRecordError:
            return False
        return True

    def native(self) -> JsonObject:
        """The call as an answer that is not streamed has it."""
        told: JsonObject = {
            "name": self.name,
            "input" if self.is_custom else "arguments": "".join(self.arguments),
        }
        return {
            **self.extras,
            "id": self.call_id,
            "custom" if self.is_custom else "function": told,
        }

    def flags(self) -> tuple[CallFlag, ...]:
        """What was odd about its fragments."""
        index: tuple[CallFlag, ...] = () if self.has_index else ("index_missing",)
        return (*index, "arguments_were_object") if self.is_object else index


@dataclass(slots=True)
class _Choice:
    """A choice as far as it has come."""

    texts: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    calls: list[_Call] = field(default_factory=list[_Call])
    by_index: dict[int, _Call] = field(default_factory=dict[int, _Call])
    by_id: dict[str, _Call] = field(default_factory=dict[str, _Call])
    head: JsonObject = field(default_factory=dict[str, JsonValue])
    extras: JsonObject = field(default_factory=dict[str, JsonValue])
    unread: tuple[str, ...] = ()

    def native(self) -> JsonObject:
        """The message as an answer that is not streamed has it."""
        texts: JsonObject = {name: "".join(pieces) for name, pieces in self.texts.items()}
        calls: list[JsonValue] = [call.native() for call in self.calls]
        return {**self.extras, **texts, "tool_calls": calls}

    def take(self, delta: JsonObject) -> None:
        """Take what is new in one chunk."""
        for name, value in delta.items():
            if name in _JOINED:
                if isinstance(value, str):
                    self.texts.setdefault(name, []).append(value)
            elif name == "tool_calls":
                self.unread = self.unread or unread_of(delta)
                for fragment in objects_in(value):
                    self._fragment(fragment)
            elif name == "function_call":
                if asks_for_call(value):
                    self._fragment({"index": -1, "function": value})
            elif name not in _DELTA and value is not None:
                self.extras[name] = value

    def _fragment(self, fragment: JsonObject) -> None:
        is_custom = isinstance(fragment.get("custom"), dict)
        told = object_in(fragment.get("custom" if is_custom else "function"))
        call_id, name = text_in(fragment.get("id")), text_in(told.get("name"))
        arguments, is_text = raw_arguments(told.get("input" if is_custom else "arguments"))
        index = fragment.get("index")
        call = self._meant(index, call_id, name, arguments)
        call.is_custom = call.is_custom or is_custom
        call.is_object = call.is_object or not is_text
        if call_id is not None:
            call.call_id = call_id
            self.by_id[call_id] = call
        if name is not None and name != call.name:
            call.name += name
        if arguments:
            call.arguments.append(arguments)
        if len(fragment) > 2:
            call.extras.update(others(fragment, _CALL))

    def _meant(
        self, index: JsonValue, call_id: str | None, name: str | None, arguments: str
    ) -> _Call:
        """The call that a fragment is of, which may begin with it."""
        if isinstance(index, int):
            call = self.by_index.get(index)
        elif call_id is not None:
            call = self.by_id.get(call_id)
        else:
            call = self.calls[-1] if self.calls else None
        if call is None or _begins_another(call, call_id, name, arguments):
            call = _Call(has_index=isinstance(index, int))
            self.calls.append(call)
            if isinstance(index, int):
                self.by_index[index] = call
        return call


def _begins_another(call: _Call, call_id: str | None, name: str | None, arguments: str) -> bool:
    if call_id is not None:
        return call.call_id is not None and call.call_id != call_id
    # Without ids a tool's name is all that can tell a new call from the rest of this one.
    return name is not None and bool(arguments and call.arguments) and call.is_whole


class ChatAssembler:
    """Puts the chunks of one answer together."""

    def __init__(self) -> None:
        self._choices: dict[int, _Choice] = {}
        self._head: JsonObject = {}
        self._failure: ProviderFailure | None = None
        self._whole: JsonObject | None = None

    def feed(self, event: JsonObject) -> None:
        """Take one chunk."""
        if "error" in event:
            self._failure = self._failure or read_failure(event)
        choices = event.get("choices")
        if not choices or not isinstance(choices, list):
            return
        if not self._head:
            self._head = event
        for choice in choices:
            if isinstance(choice, dict):
                self._take(choice, event)

    def _take(self, choice: JsonObject, event: JsonObject) -> None:
        delta, index = choice.get("delta"), choice.get("index")
        if delta is None and "message" in choice:
            self._whole = event
            return
        state = self._choices.get(index if isinstance(index, int) else 0)
        if state is None:
            state = self._choices[index if isinstance(index, int) else 0] = _Choice()
        if choice.get("finish_reason"):
            state.head = choice
        if isinstance(delta, dict):
            state.take(delta)

    def finish(self, *, is_done: bool = False) -> Response:
        """The answer; calls of one that did not come to its end are incomplete."""
        if self._whole is not None and not self._choices:
            return read_response(self._whole)
        unread = [] if self._choices or self._failure else ["the stream has no choices"]
        for choice in self._choices.values():
            unread += choice.unread
        return Response.of(tuple(self._messages(is_done=is_done)), self._failure, tuple(unread))

    def _messages(self, *, is_done: bool) -> Iterator[Message]:
        for index, choice in sorted(self._choices.items()):
            ended = is_done or bool(choice.head)
            yield read_choice_message(
                choice.native(),
                origin_of(self._head, {**choice.head, "index": index}, index),
                is_complete=ended and self._failure is None,
                flags={n: call.flags() for n, call in enumerate(choice.calls)},
            )
