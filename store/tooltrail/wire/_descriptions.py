"""Describes in words a block that a format cannot carry."""

from hashlib import sha256

from tooltrail.records import MediaBlock, MessageBlock, ProviderBlock, ReasoningBlock, ResourceBlock
from tooltrail.wire._clean_text import sendable
from tooltrail.wire.media_uris import decoded
from tooltrail.wire.members import object_in

_SHOWN_CHARS = 200
_UNKNOWN = "of unknown type"


def describe_block(block: MessageBlock) -> str:
    """Describe a block on one line in brackets: kind, type, size and digest, or its location."""
    return sendable(_described(block))


def _described(block: MessageBlock) -> str:
    match block:
        case MediaBlock():
            where = _content(block.data, block.uri or block.name)
            return f"[{block.kind} {_short(block.media_type or _UNKNOWN)}, {where}]"
        case ResourceBlock(text=str(text)):
            return f"[resource {_short(block.uri)}, {len(text.encode('utf-8', 'replace')):,} bytes]"
        case ResourceBlock():
            kind = "link" if block.is_link else "resource"
            where = _content(block.data, block.uri)
            return f"[{kind} {_short(block.media_type or _UNKNOWN)}, {where}]"
        case ProviderBlock():
            return f"[provider's {_short(str(object_in(block.native).get('type', 'block')))}]"
        case ReasoningBlock():
            return f"[reasoning, {len(block.text):,} characters]"
        case _:
            return f"[{block.type}]"


def _content(data: str | None, where: str | None) -> str:
    if data is None:
        return _short(where or "not recorded")
    if (content := decoded(data)) is None:
        return "damaged base64"
    return f"{len(content)} bytes, sha256:{sha256(content).hexdigest()}"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN_CHARS else f"{line[: _SHOWN_CHARS - 1]}…"
