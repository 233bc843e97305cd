"""What is known of one stream of bytes. Without models, for programs that start for one call."""

from typing import Final, NamedTuple, Self

from tooltrail.records.digests import Digest, digest_of
from tooltrail.records.errors import InvalidRecordError

MOST_ROLE_CHARS: Final = 64
"""Characters of the role of a stream."""

INLINE_BYTES: Final = 1 << 20
"""Longest stream whose bytes travel with its fact. Any stream that a preview shows whole is
shorter."""


class CountedStream(NamedTuple):
    """What is known of one stream; see `StreamRecord`, which has the same members."""

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
        """A stream that is in memory from its beginning to its end."""
        size, lines = len(data), count_lines(data)
        return cls(role, digest_of(data), size, lines, data, b"", data, size, lines, None)


def count_lines(data: bytes) -> int:
    """Lines in `data`: its newlines, plus one when it does not end with a newline."""
    return data.count(b"\n") + (1 if data and not data.endswith(b"\n") else 0)


def check_role(role: str) -> None:
    """Refuse what cannot be the role of a stream.

    Raises:
        InvalidRecordError: the role is empty, too long or not UTF-8.
    """
    text = role.encode("utf-8", "replace").decode()
    if not 1 <= len(role) <= MOST_ROLE_CHARS or text != role:
        raise InvalidRecordError(f"no stream can have the role {role[:80]!r}")
