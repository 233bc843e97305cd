"""What came in many small frames is stored in full ones; nothing else about it changes."""

import os
import shutil
import subprocess
import sys
import tempfile
import tracemalloc
import uuid
from pathlib import Path
from types import FrameType

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.disks import SmallDisk, small_disk
from tests.support.killing import count_moments, run_and_kill

from tooltrail.artifacts import (
    ArtifactArchive,
    ArtifactSink,
    Capture,
    CapturedStream,
    CaptureLimits,
    StreamFollower,
    in_full_frames,
    open_sink,
    remove_spool_folder,
    spooled_streams,
)
from tooltrail.artifacts._repacking import FEW_FRAMES, is_scattered
from tooltrail.artifacts.codec import FRAME_SIZE, encode
from tooltrail.artifacts.frame_index import FrameIndex
from tooltrail.records.errors import DamageError, UnavailableError

LINES = [b"%d: a line that was printed after some time\n" % n for n in range(300)]
PLAIN = b"".join(LINES)


def slowly(folder: Path, lines: list[bytes] = LINES) -> CapturedStream:
    """What is captured of a stream that is flushed after every line."""
    path = folder / "stdout.zst"
    with Capture("stdout", path, edge_bytes=10, inline_bytes=0) as capture:
        for line in lines:
            capture.write(line)
            capture.flush()
    return capture.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "spool" / str(uuid.uuid4())


@pytest.fixture
def sink(tmp_path: Path) -> ArtifactSink:
    return open_sink(str(tmp_path / "root"), create=True)


@pytest.fixture
def archive(sink: ArtifactSink) -> ArtifactArchive:
    return ArtifactArchive(sink)


def stored_bytes(sink: ArtifactSink, path: str) -> bytes:
    with sink.open(path) as stored:
        return stored.read()


def index_with(frames: int, frame_size: int) -> FrameIndex:
    sizes = [frame_size] * frames
    return FrameIndex([9] * frames, sizes, [0] * frames, [0] * frames)


def test_only_many_small_frames_are_scattered() -> None:
    assert is_scattered(index_with(FEW_FRAMES + 1, 255), 1_024)
    assert not is_scattered(index_with(FEW_FRAMES, 1), 1_024)
    assert not is_scattered(index_with(1_000, 256), 1_024)
    assert not is_scattered(None, 1_024)


def test_a_slow_stream_is_stored_as_if_it_had_come_at_once(
    archive: ArtifactArchive, sink: ArtifactSink, folder: Path
) -> None:
    captured = slowly(folder)
    assert captured.staged is not None
    assert captured.index is not None
    assert len(captured.index) == len(LINES)
    before = captured.staged.read_bytes()
    stored = archive.publish(captured, scratch=folder)
    assert stored_bytes(sink, stored.path) == encode(PLAIN)
    assert archive.index_of(stored.path) == FrameIndex.from_bytes(encode(PLAIN))
    assert (stored.outcome, stored.size, stored.line_count) == ("created", len(PLAIN), len(LINES))
    assert stored.stored_size == len(encode(PLAIN)) < len(before) // 10
    assert archive.verify(stored.path, size=stored.size) == len(PLAIN)
    # The staged file is as it was, and nothing else is left.
    assert captured.staged.read_bytes() == before
    assert [path.name for path in folder.iterdir()] == ["stdout.zst"]


def test_it_is_the_same_artifact_whoever_comes_first(
    archive: ArtifactArchive, sink: ArtifactSink, folder: Path
) -> None:
    first = archive.publish(slowly(folder / "a"), scratch=folder)
    again = archive.publish(slowly(folder / "b", [PLAIN]), scratch=folder)
    assert (again.path, again.outcome) == (first.path, "existed")
    last = archive.publish(slowly(folder / "c", LINES), scratch=folder)
    assert (last.path, last.outcome) == (first.path, "existed")
    assert [found.path for found in sink.list()] == [first.path]


def test_few_frames_are_linked_as_they_are(
    archive: ArtifactArchive, sink: ArtifactSink, folder: Path, tmp_path: Path
) -> None:
    captured = slowly(folder, LINES[:FEW_FRAMES])
    assert captured.staged is not None
    stored = archive.publish(captured, scratch=folder)
    assert (tmp_path / "root" / stored.path).samefile(captured.staged)


