"""Reads and writes the parts of content: text, images, sound and files.

Other members of a part (the detail of an image, its caching) are kept in the extras of its block
under their own names. A part of an unknown type is a `ProviderBlock`.
"""

import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from pydantic import JsonValue

from tooltrail.records import (
    MediaBlock,
    Message,
    MessageBlock,
    ProviderBlock,
    ReasoningBlock,
    TextBlock,
)
from tooltrail.wire._writing import Writing
from tooltrail.wire.media_uris import (
    FILE,
    has_bytes,
    is_file_name,
    is_public,
    media_of_uri,
    uri_of_media,
)
from tooltrail.wire.members import JsonObject, object_in, others, text_in

_SOUNDS = {"wav": "audio/wav", "mp3": "audio/mpeg"}
"""The media type for each name of a sound format."""

_SOUND_NAMES = {media_type: name for name, media_type in _SOUNDS.items()} | {"audio/mp3": "mp3"}
_UNNAMED = "document"
_MEDIA_TYPE = re.compile(r"[a-zA-Z0-9.+-]+/[a-zA-Z0-9.+-]+")
_TEXT = frozenset({"type", "text"})
_REFUSAL = frozenset({"type", "refusal"})

Part = TextBlock | MediaBlock | ProviderBlock


def is_part(content: JsonValue) -> bool:
    """Whether the content is a part of a known type."""
    return not isinstance(read_part(content), ProviderBlock)


def read_part(part: JsonValue) -> Part:
    """Read a part or a text as a block."""
    if isinstance(part, str):
        return TextBlock(text=part)
    members = object_in(part)
    match members:
        case {"type": "text", "text": str(text)}:
            return TextBlock(text=text, extras=others(members, _TEXT))
        case {"type": "refusal", "refusal": str(text)}:
            return TextBlock(text=text, is_refusal=True, extras=others(members, _REFUSAL))
        case _:
            return _read_media(members) or ProviderBlock(native=part)


def _read_media(part: JsonObject) -> MediaBlock | None:
    kind = str(part.get("type"))
    members = object_in(part.get(kind))
    known = {"url", "data", "format"}
    match kind, members:
        case "image_url", {"url": str(uri)}:
            media = media_of_uri("image", uri)
        case "input_audio", {"data": str(data), "format": str(name)}:
            media_type = _SOUNDS.get(name, f"audio/{name}")
            media = MediaBlock(kind="audio", media_type=media_type, data=data)
        case "file", {"file_data": str(data)}:
            media, known = _read_file(data, members), {"file_data", "filename"}
        case "file", {"file_id": str(file_id)}:
            titled = text_in(members.get("filename"))
            media = MediaBlock(kind="document", uri=FILE + file_id, name=titled)
            known = {"file_id", "filename"}
        case _:
            return None
    extras = others(part, frozenset({"type", kind}))
    if besides := others(members, frozenset(known)):
        extras[kind] = besides
    return media.model_copy(update={"extras": extras})


def _read_file(data: str, members: JsonObject) -> MediaBlock:
    name = text_in(members.get("filename"))
    if data.startswith("data:") or is_public(data):
        return media_of_uri("document", data, name)
    return MediaBlock(kind="document", data=data, name=name)


def content_of(parts: Sequence[JsonObject]) -> JsonValue:
    """A message's content: one text as a text, more as parts; servers refuse an empty list."""
    match parts:
        case []:
            return ""
        case [{"type": "text", "text": text, **rest}] if not rest:
            return text
        case _:
            return [*parts]


def write_part(
    writing: Writing, message: Message, block: MessageBlock, where: str, sendable: AbstractSet[str]
) -> JsonObject | None:
    """Write a block as a part; None, with a report, if it cannot be written.

    `sendable` contains the kinds of media that a user may send.
    """
    match block:
        case TextBlock():
            return write_text(writing, message, block, where)
        case ProviderBlock() if part := own_part(writing, message, block):
            writing.note_extras(block, where)
            return part
        case ProviderBlock() | ReasoningBlock():
            writing.dropped_block(block, where)
            return None
        case MediaBlock() if (message.role == "user" and block.kind in sendable) and (
            part := write_media(writing, message, block, where)
        ):
            return part
        case _:
            return {"type": "text", "text": writing.block_text(block, where)}


def own_part(writing: Writing, message: Message, block: MessageBlock) -> JsonObject | None:
    """A part that only its provider understands, if it goes back to that provider."""
    if not isinstance(block, ProviderBlock) or not writing.replays(message):
        return None
    native = object_in(block.native)
    return native if text_in(native.get("type")) and not is_part(native) else None


def write_text(
    writing: Writing,
    message: Message,
    block: TextBlock,
    where: str,
    known: frozenset[str] = frozenset(),
) -> JsonObject | None:
    """Write a text as a part; None for an empty text. For `known`, see `beside`."""
    writing.note_refusal(block, where)
    native: JsonObject = {"type": "text", "text": writing.clean.text(block.text, where)}
    part = writing.beside(native, message, block.extras, where, known)
    if block.text or len(part) > len(native):
        return part
    writing.note("block_dropped", where, "a text without characters")
    return None


def write_media(
    writing: Writing, message: Message, block: MediaBlock, where: str
) -> JsonObject | None:
    """Write media as a part; None if the format has no part for them."""
    if block.data is None:
        part = _write_place(writing, message, block)
        unsaid = ["media_type", "name"]
    else:
        part = _write_bytes(block)
        unsaid = ["uri"] if block.kind == "document" else ["uri", "name"]
    if part is None:
        return None
    if block.kind == "document" and block.data is not None and not block.name:
        writing.note("block_described", where, f"a file without a name is {_UNNAMED!r} here")
    if block.media_type == "audio/mp3":
        writing.note("block_described", where, "audio/mp3 is audio/mpeg here")
    writing.note_media(block, where, *unsaid)
    return writing.beside(part, message, block.extras, where)


def _write_place(writing: Writing, message: Message, block: MediaBlock) -> JsonObject | None:
    uri = block.uri or ""
    if block.kind == "image" and is_public(uri):
        return {"type": "image_url", "image_url": {"url": uri}}
    if block.kind != "document" or not writing.tells_place(message, block):
        return None
    if is_file_name(uri):
        return {"type": "file", "file": {"file_id": uri.removeprefix(FILE)}}
    # Not every server accepts a URI instead of a file's bytes; one whose request had a URI does.
    return {"type": "file", "file": {"file_data": uri}} if writing.replays(message) else None


def _write_bytes(block: MediaBlock) -> JsonObject | None:
    if not has_bytes(block):
        return None
    if block.kind == "audio":
        name = _SOUND_NAMES.get(block.media_type or "")
        sound: JsonObject = {"data": block.data, "format": name}
        return {"type": "input_audio", "input_audio": sound} if name else None
    if block.media_type is not None and not _MEDIA_TYPE.fullmatch(block.media_type):
        return None
    uri = uri_of_media(block)
    if block.kind == "image":
        return {"type": "image_url", "image_url": {"url": uri}}
    file: JsonObject = {"filename": block.name or _UNNAMED, "file_data": uri}
    return {"type": "file", "file": file}
