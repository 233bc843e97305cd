"""The compaction view: a shorter canonical result, for a conversation that has grown too long.

The view is made from the canonical result alone, never from the text of a receipt, and is again an
envelope with the same five fields. Essential parts stay whatever the budget: identifiers and
handles, outcomes, truncation flags, references to artifacts and the indices that point at them. An
agent needs these to continue, and to ask for the rest. They are recognised by their names, so the
rule also covers families that this package does not know. All other parts share the budget: the
outermost come first, previews come last.

Every omission is marked. An object with a missing part has `truncated: true`; a list and a text
have a marker with a count.
"""

import operator
import re
from collections.abc import Iterator, Mapping
from typing import cast

from pydantic import JsonValue

from tooltrail.records.budgets import COMPACTION_CHARS, fair_shares_of_at_least
from tooltrail.records.canonical_json import encode, encode_text
from tooltrail.records.envelope import CanonicalResult, CompactedResult
from tooltrail.records.shortened_json import marker, shorten_json

_LEAST_TEXT_CHARS = 100
"""Room for a marker and for some text on both sides of it. A text that has less room is dropped."""

_IDENTIFIER_CHARS = 256
"""Longest essential text. A longer one is data."""

_HANDLE_CHARS = 1_024
"""Longest handle, as JSON, that stays complete. A longer one is an object like any other."""

_OUTCOMES = frozenset({"disposition", "exit_status", "index", "retrieval_status", "status"})
"""Names of the members with an outcome, and `index`, the list entry that an outcome belongs to."""

_HIDDEN_ITEMS = re.compile(r"\[\.\.\. [\d,]+ items? omitted \.\.\.\]")
"""A marker for the entries that an earlier cut removed from a list."""

_Path = tuple[str | int, ...]
"""Names and positions that lead from a value to one of its parts."""


def compact(canonical: CanonicalResult, chars: int = COMPACTION_CHARS) -> CanonicalResult:
    """Cut a result to a budget; returns the result itself if nothing would become shorter.

    A result that was cut is a `CompactedResult`. Its receipt says so; its JSON does not.

    Equal inputs give equal outputs, and the JSON of the output is never longer than that of the
    input. Compacting again changes nothing, and a larger budget restores nothing.

    Always kept are `tool_name`, `status` and `summary_text`, and the `kind`, `message`,
    `recovery_hint` and `retryable` of an error. Also kept, in the result or in the error's details,
    are every `*_id` and handle, `disposition`, `exit_status`, `retrieval_status`, `status` and
    `index`, every truncation flag, every list of artifacts, and every `*_artifact` index.

    Args:
        canonical: the complete canonical result.
        chars: characters of JSON for everything else; with 0 only the essential parts stay.
    """
    error = canonical.error
    value = canonical.result if error is None else error.details
    shorter = _shortened(value, chars)
    if shorter is value:
        return canonical
    changed: dict[str, object] = {"result": shorter}
    if error is not None:
        changed = {"error": error.model_copy(update={"details": shorter})}
    # Validation is skipped: a part of a valid result is valid.
    return CompactedResult.model_construct(None, **dict(canonical) | changed)


def _shortened(value: JsonValue, chars: int) -> JsonValue:
    kept = _kept_parts(value, chars)
    staying = {path[:n] for path in kept for n in range(len(path) + 1)}
    shorter: JsonValue = _rest(value, (), kept, staying) if kept else {"truncated": True}
    return shorter if len(encode(shorter)) < len(encode(value)) else value


def _kept_parts(value: JsonValue, chars: int) -> dict[_Path, JsonValue]:
    """The essential parts, and as many others as fit; texts among the others may be shortened."""
    kept: dict[_Path, JsonValue] = {}
    others: dict[_Path, JsonValue] = {}
    for path, part in _parts(value):
        (kept if _is_essential(path, part) else others)[path] = part
    sizes: dict[_Path, int] = {}
    least: list[int] = []
    room = chars
    for path in sorted(others, key=_rank):
        size = len(encode_text(others[path]))
        needed = min(size, _LEAST_TEXT_CHARS) if isinstance(others[path], str) else size
        needed += _name_chars(path)
        if needed <= room:
            room -= needed
            sizes[path] = size + _name_chars(path)
            least.append(needed)
    shares = fair_shares_of_at_least([*sizes.values()], least, chars)
    for path, share in zip(sizes, shares, strict=True):
        kept[path] = shorten_json(others[path], share - _name_chars(path)).value
    return kept


def _parts(value: JsonValue, path: _Path = ()) -> Iterator[tuple[_Path, JsonValue]]:
    """The parts that are kept or dropped as one: essential parts, and values without members."""
    if isinstance(value, dict | list) and value and not _is_essential(path, value):
        for name, member in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _parts(member, (*path, name))
    else:
        yield path, value


def _is_essential(path: _Path, value: JsonValue) -> bool:
    name = path[-1] if path else 0
    if isinstance(name, int):
        return isinstance(value, str) and _HIDDEN_ITEMS.fullmatch(value) is not None
    if isinstance(value, dict):
        return name.endswith("handle") and len(encode_text(value)) <= _HANDLE_CHARS
    if isinstance(value, list):
        return name == "artifacts" and all(map(_is_reference, value))
    if isinstance(value, str) and len(value) > _IDENTIFIER_CHARS:
        return False
    is_flag = isinstance(value, bool) and name.endswith("truncated")
    is_index = type(value) is int and name.endswith("artifact")
    return is_flag or is_index or name in _OUTCOMES or name.endswith(("_id", "_handle"))


def _is_reference(entry: JsonValue) -> bool:
    return isinstance(entry, dict) and entry.keys() == {"path"}


def _rank(path: _Path) -> tuple[bool, int, _Path]:
    """Previews last, the outermost parts first; the order of the members must not matter."""
    return any(str(name).endswith("preview") for name in path), len(path), path


def _name_chars(path: _Path) -> int:
    """Characters of JSON around a part: the names that lead to it, quotes and separators."""
    return sum(len(name) + 4 if isinstance(name, str) else 1 for name in path)


def _rest(
    value: JsonValue, path: _Path, kept: Mapping[_Path, JsonValue], staying: set[_Path]
) -> JsonValue:
    """What is left of a value if its parts in `kept` stay; the value itself if nothing is lost."""
    if path in kept:
        return kept[path]
    if isinstance(value, list):
        paths = [(*path, n) for n in range(len(value))]
        items = [_rest(value[p[-1]], p, kept, staying) for p in paths if p in staying]
        if len(items) < len(value):
            items.append(marker(len(value) - len(items), "items"))
        return value if all(map(operator.is_, items, value)) else items
    given = cast("dict[str, JsonValue]", value)
    members = {
        name: _rest(member, (*path, name), kept, staying)
        for name, member in given.items()
        if (*path, name) in staying
    }
    cut = [name for name in given if name not in members or members[name] is not given[name]]
    for name in cut:
        flag = name.removesuffix("preview") + "truncated"
        if name.endswith("preview") and given[name] and members.get(flag) is False:
            members[flag] = True
    if cut and not isinstance(members.get("truncated"), dict | list):
        members["truncated"] = True
    return members if cut else value
