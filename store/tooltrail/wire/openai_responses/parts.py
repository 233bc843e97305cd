"""Reads and writes the parts of messages and outputs: text, images and files.

Other members of a part (annotations, the detail of an image) are kept in the extras of its block.
A part of an unknown type is a `ProviderBlock`.
"""

import re
from collections.abc import Mapping

from pydantic import JsonValue

from tooltrail.records import MediaBlock, MessageBlock, ProviderBlock, TextBlock
from tooltrail.records.blocks import MediaKind
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

IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_UNNAMED = "document"
_LISTS = ("annotations", "logprobs")
_MEDIA: Mapping[str, tuple[MediaKind, tuple[str, ...]]] = {
    "input_image": ("image", ("image_url", "file_id")),
    "input_file": ("document", ("file_data", "file_url", "file_id")),
}
"""For each type of part: the kind of its media, and the members of which one holds them."""

_STEMS = {"image": "image", "document": "file"}
_PRINTABLE = re.compile("[!-~]+")
_MEDIA_TYPE = re.compile(r"[a-zA-Z0-9.+-]+/[a-zA-Z0-9.+-]+")


def read_part(part: JsonValue) -> TextBlock | MediaBlock | ProviderBlock:
    """Read one part as a block."""
    members = object_in(part)
    match members:
        case {"type": "input_text" | "output_text" | "text", "text": str(text)}:
            return TextBlock(text=text, extras=_other_members(members, "text"))
        case {"type": "refusal", "refusal": str(text)}:
            return TextBlock(text=text, is_refusal=True, extras=_other_members(members, "refusal"))
        case {"type": "input_image" | "input_file" as kind}:
            return _read_media(members, *_MEDIA[kind]) or ProviderBlock(native=part)
        case _:
            return ProviderBlock(native=part)


def _other_members(part: JsonObject, *known: str) -> JsonObject:
    """The other members of a part, without empty lists of annotations or log probabilities."""
    besides = others(part, frozenset({"type", *known}))
    empty = [name for name in _LISTS if besides.get(name) == []]
    return {name: value for name, value in besides.items() if name not in empty}


def _read_media(part: JsonObject, kind: MediaKind, places: tuple[str, ...]) -> MediaBlock | None:
    """Read the media of a part; None unless exactly one member holds them."""
    found = [(place, part[place]) for place in places if part.get(place) is not None]
    extras, name = _other_members(part, *places), None
    if kind == "document":
        name = text_in(extras.pop("filename", None))
    elif extras.get("detail") == "auto":
        del extras["detail"]
    match found:
        case [("file_id", str(file_id))]:
            media = MediaBlock(kind=kind, uri=FILE + file_id, name=name)
        case [("file_data", str(data))] if not data.startswith("data:"):
            media = MediaBlock(kind=kind, data=data, name=name)
        case [(_, str(uri))]:
            media = media_of_uri(kind, uri, name)
        case _:
            return None
    return media.model_copy(update={"extras": extras})


def write_part(
    writing: Writing, block: MessageBlock, where: str, *, replays: bool
) -> JsonObject | None:
    """Write a text, media or a provider block as a part; None if this is not possible.

    With `replays`, provider data goes back to its provider.
    """
    if isinstance(block, ProviderBlock):
        native = object_in(block.native)
        return native if replays and isinstance(native.get("type"), str) else None
    part: JsonObject | None = None
    if isinstance(block, TextBlock):
        writing.note_refusal(block, where)
        part = {"type": "input_text", "text": writing.clean.text(block.text, where)}
    elif isinstance(block, MediaBlock):
        part = _media_part(writing, block, where, replays=replays)
    if part is None:
        return None
    part = writing.with_extras(part, block.extras, where, replays=replays)
    return {"detail": "auto", **part} if part["type"] == "input_image" else part


def _media_part(
    writing: Writing, block: MediaBlock, where: str, *, replays: bool
) -> JsonObject | None:
    stem, uri, media_type = _STEMS.get(block.kind), block.uri or "", block.media_type
    is_file = is_file_name(uri)
    if block.data is None:
        is_known = replays if is_file else is_public(uri)
        if stem is None or not is_known or not _PRINTABLE.fullmatch(uri):
            return None
        writing.note_media(block, where, "name", "media_type")
        member = "file_id" if is_file else f"{stem}_url"
        return {"type": f"input_{stem}", member: uri.removeprefix(FILE)}
    if not has_bytes(block):
        return None
    if stem == "image" and media_type in IMAGE_TYPES:
        writing.note_media(block, where, "name", "uri")
        return {"type": "input_image", "image_url": uri_of_media(block)}
    if stem == "file" and (media_type is None or _MEDIA_TYPE.fullmatch(media_type)):
        writing.note_media(block, where, "uri")
        if not block.name:
            writing.note("block_described", where, f"a file without a name is {_UNNAMED!r} here")
        # A file of unknown type is plain base64: a URI without a type would mean text.
        data = block.data if media_type is None else uri_of_media(block)
        return {"type": "input_file", "filename": block.name or _UNNAMED, "file_data": data}
    return None
