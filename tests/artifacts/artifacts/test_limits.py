"""A capture stops to keep bytes at its limits, counts them, and says why."""

import os
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.support.disks import small_disk

from tooltrail.artifacts import FRAME_SIZE, Capture, CapturedStream, CaptureLimits, open_plain
from tooltrail.artifacts.limits import MOST_HELD_BACK
from tooltrail.records.digests import digest_of


def captured(folder: Path, chunks: list[bytes], limits: CaptureLimits) -> CapturedStream:
    path = folder / "stdout.zst"
    path.unlink(missing_ok=True)
    capture = Capture("stdout", path, edge_bytes=10, limits=limits)
    for chunk in chunks:
        capture.write(chunk)
        capture.flush()
    return capture.close()


def kept(stream: CapturedStream) -> bytes:
    if stream.staged is None:
        return stream.record.content or b""
    with open_plain(stream.staged.open("rb")) as reader:
        return reader.read()


@given(chunks=st.lists(st.binary(max_size=30), max_size=6), most=st.integers(0, 100))
@example(chunks=[b"as long", b" as allowed"], most=18)
def test_of_a_stream_that_is_too_long_the_beginning_is_kept(
    tmp_path_factory: pytest.TempPathFactory, chunks: list[bytes], most: int
) -> None:
    limits = CaptureLimits(stream_bytes=most)
    stream = captured(tmp_path_factory.mktemp("c"), chunks, limits)
    data = b"".join(chunks)
    assert kept(stream) == data[:most]
    record = stream.record
    assert (record.size, record.produced_size) == (min(most, len(data)), len(data))
    assert record.digest == digest_of(data[:most])
    assert record.content == data[:most]
    reason = f"longer than the limit of {most:,} bytes for one stream"
    assert record.loss_reason == (reason if len(data) > most else None)


def test_a_limit_inside_of_a_frame_cuts_there(tmp_path: Path) -> None:
    data = os.urandom(3 * FRAME_SIZE)
    stream = captured(tmp_path, [data], CaptureLimits(stream_bytes=FRAME_SIZE + 77))
    assert kept(stream) == data[: FRAME_SIZE + 77]
    assert stream.record.produced_line_count == data.count(b"\n") + (not data.endswith(b"\n"))
    assert stream.index is not None
    assert [stream.index.plain_span(n) for n in range(len(stream.index))] == [
        (0, FRAME_SIZE),
        (FRAME_SIZE, FRAME_SIZE + 77),
    ]


def test_bytes_that_are_to_stay_free_are_left_alone(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 4 << 20) as disk:
        stream = captured(disk.folder, [os.urandom(3 << 20)], CaptureLimits(free_bytes=2 << 20))
        status = os.statvfs(disk.folder)
        assert status.f_bavail * status.f_frsize >= (2 << 20) - FRAME_SIZE // 2
        assert FRAME_SIZE <= stream.record.size <= 2 << 20
        assert stream.record.produced_size == 3 << 20
        assert stream.record.loss_reason is not None
        assert stream.record.loss_reason.startswith("low disk space: of ")
        assert " free bytes 2,097,152 are held back, " in stream.record.loss_reason


def test_by_default_a_thousandth_of_a_disk_is_held_back(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 10 << 20) as disk:
        stream = captured(disk.folder, [os.urandom(12 << 20)], CaptureLimits())
        assert stream.record.loss_reason is not None
        assert f" free bytes {(10 << 20) // 1000:,} are held back, " in stream.record.loss_reason


def test_of_a_large_disk_no_more_than_the_most_is_held_back(tmp_path: Path) -> None:
    status = os.statvfs(tmp_path)
    if status.f_bavail * status.f_frsize < 2 * MOST_HELD_BACK:
        pytest.skip("this disk is nearly full")
    assert CaptureLimits().refusal(tmp_path, 1) is None
    whole = status.f_blocks * status.f_frsize
    refusal = CaptureLimits().refusal(tmp_path, whole)
    assert refusal is not None
    held = min(MOST_HELD_BACK, whole // 1000)
    assert f" free bytes {held:,} are held back, " in refusal
