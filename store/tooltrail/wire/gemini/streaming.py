"""Gemini's answer as a stream: every event is an answer of its own, with further parts.

Texts of the same kind are joined, unless a signature says that they are parts of their own. A call
comes whole in one part, or, on Vertex AI, as a part with its name and further ones with pieces of
its arguments.
"""

from dataclasses import dataclass, field

from pydantic import JsonValue

from tooltrail.records import InvalidRecordError, Message
from tooltrail.wire.gemini.partial_arguments import PartialArguments
from tooltrail.wire.gemini.parts import camel
from tooltrail.wire.gemini.reading import failed_call, read_candidate, read_failure, unread_of
from tooltrail.wire.members import JsonObject, list_in, object_in, objects_in
from tooltrail.wire.responses import ProviderFailure, Response

_SIGNATURE = "thoughtSignature"
_CONTENT = frozenset({"content", "index"})


@dataclass(slots=True)
class _Candidate:
    """A candidate as far as it has come."""

    parts: list[JsonObject] = field(default_factory=list[JsonObject])
    texts: dict[int, list[str]] = field(default_factory=dict[int, list[str]])
    head: JsonObject = field(default_factory=dict[str, JsonValue])
    open_call: PartialArguments | None = None
    cut: set[int] = field(default_factory=set[int])

    def take(self, part: JsonObject) -> None:
        """Take one part.

        Raises:
            InvalidRecordError: a piece of arguments belongs nowhere.
        """
        text = part.get("text")
        if "functionCall" in part:
            self._take_call(part, camel(object_in(part["functionCall"])))
        elif isinstance(text, str):
            self._take_text(part, text)
        else:
            self.parts.append(part)

    def _take_text(self, part: JsonObject, text: str) -> None:
        last = self.parts[-1] if self.parts else {}
        is_rest = (
            isinstance(last.get("text"), str)
            and last.get("thought") == part.get("thought")
            and _SIGNATURE not in last
            and _SIGNATURE not in part
        )
        if not is_rest:
            self.parts.append(part)
            self.texts[len(self.parts) - 1] = []
        self.texts[len(self.parts) - 1].append(text)

    def _take_call(self, part: JsonObject, told: JsonObject) -> None:
        goes_on = told.get("willContinue") is True
        if told.get("name") or self.open_call is None:
            self.open_call = None
            self.parts.append({**part, "functionCall": told})
            if goes_on or "partialArgs" in told:
                self.open_call = PartialArguments(dict(object_in(told.get("args"))))
        if self.open_call is None:
            return
        try:
            self.open_call.take(told.get("partialArgs"))
        except InvalidRecordError:
            self.cut.add(self._last_call())
            raise
        finally:
            self._set_args(self.open_call.args, part)
            if not goes_on:
                self.open_call = None

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
        if "error" in event or "promptFeedback" in event:
            self._failure = self._failure or read_failure(event)
        for position, candidate in enumerate(objects_in(event.get("candidates"))):
            told = candidate.get("index", position)
            index = told if isinstance(told, int) else 0
            if index not in self._candidates:
                self._candidates[index] = _Candidate()
            self._take(self._candidates[index], camel(candidate))

    def _take(self, state: _Candidate, candidate: JsonObject) -> None:
        self._unread += unread_of(candidate)
        for part in list_in(object_in(candidate.get("content")).get("parts")):
            try:
                state.take(camel(object_in(part)))
            except InvalidRecordError as error:
                self._unread.append(f"a piece of a call's arguments: {error}")
        if candidate.keys() - _CONTENT:
            told = {name: value for name, value in candidate.items() if name != "content"}
            state.head = {**state.head, **told}

    def finish(self, *, is_done: bool = False) -> Response:
        """The answer; calls of one that did not come to its end are incomplete."""
        for candidate in self._candidates.values():
            candidate.end()
        natives = {index: one.native() for index, one in sorted(self._candidates.items())}
        failure = self._failure or failed_call(list(natives.values()))
        unread = self._unread or ([] if natives or failure else ["the stream has no candidates"])
        messages = tuple(self._message(index, natives[index], is_done) for index in natives)
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
