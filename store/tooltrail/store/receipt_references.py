"""Canonical results whose long texts stand in the receipt, and are stored there alone."""

import re
from typing import Final

from tooltrail.records.canonical_json import encode_text

RECEIPT_MARK: Final = "$tooltrail.receipt"
_REFERENCE: Final = re.compile(r'\{"\$tooltrail\.receipt":\[(\d+),(\d+)\]\}')
_MIN_SHARED_BYTES: Final = 64
"""A shorter text costs less than a reference saves."""


def shorten_canonical(canonical: str, content: bytes, offset: int) -> str:
    """Canonical JSON in which a text that stands in the receipt is a reference into it.

    The reference is `{"$tooltrail.receipt":[OFFSET,SIZE]}`, both in bytes. Canonical JSON writes no
    other key like that: `canonical_json` gives a foreign one another `$`.
    """
    if len(content) < _MIN_SHARED_BYTES:
        return canonical
    try:
        quoted = encode_text(content.decode())
    except UnicodeDecodeError:
        return canonical
    return canonical.replace(quoted, f'{{"{RECEIPT_MARK}":[{offset},{len(content)}]}}')


def whole_canonical(canonical: str, receipt: bytes) -> str:
    """The reverse of `shorten_canonical`, for all references."""

    def text(found: re.Match[str]) -> str:
        offset, size = int(found[1]), int(found[2])
        return encode_text(receipt[offset : offset + size].decode("utf-8", "replace"))

    return _REFERENCE.sub(text, canonical)
