"""Parts of Gemini's contents, with all keys in camel case.

The API is protocol buffers in JSON: every key may be in camel case or in snake case, and the
official client sends both. Keys within schemas, arguments and responses belong to the user and
are not changed.
"""

import re

from tooltrail.records import MediaBlock
from tooltrail.records.blocks import MediaKind
from tooltrail.wire.members import JsonObject, object_in, others, text_in

_SNAKE = re.compile(r"_([a-z])")
_KINDS: dict[str, MediaKind] = {"image": "image", "audio": "audio"}
MEDIA = {"inlineData": "data", "fileData": "fileUri"}
"""The members that hold media, and the member in each that holds the bytes or the URI."""

_KEPT = frozenset({"mimeType", "displayName", *MEDIA.values()})
_STANDARD = str.maketrans("-_", "+/")


def camel(native: JsonObject) -> JsonObject:
    """The object with its keys in camel case; keys within its members are unchanged."""
    if "_" not in "".join(native):
        return native
    return {_SNAKE.sub(lambda m: m[1].upper(), name): value for name, value in native.items()}


def media_of_part(part: JsonObject) -> MediaBlock | None:
    """Read a part with bytes or with the URI of a file; None for any other part."""
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
    """Base64 in the alphabet of RFC 4648 section 4; the official client uses that of section 5."""
    standard = data.translate(_STANDARD)
    return standard + "=" * (-len(standard) % 4)


def kind_of(media_type: str | None) -> MediaKind:
    """The kind of media of this media type."""
    return _KINDS.get((media_type or "").partition("/")[0], "document")
