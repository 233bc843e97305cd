"""Blocks of messages and texts that several formats need."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

from tooltrail.importers.events import CallFound, Json, list_of, object_of


def spelled(value: Any) -> str:
    """The arguments of a call as text: a text as it is, any other value as JSON."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def call_block(found: CallFound) -> Json:
    """The block of a call in the message that asks for the call."""
    call: dict[str, Any] = {
        "tool_name": found.tool_name,
        "call_id": found.call_id,
        "arguments_raw": found.arguments,
    }
    if found.position:
        call["position"] = found.position
    return {"type": "tool_call", "call": call}


def parts_of(content: Any) -> list[Any]:
    """The parts of a content, which may be a list of parts or one text."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else list_of(content)


def joined_texts(parts: Sequence[Any]) -> str | None:
    """The texts of the parts, one on each line; None if no part has a text."""
    texts = (object_of(one).get("text") for one in parts)
    found = [one for one in texts if isinstance(one, str)]
    return "\n".join(found) if found else None


def named_texts(value: Json, names: Json) -> dict[str, Any]:
    """The members of a value that are texts, by our names for them."""
    found = {ours: value.get(theirs) for ours, theirs in names.items()}
    return {ours: one for ours, one in found.items() if one and isinstance(one, str)}


def without(value: Json, known: frozenset[str]) -> dict[str, Any]:
    """The members of a value that have no place in our records."""
    return {name: one for name, one in value.items() if name not in known and one is not None}


_ROLES: Final = ("system", "developer", "user", "assistant", "tool")


def role_of(value: Any) -> str:
    """The role of a message; `user` for a role that no record has."""
    return str(value) if value in _ROLES else "user"


def text_of(content: Any) -> str | None:
    """The text of a content; None if it has none."""
    return joined_texts(parts_of(content))


def blocks_of(content: Any) -> list[Json]:
    """The blocks of a content in the shape of Chat Completions; none for an empty text."""
    return [_block(one) for one in parts_of(content or None)]


def _block(part: Any) -> Json:
    match part:
        case {"type": "text", "text": str(text)}:
            return {"type": "text", "text": text}
        case {"type": "reasoning", "reasoning": str(text)}:
            return {"type": "reasoning", "text": text}
        case _:
            return {"type": "provider", "native": part}


def time_of(seconds: Any) -> str | None:
    """A time that is spelled in seconds since 1970, in ISO 8601; None for any other value."""
    if not isinstance(seconds, int | float):
        return None
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return None
