"""Contents of messages and results: texts, parts, and blocks of `tooltrail.records.Message`.

An agent may have cut a long text before it wrote it. It puts a marker where it cut: at the end, or
in the middle with a part of the same length on both sides. A text that only quotes such a marker
has it elsewhere, and is complete.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, cast

from tooltrail.importers.events import Call
from tooltrail.importers.members import named_texts, without
from tooltrail.importers.parts import encoded
from tooltrail.importers.values import NOTHING, Json, list_of, object_of

_TEXTS: Final = {
    "text": "text",
    "input_text": "text",
    "output_text": "text",
    "reasoning": "reasoning",
    "thinking": "reasoning",
}
"""Our types for the types of parts that are texts."""

_IN_THE_MIDDLE: Final = re.compile(
    r"…(\d{1,15}) chars truncated…|\n\n\.\.\. \[(\d{1,15}) characters truncated\] \.\.\.\n\n"
)
_AT_THE_END: Final = re.compile(r"\n\n\.\.\. \[\d+ lines truncated\] \.\.\.\s*\Z")

_MOST_UNEQUAL: Final = 16
"""How much longer one part may be: a cut is between characters, and a status may come first."""


def parts_of(content: Any) -> list[Any]:
    """The parts of a content: a text, a part, a call, a list of parts, or a tuple of contents."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if isinstance(content, dict | Call):
        return [content]
    if isinstance(content, tuple):
        contents = cast("Iterable[Any]", content)
        return [part for one in contents for part in parts_of(one or None)]
    return list_of(content)


def text_of(content: Any) -> str | None:
    """The texts of the parts of a content, one on each line; None if no part has a text."""
    texts = (object_of(one).get("text") for one in parts_of(content))
    found = [one for one in texts if isinstance(one, str)]
    return "\n".join(found) if found else None


def others_than_text(content: Any) -> dict[str, Any]:
    """The parts of a content that are not texts, such as images, as the extras of a result."""
    others = [one for one in parts_of(content) if "text" not in object_of(one)]
    return {"content": others} if others else {}


def reasoning_part(text: Any, extras: Json = NOTHING) -> Json | None:
    """The part of a reasoning, with other members; None if there is no text of it."""
    return {**extras, "type": "reasoning", "text": text} if isinstance(text, str) else None


def block_of(part: Any) -> Json:
    """The block of a part: a text or a reasoning, with its other members, or the part itself."""
    members = {"text": part} if isinstance(part, str) else object_of(part)
    kind = str(members.get("type", "text" if len(members) == 1 else None))
    name = next((one for one in (kind, "text") if isinstance(members.get(one), str)), None)
    if kind not in _TEXTS or name is None:
        return {"type": "provider", "native": part}
    extras = without(members, {"type", name})
    block = {"type": _TEXTS[kind], "text": members[name]}
    return {**block, "extras": extras} if extras else block


def call_block(call: Call, position: int) -> Json:
    """The block of a call, whose arguments are a text, in the message that asks for the call."""
    members: dict[str, Any] = {"tool_name": call.tool_name, "call_id": call.call_id}
    members |= {"arguments_raw": call.arguments, **call.more}
    if position:
        members["position"] = position
    return {"type": "tool_call", "call": members}


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


def size_before_cut(text: Any) -> int | None:
    """The bytes of a text before it was cut, at least; 0 if unknown, None if it was not cut.

    A marker counts characters, each of which has at least one byte.
    """
    if not isinstance(text, str) or " truncated" not in text:
        return None
    for found in _IN_THE_MIDDLE.finditer(text):
        if _is_in_the_middle(text[: found.start()], text[found.end() :]):
            marker = len(encoded(found[0]))
            return len(encoded(text)) - marker + int(found[1] or found[2])
    return 0 if _AT_THE_END.search(text) else None


def _is_in_the_middle(before: str, after: str) -> bool:
    """Whether two parts are equally long in bytes (Codex) or in UTF-16 units (Claude Code)."""
    return any(
        abs(len(before.encode(name, "surrogatepass")) - len(after.encode(name, "surrogatepass")))
        <= most
        for name, most in (("utf-8", _MOST_UNEQUAL), ("utf-16-le", 2 * _MOST_UNEQUAL))
    )
