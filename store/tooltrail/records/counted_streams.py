"""The counts and the digest of one stream of bytes, without the slow import of pydantic models."""

from typing import Final, NamedTuple, Self

from tooltrail.records.digests import Digest, digest_of
from tooltrail.records.errors import InvalidRecordError

MOST_ROLE_CHARS: Final = 64
"""Most characters of the role of a stream."""

INLINE_BYTES: Final = 1 << 20
"""Longest stream whose bytes are sent along with its fact, in bytes. Any stream that a preview can
show completely is shorter."""


class CountedStream(NamedTuple):
    """The identity, counts and ends of one stream; `StreamRecord` has the same members."""

    role: str
    digest: Digest
    size: int
    line_count: int
    head: bytes
    tail: bytes
    content: bytes | None
    produced_size: int
    produced_line_count: int
    loss_reason: str | None

    @classmethod
    def of(cls, role: str, data: bytes) -> Self:
        """A stream that is completely in memory."""
        size, lines = len(data), count_lines(data)
        return cls(role, digest_of(data), size, lines, data, b"", data, size, lines, None)


def count_lines(data: bytes) -> int:
    """The lines in `data`: its newlines, plus one if it has a last line without a newline."""
    return data.count(b"\n") + (1 if data and not data.endswith(b"\n") else 0)


def check_role(role: str) -> None:
    """Check that a text can be the role of a stream.

    Raises:
        InvalidRecordError: the role is empty, too long or not UTF-8.
    """
    text = role.encode("utf-8", "replace").decode()
    if not 1 <= len(role) <= MOST_ROLE_CHARS or text != role:
        raise InvalidRecordError(f"no stream can have the role {role[:80]!r}")
