"""Content digests, spelled `sha256:<64 lower-case hex digits>` everywhere."""

import re
from collections.abc import Callable
from functools import cache
from typing import NewType

from tooltrail.records.errors import InvalidRecordError

ALGORITHM = "sha256"
_PATTERN = re.compile(r"sha256:[0-9a-f]{64}")

Digest = NewType("Digest", str)
"""A digest in its only spelling, made by `digest_of` and `parse_digest`."""


def sha256(data: bytes) -> bytes:
    """The SHA-256 hash of `data`, 32 bytes."""
    return _algorithm()(data)


@cache
def _algorithm() -> Callable[[bytes], bytes]:
    # Imported at the first hash: the import is slow, and a list of calls needs no hash. Kept for
    # the next ones: while Python exits, a program can still record, but not import.
    import hashlib  # noqa: PLC0415

    return lambda data: hashlib.sha256(data).digest()


def digest_of(data: bytes) -> Digest:
    """The digest of `data`."""
    return Digest(f"{ALGORITHM}:{sha256(data).hex()}")


def digest_from_hex(hex_digits: str) -> Digest:
    """The digest with these hexadecimal digits.

    Raises:
        InvalidRecordError: not 64 lower-case hexadecimal digits.
    """
    return parse_digest(f"{ALGORITHM}:{hex_digits}")


def parse_digest(text: str) -> Digest:
    """Check the spelling of a digest.

    Raises:
        InvalidRecordError: not `sha256:` and 64 lower-case hexadecimal digits.
    """
    if _PATTERN.fullmatch(text) is None:
        raise InvalidRecordError(f"not a digest of the form sha256:<hex>: {text[:80]!r}")
    return Digest(text)


def hex_of(digest: Digest) -> str:
    """The 64 hexadecimal digits of a digest."""
    return digest.removeprefix(f"{ALGORITHM}:")


EMPTY = Digest("sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
"""The digest of zero bytes."""
