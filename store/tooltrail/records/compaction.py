"""The compaction view: what stays of a canonical result when a conversation grows too long.

It is made of the canonical result alone, never of the text of a receipt, and is again an envelope
of the same five fields. Names decide what stays whatever the budget (`_essentials`); everything
else is ordinary, and the outermost members have the first claim on the budget.

What is gone is said. An object in which anything is missing has `truncated: true`, whatever it had
under this name, unless essentials stand there; a list that lost entries becomes `{total, returned,
truncated, items}`; a text that was cut has a marker that counts. A member without content may go
unsaid: nothing is lost with it.

To say it takes room, so an object or a list that would not be shorter stays whole, whatever the
budget: a compaction is never longer than the result. To compact again changes nothing, and a larger
budget brings nothing back.
"""

from collections import deque
from dataclasses import dataclass

from pydantic import JsonValue

from tooltrail.records._essentials import (
    NAME_CHARS,
    Entries,
    Essentials,
    Path,
    Place,
    cut_list,
    entries_of,
    find_essentials,
    is_container,
    is_essential,
    is_flag,
    is_short,
    is_shorter,
)
from tooltrail.records._text_cuts import cut_after, cut_before
from tooltrail.records.budgets import MAX_MESSAGE_CHARS, CompactionBudget
from tooltrail.records.envelope import CanonicalResult, CompactedResult
from tooltrail.records.tool_errors import ToolError

__all__ = ["DEFAULT_COMPACTION", "ESSENTIALS_ONLY", "CompactionBudget", "compact"]

DEFAULT_COMPACTION = CompactionBudget()

ESSENTIALS_ONLY = CompactionBudget(max_nodes=0)
"""What is left when nothing else can be: nothing ordinary, but where that would not be shorter."""


def compact(
    canonical: CanonicalResult, budget: CompactionBudget = DEFAULT_COMPACTION
) -> CanonicalResult:
    """The result cut to a budget, or the result itself where nothing gets shorter.

    A result that was cut is a `CompactedResult`. Its receipt says so; its JSON does not.

    The same input always gives the same output, whose JSON is never longer than that of the input.

    Always kept are `tool_name`, `status` and `summary_text`, the `kind`, `message`,
    `recovery_hint` and `retryable` of an error, and, wherever it stands in the first
    `ESSENTIAL_DEPTH` levels of the result or of the error's details: every `*_id` and handle,
    `disposition`, `exit_status`, `retrieval_status`, `status` and `index`, every flag of
    truncation, every list of artifacts, and every `*_artifact` that points into one. Together
    these have at most `ESSENTIAL_CHARS` characters of JSON, which is enough for whatever a
    built-in family itself says; of what a tool put into it as JSON the outermost come first.
    """
    result, error = canonical.result, canonical.error
    bounded = None if result is None else _bounded(result, budget)
    shorter = None if error is None else _compact_error(error, budget)
    if (bounded, shorter) == (result, error):
        return canonical
    # Not validated again: a bounded part of a valid result is valid.
    members = dict(canonical) | {"result": bounded, "error": shorter}
    return CompactedResult.model_construct(None, **members)


def _compact_error(error: ToolError, budget: CompactionBudget) -> ToolError:
    hint = error.recovery_hint
    update: dict[str, object] = {
        "message": _trimmed(error.message, MAX_MESSAGE_CHARS),
        "recovery_hint": None if hint is None else _trimmed(hint, MAX_MESSAGE_CHARS),
        "details": _bounded(error.details, budget),
    }
    return error.model_copy(update=update)


def _bounded(value: JsonValue, budget: CompactionBudget) -> JsonValue:
    if not is_short(value):
        return {"truncated": True}
    while True:
        essentials = find_essentials(value)
        chosen = _choose(value, essentials, budget)
        bounded = _Kept(essentials, chosen, budget.string_chars).part((), value)[0]
        if bounded == value:
            return bounded
        # What stayed because it was no longer than its cut form counts now, and may displace more.
        value = bounded


