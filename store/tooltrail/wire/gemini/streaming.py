"""Assembles a stream of Gemini; every event is a separate answer with further parts.

Adjacent texts of the same kind are joined; a text with a signature begins a new part. A call comes
in one part, or, on Vertex AI, as a part with its name and further parts with pieces of its
arguments.
"""

from dataclasses import dataclass, field

from pydantic import JsonValue

from tooltrail.records import InvalidRecordError
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
        call, begun, notes = self.open_call, self.parts[self.call_at], list[str]()
        whole: JsonObject = {**object_in(begun["functionCall"]), **others(members, PIECES)}
        if pieces := members.get("partialArgs"):
            try:
                call.take(pieces)
            except InvalidRecordError as error:
                notes.append(f"a piece of a call's arguments: {error}")
            whole["args"] = call.args
        self.parts[self.call_at] = {**begun, **part, "functionCall": whole}
        is_open = bool(members.get("willContinue"))
        if call.open_texts and not is_open:
            notes.append("a call ended before a text in its arguments did")
        if notes:
            self.end(*notes)
        self.open_call = call if is_open else None

    def end(self, *notes: str) -> None:
        """End the call whose arguments are unfinished, if there is one: it is incomplete."""
        if self.open_call is None:
            return
        part = self.parts[self.call_at]
        cut: JsonObject = {**object_in(part["functionCall"]), "willContinue": True}
        self.parts[self.call_at] = {**part, "functionCall": cut}
        self.unread += notes
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
        for position, candidate in enumerate(map(camel, objects_in(event.get("candidates")))):
            index = candidate.get("index", position)
            place = index if isinstance(index, int) else 0
            state = self._candidates.setdefault(place, _Candidate())
            for part in list_in(object_in(candidate.get("content")).get("parts")):
                state.take(camel(object_in(part)))
            state.head.update(others(candidate, _CONTENT))

    def finish(self, *, is_done: bool = False) -> Response:
        """Return the answer; if its end was not received, its calls are incomplete."""
        for candidate in self._candidates.values():
            candidate.end()
            self._unread += candidate.unread
        natives = {index: one.native() for index, one in sorted(self._candidates.items())}
        failure = self._failure or failed_call(list(natives.values()))
        messages = [
            read_candidate(
                self._head,
                {**native, "index": index},
                index,
                is_complete=(is_done or "finishReason" in native) and self._failure is None,
            )
            for index, native in natives.items()
        ]
        return Response.of(messages, failure, self._unread)
