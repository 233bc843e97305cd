"""The compaction view: a shorter canonical result, for a conversation that has grown too long.

The view is made from the canonical result alone, never from the text of a receipt, and is again an
envelope with the same five fields. Essential parts stay whatever the budget: identifiers and
handles, outcomes, truncation flags, references to artifacts and the indices that point at them. An
agent needs these to continue, and to ask for the rest. They are recognised by their names, so the
rule also covers families that this package does not know. `shorten_json` bounds all other parts;
the outermost come first.

Every omission is marked. An object with a missing part has `truncated: true`, and all have markers
with counts as far as the budget has room for them.
"""

import operator
import re
from collections.abc import Sequence

from pydantic import JsonValue

from tooltrail.records.budgets import COMPACTION_CHARS
from tooltrail.records.canonical_json import encode, encode_text
from tooltrail.records.envelope import CanonicalResult, CompactedResult
from tooltrail.records.shortened_json import marker, shorten_json

_LEAST_SHARE = 150
"""Characters that an object inside of others gets, as long as there are any."""

_IDENTIFIER_CHARS = 256
"""Longest essential text. A longer one is data."""

_HANDLE_CHARS = 1_024
"""Longest handle, as JSON, that stays complete. A longer one is an object like any other."""

_OUTCOMES = frozenset({"disposition", "exit_status", "index", "retrieval_status", "status"})
"""Names of the members with an outcome, and `index`, the list entry that an outcome belongs to."""

_MARKER = re.compile(r"\[\.\.\. [\d,]+ [a-z]+ omitted \.\.\.\]")
"""A marker of an earlier cut."""


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
    rest, _ = _rest(value, chars)
    # A marker in place of the complete value would not fit the type of a result.
    shorter: JsonValue = rest if isinstance(rest, type(value)) else {"truncated": True}
    return shorter if len(encode(shorter)) < len(encode(value)) else value


def _rest(value: JsonValue, room: int) -> tuple[JsonValue, int]:
    """What is left of a value, and of the room; the value itself if nothing is lost."""
    if isinstance(value, dict):
        return _rest_of_object(value, room)
    if not (isinstance(value, list) and _has_essentials(value)):
        return shorten_json(value, room).value, room
    essential = [n for n, entry in enumerate(value) if _has_essentials(entry)]
    kept, room = _rest_of_each([value[n] for n in essential], room)
    entries = dict(zip(essential, kept, strict=True))
    for n, entry in enumerate(value):  # of the other entries, the first that fit
        size = 0 if _is_marker(entry) else len(encode_text(entry))
        if n not in entries and size <= room:
            entries[n] = entry
            room -= size
    parts = [entries[n] for n in sorted(entries)]
    if len(parts) < len(value):
        parts.append(marker(len(value) - len(parts), "items"))
    return value if all(map(operator.is_, parts, value)) else parts, room


def _rest_of_object(value: dict[str, JsonValue], room: int) -> tuple[JsonValue, int]:
    members: dict[str, JsonValue] = {}
    outer: dict[str, JsonValue] = {}
    others: dict[str, JsonValue] = {}
    for name, member in sorted(value.items()):  # the order of the dict must not matter
        inner = outer if _has_essentials(member) else others
        (members if _is_essential(name, member) else inner)[name] = member
    shown = shorten_json(others, room).value if others else {}
    if isinstance(shown, dict) and shown:
        members |= shown
        room -= len(encode_text(shown))
    parts, room = _rest_of_each([*outer.values()], room)
    members |= zip(outer, parts, strict=True)
    cut = [name for name in value if name not in members or members[name] is not value[name]]
    for name in cut:
        flag = name.removesuffix("preview") + "truncated"
        if name.endswith("preview") and value[name] and members.get(flag) is False:
            members[flag] = True
    if cut and not isinstance(members.get("truncated"), dict | list):
        members["truncated"] = True
    return dict(sorted(members.items())) if cut else value, room


def _rest_of_each(values: Sequence[JsonValue], room: int) -> tuple[list[JsonValue], int]:
    """What is left of values that share room: equal parts, or `_LEAST_SHARE` to the first ones."""
    parts: list[JsonValue] = []
    for n, value in enumerate(values):
        share = min(room, max(room // (len(values) - n), _LEAST_SHARE))
        part, left = _rest(value, share)
        parts.append(part)
        room -= share - left
    return parts, room


def _has_essentials(value: JsonValue) -> bool:
    if isinstance(value, list):
        return any(map(_has_essentials, value))
    if isinstance(value, dict):
        return any(_is_essential(*member) or _has_essentials(member[1]) for member in value.items())
    return False


def _is_essential(name: str, value: JsonValue) -> bool:
    if isinstance(value, dict):
        return name.endswith("handle") and len(encode_text(value)) <= _HANDLE_CHARS
    if isinstance(value, list):
        return name == "artifacts" and all(map(_is_reference, value))
    if isinstance(value, str) and (len(value) > _IDENTIFIER_CHARS or _MARKER.search(value)):
        return False
    is_flag = isinstance(value, bool) and name.endswith("truncated")
    is_index = type(value) is int and name.endswith("artifact")
    return is_flag or is_index or name in _OUTCOMES or name.endswith(("_id", "_handle"))


def _is_reference(entry: JsonValue) -> bool:
    return isinstance(entry, dict) and entry.keys() == {"path"}


def _is_marker(value: JsonValue) -> bool:
    return isinstance(value, str) and _MARKER.fullmatch(value) is not None
