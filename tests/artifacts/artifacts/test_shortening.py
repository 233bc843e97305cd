"""A captured stream is shortened at the end of a frame, in place, and says what it lost."""

import os
import subprocess
import sys
from dataclasses import replace
from itertools import accumulate
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tooltrail.artifacts import (
    FRAME_SIZE,
    Capture,
    CapturedStream,
    FrameIndex,
    artifact_path,
    open_plain,
    open_reader,
    open_sink,
    shortened,
)
from tooltrail.records.digests import digest_of
from tooltrail.records.streams import count_lines

EDGE, INLINE = 10, 20


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
    assert record.loss_reason == "no room"


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


def test_without_an_index_nothing_but_the_beginning_in_memory_is_kept(tmp_path: Path) -> None:
    data = os.urandom(1000)
    result = short(replace(captured(tmp_path, data), index=None), 10_000)
    assert (result.staged, result.record.content) == (None, data[:INLINE])


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