def _choose(value: JsonValue, essentials: Essentials, budget: CompactionBudget) -> set[Path]:
    """The ordinary members and entries that stay: the outermost first, within the budget."""
    chosen: set[Path] = set()
    waiting = deque([Place((), value)])
    while waiting:
        place = waiting.popleft()
        for member in place.members(budget.max_items):
            if len(chosen) == budget.max_nodes:
                return chosen
            if member.path not in essentials.containers:
                if is_essential(member, in_handle=place.in_handle) or is_flag(member):
                    continue
                if not _fits(member, budget):
                    continue
                chosen.add(member.path)
            if is_container(member.value) and _fits(member, budget):
                waiting.append(member)
    return chosen


def _fits(place: Place, budget: CompactionBudget) -> bool:
    if is_container(place.value):
        return len(place.path) < budget.max_depth
    return is_short(place.value)


def _trimmed(text: str, limit: int) -> str:
    """Both ends of a text, with a marker between them that counts what is not there.

    One that is cut gets shorter: what is gone is longer than the marker.
    """
    if len(text) <= limit:
        return text
    room = limit - len(_marker(len(text)))
    head = text[: cut_before(text, room // 2)]
    tail = text[cut_after(text, len(text) - (room - len(head))) :]
    return head + _marker(len(text) - len(head) - len(tail)) + tail


def _marker(count: int) -> str:
    return f"[... {count:,} characters omitted ...]"


def _is_empty(name: str, member: JsonValue) -> bool:
    """Whether nothing is lost with a member: a name that is too long is data itself."""
    return len(name) <= NAME_CHARS and (member is None or member in ("", [], {}))


@dataclass(frozen=True, slots=True)
class _Kept:
    """What stays of a value; each part comes with whether anything of it is lost."""

    essentials: Essentials
    chosen: set[Path]
    string_chars: int

    def part(self, path: Path, value: JsonValue) -> tuple[JsonValue, bool]:
        facts = self.essentials.facts
        if path in facts:
            return facts[path], facts[path] is not value
        if isinstance(value, str):
            text = _trimmed(value, self.string_chars)
            return text, len(text) < len(value)
        entries = entries_of(value)
        if entries is not None:
            rest, is_cut = self._list(path, entries)
        elif isinstance(value, dict):
            rest, is_cut = self._object(path, value)
        else:
            return value, False
        # An index in what stays whole must not point at a reference that is lost outside of it.
        may_stay = not path or self.essentials.all_references
        if is_cut and may_stay and not is_shorter(rest, value):
            return value, False
        return rest, is_cut

    def _list(self, path: Path, entries: Entries) -> tuple[JsonValue, bool]:
        paths = ((*path, position) for position in range(len(entries.items)))
        parts = [
            self.part(child, item)
            for child, item in zip(paths, entries.items, strict=True)
            if self._stays(child)
        ]
        items = [item for item, _ in parts]
        is_cut = len(parts) < len(entries.items) or any(is_cut for _, is_cut in parts)
        return cut_list(entries.total, items) if len(items) < entries.total else items, is_cut

    def _object(self, path: Path, value: dict[str, JsonValue]) -> tuple[JsonValue, bool]:
        members: dict[str, JsonValue] = {}
        cut: list[str] = []
        for name, member in value.items():
            child = (*path, name)
            if self._stays(child):
                members[name], is_cut = self.part(child, member)
            elif is_flag(Place(child, member)):
                members[name], is_cut = member, False
            else:
                is_cut = not _is_empty(name, member)
            if is_cut:
                cut.append(name)
        for name in cut:
            flag = name.removesuffix("preview") + "truncated"
            if name.endswith("preview") and members.get(flag) is False:
                members[flag] = True
        if cut and (*path, "truncated") not in self.essentials.containers:
            members["truncated"] = True
        return members, bool(cut)

    def _stays(self, path: Path) -> bool:
        essentials = self.essentials
        return path in essentials.facts or path in essentials.containers or path in self.chosen
