"""What is known of one stream of bytes: its identity, its size, and its two ends.

A stream of a running tool can be of any size, so a record of it carries the digest and the counts
of the whole, and only as much of its head and tail as a preview may need. Short streams carry
their whole content. Where the bytes of a long one are is the business of whoever captured it; the
bytes never enter the JSON of a record.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Self, cast

from pydantic import Field, model_validator

from tooltrail.records._model import DigestField, Record
from tooltrail.records.counted_streams import MOST_ROLE_CHARS, count_lines
from tooltrail.records.digests import digest_of

Count = Annotated[int, Field(ge=0)]


ORDER_ROLE = "order"
"""Role of a stream that says how the chunks of the others came; no output of the tool."""


class StreamRecord(Record):
    """One stream, completely identified and partly quoted.

    Invariants: `head` and `tail` are the first and the last bytes of the *kept* bytes, and they
    never overlap: when the whole of it fits into the head, the tail is empty. `content` is the
    whole of it, or None when it is too long to be carried around.

    Attributes:
        role: what the stream is for: `stdout`, `stderr`, `order`, `content`, …
        digest: of the kept bytes.
        size: bytes kept.
        line_count: newline characters in the kept bytes, plus one for an unfinished last line.
        head: the first bytes, at most what the capture was set to keep.
        tail: the last bytes, the same; empty when `head` is everything.
        content: all kept bytes, or None.
        produced_size: bytes that the tool produced; more than `size` when some could not be kept.
        produced_line_count: lines that the tool produced.
        loss_reason: why some bytes could not be kept; None when all were.
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
        """The record of a stream that is wholly in memory."""
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
"""What most fields hold, and what holds no stream."""


def _members(value: object) -> Iterable[object]:
    if isinstance(value, Record):
        return [getattr(value, name) for name in type(value).__pydantic_fields__]
    if isinstance(value, Mapping):
        return cast("Mapping[object, object]", value).values()
    if isinstance(value, tuple | list):
        return cast("Sequence[object]", value)
    return ()
