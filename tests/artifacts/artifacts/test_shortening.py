"""A captured stream is shortened at the end of a frame, in place, and says what it lost."""

import os
import re
import subprocess
import sys
from dataclasses import replace
from functools import partial
from itertools import accumulate, count
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.interrupting import interrupted

from tooltrail.artifacts import (
    FRAME_SIZE,
    Capture,
    CapturedStream,
    CaptureLimits,
    FrameIndex,
    artifact_path,
    in_full_frames,
    open_plain,
    open_reader,
    open_sink,
    shortened,
)
from tooltrail.artifacts._repacking import FEW_FRAMES
from tooltrail.records.digests import digest_of
from tooltrail.records.streams import count_lines

EDGE, INLINE = 10, 20
DEFAULT = CaptureLimits()

ANYWHERE = pytest.mark.filterwarnings(
    # Between the call that opens a file and the next step nobody holds it; a generator that nobody
    # goes on with is closed where no error can go.
    "ignore:unclosed file:ResourceWarning",
    "ignore:Exception ignored in:pytest.PytestUnraisableExceptionWarning",
)


def captured(folder: Path, *chunks: bytes, most: int = 0) -> CapturedStream:
    capture = Capture("stdout", folder / "stdout.zst", edge_bytes=EDGE, inline_bytes=most)
    for chunk in chunks:
        capture.write(chunk)
        capture.flush()
    return capture.close()


def plain(file: Path) -> bytes:
    with open_plain(file.open("rb")) as reader:
        return reader.read()


def short(stream: CapturedStream, room: int, inline: int = INLINE) -> CapturedStream:
    return shortened(stream, room, "no room", edge_bytes=EDGE, inline_bytes=inline)


@given(
    chunks=st.lists(st.binary(min_size=1, max_size=30), min_size=1, max_size=8),
    room=st.integers(-10, 600),
    inline=st.integers(0, 60),
)
def test_whole_frames_are_kept_that_fit_or_what_goes_into_memory(
    tmp_path_factory: pytest.TempPathFactory, chunks: list[bytes], room: int, inline: int
) -> None:
    stream = captured(tmp_path_factory.mktemp("s"), *chunks)
    data = b"".join(chunks)
    file = stream.staged
    assert file is not None
    result = short(stream, room, inline)
    record = result.record
    if result.staged is None:
        kept = record.content
        assert kept == data[:inline]
        assert not file.exists()
    else:
        kept = plain(file)
        assert record.content is None
        assert len(kept) in accumulate(map(len, chunks))
        assert len(kept) > inline
        assert result.stored_size == file.stat().st_size
        assert file.stat().st_size <= room
        assert result.index == FrameIndex.from_bytes(file.read_bytes())
    assert kept is not None
    assert data.startswith(kept)
    assert (record.digest, record.size) == (digest_of(kept), len(kept))
    assert record.line_count == count_lines(kept)
    assert record.head == kept[:EDGE]
    assert record.tail == kept[max(EDGE, len(kept) - EDGE) :]
    assert (record.produced_size, record.produced_line_count) == (len(data), count_lines(data))
    assert record.loss_reason == (None if kept == data else "no room")


def test_as_many_frames_are_kept_as_the_room_takes_to_the_byte(tmp_path: Path) -> None:
    data = os.urandom(4 * FRAME_SIZE)
    whole = captured(tmp_path, data)
    assert whole.index is not None
    three = whole.index.fitting(whole.index.object_size - 1)
    assert three is not None
    assert len(three) == 3
    result = short(whole, three.object_size)
    assert result.stored_size == three.object_size
    assert result.staged is not None
    assert plain(result.staged) == data[: 3 * FRAME_SIZE]
    assert short(result, three.object_size - 1).record.size == 2 * FRAME_SIZE


