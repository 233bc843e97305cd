"""A sink and an archive, driven at random against a dictionary that says what must be there."""

import shutil
import tempfile
import uuid
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule
from tests.support.effort import times
from tests.support.sinks import put_bytes

from tooltrail.artifacts import ArtifactArchive, CapturedStream, FrameIndex, open_sink
from tooltrail.artifacts.codec import encode
from tooltrail.artifacts.paths import artifact_path
from tooltrail.records.digests import digest_of
from tooltrail.records.errors import DamageError, MissingArtifactError
from tooltrail.records.streams import StreamRecord

names = st.lists(st.sampled_from(["a", "b c", "ü", "%41", "x.zst"]), min_size=1, max_size=3).map(
    "/".join
)
contents = st.binary(max_size=50) | st.integers(0, 3).map(lambda n: b"line\n" * (100_000 * n))


class SinkMachine(RuleBasedStateMachine):
    """What stands in a sink is what was put there first and not deleted since."""

    paths: Bundle[str] = Bundle("paths")
    published: Bundle[bytes] = Bundle("published")

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.model: dict[str, bytes] = {}
        self.folders: set[str] = set()

    @initialize(is_local=st.booleans())
    def open(self, is_local: bool) -> None:
        url = str(self.folder / "root") if is_local else f"memory://{uuid.uuid4()}"
        self.sink = open_sink(url, create=True)
        # A second opening of the same place, as another program would have it.
        self.again = open_sink(url)
        self.archive = ArtifactArchive(self.sink)

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    @rule(target=paths, path=names)
    def name(self, path: str) -> str:
        return path

    @rule(path=paths, data=st.binary(max_size=100))
    def put(self, path: str, data: bytes) -> None:
        if any(is_below(path, other) or is_below(other, path) for other in self.model):
            return  # a folder is no object: the contract's tests see to that
        if path in self.folders:
            return  # and on a disk it stays one when it is empty
        self.folders.update(map(str, PurePosixPath(path).parents))
        assert put_bytes(self.sink, path, data) is (path not in self.model)
        self.model.setdefault(path, data)

    @rule(path=paths)
    def delete(self, path: str) -> None:
        if path in self.model:
            self.sink.delete(path)
            del self.model[path]
            return
        with pytest.raises(MissingArtifactError):
            self.sink.delete(path)

    @rule(path=paths, start=st.integers(0, 120), size=st.integers(0, 120))
    def read(self, path: str, start: int, size: int) -> None:
        data = self.model.get(path)
        if data is None:
            with pytest.raises(MissingArtifactError):
                self.again.read(path, start, start + size)
            return
        assert self.again.read(path, start, start + size) == data[start : start + size]
        assert self.again.read(path, -size - 1, None) == data[-size - 1 :]

    @rule(target=published, data=contents)
    def publish(self, data: bytes) -> bytes:
        stored = self.archive.publish(in_memory(data))
        index = FrameIndex.from_bytes(self.archive.sink.read(stored.path, 0))
        assert (index.plain_size, index.newline_count) == (len(data), data.count(b"\n"))
        self.model.setdefault(stored.path, encode(data))
        return data

    @rule(target=published, data=consumes(published), at=st.floats(0, 1, exclude_max=True))
    def damage_and_heal(self, data: bytes, at: float) -> bytes:
        path = artifact_path(digest_of(data))
        if path not in self.model:
            return data
        good = self.model[path]
        offset = int(at * len(good))
        bad = good[:offset] + bytes([good[offset] ^ 0xFF]) + good[offset + 1 :]
        self.sink.delete(path)
        put_bytes(self.sink, path, bad)
        with pytest.raises(DamageError):
            self.archive.verify(path, size=len(data))
        self.archive.publish(in_memory(data))
        return data

    @rule(data=consumes(published))
    def prune(self, data: bytes) -> None:
        path = artifact_path(digest_of(data))
        if self.model.pop(path, None) is not None:
            self.sink.delete(path)

    @rule(data=published)
    def read_back(self, data: bytes) -> None:
        path = artifact_path(digest_of(data))
        if path not in self.model:
            assert not self.archive.exists(path)
            return
        with self.archive.open(path, size=len(data)) as reader:
            assert reader.read() == data
        assert self.archive.verify(path) == len(data)

    @invariant()
    def all_is_there_and_nothing_else(self) -> None:
        if not hasattr(self, "sink"):
            return
        found = [stat for stat in self.again.list() if not stat.path.startswith("damaged/")]
        assert [stat.path for stat in found] == sorted(self.model)
        for stat in found:
            assert stat.stored_size == len(self.model[stat.path])
            with self.again.open(stat.path) as stored:
                assert stored.read() == self.model[stat.path]


def is_below(path: str, folder: str) -> bool:
    return path.startswith(folder + "/")


def in_memory(data: bytes) -> CapturedStream:
    return CapturedStream(StreamRecord.from_bytes("stdout", data), None)


TestSink = SinkMachine.TestCase
TestSink.settings = settings(max_examples=times(15), stateful_step_count=30, deadline=None)
