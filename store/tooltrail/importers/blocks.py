"""Parts of messages that several formats spell alike, as the blocks of our records."""

import json
from datetime import UTC, datetime
from typing import Any, Final

from tooltrail.importers.events import CallFound, Json, list_of, object_of

_ROLES: Final = frozenset({"system", "developer", "user", "assistant", "tool"})


def role_of(spelled: Any) -> str:
    """The role of a message; `user` for a role that no record has."""
    return spelled if isinstance(spelled, str) and spelled in _ROLES else "user"


def blocks_of(content: Any) -> list[Json]:
    """The blocks of a content that is a text or a list of parts."""
    if content is None or content == "":
        return []
    return [_block(one) for one in (list_of(content) if isinstance(content, list) else [content])]


def _block(part: Any) -> Json:
    match part:
        case str():
            return {"type": "text", "text": part}
        case {"type": "text", "text": str(text)}:
            return {"type": "text", "text": text}
        case {"type": "reasoning", "reasoning": str(text)}:
            return {"type": "reasoning", "text": text}
        case _:
            return {"type": "provider", "native": part}


def text_of(content: Any) -> str | None:
    """The text of a content; None if it has none."""
    if content is None or isinstance(content, str):
        return content
    texts = [
        one if isinstance(one, str) else object_of(one).get("text") for one in list_of(content)
    ]
    found = [one for one in texts if isinstance(one, str)]
    return "\n".join(found) if found else None


def call_block(found: CallFound) -> Json:
    """The block of a call in the message that asks for it."""
    call: dict[str, Any] = {
        "tool_name": found.tool_name,
        "call_id": found.call_id,
        "arguments_raw": found.arguments,
    }
    if found.position:
        call["position"] = found.position
    return {"type": "tool_call", "call": call}


def arguments_of(given: Any) -> str:
    """The arguments of a call as the source spells them: a text, or a JSON value."""
    if isinstance(given, str):
        return given
    return json.dumps(given, ensure_ascii=False, separators=(",", ":"))


def time_of(seconds: Any) -> str | None:
    """A time that is spelled in seconds since 1970, in ISO 8601; None for any other value."""
    if not isinstance(seconds, int | float):
        return None
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return None
