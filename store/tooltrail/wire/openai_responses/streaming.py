"""Assembles a stream of OpenAI Responses, event by event.

An item is complete with its `output_item.done`. Until then it is a draft of its first event and
later pieces; a call whose item is never done must not run. Events name their item by its id and
its index; either may be missing or wrong, so both are checked.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue

from tooltrail.records import CallFlag
from tooltrail.wire.members import JsonObject, list_in, object_in, objects_in, text_in
from tooltrail.wire.openai_responses.reading import read_failure, read_response
from tooltrail.wire.responses import ProviderFailure, Response

_PIECES: Mapping[str, tuple[str, str]] = {
    "response.function_call_arguments": ("arguments", ""),
    "response.mcp_call_arguments": ("arguments", ""),
    "response.custom_tool_call_input": ("input", ""),
    "response.code_interpreter_call_code": ("code", ""),
    "response.apply_patch_call_operation_diff": ("operation", "diff"),
    "response.shell_call_command": ("action", "commands"),
    "response.output_text": ("content", "output_text"),
    "response.refusal": ("content", "refusal"),
    "response.reasoning_text": ("content", "reasoning_text"),
    "response.reasoning_summary_text": ("summary", "summary_text"),
}
"""For each type of event: the member of the item that its pieces belong to, and the part of it."""

_ENDS = ("completed", "incomplete", "failed")
_PLACES = ("content_index", "summary_index", "command_index")


@dataclass(slots=True)
class _Slot:
    """One item, as far as it was received.

    Attributes:
        index: the index in the answer, from the first event of the item; None if it has none.
        item: the item in its first event, or the final item once it is done.
        pieces: the pieces of its texts by member, part, and index of the text.
    """

    index: int | None
    item: JsonObject
    is_done: bool = False
    pieces: dict[tuple[str, str, int], list[str]] = field(
        default_factory=dict[tuple[str, str, int], list[str]]
    )

    def native(self) -> JsonObject:
        """The item with the pieces received so far."""
        item = dict(self.item)
        for (member, part, _), pieces in sorted(self.pieces.items(), key=lambda one: one[0][2]):
            _put(item, member, part, "".join(pieces))
        return item

    def flags(self) -> tuple[CallFlag, ...]:
        """The flags of the call in this item."""
        index: tuple[CallFlag, ...] = ("index_missing",) if self.index is None else ()
        return index if self.is_done else (*index, "incomplete")


def _put(item: JsonObject, member: str, part: str, text: str) -> None:
    """Add a text to the member and part of an item to which it belongs."""
    found = item.get(member)
    if member in ("content", "summary"):
        name = part if part == "refusal" else "text"
        item[member] = [*list_in(found), {"type": part, name: text}]
    elif part:
        members = object_in(found)
        value: JsonValue = [*list_in(members.get(part)), text] if part == "commands" else text
        item[member] = {**members, part: value}
    else:
        item[member] = text


def _identity(item: JsonObject) -> tuple[JsonValue, JsonValue]:
    """The type and id that identify an item; the id is `call_id` if there is one, else `id`."""
    return item.get("type"), text_in(item.get("call_id")) or item.get("id")


class ResponsesAssembler:
    """Assembles the events of one answer."""

    def __init__(self) -> None:
        self._slots: list[_Slot] = []
        # The latest item at each index, and the latest item with each id.
        self._placed: dict[int | None, _Slot] = {}
        self._named: dict[str | None, _Slot] = {}
        self._head: JsonObject = {}
        self._end: str | None = None
        self._failure: ProviderFailure | None = None
        self._unread: list[str] = []

    def feed(self, event: JsonObject) -> None:
        """Add one event."""
        kind = event.get("type")
        stem, _, stage = kind.rpartition(".") if isinstance(kind, str) else ("", "", "")
        if stem in _PIECES:
            self._take_piece(event, *_PIECES[stem])
        elif stem == "response.output_item" and stage in ("added", "done"):
            self._take_item(event, is_done=stage == "done")
        elif stem == "response":
            self._end = self._end or (stage if stage in _ENDS else None)
            self._head = object_in(event.get("response")) or self._head
        elif kind == "error":
            self._failure = self._failure or read_failure(event)
        elif not isinstance(kind, str):
            self._take_untyped(event)

    def _take_untyped(self, event: JsonObject) -> None:
        if isinstance(event.get("output"), list):
            # Some proxies send a complete answer instead of a stream.
            self._head, self._end = event, text_in(event.get("status")) or "completed"
        elif "error" in event:
            self._failure = self._failure or read_failure(event)
        else:
            self._unread.append("an event has no type")

    def finish(self, *, is_done: bool = False) -> Response:
        """Return the answer; if its end was not received, its calls are incomplete."""
        if not self._head and not self._slots and self._failure is None:
            self._unread.append("the stream has no answer")
            return Response.of(unread=tuple(self._unread))
        has_ended = self._end is not None or (is_done and all(one.is_done for one in self._slots))
        if not has_ended and self._failure is None:
            self._unread.append("the stream ended without an event that says so")
        items = self._items()
        if has_ended and not all(slot.is_done for slot in items):
            self._unread.append("the stream ended before one of its items did")
        native: JsonObject = {"output": [], **self._head}
        if self._slots:
            native["output"] = [slot.native() for slot in items]
        if has_ended and (self._end is None or native.get("status") in (None, "in_progress")):
            native["status"] = self._end
        return read_response(
            native,
            problems=self._unread,
            has_ended=has_ended,
            failure=self._failure,
            flags={number: slot.flags() for number, slot in enumerate(items)},
        )

    def _take_item(self, event: JsonObject, *, is_done: bool) -> None:
        item, index = event.get("item"), _index(event)
        if not isinstance(item, dict):
            what = "ends" if is_done else "begins"
            self._unread.append(f"an event that {what} an item has none")
            return
        slot = self._meant(item.get("id"), index) if is_done else None
        if slot is None or (slot.is_done and _identity(slot.item) != _identity(item)):
            slot = self._placed[index] = _Slot(index, item)
            self._slots.append(slot)
        if is_done:
            slot.item, slot.is_done = item, True
            slot.pieces.clear()
        self._named[text_in(item.get("id"))] = slot

    def _meant(self, item_id: JsonValue, index: int | None) -> _Slot | None:
        """The latest item with this index and id; else with the id, else with the index."""
        placed = None if index is None else self._placed.get(index)
        # Some servers give an item another id in each event, or the same index to all items.
        if placed is not None and item_id in (None, placed.item.get("id")):
            return placed
        name = text_in(item_id)
        return (None if name is None else self._named.get(name)) or placed

    def _take_piece(self, event: JsonObject, member: str, part: str) -> None:
        item_id, index = event.get("item_id"), _index(event)
        slot = self._meant(item_id, index)
        if slot is None and item_id is None and index is None and self._slots:
            # Without an id and an index, the latest item is meant.
            slot = self._slots[-1]
        if slot is None or slot.is_done:
            return
        pieces = slot.pieces.setdefault((member, part, _place(event)), [])
        if isinstance(delta := event.get("delta"), str):
            pieces.append(delta)
        elif isinstance(whole := event.get("text"), str):
            pieces[:] = [whole]

    def _items(self) -> list[_Slot]:
        """The items in order; those of the final event if it has more items or completed ones."""
        slots, final = self._slots, objects_in(self._head.get("output")) if self._end else []
        is_behind = len(final) == len(slots) and not all(slot.is_done for slot in slots)
        if len(final) > len(slots) or is_behind:
            return [_Slot(index, item, is_done=True) for index, item in enumerate(final)]
        if all(slot.index is not None for slot in slots):
            return sorted(slots, key=lambda slot: slot.index or 0)
        return slots


def _index(event: JsonObject) -> int | None:
    index = event.get("output_index")
    return index if isinstance(index, int) else None


def _place(event: JsonObject) -> int:
    """The index of a text among the texts of its kind."""
    for name in _PLACES:
        if isinstance(place := event.get(name), int):
            return place
    return 0
