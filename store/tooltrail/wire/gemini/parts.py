"""Parts of Gemini's contents, under one spelling of their keys.

The API is protocol buffers spelled in JSON: every key may stand in camel case or in snake case, and
the official client sends both. What is a schema, arguments or a response is the user's own, and no
key of it is touched.
"""

import re

from tooltrail.records import MediaBlock
from tooltrail.records.blocks import MediaKind
from tooltrail.wire.members import JsonObject, object_in, others, text_in

_SNAKE = re.compile(r"_([a-z])")
_KINDS: dict[str, MediaKind] = {"image": "image", "audio": "audio"}
MEDIA = {"inlineData": "data", "fileData": "fileUri"}
"""The members that have media, and where within them the bytes are, or their place."""

_KEPT = frozenset({"mimeType", "displayName", *MEDIA.values()})
_STANDARD = str.maketrans("-_", "+/")


def camel(native: JsonObject) -> JsonObject:
    """The members with their keys in camel case; what is within them stays as it is."""
    if "_" not in "".join(native):
        return native
    return {_SNAKE.sub(lambda m: m[1].upper(), name): value for name, value in native.items()}


def media_of_part(part: JsonObject) -> MediaBlock | None:
    """The block of a part with bytes or with the place of a file; None for any other."""
    for member, kept in MEDIA.items():
        members = camel(object_in(part.get(member)))
        if (given := text_in(members.get(kept))) is None:
            continue
        extras = others(part, frozenset({member}))
        if more := others(members, _KEPT):
            extras[member] = more
        media_type = text_in(members.get("mimeType"))
        is_inline = member == "inlineData"
        return MediaBlock(
            kind=kind_of(media_type),
            media_type=media_type,
            data=_standard(given) if is_inline else None,
            uri=None if is_inline else given,
            name=text_in(members.get("displayName")),
            extras=extras,
        )
    return None


def _standard(data: str) -> str:
    """Base64 in the alphabet of RFC 4648 section 4; the official client sends that of section 5."""
    standard = data.translate(_STANDARD)
    return standard + "=" * (-len(standard) % 4)


def kind_of(media_type: str | None) -> MediaKind:
    """What a block of that type is."""
    return _KINDS.get((media_type or "").partition("/")[0], "document")
