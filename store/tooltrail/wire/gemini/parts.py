"""Parts of Gemini's contents, under one spelling of their keys.

The API is protocol buffers told in JSON: every key may stand in camel case or in snake case, and
the official client sends both. What is a schema, arguments or a response is the user's own, and no
key of it is touched.
"""

import re

from tooltrail.records import MediaBlock
from tooltrail.records.blocks import MediaKind
from tooltrail.wire.media_uris import has_bytes
from tooltrail.wire.members import JsonObject, object_in, text_in

_SNAKE = re.compile(r"_([a-z])")
_KINDS: dict[str, MediaKind] = {"image": "image", "audio": "audio"}


def camel(native: JsonObject) -> JsonObject:
    """The members with their keys in camel case; what is within them stays as it is."""
    if "_" not in "".join(native):
        return native
    return {_SNAKE.sub(lambda m: m[1].upper(), name): value for name, value in native.items()}


def media_of_part(part: JsonObject) -> MediaBlock | None:
    """The block of a part with bytes or with the place of a file; None for any other."""
    inline, file = object_in(part.get("inlineData")), object_in(part.get("fileData"))
    told = camel(inline or file)
    media_type = text_in(told.get("mimeType"))
    kind = _KINDS.get((media_type or "").partition("/")[0], "document")
    name = text_in(told.get("displayName"))
    data, uri = text_in(told.get("data")), text_in(told.get("fileUri"))
    if inline and data is not None:
        return MediaBlock(kind=kind, media_type=media_type, data=data, name=name)
    if file and uri is not None:
        return MediaBlock(kind=kind, media_type=media_type, uri=uri, name=name)
    return None


def part_of_media(block: MediaBlock) -> JsonObject | None:
    """The part of a block; None where it has neither bytes in base64 nor a place, or no type."""
    if block.media_type is None:
        return None
    if block.data is not None and not has_bytes(block):
        return None
    if block.data is not None:
        return {"inlineData": {"mimeType": block.media_type, "data": block.data}}
    if block.uri is not None:
        return {"fileData": {"mimeType": block.media_type, "fileUri": block.uri}}
    return None
