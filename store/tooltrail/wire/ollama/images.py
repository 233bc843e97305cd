"""Images as Ollama has them: base64 without a type, which the first bytes tell.

The server reads them as standard base64 (RFC 4648 section 4) and refuses the whole request where
that fails.
"""

from tooltrail.records import MediaBlock
from tooltrail.wire.media_uris import decoded, has_bytes

_HEAD_CHARS = 16
"""Characters of base64 that hold the first twelve bytes."""


def image_of_base64(data: str) -> MediaBlock:
    """The block of an image; its type is None where its first bytes are of none that is known."""
    return MediaBlock(kind="image", media_type=_media_type(data), data=data)


def is_image(block: object) -> bool:
    """Whether a block can go on the wire as an image: its bytes are there, and are base64."""
    return isinstance(block, MediaBlock) and block.kind == "image" and has_bytes(block)


def _media_type(data: str) -> str | None:
    head = decoded(data[:_HEAD_CHARS]) or b""
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if head.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "image/webp"
    return None
