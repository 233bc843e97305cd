"""Real sinks that count requests, and objects with chosen frames or a wrong index."""

import tempfile
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from tooltrail.artifacts import (
    ArtifactArchive,
    ArtifactSink,
    ObjectStat,
    SinkCapabilities,
    artifact_path,
    open_sink,
)
from tooltrail.artifacts.codec import FrameWriter, compress_frame
from tooltrail.artifacts.frame_index import FrameIndex
from tooltrail.records.digests import digest_of


@dataclass
class CountingSink:
    """Forwards all calls to a real sink, and remembers which bytes were read.

    Attributes:
        sink: the real sink.
        requests: half-open ranges of stored bytes that `read` returned.
        opened: number of objects that were opened for reading.
    """

    sink: ArtifactSink
    requests: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    opened: int = 0

    @property
    def capabilities(self) -> SinkCapabilities:
        return self.sink.capabilities

    @property
    def url(self) -> str:
        return self.sink.url

    def put(self, path: str, source: Path) -> bool:
        return self.sink.put(path, source)

    def open(self, path: str) -> BinaryIO:
        self.opened += 1
        return self.sink.open(path)

    def read(self, path: str, start: int, stop: int | None = None) -> bytes:
        data = self.sink.read(path, start, stop)
        begin = start if start >= 0 else self.stat(path).stored_size - len(data)
        self.requests.append((begin, begin + len(data)))
        return data

    def stat(self, path: str) -> ObjectStat:
        return self.sink.stat(path)

    def exists(self, path: str) -> bool:
        return self.sink.exists(path)

    def delete(self, path: str) -> None:
        self.sink.delete(path)

    def list(self, prefix: str = "") -> Iterator[ObjectStat]:
        return self.sink.list(prefix)


def counting_sink() -> CountingSink:
    """A new counting sink in memory."""
    return CountingSink(open_sink(f"memory://{uuid.uuid4()}", create=True))


def put_raw(sink: ArtifactSink, path: str, stored: bytes) -> None:
    """Store `stored` at `path`, in place of any existing object."""
    if sink.exists(path):
        sink.delete(path)
    assert put_bytes(sink, path, stored)


def put_bytes(sink: ArtifactSink, path: str, data: bytes) -> bool:
    """Put a new file with these bytes; whether it made the object."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "source")
        source.write_bytes(data)
        return sink.put(path, source)


def archive_with(path: str, stored: bytes) -> ArtifactArchive:
    """An archive in memory with one object, in a sink that counts requests."""
    sink = counting_sink()
    put_raw(sink, path, stored)
    return ArtifactArchive(sink)


@dataclass(frozen=True)
class Framed:
    """The stored object of some blocks, with one frame per block.

    Attributes:
        path: path of the artifact.
        frames: stored frames, without an index.
        index: index of the frames.
    """

    path: str
    frames: bytes
    index: FrameIndex

    @property
    def stored(self) -> bytes:
        return self.frames + self.index.to_bytes()

    @classmethod
    def of(cls, blocks: list[bytes]) -> "Framed":
        raw = _Raw()
        writer = FrameWriter(raw)
        for block in blocks:
            writer.append(compress_frame(block))
        index = writer.close()
        frames = bytes(raw.data[: index.frames_size])
        return cls(artifact_path(digest_of(b"".join(blocks))), frames, index)


@dataclass
class _Raw:
    data: bytearray = field(default_factory=bytearray)

    def write(self, data: memoryview, /) -> int:
        self.data += data
        return len(data)


def retold(
    index: FrameIndex,
    *,
    plain: dict[int, int] | None = None,
    newlines: dict[int, int] | None = None,
) -> FrameIndex:
    """An index with wrong numbers for some frames, but without other signs of damage.

    Args:
        index: the right index.
        plain: amounts to add to the plain sizes, by frame.
        newlines: amounts to add to the newline counts, by frame.
    """
    frames = range(len(index))
    spans = [(index.stored_span(n), index.plain_span(n)) for n in frames]
    return FrameIndex(
        [stop - start for (start, stop), _ in spans],
        [stop - start + (plain or {}).get(n, 0) for n, (_, (start, stop)) in enumerate(spans)],
        [index.newlines_in(n) + (newlines or {}).get(n, 0) for n in frames],
        [index.checksum(n) for n in frames],
    )


def framed(plain: bytes, size: int) -> Framed:
    """The stored object of some bytes, in frames of `size` plain bytes."""
    return Framed.of([plain[n : n + size] for n in range(0, len(plain), size)])
