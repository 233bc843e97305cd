"""Gemini's answer as a stream: every event is an answer of its own, with further parts.

Texts of the same kind are joined, unless a signature says that they are parts of their own. A call
comes whole in one part, or, on Vertex AI, as a part with its name and further ones with pieces of
its arguments.
"""

from dataclasses import dataclass, field

from pydantic import JsonValue

from tooltrail.records import InvalidRecordError, Message
from tooltrail.wire.gemini.partial_arguments import PartialArguments, goes_on
from tooltrail.wire.gemini.parts import camel
from tooltrail.wire.gemini.reading import (
    failed_call,
    read_candidate,
    read_failure,
    unread_calls,
    unread_of,
    unread_of_event,
)
from tooltrail.wire.members import JsonObject, list_in, object_in, objects_in, others
from tooltrail.wire.responses import ProviderFailure, Response

_SIGNATURE = "thoughtSignature"
_CONTENT = frozenset({"content", "index"})
_TEXT = frozenset({"text"})
_PIECES = frozenset({"willContinue", "partialArgs"})


@dataclass(slots=True)
class _Candidate:
    """A candidate as far as it has come."""

    parts: list[JsonObject] = field(default_factory=list[JsonObject])
    texts: dict[int, list[str]] = field(default_factory=dict[int, list[str]])
    head: JsonObject = field(default_factory=dict[str, JsonValue])
    unread: list[str] = field(default_factory=list[str])
    open_call: PartialArguments | None = None
    cut: set[int] = field(default_factory=set[int])

    def take(self, part: JsonObject) -> None:
        """Take one part."""
        text = part.get("text")
        if "functionCall" in part:
            self._take_call(part, camel(object_in(part["functionCall"])))
        elif isinstance(text, str):
            self._take_text(part, text)
        else:
            self.parts.append(part)

    def _take_text(self, part: JsonObject, text: str) -> None:
        number = len(self.parts) - 1
        if number not in self.texts or not _continues(part, self.parts[number]):
            self.parts.append(part)
            number += 1
            self.texts[number] = []
        self.texts[number].append(text)

    def _take_call(self, part: JsonObject, members: JsonObject) -> None:
        is_begun = self.open_call is not None
        if is_begun and members.get("name"):
            self._cut("another call begins before the arguments of the one before it ended")
        if self.open_call is None:
            self.parts.append({**part, "functionCall": others(members, _PIECES)})
            if not (goes_on(members) or members.get("partialArgs") is not None):
                return
            self.open_call = PartialArguments(dict(object_in(members.get("args"))))
        elif members.get("args"):
            self._cut("arguments come whole and in pieces")
            return
        self._take_pieces(self.open_call, part, members)

    def _take_pieces(self, call: PartialArguments, part: JsonObject, members: JsonObject) -> None:
        try:
            call.take(members.get("partialArgs"))
        except InvalidRecordError as error:
            self._note_cut(f"a piece of a call's arguments: {error}")
        self._set_args(call.args, part)
        if not goes_on(members):
            if call.has_open_text:
                self._note_cut("a call ended before a text in its arguments did")
            self.open_call = None

    def _cut(self, note: str) -> None:
        self._note_cut(note)
        self.open_call = None

    def _note_cut(self, note: str) -> None:
        self.cut.add(self._last_call())
        self.unread.append(note)

    def _set_args(self, args: JsonObject, part: JsonObject) -> None:
        number = self._last_call()
        call: JsonObject = {**object_in(self.parts[number]["functionCall"]), "args": args}
        extras = {name: value for name, value in part.items() if name != "functionCall"}
        self.parts[number] = {**self.parts[number], **extras, "functionCall": call}

    def _last_call(self) -> int:
        places = [number for number, one in enumerate(self.parts) if "functionCall" in one]
        return places[-1]

    def end(self) -> None:
        """Nothing follows: a call whose arguments were to go on is cut off."""
        if self.open_call is not None:
            self.cut.add(self._last_call())

    def native(self) -> JsonObject:
        """The candidate as an answer that is not streamed has it."""
        parts: list[JsonValue] = [
            {**part, "text": "".join(self.texts[number])} if number in self.texts else part
            for number, part in enumerate(self.parts)
        ]
        return {**self.head, "content": {"parts": parts}}


def _continues(part: JsonObject, last: JsonObject) -> bool:
    """Whether a text is the rest of the one before it: the same is said of both, and no more."""
    if len(part) == len(last) == 1:
        # Nearly all of them are texts alone.
        return True
    return _SIGNATURE not in part and others(last, _TEXT) == others(part, _TEXT)


class ContentAssembler:
    """Puts the events of one answer together."""

    def __init__(self) -> None:
        self._candidates: dict[int, _Candidate] = {}
        self._head: JsonObject = {}
        self._failure: ProviderFailure | None = None
        self._unread: list[str] = []

    def feed(self, event: JsonObject) -> None:
        """Take one event, which may be the whole answer."""
        event = camel(event)
        self._head = self._head or event
        self._unread.extend(unread_of_event(event))
        if "error" in event or "promptFeedback" in event:
            self._failure = self._failure or read_failure(event)
        for position, candidate in enumerate(objects_in(event.get("candidates"))):
            value = candidate.get("index", position)
            index = value if isinstance(value, int) else 0
            if index not in self._candidates:
                self._candidates[index] = _Candidate()
            self._take(self._candidates[index], camel(candidate))

    def _take(self, state: _Candidate, candidate: JsonObject) -> None:
        self._unread.extend(unread_of(candidate))
        for part in list_in(object_in(candidate.get("content")).get("parts")):
            state.take(camel(object_in(part)))
        if candidate.keys() - _CONTENT:
            members = {name: value for name, value in candidate.items() if name != "content"}
            state.head = {**state.head, **members}

    def finish(self, *, is_done: bool = False) -> Response:
        """The answer; calls of one that did not come to its end are incomplete."""
        for candidate in self._candidates.values():
            candidate.end()
            self._unread += candidate.unread
        natives = {index: one.native() for index, one in sorted(self._candidates.items())}
        failure = self._failure or failed_call(list(natives.values()))
        messages = tuple(self._message(index, natives[index], is_done) for index in natives)
        for message in messages:
            self._unread += unread_calls(message)
        unread = self._unread or ([] if natives or failure else ["the stream has no candidates"])
        return Response.of(messages, failure, tuple(unread))

    def _message(self, index: int, native: JsonObject, is_done: bool) -> Message:
        ended = is_done or native.get("finishReason") is not None
        return read_candidate(
            self._head,
            {**native, "index": index},
            index,
            is_complete=ended and self._failure is None,
            cut=self._candidates[index].cut,
        )
