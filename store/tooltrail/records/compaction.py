"""The compaction view: a shorter canonical result, for a conversation that has grown too long.

The view is made from the canonical result alone, never from the text of a receipt, and is again an
envelope with the same five fields. Essential members stay whatever the budget: identifiers and
handles, outcomes, truncation flags, references to artifacts and the indices that point at them. An
agent needs these to continue, and to ask for the rest. They are recognised by their names, so the
rule also covers families that this package does not know. All other members are ordinary; the
outermost members use the budget first.

Every omission is marked. An object with a missing part has `truncated: true`; a list and a text
have a marker with a count. An empty member may be dropped without a mark: nothing is lost with it.
"""

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from pydantic import JsonValue

from tooltrail.records.budgets import MAX_MESSAGE_CHARS, CompactionBudget
from tooltrail.records.canonical_json import encode
from tooltrail.records.envelope import CanonicalResult, CompactedResult
from tooltrail.records.shortened_json import marker, shorten_text
from tooltrail.records.tool_errors import ToolError

__all__ = ["DEFAULT_COMPACTION", "ESSENTIALS_ONLY", "CompactionBudget", "compact"]

DEFAULT_COMPACTION = CompactionBudget()

ESSENTIALS_ONLY = CompactionBudget(max_nodes=0)
"""The smallest budget: only the essential members stay."""

_ESSENTIAL_DEPTH = 32
"""Levels that are searched for essentials; the result itself is the first. No tool nests its ids
deeper."""

_NAME_CHARS = 256
"""Longest name and longest identifier. A longer one is data; a cut identifier would be useless."""

_MAX_INTEGER_BITS = 1024
"""Bits of the widest integer that is kept: the range of a double. A wider one is data."""

_OUTCOMES = frozenset({"disposition", "exit_status", "index", "retrieval_status", "status"})
"""Names of the members with an outcome, and `index`, the list entry that an outcome belongs to."""

_HIDDEN_ITEMS = re.compile(r"\[\.\.\. [\d,]+ items? omitted \.\.\.\]")
"""A marker for the entries that an earlier cut removed from a list."""

_Path = tuple[str | int, ...]
"""Names and positions that lead from a value to one of its parts."""


def compact(
    canonical: CanonicalResult, budget: CompactionBudget = DEFAULT_COMPACTION
) -> CanonicalResult:
    """Cut a result to a budget; returns the result itself if nothing would become shorter.

    A result that was cut is a `CompactedResult`. Its receipt says so; its JSON does not.

    Equal inputs give equal outputs, and the JSON of the output is never longer than that of the
    input. Compacting again changes nothing, and a larger budget restores nothing.

    Always kept are `tool_name`, `status` and `summary_text`, and the `kind`, `message`,
    `recovery_hint` and `retryable` of an error. Also kept, in the first 32 levels of the result or
    of the error's details, are every `*_id` and handle, `disposition`, `exit_status`,
    `retrieval_status`, `status` and `index`, every truncation flag, every list of artifacts, and
    every `*_artifact` that points into such a list.
    """
    result, error = canonical.result, canonical.error
    bounded = None if result is None else _bounded(result, budget)
    shorter = None if error is None else _compact_error(error, budget)
    if (bounded, shorter) == (result, error):
        return canonical
    # Validation is skipped: a bounded part of a valid result is valid.
    members = dict(canonical) | {"result": bounded, "error": shorter}
    return CompactedResult.model_construct(None, **members)


def _compact_error(error: ToolError, budget: CompactionBudget) -> ToolError:
    hint = error.recovery_hint
    update: dict[str, object] = {
        "message": shorten_text(error.message, MAX_MESSAGE_CHARS),
        "recovery_hint": None if hint is None else shorten_text(hint, MAX_MESSAGE_CHARS),
        "details": _bounded(error.details, budget),
    }
    return error.model_copy(update=update)


def _bounded(value: JsonValue, budget: CompactionBudget) -> JsonValue:
    if not _is_short(value):
        return {"truncated": True}
    bounded, before = value, None
    while bounded != before:  # after entries are dropped, later ones may displace others
        before = bounded
        bounded = _Kept(_choose(bounded, budget), budget.string_chars).part((), bounded).value
    return bounded if len(encode(bounded)) < len(encode(value)) else value


def _choose(value: JsonValue, budget: CompactionBudget) -> set[_Path]:
    """Choose the ordinary members and entries that stay: the outermost first, within the budget."""
    chosen: set[_Path] = set()
    waiting: deque[tuple[_Path, JsonValue, bool]] = deque([((), value, False)])
    while waiting:
        path, container, in_handle = waiting.popleft()
        for name, member in _members(container, budget.max_items):
            here = (*path, name)
            is_container = isinstance(member, dict | list)
            if is_container and len(here) >= budget.max_depth:
                continue
            if _is_kept(name, member, in_handle=in_handle) or not _is_short(member):
                continue
            if len(chosen) == budget.max_nodes:
                return chosen
            chosen.add(here)
            if is_container:
                waiting.append((here, member, _is_in_handle(name, member, in_handle=in_handle)))
    return chosen


