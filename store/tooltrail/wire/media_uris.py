"""Media in `data:` URIs, which several formats use: `data:image/png;base64,…` (RFC 2397)."""

import base64

from tooltrail.records import MediaBlock
from tooltrail.records.blocks import MediaKind

FILE = "file:"
"""The prefix, in a record, of a provider's own name for a file."""

_BASE64 = ";base64"


def media_of_uri(kind: MediaKind, uri: str, name: str | None = None) -> MediaBlock:
    """The media block for a URI; the bytes of a base64 `data:` URI become the block's data."""
    head, comma, data = uri.partition(",")
    if head.startswith("data:") and head.endswith(_BASE64) and comma:
        media_type = head.removeprefix("data:").removesuffix(_BASE64)
        return MediaBlock(kind=kind, media_type=media_type or None, data=data, name=name)
    return MediaBlock(kind=kind, uri=uri, name=name)


def uri_of_media(block: MediaBlock) -> str | None:
    """The URI of a block: a `data:` URI of its bytes, else its own URI, else None."""
    if block.data is None:
        return block.uri
    return f"data:{block.media_type or ''}{_BASE64},{block.data}"


def is_file_name(uri: str | None) -> bool:
    """Whether a URI is a provider's own name for a file, which no other provider knows."""
    return uri is not None and uri.startswith(FILE) and not uri.startswith(f"{FILE}/")


def is_public(uri: str | None) -> bool:
    """Whether any server can fetch the URI over HTTP."""
    return uri is not None and uri.startswith(("https://", "http://"))


def has_bytes(block: MediaBlock) -> bool:
    """Whether the block has bytes in valid base64; servers refuse a request otherwise."""
    return bool(decoded(block.data or ""))


def decoded(data: str) -> bytes | None:
    """The bytes of base64 (RFC 4648 section 4); None if the text is not valid base64."""
    try:
        return base64.b64decode(data, validate=True)
    except ValueError:
        return None
