"""Finds the call to which a fragment of a stream belongs.

The format keys fragments by `index`. Some servers omit it or send the same index for all calls,
and some send no ids; then only a name marks the beginning of a call. The second piece of a name
cannot always be distinguished from the name of another call. Every doubt is reported, so that no
call of the answer runs.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Self

from pydantic import JsonValue

from tooltrail.records import CallFlag, InvalidRecordError, read_json
from tooltrail.wire._chat.answers import ODD_CALL, is_odd_call
from tooltrail.wire.members import JsonObject, object_in, others, raw_arguments, text_in

_CALL = frozenset({"id", "index", "type", "function", "custom"})
_DIGITS = 9
"""Most digits of an index in a text; Python refuses to read numbers of thousands of digits."""

LEGACY = -1
"""The index used for the deprecated `function_call`, which has one call at most."""


@dataclass(slots=True)
class Call:
    """A call, as far as it was received: at first one fragment, which others may continue.

    Attributes:
        index: the index of the first fragment; None if it has none.
        has_twin: whether another call began in the same list with the same index, so that a piece
            of arguments may belong to either.
        began: the number of the list in which the call began.
        latest: the number of the list that contained its latest fragment.
    """

    index: int | None
    call_id: str | None
    name: str
    arguments: list[str]
    is_custom: bool
    is_object: bool
    extras: JsonObject
    has_twin: bool = False
    began: int = 0
    latest: int = 0

    @classmethod
    def of(cls, native: JsonObject) -> Self:
        """Read one fragment."""
        is_custom = bool(object_in(native.get("custom")))
        members = object_in(native.get("custom" if is_custom else "function"))
        value = members.get("input" if is_custom else "arguments")
        return cls(
            index=place_in(native.get("index")),
            call_id=text_in(native.get("id")),
            name=text_in(members.get("name")) or "",
            arguments=[text] if (text := raw_arguments(value)) else [],
            is_custom=is_custom,
            is_object=not isinstance(value, str | None),
            extras=others(native, _CALL),
        )

    def join(self, piece: Self) -> None:
        """Add the next fragment."""
        self.call_id = piece.call_id or self.call_id
        if piece.name != self.name:
            self.name += piece.name
        self.arguments += piece.arguments
        self.is_custom |= piece.is_custom
        self.is_object |= piece.is_object
        self.extras |= piece.extras

    @property
    def is_whole(self) -> bool:
        """Whether the arguments received so far could be complete."""
        if self.is_custom:
            return bool(self.arguments)
        try:
            read_json("".join(self.arguments))
        except InvalidRecordError:
            return False
        return True

    def native(self) -> JsonObject:
        """The call in the form of an answer that is not streamed."""
        kind, member = ("custom", "input") if self.is_custom else ("function", "arguments")
        members: JsonObject = {"name": self.name, member: "".join(self.arguments)}
        return {**self.extras, "id": self.call_id, kind: members}

    def flags(self) -> tuple[CallFlag, ...]:
        """The flags for irregular fragments."""
        index: tuple[CallFlag, ...] = ("index_missing",) if self.index is None else ()
        return (*index, "arguments_were_object") if self.is_object else index


def place_in(index: JsonValue) -> int | None:
    """The index as an integer; some servers send a text or 0.0. None if it is not an index."""
    match index:
        case bool():
            return None
        case int():
            return index
        case float() if index.is_integer() and index >= 0:
            return int(index)
        case str() if index.isascii() and index.isdigit() and len(index) <= _DIGITS:
            return int(index)
        case _:
            return None


def _is_odd(native: JsonObject) -> bool:
    """Whether a member is malformed or misplaced, so that the call may lack a piece."""
    index = native.get("index")
    function, custom = object_in(native.get("function")), object_in(native.get("custom"))
    misplaced = [native.get(name) for name in ("name", "arguments", "input")]
    misplaced += [function.get("input"), custom.get("arguments")]
    has_place = index is None or place_in(index) is not None
    return is_odd_call(native) or any(misplaced) or not has_place


@dataclass(slots=True)
class Calls:
    """The calls of one message, as far as they were received."""

    calls: list[Call] = field(default_factory=list[Call])
    _by_index: dict[int, Call] = field(default_factory=dict[int, Call])
    _by_id: dict[str, Call] = field(default_factory=dict[str, Call])
    _doubts: dict[str, None] = field(default_factory=dict[str, None])
    _has_odd_name: bool = False
    _lists: int = 0

    def take(self, fragments: Sequence[JsonObject]) -> None:
        """Add the fragments of one chunk."""
        self._lists += 1
        for fragment in fragments:
            self._take(fragment)

    def unread(self) -> Iterator[str]:
        """The notes on doubts about the fragments."""
        yield from self._doubts
        # A server that counts its calls has one call at each index.
        if self._has_odd_name and len(self._by_index.keys() - {LEGACY}) < 2:
            yield "a name may be a piece of the one before it, or may begin another call"
        if not all(call.name for call in self.calls):
            yield "a call has no name"

    def _take(self, native: JsonObject) -> None:
        if _is_odd(native):
            self._doubt(ODD_CALL)
        fragment = Call.of(native)
        call = self._meant(fragment)
        if call is not fragment:
            call.join(fragment)
        call.latest = self._lists
        if fragment.call_id is not None:
            self._by_id[fragment.call_id] = call

    def _meant(self, fragment: Call) -> Call:
        """The call to which a fragment belongs; the fragment may begin a new call."""
        call = self._at(fragment)
        if call is None:
            return self._begin(fragment)
        if call.latest == self._lists:
            return self._beside(fragment, call)
        if not fragment.name and fragment.call_id is None:
            if call.has_twin and fragment.arguments:
                self._doubt("a piece of arguments may be of either of two calls")
            return call
        return self._begin(fragment) if self._begins(fragment, call) else call

    def _at(self, fragment: Call) -> Call | None:
        """The call with the index of a fragment; without an index, by id; else the latest call."""
        if fragment.index is not None:
            return self._by_index.get(fragment.index)
        if fragment.call_id is not None:
            return self._by_id.get(fragment.call_id)
        return self.calls[-1] if self.calls else None

    def _begin(self, fragment: Call) -> Call:
        fragment.began = self._lists
        self.calls.append(fragment)
        if fragment.index is not None:
            self._by_index[fragment.index] = fragment
        return fragment

    def _beside(self, fragment: Call, call: Call) -> Call:
        """The call of a fragment whose list already has a fragment of `call`: mostly a new call."""
        is_other = fragment.call_id is not None and call.call_id not in (None, fragment.call_id)
        if not fragment.name and not is_other:
            self._doubt("two pieces in one list may be of one call")
            return call
        began = self._begin(fragment)
        if call.began == self._lists:
            call.has_twin = began.has_twin = True
        return began

    def _begins(self, fragment: Call, call: Call) -> bool:
        """Whether a fragment with an id or a name begins another call with the same index."""
        has_id, has_ids = fragment.call_id is not None, call.call_id is not None
        if has_id and has_ids and fragment.call_id != call.call_id:
            return True
        if not fragment.name or not call.name:
            return False
        if fragment.name == call.name:
            return self._begins_again(fragment, call)
        if call.arguments:
            if not call.is_whole:
                self._doubt("a name stands amid the arguments of a call")
            return True
        # Only a name so far: either the name continues, or a call without arguments has ended.
        if fragment.index is None and not has_id:
            self._has_odd_name = self._has_odd_name or has_ids
            return True
        is_piece = fragment.index == LEGACY or has_ids
        self._has_odd_name = self._has_odd_name or not is_piece
        return has_id and not has_ids

    def _begins_again(self, fragment: Call, call: Call) -> bool:
        """Like `_begins`, for a repeated name: some servers repeat it in each fragment."""
        if call.arguments and call.is_whole and not call.is_custom:
            if fragment.arguments:
                return True
        elif call.arguments and not call.is_custom:
            return False
        if call.call_id is None and fragment.index != LEGACY:
            self._doubt("a name that is repeated may begin another call")
        return False

    def _doubt(self, note: str) -> None:
        self._doubts[note] = None
