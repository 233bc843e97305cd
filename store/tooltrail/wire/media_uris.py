"""Media inside of URIs, as several formats have them: `data:image/png;base64,…` (RFC 2397)."""

import base64

from tooltrail.records import MediaBlock
from tooltrail.records.blocks import MediaKind

FILE = "file:"
"""What a provider's own name for a file begins with in a record."""

_BASE64 = ";base64"


def media_of_uri(kind: MediaKind, uri: str, name: str | None = None) -> MediaBlock:
    """The block of a URI, its bytes taken out of a `data:` one that is in base64."""
    head, comma, data = uri.partition(",")
    if head.startswith("data:") and head.endswith(_BASE64) and comma:
        media_type = head.removeprefix("data:").removesuffix(_BASE64)
        return MediaBlock(kind=kind, media_type=media_type or None, data=data, name=name)
    return MediaBlock(kind=kind, uri=uri, name=name)


def uri_of_media(block: MediaBlock) -> str | None:
    """The URI of a block; None when it has neither bytes nor a place."""
    if block.data is None:
        return block.uri
    return f"data:{block.media_type or ''}{_BASE64},{block.data}"


def is_file_name(uri: str | None) -> bool:
    """Whether it is a provider's own name for a file, which means nothing to anybody else."""
    return uri is not None and uri.startswith(FILE) and not uri.startswith(f"{FILE}/")


def is_public(uri: str | None) -> bool:
    """Whether any server can be asked to fetch it."""
    return uri is not None and uri.startswith(("https://", "http://"))


def has_bytes(block: MediaBlock) -> bool:
    """Whether its bytes are there, and are base64: else servers refuse all."""
    return bool(decoded(block.data or ""))


def decoded(data: str) -> bytes | None:
    """The bytes of base64 (RFC 4648 section 4); None of a text that is none."""
    try:
        return base64.b64decode(data, validate=True)
    except ValueError:
        return None
