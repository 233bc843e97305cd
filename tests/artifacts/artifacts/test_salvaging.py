"""Whatever is left of a spool file: the whole frames come back, and the rest is counted."""

import os
from itertools import accumulate
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.support.disks import small_disk
from tests.support.effort import times

from tooltrail.artifacts import Capture, Salvaged, SpoolReader, open_plain, salvage
from tooltrail.artifacts._decoding import MAX_FRAME_SIZE
from tooltrail.artifacts.codec import compress_frame
from tooltrail.records import InvalidRecordError, StreamRecord, UnavailableError, count_lines

EDGE = 8
UNFINISHED = "the program that recorded it ended in the middle of a frame"
PARTS = [b"one\ntwo\n", b"three\n" * 5, b"", b"four, without an end", b"x" * 300]


def framed(*parts: bytes) -> tuple[bytes, list[int]]:
    """A spool file of these parts, and where each of its frames ends."""
    frames = [compress_frame(part).data for part in parts if part]
    return b"".join(frames), list(accumulate(map(len, frames), initial=0))


def salvaged(folder: Path, stored: bytes) -> Salvaged:
    file = folder / "stdout.zst"
    file.write_bytes(stored)
    staged = folder / "staged" / "stdout.zst"
    staged.unlink(missing_ok=True)
    found = salvage(file, "stdout", staged, edge_bytes=EDGE, frame_size=64)
    assert file.read_bytes() == stored
    return found


def kept_of(found: Salvaged) -> bytes:
    """The bytes that were salvaged, as they would be published."""
    if found.captured.record.content is not None:
        return found.captured.record.content
    assert found.captured.staged
    with open_plain(found.captured.staged.open("rb")) as reader:
        return reader.read()


def check(found: Salvaged, kept: bytes, lost: int, reason: str | None) -> None:
    record = found.captured.record
    whole = StreamRecord.from_bytes("stdout", kept)
    assert kept_of(found) == kept
    assert (record.digest, record.size) == (whole.digest, len(kept))
    assert record.line_count == record.produced_line_count == count_lines(kept)
    assert record.head == kept[:EDGE]
    assert record.produced_size == len(kept) + lost
    assert record.loss_reason == reason


def test_a_file_cut_at_any_byte_gives_its_whole_frames_and_counts_the_next_one(
    tmp_path: Path,
) -> None:
    parts = [part for part in PARTS if part]
    stored, ends = framed(*parts)
    for cut in range(len(stored) + 1):
        whole = sum(end <= cut for end in ends) - 1
        found = salvaged(tmp_path, stored[:cut])
        assert found.problem is None
        kept = b"".join(parts[:whole])
        if cut == ends[whole]:
            check(found, kept, 0, None)
            continue
        lost = found.captured.record.produced_size - len(kept)
        check(found, kept, lost, UNFINISHED)
        # The header of these small frames has six bytes: four of magic, the descriptor, the size.
        # That of the last frame has one more, for a size of more than 255 is told in two.
        is_told = cut - ends[whole] >= (7 if len(parts[whole]) > 255 else 6)
        assert lost == (len(parts[whole]) if is_told else 1)


def test_a_closed_file_cut_in_its_index_has_lost_nothing(tmp_path: Path) -> None:
    capture = Capture("stdout", tmp_path / "closed.zst", edge_bytes=EDGE)
    capture.write(b"one\n")
    capture.flush()
    capture.write(b"two\n")
    captured = capture.close()
    assert captured.staged
    assert captured.index
    stored = captured.staged.read_bytes()
    for cut in range(captured.index.frames_size, len(stored) + 1):
        found = salvaged(tmp_path, stored[:cut])
        assert found.problem is None
        check(found, b"one\ntwo\n", 0, None)


def test_an_altered_frame_ends_what_is_recovered_and_is_a_problem(tmp_path: Path) -> None:
    stored, ends = framed(b"first\n", b"second\n" * 9, b"third\n")
    for at in range(ends[1], ends[2]):
        altered = bytearray(stored)
        altered[at] ^= 0xFF
        found = salvaged(tmp_path, bytes(altered))
        assert kept_of(found) == b"first\n"
        record = found.captured.record
        assert record.produced_size > record.size
        if found.problem is not None:
            assert "is damaged" in found.problem
            assert record.loss_reason == found.problem
        else:  # an altered length of a block leads beyond the end, as in a file that was cut
            assert record.loss_reason == UNFINISHED


def test_what_the_frames_behind_an_altered_one_speak_of_is_lost_with_it(tmp_path: Path) -> None:
    stored, ends = framed(b"first\n", b"second\n" * 9, b"third\n")
    altered = bytearray(stored)
    altered[ends[2] - 1] ^= 0xFF  # of the checksum
    found = salvaged(tmp_path, bytes(altered))
    assert found.problem is not None
    assert f"the frame at byte {ends[1]} of the stored file cannot be decoded" in found.problem
    check(found, b"first\n", 63 + 6, found.problem)


