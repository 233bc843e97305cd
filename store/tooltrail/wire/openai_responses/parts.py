"""The parts that messages and outputs consist of: text, images and files, in both directions.

What a part says beyond its content (annotations, the detail of an image) is in the extras of its
block. A part of an unknown type is a `ProviderBlock`.
"""

import re

from pydantic import JsonValue

from tooltrail.records import ContentBlock, MediaBlock, ProviderBlock, TextBlock
from tooltrail.wire._writing import Writing
from tooltrail.wire.media_uris import FILE, has_bytes, is_file_name, media_of_uri, uri_of_media
from tooltrail.wire.members import JsonObject, object_in, others, text_in
from tooltrail.wire.openai_responses.limits import IMAGE_TYPES, PROVIDER_ITEMS

_UNNAMED = "document"
_LISTS = ("annotations", "logprobs")
_URI = re.compile(r"(?:https?|data|file):[!-~]+")
_MEDIA_TYPE = re.compile(r"[a-zA-Z0-9.+-]+/[a-zA-Z0-9.+-]+")


def read_part(part: JsonValue) -> TextBlock | MediaBlock | ProviderBlock:
    """The block of one part."""
    members = object_in(part)
    match members:
        case {"type": "input_text" | "output_text" | "text", "text": str(text)}:
            return TextBlock(text=text, extras=_other_members(members, "text"))
        case {"type": "refusal", "refusal": str(text)}:
            return TextBlock(text=text, is_refusal=True, extras=_other_members(members, "refusal"))
        case {"type": "input_image"}:
            return _read_image(members)
        case {"type": "input_file"}:
            return _read_file(members)
        case _:
            return ProviderBlock(native=part)


def _other_members(part: JsonObject, *known: str) -> JsonObject:
    """What else a part says; an empty list of annotations says nothing."""
    besides = others(part, frozenset({"type", *known}))
    empty = [name for name in _LISTS if besides.get(name) == []]
    return {name: value for name, value in besides.items() if name not in empty}


def _read_image(part: JsonObject) -> MediaBlock | ProviderBlock:
    extras = _other_members(part, "image_url", "file_id")
    if extras.get("detail") == "auto":
        del extras["detail"]
    match part.get("image_url"), part.get("file_id"):
        case str(uri), None:
            media = media_of_uri("image", uri)
        case None, str(file_id):
            media = MediaBlock(kind="image", uri=FILE + file_id)
        case _:
            return ProviderBlock(native=part)
    return media.model_copy(update={"extras": extras})


def _read_file(part: JsonObject) -> MediaBlock | ProviderBlock:
    places = ("file_data", "file_url", "file_id")
    extras = _other_members(part, "filename", *places)
    name = text_in(part.get("filename"))
    match tuple(part.get(place) for place in places):
        case str(data), None, None:
            is_uri = data.startswith("data:")
            media = (
                media_of_uri("document", data, name)
                if is_uri
                else MediaBlock(kind="document", data=data, name=name)
            )
        case None, str(uri), None:
            media = MediaBlock(kind="document", uri=uri, name=name)
        case None, None, str(file_id):
            media = MediaBlock(kind="document", uri=FILE + file_id, name=name)
        case _:
            return ProviderBlock(native=part)
    return media.model_copy(update={"extras": extras})


def write_part(
    writing: Writing, block: ContentBlock, where: str, *, replays: bool
) -> JsonObject | None:
    """The part of a text or of media, or what its provider said; None where there is none for it.

    Args:
        writing: the export.
        block: the text, the media, or the part itself.
        where: it stands in the conversation.
        replays: whether what a provider said goes back to it.
    """
    if isinstance(block, ProviderBlock):
        native = block.native
        kind = native.get("type") if replays and isinstance(native, dict) else None
        is_part = isinstance(kind, str) and kind not in PROVIDER_ITEMS
        return cleaned(writing, object_in(native), where) if is_part else None
    if isinstance(block, TextBlock):
        part: JsonObject | None = {
            "type": "input_text",
            "text": writing.clean.text(block.text, where),
        }
    elif isinstance(block, MediaBlock):
        part = _media_part(writing, block, where, replays=replays)
    else:
        return None
    if part is None:
        return None
    part = writing.with_extras(part, block.extras, where, replays=replays)
    return {"detail": "auto", **part} if part["type"] == "input_image" else part


def cleaned(writing: Writing, native: JsonObject, where: str) -> JsonObject:
    """An object of the provider's, with texts that can be sent."""
    value = writing.clean.value(native, where)
    return value if isinstance(value, dict) else {}


def _media_part(
    writing: Writing, block: MediaBlock, where: str, *, replays: bool
) -> JsonObject | None:
    if block.data is None and is_file_name(block.uri) and not replays:
        # The name of a file means nothing to anybody but who gave it.
        return None
    if block.kind == "image" and _is_sendable(block, IMAGE_TYPES):
        writing.note_media(block, where, "name", "media_type" if block.data is None else "uri")
        uri = uri_of_media(block) or ""
        place: JsonObject = {"image_url": uri}
        if block.data is None and uri.startswith(FILE):
            place = {"file_id": uri.removeprefix(FILE)}
        return {"type": "input_image", **place}
    if block.kind == "document" and _is_sendable(block, None):
        return {"type": "input_file", **_file(writing, block, where)}
    return None


def _is_sendable(block: MediaBlock, media_types: frozenset[str] | None) -> bool:
    """Whether there are bytes of a type that is taken, or a place that can be named."""
    if block.data is None:
        uri = block.uri
        if uri is None or not _URI.fullmatch(uri) or uri.startswith(f"{FILE}/"):
            return False
        # What the reader would take for the bytes themselves is not a place.
        return media_of_uri(block.kind, uri).uri == uri
    if not has_bytes(block):
        return False
    if media_types is None:
        return block.media_type is None or bool(_MEDIA_TYPE.fullmatch(block.media_type))
    return block.media_type in media_types


def _file(writing: Writing, block: MediaBlock, where: str) -> JsonObject:
    if block.data is None:
        writing.note_media(block, where, "name", "media_type")
        uri = block.uri or ""
        is_id = uri.startswith(FILE)
        return {"file_id": uri.removeprefix(FILE)} if is_id else {"file_url": uri}
    writing.note_media(block, where, "uri")
    if not block.name:
        writing.note("block_described", where, f"a file without a name is {_UNNAMED!r} here")
    name = writing.clean.text(block.name or _UNNAMED, where)
    # Without its type a file is plain base64: a URI would give it the type of text.
    data = block.data if block.media_type is None else uri_of_media(block)
    return {"filename": name, "file_data": data}