@given(st.lists(st.binary(max_size=50), min_size=1, max_size=60), st.integers(1, 600))
def test_any_content_is_the_same_in_frames_of_any_size(parts: list[bytes], more: int) -> None:
    content = [*parts, b"x" * more]
    sink = open_sink(f"memory://{uuid.uuid4()}", create=True)
    archive = ArtifactArchive(sink)
    with tempfile.TemporaryDirectory() as folder:
        stored = archive.publish(slowly(Path(folder), content), scratch=Path(folder))
    with archive.open(stored.path, size=stored.size) as plain:
        assert plain.read() == b"".join(content)
    assert archive.verify(stored.path) == stored.size


@pytest.mark.skipif(shutil.which("zstd") is None, reason="there is no zstd program")
def test_the_plain_program_reads_it(archive: ArtifactArchive, folder: Path, tmp_path: Path) -> None:
    stored = archive.publish(slowly(folder), scratch=folder)
    program = ["zstd", "-d", "-c", str(tmp_path / "root" / stored.path)]
    assert subprocess.run(program, capture_output=True, check=True).stdout == PLAIN


def test_what_was_altered_since_it_was_captured_is_stored_as_it_is_but_for_that_readable(
    archive: ArtifactArchive, sink: ArtifactSink, folder: Path
) -> None:
    captured = slowly(folder)
    assert captured.staged is not None
    assert captured.index is not None
    data = bytearray(captured.staged.read_bytes())
    start, stop = captured.index.stored_span(3)
    data[(start + stop) // 2] ^= 1
    captured.staged.write_bytes(data)
    stored = archive.publish(captured, scratch=folder)
    assert stored_bytes(sink, stored.path) == data
    assert archive.index_of(stored.path) == captured.index
    altered = f"artifact {stored.path} is damaged: it was altered after it was captured"
    assert (stored.outcome, stored.damage) == ("created", altered)
    again = archive.publish(captured, scratch=folder)
    assert (again.outcome, again.damage) == ("existed", altered)
    with pytest.raises(DamageError, match=stored.path):
        archive.verify(stored.path, size=stored.size)
    first, last = captured.index.plain_span(3)
    reader = archive.reader(stored.path)
    assert reader.read_bytes(0, first) + reader.read_bytes(last, len(PLAIN)) == (
        PLAIN[:first] + PLAIN[last:]
    )
    assert [path.name for path in folder.iterdir()] == ["stdout.zst"]


def test_what_was_cut_since_it_was_captured_is_not_published(
    archive: ArtifactArchive, sink: ArtifactSink, folder: Path
) -> None:
    captured = slowly(folder)
    assert captured.staged is not None
    os.truncate(captured.staged, captured.staged.stat().st_size - 1)
    with pytest.raises(DamageError, match=str(captured.staged)):
        archive.publish(captured, scratch=folder)
    assert list(sink.list()) == []


def test_what_was_put_into_full_frames_by_a_call_without_an_answer_is_published(
    archive: ArtifactArchive, sink: ArtifactSink, folder: Path
) -> None:
    captured = slowly(folder)
    full = in_full_frames(captured, archive.frame_size)
    assert in_full_frames(captured, archive.frame_size) == full
    stored = archive.publish(captured, scratch=folder)
    assert stored_bytes(sink, stored.path) == encode(PLAIN)
    assert (stored.outcome, stored.damage) == ("created", None)
    assert archive.verify(stored.path, size=stored.size) == len(PLAIN)


def test_the_file_that_takes_the_place_of_another_is_synced_before_and_its_folder_after(
    archive: ArtifactArchive, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    captured = slowly(folder)
    staged = captured.staged
    assert staged is not None
    before = staged.read_bytes()
    synced: list[tuple[bytes, bool]] = []
    sync = os.fsync

    def watching(descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").resolve()
        # What is synced, and whether the file was replaced by then.
        content = path.read_bytes() if path.is_file() else bytes(path)
        synced.append((content, staged.read_bytes() != before))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", watching)
    in_full_frames(captured, archive.frame_size)
    assert synced == [(encode(PLAIN), False), (bytes(folder), True)]


def test_room_that_must_stay_free_is_not_taken_for_full_frames(
    archive: ArtifactArchive, sink: ArtifactSink, folder: Path
) -> None:
    captured = slowly(folder)
    assert captured.staged is not None
    limits = CaptureLimits(free_bytes=1 << 60)
    assert in_full_frames(captured, archive.frame_size, limits) is captured
    stored = archive.publish(captured, scratch=folder, limits=limits)
    assert stored_bytes(sink, stored.path) == captured.staged.read_bytes()
    assert archive.index_of(stored.path) == captured.index


def test_full_frames_take_the_place_of_the_small_ones(
    archive: ArtifactArchive, folder: Path
) -> None:
    with StreamFollower(folder, "stdout") as follower:
        captured = slowly(folder)
        poll = follower.poll()
        first = next(poll)
        full = in_full_frames(captured, archive.frame_size)
        assert first + b"".join(poll) == PLAIN
        assert follower.ending == "closed"
    assert (full.record, full.staged) == (captured.record, captured.staged)
    assert full.staged is not None
    assert full.staged.read_bytes() == encode(PLAIN)
    assert (full.stored_size, full.index) == (
        len(encode(PLAIN)),
        FrameIndex.from_bytes(encode(PLAIN)),
    )
    assert in_full_frames(full, archive.frame_size) is full
    assert [path.name for path in folder.iterdir()] == ["stdout.zst"]


def test_what_is_damaged_or_in_memory_is_not_put_into_full_frames(
    archive: ArtifactArchive, folder: Path
) -> None:
    captured = slowly(folder)
    assert captured.staged is not None
    data = bytearray(captured.staged.read_bytes())
    data[50] ^= 1
    captured.staged.write_bytes(data)
    assert in_full_frames(captured, archive.frame_size) is captured
    assert captured.staged.read_bytes() == data
    in_memory = CapturedStream(captured.record, None)
    assert in_full_frames(in_memory, archive.frame_size) is in_memory


def test_without_a_place_for_another_file_it_is_stored_as_it_is(
    archive: ArtifactArchive, sink: ArtifactSink, folder: Path
) -> None:
    captured = slowly(folder)
    assert captured.staged is not None
    stored = archive.publish(captured, scratch=Path("/dev/null/scratch"))
    assert stored_bytes(sink, stored.path) == captured.staged.read_bytes()
    assert archive.index_of(stored.path) == captured.index
    assert archive.verify(stored.path) == len(PLAIN)


def incompressible(count: int) -> list[bytes]:
    return [bytes((n * k) % 251 for k in range(1, 8_000)) for n in range(1, count)]


def fill_but(disk: SmallDisk, room: int) -> None:
    """Leave so many bytes, at the least."""
    spare = disk.folder / "spare"
    spare.write_bytes(bytes(room))
    disk.fill()
    spare.unlink()


@pytest.mark.parametrize("room", [0, 8_192])
def test_on_a_full_disk_it_is_stored_as_it_is(
    archive: ArtifactArchive, sink: ArtifactSink, tmp_path: Path, room: int
) -> None:
    captured = slowly(tmp_path / "spool", incompressible(40))
    assert captured.staged is not None
    with small_disk(tmp_path / "small", 4 << 20) as disk:
        fill_but(disk, room)
        stored = archive.publish(captured, scratch=disk.folder / "scratch")
        left = [path for path in (disk.folder / "scratch").rglob("*") if path.is_file()]
        assert left == []
    assert stored_bytes(sink, stored.path) == captured.staged.read_bytes()
    assert archive.index_of(stored.path) == captured.index


def test_a_disk_that_fills_up_meanwhile_leaves_it_as_it_is(
    archive: ArtifactArchive, sink: ArtifactSink, tmp_path: Path
) -> None:
    code = (
        "import resource, signal, sys\n"
        "from pathlib import Path\n"
        "from tests.artifacts.artifacts.test_repacking import incompressible, slowly\n"
        "from tooltrail.artifacts import ArtifactArchive, open_sink\n"
        "captured = slowly(Path(sys.argv[1]), incompressible(40))\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        # As a disk does that takes no more: here no file may be longer than this.
        "resource.setrlimit(resource.RLIMIT_FSIZE, (2_000, 2_000))\n"
        "stored = ArtifactArchive(open_sink(sys.argv[2])).publish(\n"
        "    captured, scratch=Path(sys.argv[1]))\n"
        "index = ArtifactArchive(open_sink(sys.argv[2])).index_of(stored.path)\n"
        "print(len(index), len(captured.index), *Path(sys.argv[1]).iterdir())\n"
    )
    program = [sys.executable, "-c", code, str(tmp_path / "spool"), str(tmp_path / "root")]
    done = subprocess.run(program, capture_output=True, check=False, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["39", "39", str(tmp_path / "spool" / "stdout.zst")]
    (found,) = sink.list()
    archive.verify(found.path)


def test_what_cannot_be_read_is_unavailable_and_not_stored(
    archive: ArtifactArchive, sink: ArtifactSink, folder: Path, tmp_path: Path
) -> None:
    captured = slowly(folder)
    assert captured.staged is not None
    # A process may not read its own memory at address 0, and the file has no size.
    unreadable = CapturedStream(captured.record, Path("/proc/self/mem"), 0, captured.index)
    with pytest.raises(UnavailableError, match="cannot be read"):
        archive.publish(unreadable, scratch=folder)
    assert list(sink.list()) == []


@pytest.mark.parametrize("chance", range(12))
def test_killed_at_any_moment_it_is_published_by_the_next_one(
    sink: ArtifactSink, archive: ArtifactArchive, folder: Path, chance: int
) -> None:
    captured = slowly(folder, LINES[:40])
    assert captured.staged is not None
    before = captured.staged.read_bytes()

    def publish() -> None:
        archive.publish(captured, scratch=folder)

    moment = count_moments(publish) * (chance + 1) // 13
    for found in list(sink.list()):
        sink.delete(found.path)
    run_and_kill(publish, moment)
    assert captured.staged.read_bytes() == before
    assert spooled_streams(folder) == {"stdout": captured.staged}
    for found in sink.list():
        archive.verify(found.path)
    stored = archive.publish(captured, scratch=folder)
    assert archive.verify(stored.path, size=stored.size) == stored.size
    # What is left behind goes with the folder.
    remove_spool_folder(folder)
    assert not folder.exists()


def test_a_follower_sees_nothing_of_it(archive: ArtifactArchive, folder: Path) -> None:
    with StreamFollower(folder, "stdout") as follower:
        captured = slowly(folder, LINES[:100])
        first = next(poll := follower.poll())
        archive.publish(captured, scratch=folder)
        remove_spool_folder(folder)
        assert first + b"".join(poll) == b"".join(LINES[:100])
        assert follower.ending == "closed"


def test_memory_is_that_of_some_frames(archive: ArtifactArchive, folder: Path) -> None:
    lines = [b"%d %s\n" % (n, b"x" * 30_000) for n in range(200)]
    captured = slowly(folder, lines)
    tracemalloc.start()
    try:
        archive.publish(captured, scratch=folder)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 6 * FRAME_SIZE


class Meddling:
    """Does something at the n-th call of a task, in its own thread."""

    def __init__(self, moment: int, folder: Path) -> None:
        self.count = 0
        self._moment = moment
        self._folder = folder

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        self.count += 1
        if self.count == self._moment:
            sys.setprofile(None)
            shutil.rmtree(self._folder)


@pytest.mark.parametrize("gone", ["tooltrail-abc", "."])
def test_streams_are_listed_while_folders_of_publications_go(tmp_path: Path, gone: str) -> None:
    folder = tmp_path / "folder"
    moment, is_over = 0, False
    while not is_over:
        moment += 1
        (folder / "tooltrail-abc").mkdir(parents=True)
        (folder / "tooltrail-abc" / "object.zst").write_bytes(b"x")
        (folder / "stdout.zst").write_bytes(b"x")
        meddling = Meddling(moment, folder / gone)
        sys.setprofile(meddling)
        try:
            found = spooled_streams(folder)
        finally:
            sys.setprofile(None)
        assert list(found) in ([["stdout"]] if gone != "." else [["stdout"], []])
        is_over = meddling.count < moment
        shutil.rmtree(folder, ignore_errors=True)
    assert moment > 20
