"""Assembles a stream of Gemini; every event is a separate answer with further parts.

Adjacent texts of the same kind are joined; a text with a signature begins a new part. A call comes
in one part, or, on Vertex AI, as a part with its name and further parts with pieces of its
arguments.
"""

from dataclasses import dataclass, field

from pydantic import JsonValue

from tooltrail.records import InvalidRecordError, Message
from tooltrail.wire.gemini.partial_arguments import PIECES, PartialArguments
from tooltrail.wire.gemini.parts import camel
from tooltrail.wire.gemini.reading import failed_call, read_candidate, read_failure, unread_of
from tooltrail.wire.members import JsonObject, list_in, object_in, objects_in, others
from tooltrail.wire.responses import ProviderFailure, Response

_SIGNATURE = "thoughtSignature"
_CONTENT = frozenset({"content", "index"})
_TEXT = frozenset({"text"})


@dataclass(slots=True)
class _Candidate:
    """A candidate, as far as it was received."""

    parts: list[JsonObject] = field(default_factory=list[JsonObject])
    texts: dict[int, list[str]] = field(default_factory=dict[int, list[str]])
    head: JsonObject = field(default_factory=dict[str, JsonValue])
    unread: list[str] = field(default_factory=list[str])
    call_at: int = 0
    open_call: PartialArguments | None = None
    cut: set[int] = field(default_factory=set[int])

    def take(self, part: JsonObject) -> None:
        """Add one part."""
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
        """Begin a call, or continue the one whose arguments come in pieces."""
        if members.get("name"):
            self.end("another call begins before the arguments of the one before it ended")
        if self.open_call is None:
            self.open_call = PartialArguments(dict(object_in(members.get("args"))))
            self.call_at = len(self.parts)
            self.parts.append({"functionCall": {}})
        elif members.get("args"):
            self.end("arguments come whole and in pieces")
            return
        call, begun = self.open_call, self.parts[self.call_at]
        whole: JsonObject = {**object_in(begun["functionCall"]), **others(members, PIECES)}
        if pieces := members.get("partialArgs"):
            try:
                call.take(pieces)
            except InvalidRecordError as error:
                self._note_cut(f"a piece of a call's arguments: {error}")
            whole["args"] = call.args
        self.parts[self.call_at] = {**begun, **part, "functionCall": whole}
        if not members.get("willContinue"):
            if call.open_texts:
                self._note_cut("a call ended before a text in its arguments did")
            self.open_call = None

    def _note_cut(self, *notes: str) -> None:
        self.cut.add(self.call_at)
        self.unread += notes

    def end(self, *notes: str) -> None:
        """End the call whose arguments are unfinished, if there is one: it is incomplete."""
        if self.open_call is not None:
            self._note_cut(*notes)
        self.open_call = None

    def native(self) -> JsonObject:
        """The candidate in the form of an answer that is not streamed."""
        parts: list[JsonValue] = [
            {**part, "text": "".join(self.texts[number])} if number in self.texts else part
            for number, part in enumerate(self.parts)
        ]
        return {**self.head, "content": {"parts": parts}}


def _continues(part: JsonObject, last: JsonObject) -> bool:
    """Whether a text continues the last one: no signature, and equal other members."""
    return _SIGNATURE not in part and others(last, _TEXT) == others(part, _TEXT)


class ContentAssembler:
    """Assembles the events of one answer."""

    def __init__(self) -> None:
        self._candidates: dict[int, _Candidate] = {}
        self._head: JsonObject = {}
        self._failure: ProviderFailure | None = None
        self._unread: list[str] = []

    def feed(self, event: JsonObject) -> None:
        """Add one event, which may be the complete answer."""
        event = camel(event)
        self._head = self._head or event
        self._unread += unread_of(event)
        self._failure = self._failure or read_failure(event)
        for position, candidate in enumerate(objects_in(event.get("candidates"))):
            value = candidate.get("index", position)
            index = value if isinstance(value, int) else 0
            self._take(self._candidates.setdefault(index, _Candidate()), camel(candidate))

    def _take(self, state: _Candidate, candidate: JsonObject) -> None:
        for part in list_in(object_in(candidate.get("content")).get("parts")):
            state.take(camel(object_in(part)))
        if members := others(candidate, _CONTENT):
            state.head.update(members)

    def finish(self, *, is_done: bool = False) -> Response:
        """Return the answer; if its end was not received, its calls are incomplete."""
        for candidate in self._candidates.values():
            candidate.end()
            self._unread += candidate.unread
        natives = {index: one.native() for index, one in sorted(self._candidates.items())}
        failure = self._failure or failed_call(list(natives.values()))
        messages = [self._message(index, natives[index], is_done) for index in natives]
        return Response.of(messages, failure, self._unread)

    def _message(self, index: int, native: JsonObject, is_done: bool) -> Message:
        ended = is_done or native.get("finishReason") is not None
        return read_candidate(
            self._head,
            {**native, "index": index},
            index,
            is_complete=ended and self._failure is None,
            cut=self._candidates[index].cut,
        )
