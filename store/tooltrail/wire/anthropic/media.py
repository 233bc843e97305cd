"""Images and documents as Anthropic's blocks spell them."""

import base64

from tooltrail.records import MediaBlock
from tooltrail.records.blocks import MediaKind
from tooltrail.wire.anthropic.limits import DOCUMENTS, IMAGES
from tooltrail.wire.media_uris import FILE, decoded
from tooltrail.wire.members import JsonObject, object_in, others, text_in

_KINDS: dict[str, MediaKind] = {"image": "image", "document": "document"}
_BLOCK = frozenset({"type", "source", "title"})


def read_media(native: JsonObject) -> MediaBlock | None:
    """The block of an image or a document; None for a source that is not known."""
    kind, source = _KINDS.get(str(native.get("type"))), object_in(native.get("source"))
    if kind is None:
        return None
    media_type, data, uri = text_in(source.get("media_type")), text_in(source.get("data")), None
    match source.get("type"):
        case "base64" if data is not None:
            pass
        case "text" if data is not None:
            data = base64.b64encode(data.encode("utf-8", "replace")).decode()
        case "url":
            uri = text_in(source.get("url"))
        case "file":
            uri = f"{FILE}{source.get('file_id')}"
        case _:
            return None
    return MediaBlock(
        kind=kind,
        media_type=media_type,
        data=data,
        uri=uri,
        name=text_in(native.get("title")),
        extras=others(native, _BLOCK),
    )


def write_media(block: MediaBlock, *, tells_place: bool) -> JsonObject | None:
    """The native block; None where the format has none for its kind or its type.

    Args:
        block: to write.
        tells_place: whether the place of its bytes means anything to the receiver.
    """
    place = _place(block.uri) if tells_place else None
    source = place if block.data is None else _source(block)
    if source is None or block.kind == "audio":
        return None
    native: JsonObject = {"type": block.kind, "source": source}
    if block.name is not None and block.kind == "document":
        native["title"] = block.name
    return native


def _place(uri: str | None) -> JsonObject | None:
    if uri is None or not uri.startswith(FILE):
        return None if uri is None else {"type": "url", "url": uri}
    return {"type": "file", "file_id": uri.removeprefix(FILE)}


def _source(block: MediaBlock) -> JsonObject | None:
    content = decoded(block.data or "")
    if not content:
        return None
    native: JsonObject = {"media_type": block.media_type, "data": block.data}
    if block.kind == "document" and block.media_type == "text/plain":
        try:
            return {"type": "text", **native, "data": content.decode()}
        except UnicodeDecodeError:
            return None
    is_taken = block.media_type in (IMAGES if block.kind == "image" else DOCUMENTS)
    return {"type": "base64", **native} if is_taken else None
