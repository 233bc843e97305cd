"""The record of one stream of bytes: its identity, its size, and its two ends.

A stream of a running tool can have any size. So its record has the digest and the counts of the
complete stream, but only as much of head and tail as a preview may need. A short stream has its
complete content. The capture decides where the bytes of a long stream are stored; the bytes are
never in the JSON of a record.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Self, cast

from pydantic import Field, model_validator

from tooltrail.records._model import DigestField, Record
from tooltrail.records.counted_streams import MOST_ROLE_CHARS, count_lines
from tooltrail.records.digests import digest_of
from tooltrail.records.errors import check_type

Count = Annotated[int, Field(ge=0)]


ORDER_ROLE = "order"
"""Role of the stream with the order in which chunks of the others arrived; not tool output."""


class StreamRecord(Record):
    """One stream: its full identity, and a part of its bytes.

    Invariants: `head` and `tail` are the first and the last bytes of the *kept* bytes, and they
    never overlap: if the complete stream fits into the head, the tail is empty. `content` is the
    complete stream, or None if it is too long to be kept in memory.

    Attributes:
        role: what the stream is for: `stdout`, `stderr`, `order`, `content`, …
        digest: digest of the kept bytes.
        size: bytes kept.
        line_count: newline characters in the kept bytes, plus one for an unfinished last line.
        head: the first bytes, up to the limit of the capture.
        tail: the last bytes, up to the same limit; empty if `head` has all kept bytes.
        content: all kept bytes, or None.
        produced_size: bytes that the tool produced; more than `size` if some could not be kept.
        produced_line_count: lines that the tool produced.
        loss_reason: why some bytes could not be kept; None if all were kept.
    """

    role: Annotated[str, Field(min_length=1, max_length=MOST_ROLE_CHARS)]
    digest: DigestField
    size: Count
    line_count: Count
    head: bytes = Field(repr=False, exclude=True)
    tail: bytes = Field(default=b"", repr=False, exclude=True)
    content: bytes | None = Field(default=None, repr=False, exclude=True)
    produced_size: Count
    produced_line_count: Count
    loss_reason: str | None = None

    @model_validator(mode="after")
    def _check_sizes(self) -> Self:
        if len(self.head) + len(self.tail) > self.size:
            raise ValueError("head and tail together are longer than the stream")
        if self.content is not None and len(self.content) != self.size:
            raise ValueError("content is not as long as size says")
        if self.content is not None and not (
            self.content.startswith(self.head) and self.content.endswith(self.tail)
        ):
            raise ValueError("head and tail are not the ends of content")
        if self.produced_size < self.size or self.produced_line_count < self.line_count:
            raise ValueError("more was kept than was produced")
        if (self.produced_size > self.size) != (self.loss_reason is not None):
            raise ValueError("loss_reason must be given exactly when bytes were lost")
        return self

    @classmethod
    def from_bytes(cls, role: str, data: bytes) -> Self:
        """The record of a stream that is completely in memory.

        Raises:
            InvalidRecordError: `data` is not made of bytes.
        """
        check_type("data", data, bytes, bytearray)
        line_count = count_lines(data)
        return cls(
            role=role,
            digest=digest_of(data),
            size=len(data),
            line_count=line_count,
            head=data,
            content=data,
            produced_size=len(data),
            produced_line_count=line_count,
        )


def iter_streams(value: object) -> Iterator[StreamRecord]:
    """All streams inside a record, in the order of its fields, members and keys."""
    if isinstance(value, StreamRecord):
        yield value
        return
    for member in _members(value):
        if not isinstance(member, _ATOMS):
            yield from iter_streams(member)


_ATOMS = (str, int, float, bytes, type(None))
"""The types of most fields; a value of these types contains no stream."""


def _members(value: object) -> Iterable[object]:
    if isinstance(value, Record):
        return [getattr(value, name) for name in type(value).__pydantic_fields__]
    if isinstance(value, Mapping):
        return cast("Mapping[object, object]", value).values()
    if isinstance(value, tuple | list):
        return cast("Sequence[object]", value)
    return ()
