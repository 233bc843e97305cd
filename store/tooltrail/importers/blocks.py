"""Blocks of messages and texts that several formats need."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from math import isfinite
from pathlib import Path
from typing import Any, Final

from tooltrail.importers.events import NOTHING, CallFound, Json, list_of, object_of

_ROLES: Final = ("system", "developer", "user", "assistant", "tool")
_MOST_STATUS: Final = 255
_MOST_MS: Final = 10**15
"""A longer time, of 30,000 years, is no time at all."""

_TEXTS: Final = {
    "text": "text",
    "input_text": "text",
    "output_text": "text",
    "reasoning": "reasoning",
    "thinking": "reasoning",
}
"""Our types for the types of parts that are texts."""


_encoder: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def spelled(value: Any) -> str:
    """The arguments of a call as text: a text as it is, any other value as JSON."""
    return value if isinstance(value, str) else _encoder.encode(value)


def parsed(value: Any) -> Any:
    """The value that a text spells in JSON; any other value as it is."""
    with suppress(ValueError, RecursionError, TypeError):
        return json.loads(value, parse_constant=str, parse_float=_finite)
    return value


def _finite(spelled_float: str) -> float | str:
    number = float(spelled_float)
    return number if isfinite(number) else spelled_float


def role_of(value: Any) -> str:
    """The role of a message; `user` for a role that no record has."""
    return str(value) if value in _ROLES else "user"


def parts_of(content: Any) -> list[Any]:
    """The parts of a content, which may be a list of parts, one part or one text."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [content] if isinstance(content, dict) else list_of(content)


def joined_texts(parts: Sequence[Any]) -> str | None:
    """The texts of the parts, one on each line; None if no part has a text."""
    texts = (object_of(one).get("text") for one in parts)
    found = [one for one in texts if isinstance(one, str)]
    return "\n".join(found) if found else None


def text_of(content: Any) -> str | None:
    """The text of a content; None if it has none."""
    return joined_texts(parts_of(content))


def others_than_text(content: Any) -> dict[str, Any]:
    """The parts of a content that are not texts, such as images, as the extras of a result."""
    others = [one for one in parts_of(content) if "text" not in object_of(one)]
    return {"content": others} if others else {}


def blocks_of(content: Any) -> list[Json]:
    """The blocks of a content; none for an empty text."""
    return [block_of(one) for one in parts_of(content or None)]


def block_of(part: Any) -> Json:
    """The block of a part: a text or a reasoning, with its other members, or the part itself."""
    if isinstance(part, str):
        return text_block(part)
    members = object_of(part)
    kind = str(members.get("type", "text" if len(members) == 1 else None))
    name = next((one for one in (kind, "text") if isinstance(members.get(one), str)), None)
    if kind not in _TEXTS or name is None:
        return {"type": "provider", "native": part}
    return text_block(members[name], _TEXTS[kind], without(members, {"type", name}))


def text_block(text: str, kind: str = "text", extras: Json = NOTHING) -> Json:
    """A block of text, or of another kind that has a text."""
    return {"type": kind, "text": text, **({"extras": extras} if extras else {})}


def call_block(found: CallFound, position: int) -> Json:
    """The block of a call in the message that asks for the call."""
    call: dict[str, Any] = {
        "tool_name": found.tool_name,
        "call_id": found.call_id,
        "arguments_raw": spelled(found.arguments),
        **found.more,
    }
    if position:
        call["position"] = position
    return {"type": "tool_call", "call": call}


def reasoning_blocks(text: Any) -> list[Json]:
    """The block of a reasoning; none if there is no text of it."""
    return [text_block(text, "reasoning")] if isinstance(text, str) else []


def named_texts(value: Json, *same: str, **named: str) -> dict[str, Any]:
    """The members of a value that are texts, with their own names or with ours for them."""
    named = {**{one: one for one in same}, **named}
    found = {ours: value.get(theirs) for ours, theirs in named.items()}
    return {ours: one for ours, one in found.items() if one and isinstance(one, str)}


def without(value: Json, known: AbstractSet[str]) -> dict[str, Any]:
    """The members of a value that have no place in our records, except null ones."""
    return {name: one for name, one in value.items() if name not in known and one is not None}


def exit_status_of(value: Any) -> int | None:
    """An exit status, 0 to 255; None for any other value."""
    return value if type(value) is int and 0 <= value <= _MOST_STATUS else None


def milliseconds_of(number: Any, unit_ms: float = 1) -> int | None:
    """A time in whole milliseconds, given in units of so many; None for any other value."""
    is_number = isinstance(number, int | float) and not isinstance(number, bool)
    return round(number * unit_ms) if is_number and 0 <= number * unit_ms < _MOST_MS else None


def kind_of(text: Any, kinds: Mapping[str, str]) -> str | None:
    """The kind of a failure by the words with which its text begins; None if none fits."""
    begins = (text if isinstance(text, str) else "").lstrip().startswith
    return next((kind for words, kind in kinds.items() if begins(words)), None)


def session_name(path: Path, *beginning: Any) -> str:
    """A name for a session whose source has none: that of the file, and a digest of its beginning.

    A copy of the file in another folder has the same name, and so has a longer version.

    Args:
        path: the file.
        beginning: the values that tell this session from others, and that do not change later.
    """
    digest = hashlib.sha256(json.dumps(beginning, sort_keys=True).encode())
    return f"{path.stem}/{digest.hexdigest()[:16]}"


def origin_of(wire_format: str, value: Json, usage: Any, *same: str, **named: str) -> Json:
    """The origin of a message.

    Args:
        wire_format: the wire format of the provider, or the name of the importer's format.
        value: the value that says which model answered.
        usage: the usage of tokens as the source says it, if any.
        same: the members of `value` that have our names.
        named: the other members of `value`, by our names for them.
    """
    extras = {"extras": {"usage": usage}} if usage else {}
    return {"wire_format": wire_format, **named_texts(value, *same, **named), **extras}
