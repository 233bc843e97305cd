"""The part of `SinkContract` that tests ranges of bytes, and the helpers of both parts."""

import hashlib
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from tooltrail.artifacts.sink import ArtifactSink
from tooltrail.records.errors import InvalidRecordError, MissingArtifactError, TooltrailError

Error = TypeVar("Error", bound=TooltrailError)

BIG = hashlib.sha256(b"big").digest() * (5 * 1024 * 1024 // 32)
"""5 MiB, larger than any buffer. Sinks that upload in parts test parts themselves."""


class RangeContract:
    """Tests of the promises of `ArtifactSink.read`."""

    def make_sink(self, folder: Path) -> ArtifactSink:
        """Make an empty sink; `folder` is an empty folder that only this test uses."""
        raise NotImplementedError

    def make_source(self, folder: Path, data: bytes) -> Path:
        """Make a local file with these bytes; override this method to choose another disk."""
        source = folder / f"source-{time.monotonic_ns()}-{threading.get_ident()}"
        source.write_bytes(data)
        return source

    def put(self, sink: ArtifactSink, folder: Path, path: str, data: bytes) -> bool:
        """Put bytes from a new file."""
        return sink.put(path, self.make_source(folder, data))

    def test_a_range_is_read(self, tmp_path: Path) -> None:
        sink = self.make_sink(tmp_path)
        self.put(sink, tmp_path, "a/object", b"0123456789")
        assert sink.read("a/object", 0, 1) == b"0"
        assert sink.read("a/object", 3, 7) == b"3456"
        assert sink.read("a/object", 9, 10) == b"9"
        assert sink.read("a/object", 0, 10) == b"0123456789"
        assert sink.read("a/object", 0) == b"0123456789"
        assert sink.read("a/object", 4) == b"456789"

    def test_a_range_ends_with_the_object(self, tmp_path: Path) -> None:
        sink = self.make_sink(tmp_path)
        self.put(sink, tmp_path, "object", b"0123456789")
        assert sink.read("object", 8, 20) == b"89"
        for start, stop in ((10, 20), (10, None), (11, 12), (2**40, None)):
            assert sink.read("object", start, stop) == b""

    def test_the_last_bytes_are_read(self, tmp_path: Path) -> None:
        sink = self.make_sink(tmp_path)
        self.put(sink, tmp_path, "object", b"0123456789")
        assert sink.read("object", -1) == b"9"
        assert sink.read("object", -4) == b"6789"
        assert sink.read("object", -10) == b"0123456789"
        assert sink.read("object", -11) == b"0123456789"

    def test_empty_ranges_are_empty(self, tmp_path: Path) -> None:
        sink = self.make_sink(tmp_path)
        self.put(sink, tmp_path, "object", b"0123456789")
        self.put(sink, tmp_path, "empty", b"")
        for start in (0, 5, 10, 99):
            assert sink.read("object", start, start) == b""
        for start, stop in ((0, None), (0, 5), (0, 0), (-5, None), (3, None), (3, 5)):
            assert sink.read("empty", start, stop) == b""

    def test_ranges_of_what_is_not_there_are_missing(self, tmp_path: Path) -> None:
        sink = self.make_sink(tmp_path)
        self.put(sink, tmp_path, "folder/object", b"bytes")
        for path in ("nothing", "folder", "folder/object/below"):
            for start, stop in ((0, 4), (0, 0), (-4, None), (7, None)):
                assert raises(MissingArtifactError, sink.read, path, start, stop).path == path

    def test_what_is_no_range_is_refused(self, tmp_path: Path) -> None:
        sink = self.make_sink(tmp_path)
        self.put(sink, tmp_path, "object", b"0123456789")
        for start, stop in ((4, 3), (1, 0), (0, -1), (-4, 0), (-4, -2), (-4, 8)):
            assert raises(InvalidRecordError, sink.read, "object", start, stop)

    def test_a_range_of_a_big_object_is_read(self, tmp_path: Path) -> None:
        sink = self.make_sink(tmp_path)
        self.put(sink, tmp_path, "big", BIG)
        middle = len(BIG) // 2 + 1
        assert sink.read("big", middle, middle + 4096) == BIG[middle : middle + 4096]
        assert sink.read("big", 1) == BIG[1:]
        assert sink.read("big", -70_000) == BIG[-70_000:]


def raises(kind: type[Error], call: Callable[..., object], *arguments: object) -> Error:
    """Call a function that must raise an error of type `kind`, and return the error."""
    try:
        call(*arguments)
    except kind as error:
        return error
    raise AssertionError(f"{call} did not raise {kind.__name__} for {arguments}")