def _members(value: JsonValue, max_items: int) -> Iterator[tuple[str | int, JsonValue]]:
    """The members in an order that depends only on their names and positions."""
    if isinstance(value, list):
        # A single excess entry is kept: its marker would take as much room.
        yield from enumerate(value[: max_items + (len(value) == max_items + 1)])
    elif isinstance(value, dict):
        # Previews come last, so that they are dropped first.
        for name in sorted(value, key=lambda name: (name.endswith("preview"), name)):
            if len(name) <= _NAME_CHARS:
                yield name, value[name]


class _Part(NamedTuple):
    """A part of a result after cutting.

    Attributes:
        value: the remaining value.
        is_cut: whether anything was lost.
        has_essentials: whether the part stays even if it was not chosen.
    """

    value: JsonValue
    is_cut: bool = False
    has_essentials: bool = False


@dataclass(frozen=True, slots=True)
class _Kept:
    """Cuts a value to the chosen parts and the essentials."""

    chosen: set[_Path]
    string_chars: int

    def part(self, path: _Path, value: JsonValue, *, in_handle: bool = False) -> _Part:
        """The remaining part of the value at a path."""
        if isinstance(value, str):
            text = shorten_text(value, self.string_chars)
            return _Part(text, is_cut=text != value)
        if isinstance(value, list):
            return self._list(path, value)
        if isinstance(value, dict):
            return self._object(path, value, in_handle=in_handle)
        return _Part(value)

    def _list(self, path: _Path, items: list[JsonValue]) -> _Part:
        parts = [self._member((*path, n), item) for n, item in enumerate(items)]
        kept = [part for part in parts if part is not None]
        values: list[JsonValue] = [part.value for part in kept]
        if len(kept) < len(items):
            values.append(marker(len(items) - len(kept), "items"))
        is_cut = len(kept) < len(items) or any(part.is_cut for part in kept)
        return _Part(values, is_cut, any(part.has_essentials for part in kept))

    def _object(self, path: _Path, value: dict[str, JsonValue], *, in_handle: bool) -> _Part:
        members: dict[str, JsonValue] = {}
        cut: list[str] = []
        has_essentials = False
        for name, member in value.items():
            part = self._member((*path, name), member, in_handle=in_handle)
            if part is not None:
                members[name] = part.value
                has_essentials |= part.has_essentials
            if not _is_empty(name, member) if part is None else part.is_cut:
                cut.append(name)
        for name in cut:
            flag = name.removesuffix("preview") + "truncated"
            if name.endswith("preview") and members.get(flag) is False:
                members[flag] = True
        if cut and not isinstance(members.get("truncated"), dict | list):
            members["truncated"] = True
        return _Part(members, bool(cut), has_essentials)

    def _member(self, path: _Path, value: JsonValue, *, in_handle: bool = False) -> _Part | None:
        """The remaining part of a member or an entry; None if it is dropped."""
        name = path[-1]
        is_chosen = path in self.chosen
        if (isinstance(name, str) and len(name) > _NAME_CHARS) or not _is_short(value):
            return None
        if len(path) > _ESSENTIAL_DEPTH and not is_chosen:
            return None
        if _is_kept(name, value, in_handle=in_handle):
            is_long = isinstance(value, str) and len(value) > _NAME_CHARS
            is_essential = isinstance(name, str) and name != "truncated"
            return None if is_long else _Part(value, has_essentials=is_essential)
        part = self.part(path, value, in_handle=_is_in_handle(name, value, in_handle=in_handle))
        return part if is_chosen or part.has_essentials else None


def _is_kept(name: str | int, value: JsonValue, *, in_handle: bool) -> bool:
    """Whether a member is of a kind that stays complete, or is dropped if it is too long.

    Args:
        name: name of the member, or position of an entry of a list.
        value: value of the member.
        in_handle: whether the object with the member is a handle, or is inside a handle.
    """
    if isinstance(name, int):
        return isinstance(value, str) and _HIDDEN_ITEMS.fullmatch(value) is not None
    if isinstance(value, dict | list):
        return name == "artifacts" and isinstance(value, list) and _is_reference(value[:1])
    if name == "truncated" or name.endswith("_truncated"):
        return isinstance(value, bool)
    if in_handle or name in _OUTCOMES or name.endswith(("_id", "_handle")):
        return True
    is_index = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return is_index and (name == "artifact" or name.endswith("_artifact"))


def _is_in_handle(name: str | int, value: JsonValue, *, in_handle: bool) -> bool:
    """Whether the members of an object belong to a handle."""
    is_handle = isinstance(name, str) and (name == "handle" or name.endswith("_handle"))
    return isinstance(value, dict) and (in_handle or is_handle)


def _is_reference(first: list[JsonValue]) -> bool:
    match first:
        case [{"path": str(), **others}]:
            return not others
        case _:
            return False


def _is_short(value: JsonValue) -> bool:
    """Whether a value is not an overlong integer; a text is bounded by being cut."""
    return not isinstance(value, int) or value.bit_length() <= _MAX_INTEGER_BITS


def _is_empty(name: str, member: JsonValue) -> bool:
    """Whether dropping a member loses nothing; a name that is too long counts as data."""
    return len(name) <= _NAME_CHARS and (member is None or member in ("", [], {}))