def test_zeros_in_place_of_what_was_written_are_a_problem(tmp_path: Path) -> None:
    stored, ends = framed(b"first\n", b"second\n")
    found = salvaged(tmp_path, stored[: ends[1]] + bytes(4096))
    assert found.problem == (
        f"{tmp_path / 'stdout.zst'} is damaged: "
        f"no frame begins at byte {ends[1]} of the stored file"
    )
    check(found, b"first\n", 1, found.problem)


def test_a_header_that_asks_for_more_memory_than_a_frame_takes_is_not_believed(
    tmp_path: Path,
) -> None:
    stored, ends = framed(b"first\n")
    huge = bytes.fromhex("28b52ffd") + b"\xe0" + (MAX_FRAME_SIZE + 1).to_bytes(8, "little")
    # One last raw block of one byte; the frame ends without a checksum.
    found = salvaged(tmp_path, stored + huge + b"\x09\x00\x00x")
    assert found.problem is not None
    assert f"the frame at byte {ends[1]} of the stored file cannot be decoded" in found.problem
    check(found, b"first\n", 1, found.problem)


@given(
    parts=st.lists(st.binary(min_size=1, max_size=80), max_size=5),
    cut=st.integers(0, 600),
    junk=st.binary(max_size=30),
)
@example(parts=[b"a", b"b"], cut=len(framed(b"a", b"b")[0]) - 1, junk=framed(b"a", b"b")[0][-1:])
@settings(max_examples=times(37), deadline=None)
def test_what_is_given_is_always_a_prefix_made_of_whole_frames(
    parts: list[bytes], cut: int, junk: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.mktemp("torn") / "stdout.zst"
    stored, ends = framed(*parts)
    written = stored[:cut] + (junk if cut < len(stored) else b"")
    file.write_bytes(written)
    with file.open("rb") as raw:
        reader = SpoolReader(raw, str(file))
        kept = b"".join(reader)
    # Not `end <= cut`: junk may begin with the very bytes that were cut off.
    whole = sum(written.startswith(stored[:end]) for end in ends) - 1
    # What looks like a frame in the junk is one; hypothesis finds none that has a right checksum.
    assert kept == b"".join(parts[:whole])
    assert reader.size == len(kept)
    if written == stored:
        assert (reader.lost_size, reader.problem) == (0, None)


def test_a_file_that_cannot_be_read_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "stdout.zst").mkdir()
    with pytest.raises(UnavailableError, match="cannot be read: Is a directory"):
        salvage(tmp_path / "stdout.zst", "stdout", tmp_path / "s.zst", edge_bytes=8)


def test_a_role_that_no_record_can_have_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "stdout.zst"
    file.write_bytes(b"")
    with pytest.raises(InvalidRecordError):
        salvage(file, "r" * 65, tmp_path / "s.zst", edge_bytes=8)


def test_without_room_for_another_file_nothing_is_salvaged_and_nothing_lost(tmp_path: Path) -> None:
    data = os.urandom(200_000)
    file = tmp_path / "stdout.zst"
    file.write_bytes(framed(data)[0])
    with small_disk(tmp_path / "disk", 4 << 20) as disk:
        disk.fill()
        with pytest.raises(UnavailableError, match="cannot be recovered: low disk space"):
            salvage(file, "stdout", disk.folder / "s" / "stdout.zst", edge_bytes=8)
        disk.free()
        again = salvage(file, "stdout", disk.folder / "s" / "stdout.zst", edge_bytes=8)
        assert kept_of(again) == data


def test_of_a_frame_that_grows_all_that_was_flushed_is_recovered(tmp_path: Path) -> None:
    lines = [b"line %d of a slow build\n" % number for number in range(9)]
    file = tmp_path / "slow.zst"
    capture = Capture("stdout", file, edge_bytes=EDGE)
    ends = [0]
    for line in lines:
        capture.write(line)
        capture.flush()
        ends.append(file.stat().st_size)
    stored = file.read_bytes()
    capture.discard()
    for cut in range(1, len(stored) + 1):
        found = salvaged(tmp_path, stored[:cut])
        assert found.problem is None
        kept = kept_of(found)
        flushed = b"".join(lines[: sum(end <= cut for end in ends) - 1])
        assert kept.startswith(flushed)
        assert b"".join(lines).startswith(kept)
        record = found.captured.record
        assert record.loss_reason == (None if cut in ends else UNFINISHED)
        assert record.produced_size == len(kept) + (cut not in ends)