def test_what_is_shortened_is_a_sound_object(tmp_path: Path) -> None:
    lines = b"".join(b"%s\n" % os.urandom(40).hex().encode() for _ in range(10_000))
    stream = captured(tmp_path, lines)
    assert stream.stored_size is not None
    result = short(stream, stream.stored_size // 2)
    assert result.staged is not None
    sink = open_sink(str(tmp_path / "artifacts"), create=True)
    path = artifact_path(result.record.digest)
    assert sink.put(path, result.staged)
    reader = open_reader(sink, path, line_count=result.record.line_count)
    kept = reader.read_bytes(0, result.record.size)
    assert lines.startswith(kept)
    assert b"".join(reader.iter_lines()) == kept


@pytest.mark.parametrize("is_index_there", [True, False])
def test_without_a_known_index_the_frames_are_looked_for(
    tmp_path: Path, is_index_there: bool
) -> None:
    data = os.urandom(1500)
    whole = captured(tmp_path, data[:500], data[500:1000], data[1000:])
    assert whole.index is not None
    assert whole.staged is not None
    if not is_index_there:
        os.truncate(whole.staged, whole.index.frames_size)
    result = short(replace(whole, index=None), whole.index.object_size - 1)
    assert result.staged is not None
    assert plain(result.staged) == data[:1000]
    assert (result.record.size, result.record.loss_reason) == (1000, "no room")
    assert result.index == FrameIndex.from_bytes(result.staged.read_bytes())


def altered_at(stored: bytes, index: FrameIndex, frame: int) -> bytes:
    """With another byte in the middle of a frame."""
    start, stop = index.stored_span(frame)
    middle = (start + stop) // 2
    return stored[:middle] + bytes([stored[middle] ^ 1]) + stored[middle + 1 :]


@pytest.mark.parametrize("damage", ["altered", "cut"])
def test_of_a_damaged_file_the_frames_before_the_damage_are_kept_and_it_is_said(
    tmp_path: Path, damage: str
) -> None:
    data = os.urandom(2500)
    whole = captured(tmp_path, *(data[start : start + 500] for start in range(0, 2500, 500)))
    assert whole.index is not None
    assert whole.staged is not None
    if damage == "altered":
        whole.staged.write_bytes(altered_at(whole.staged.read_bytes(), whole.index, 2))
    else:
        os.truncate(whole.staged, whole.index.stored_span(2)[1] - 10)
    result = short(whole, whole.index.object_size - 1)
    assert result.staged is not None
    assert plain(result.staged) == data[:1000]
    record = result.record
    assert (record.size, record.digest) == (1000, digest_of(data[:1000]))
    assert record.loss_reason is not None
    assert re.search(r"is damaged: .*frame at byte", record.loss_reason)


def fit(stream: CapturedStream, room: int, limits: CaptureLimits = DEFAULT) -> CapturedStream:
    """As a store does for which a stream is too long."""
    stream = in_full_frames(stream, FRAME_SIZE, limits)
    assert stream.staged is not None
    size = stream.staged.stat().st_size if stream.staged.exists() else 0
    return stream if size == stream.stored_size and size <= room else short(stream, room)


def noise(count: int) -> list[bytes]:
    return [os.urandom(100) for _ in range(count)]


def check_kept(result: CapturedStream, data: bytes, room: int) -> None:
    record = result.record
    assert result.staged is not None
    kept = plain(result.staged)
    assert data.startswith(kept)
    assert (record.size, record.digest) == (len(kept), digest_of(kept))
    assert record.line_count == count_lines(kept)
    assert result.staged.stat().st_size == result.stored_size
    assert (result.stored_size or 0) <= room
    assert result.index == FrameIndex.from_bytes(result.staged.read_bytes())


def test_when_the_file_was_put_into_full_frames_unnoticed_nothing_is_made_undecodable(
    tmp_path: Path,
) -> None:
    data = b"".join(b"a line of some output number %d\n" % n for n in range(300))
    stream = captured(tmp_path, *data.splitlines(keepends=True))
    assert stream.stored_size is not None
    room = stream.stored_size // 2
    in_full_frames(stream, FRAME_SIZE)
    # Now there is no room for another file.
    result = fit(stream, room, CaptureLimits(free_bytes=1 << 60))
    check_kept(result, data, room)
    assert result.record == stream.record


@ANYWHERE
@pytest.mark.parametrize("share", [0.95, 0.5], ids=["as one frame it fits", "nothing fits"])
def test_after_ctrl_c_at_any_moment_the_same_capture_is_made_to_fit_by_another_call(
    tmp_path: Path, share: float
) -> None:
    chunks = noise(FEW_FRAMES + 1)
    data = b"".join(chunks)
    moment = 0
    for moment in count(1):
        stream = captured(tmp_path / str(moment), *chunks)
        assert stream.staged is not None
        assert stream.stored_size is not None
        room = int(stream.stored_size * share)
        is_reached = interrupted(partial(fit, stream, room), moment)
        is_there = stream.staged.exists()
        result = fit(stream, room)
        if result.staged is not None:
            check_kept(result, data, room)
            assert result.record == stream.record
        else:
            assert share == 0.5
            # It is deleted last.
            assert result.record.content == (data[:INLINE] if is_there else data[:EDGE])
        if not is_reached:
            break
    assert moment > 100


@ANYWHERE
def test_after_ctrl_c_at_any_moment_of_shortening_no_more_is_lost_by_another_call(
    tmp_path: Path,
) -> None:
    chunks = noise(5)
    data = b"".join(chunks)
    moment = 0
    for moment in count(1):
        stream = captured(tmp_path / str(moment), *chunks)
        assert stream.index is not None
        room = stream.index.object_size - 1
        is_reached = interrupted(partial(short, stream, room), moment)
        result = short(stream, room)
        check_kept(result, data, room)
        assert (result.record.size, result.record.loss_reason) == (400, "no room")
        if not is_reached:
            break
    assert moment > 50


@pytest.mark.parametrize("size", [None, 0, 300])
def test_of_a_file_that_is_gone_or_cut_the_head_is_kept(tmp_path: Path, size: int | None) -> None:
    data = os.urandom(1000)
    stream = captured(tmp_path, data[:500], data[500:])
    assert stream.staged is not None
    assert stream.stored_size is not None
    if size is None:
        stream.staged.unlink()
    else:
        os.truncate(stream.staged, size)
    result = short(stream, stream.stored_size - 1)
    assert (result.staged, result.record.content) == (None, data[:EDGE])
    assert result.record.produced_size == 1000
    assert not stream.staged.exists()


NO_ROOM = """
import os, resource, signal, sys
from pathlib import Path
from tests.artifacts.artifacts.test_shortening import captured, plain, short
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
data = os.urandom(6 * 262_144)
whole = captured(Path(sys.argv[1]), data)
shorter = whole.index.fitting(whole.index.object_size - 1)
# As a full disk does, this takes a part of the index and then no more.
most = shorter.frames_size + 10
resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
result = short(whole, whole.index.object_size - 1)
assert result.index is None
assert result.stored_size == result.staged.stat().st_size == shorter.frames_size
assert plain(result.staged) == data[: shorter.plain_size]
assert result.record.size == shorter.plain_size
assert result.record.loss_reason == "no room"
"""


def test_on_a_disk_without_room_for_the_new_index_all_whole_frames_are_kept(tmp_path: Path) -> None:
    program = [sys.executable, "-c", NO_ROOM, str(tmp_path)]
    done = subprocess.run(program, capture_output=True, check=False, text=True)
    assert done.returncode == 0, done.stderr
