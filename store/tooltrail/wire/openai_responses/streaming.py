"""A stream of OpenAI Responses, put together event by event.

An item is whole with its `output_item.done`. Until then it is a draft, of what it began with and of
the pieces that came since; a draft that is never done is a call that may not be run. Events name
their item by its id and by its place; either may be missing or wrong, so both are looked at.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue

from tooltrail.records import CallFlag
from tooltrail.wire.members import JsonObject, list_in, object_in, objects_in, text_in
from tooltrail.wire.openai_responses.reading import read_answer, read_failure, read_response
from tooltrail.wire.responses import ProviderFailure, Response

_PIECES: Mapping[str, tuple[str, str]] = {
    "response.function_call_arguments": ("arguments", "arguments"),
    "response.mcp_call_arguments": ("arguments", "arguments"),
    "response.custom_tool_call_input": ("input", "input"),
    "response.code_interpreter_call_code": ("code", "code"),
    "response.apply_patch_call_operation_diff": ("diff", "diff"),
    "response.shell_call_command": ("command", "command"),
    "response.output_text": ("output_text", "text"),
    "response.refusal": ("refusal", "refusal"),
    "response.reasoning_text": ("reasoning_text", "text"),
    "response.reasoning_summary_text": ("summary_text", "text"),
}
"""What the pieces of an event are of, and the member of its last event that has all of it."""

_DELTAS = {f"{name}.delta": piece[0] for name, piece in _PIECES.items()}
_WHOLES = {f"{name}.done": piece for name, piece in _PIECES.items()}
_HEADS = {"response.created", "response.queued", "response.in_progress"}
_ENDS = {
    "response.completed": "completed",
    "response.incomplete": "incomplete",
    "response.failed": "failed",
}
_PLACES = ("content_index", "summary_index", "command_index")
_PARTS = {"output_text": "text", "refusal": "refusal"}
_OPEN = "in_progress"


@dataclass(slots=True)
class _Slot:
    """One item as far as it has come.

    Attributes:
        item: as it began, or as it is once it is done.
        pieces: of its texts, by what they are of and their place in that.
    """

    index: JsonValue
    item: JsonObject
    is_done: bool = False
    pieces: dict[tuple[str, int], list[str]] = field(
        default_factory=dict[tuple[str, int], list[str]]
    )

    def native(self) -> JsonObject:
        """The item, with what came since it began where it is not done."""
        if self.is_done:
            return self.item
        item = dict(self.item)
        texts: dict[str, list[str]] = {}
        for (kind, _), pieces in sorted(self.pieces.items(), key=lambda one: one[0][1]):
            texts.setdefault(kind, []).append("".join(pieces))
        for kind, said in texts.items():
            _put(item, kind, said)
        return item


def _put(item: JsonObject, kind: str, said: list[str]) -> None:
    """Put the texts of one kind where they belong in an item."""
    if kind in _PARTS:
        parts: list[JsonValue] = [{"type": kind, _PARTS[kind]: text} for text in said]
        item["content"] = [*list_in(item.get("content")), *parts]
    elif kind in {"reasoning_text", "summary_text"}:
        member = "content" if kind == "reasoning_text" else "summary"
        item[member] = [{"type": kind, "text": text} for text in said]
    elif kind == "command":
        item["action"] = {**object_in(item.get("action")), "commands": [*said]}
    elif kind == "diff":
        item["operation"] = {**object_in(item.get("operation")), "diff": said[0]}
    else:
        item[kind] = said[0]


class ResponsesAssembler:
    """Puts the events of one answer together."""

    def __init__(self) -> None:
        self._slots: list[_Slot] = []
        self._by_index: dict[JsonValue, _Slot] = {}
        self._by_id: dict[str, _Slot] = {}
        self._head: JsonObject = {}
        self._end: str | None = None
        self._failure: ProviderFailure | None = None
        self._whole: JsonObject | None = None
        self._unread: list[str] = []

    def feed(self, event: JsonObject) -> None:
        """Take one event."""
        kind = event.get("type")
        if not isinstance(kind, str):
            self._take_untyped(event)
        elif kind in _DELTAS:
            delta = event.get("delta")
            slot = self._slot_of(event)
            if slot is not None and not slot.is_done and isinstance(delta, str):
                slot.pieces.setdefault((_DELTAS[kind], _place(event)), []).append(delta)
        elif kind == "response.output_item.done":
            self._take_done(event)
        elif kind == "response.output_item.added":
            self._take_added(event)
        elif kind in _WHOLES:
            self._take_text(event, *_WHOLES[kind])
        elif kind in _ENDS or kind in _HEADS:
            self._take_response(event, kind)
        elif kind == "error":
            self._failure = self._failure or read_failure(event)

    def finish(self, *, is_done: bool = False) -> Response:
        """The answer; calls of one that did not come to its end are incomplete."""
        if self._whole is not None and not self._slots:
            return read_response(self._whole).with_more(self._failure, self._unread)
        if self._whole is not None:
            self._unread.append("a whole answer stands amid the pieces of one")
        if not self._head and not self._slots and self._failure is None:
            self._unread.append("the stream has no answer")
            return Response.of(unread=tuple(self._unread))
        saw_end = self._end is not None
        has_ended = saw_end or (is_done and all(slot.is_done for slot in self._slots))
        if not has_ended and self._failure is None:
            self._unread.append("the stream ended without an event that says so")
        items = self._items()
        if has_ended and not all(slot.is_done for slot in items):
            self._unread.append("the stream ended before one of its items did")
        native: JsonObject = {**self._head, "output": [slot.native() for slot in items]}
        if self._end is not None and native.get("status") in (None, _OPEN):
            native["status"] = self._end
        elif has_ended and not saw_end:
            native["status"] = None
        return read_answer(
            native,
            unread=self._unread,
            has_ended=has_ended,
            failure=self._failure,
            flags={number: _flags(slot) for number, slot in enumerate(items)},
        )

    def _take_untyped(self, event: JsonObject) -> None:
        if isinstance(event.get("output"), list):
            self._whole = event
        elif "error" in event:
            self._failure = self._failure or read_failure(event)
        else:
            self._unread.append("an event has no type")

    def _take_response(self, event: JsonObject, kind: str) -> None:
        self._end = self._end or _ENDS.get(kind)
        response = event.get("response")
        if isinstance(response, dict):
            self._head = response

    def _take_added(self, event: JsonObject) -> None:
        item = event.get("item")
        if not isinstance(item, dict):
            self._unread.append("an event that begins an item has none")
            return
        slot = _Slot(event.get("output_index"), item)
        self._slots.append(slot)
        self._remember(slot, item)

    def _take_done(self, event: JsonObject) -> None:
        item = event.get("item")
        if not isinstance(item, dict):
            self._unread.append("an event that ends an item has none")
            return
        slot = self._meant(item.get("id"), event)
        if slot is None or (slot.is_done and not _is_same(slot.item, item)):
            slot = _Slot(event.get("output_index"), item)
            self._slots.append(slot)
        slot.item, slot.is_done = item, True
        slot.pieces.clear()
        self._remember(slot, item)

    def _remember(self, slot: _Slot, item: JsonObject) -> None:
        if item_id := text_in(item.get("id")):
            self._by_id[item_id] = slot
        if isinstance(slot.index, int):
            self._by_index[slot.index] = slot

    def _meant(self, item_id: JsonValue, event: JsonObject) -> _Slot | None:
        """The item of this id at the place of the event; else of the id, else at the place."""
        placed = self._by_index.get(_key(event))
        if placed is None or (item_id is not None and placed.item.get("id") != item_id):
            # Some servers give an item another id in each event, or the same place to all items.
            return (self._by_id.get(item_id) if isinstance(item_id, str) else None) or placed
        return placed

    def _slot_of(self, event: JsonObject) -> _Slot | None:
        """The item that an event is of; the latest where nothing says which."""
        item_id = event.get("item_id")
        slot = self._meant(item_id, event)
        if slot is None and item_id is None and event.get("output_index") is None:
            slot = self._slots[-1] if self._slots else None
        return slot

    def _take_text(self, event: JsonObject, kind: str, member: str) -> None:
        text, slot = event.get(member), self._slot_of(event)
        if slot is not None and not slot.is_done and isinstance(text, str):
            slot.pieces[kind, _place(event)] = [text]

    def _items(self) -> list[_Slot]:
        """The items in their order, with those that only the end of the stream has."""
        slots = list(self._slots)
        final = objects_in(self._head.get("output")) if self._end else []
        if len(final) > len(slots) or not all(slot.is_done for slot in slots):
            for index, item in enumerate(final):
                self._complete(slots, item, index)
        if all(isinstance(slot.index, int) for slot in slots):
            slots.sort(key=lambda slot: slot.index if isinstance(slot.index, int) else 0)
        return slots

    def _complete(self, slots: list[_Slot], item: JsonObject, index: int) -> None:
        """Take an item as the end of the stream has it, if it was not done before."""
        slot = self._meant(item.get("id"), {"output_index": index})
        if slot is None:
            if not any(_is_same(other.item, item) for other in slots):
                slots.append(_Slot(index, item, is_done=True))
        elif not slot.is_done:
            slot.item, slot.is_done = item, True


def _is_same(item: JsonObject, other: JsonObject) -> bool:
    """Whether two items are one: calls by the id that pairs them, anything else by its own."""
    name = "call_id" if text_in(item.get("call_id")) else "id"
    return item.get("type") == other.get("type") and item.get(name) == other.get(name)


def _key(event: JsonObject) -> int:
    index = event.get("output_index")
    return index if isinstance(index, int) else -1


def _place(event: JsonObject) -> int:
    """The place of a text among those of its kind."""
    for name in _PLACES:
        place = event.get(name)
        if isinstance(place, int):
            return place
    return 0


def _flags(slot: _Slot) -> tuple[CallFlag, ...]:
    index: tuple[CallFlag, ...] = () if isinstance(slot.index, int) else ("index_missing",)
    return index if slot.is_done else (*index, "incomplete")
