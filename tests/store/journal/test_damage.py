"""Torn tails are cut and never reported; damage is reported once, and all around it is read."""

from pathlib import Path

import pytest
from tests.support.journals import (
    alter,
    check_whole,
    end_of,
    entry,
    filled,
    label,
    labels,
    read_all,
    record,
    seal_at,
    segment_files,
    write_at,
)

from tooltrail.journal import Cursor, Frame, Gap, JournalLog, has_frames, read_journal_id
from tooltrail.journal.ends import HINT_NAME
from tooltrail.journal.frames import FRAMES_FROM, HEADER_SIZE
from tooltrail.records.errors import InvalidRecordError

COUNT = 24


@pytest.fixture(params=["with the hint", "without the hint"])
def has_hint(request: pytest.FixtureRequest) -> bool:
    return str(request.param) == "with the hint"


def next_writer(folder: Path, *, has_hint: bool = True) -> JournalLog:
    """The log of a process that begins now."""
    if not has_hint:
        (folder / HINT_NAME).unlink()
    return JournalLog(folder)


def several(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[Frame]:
    """A journal with several segments; give its frames."""
    seal_at(monkeypatch, 2_000)
    filled(folder, COUNT).close()
    frames = read_all(folder)[0]
    assert frames[-1].segment > 4
    return frames


def check_one_gap(folder: Path, lost: set[int]) -> Gap:
    """Check that one gap is reported, and that all facts but some are read; give the gap."""
    frames, (gap,) = read_all(folder)
    assert [label(frame)[1] for frame in frames] == [n for n in range(COUNT) if n not in lost]
    return gap


def check_goes_on(folder: Path, lost: set[int], *, has_hint: bool = True) -> None:
    """Check that appends still work, and that the same gap is reported behind them."""
    before = read_all(folder)[1]
    record(next_writer(folder, has_hint=has_hint), "later", range(3))
    frames, gaps = read_all(folder)
    assert gaps == before
    expected = [("p", number) for number in range(COUNT) if number not in lost]
    assert [label(frame) for frame in frames] == expected + [("later", n) for n in range(3)]


def test_every_cut_of_the_last_append_is_a_torn_tail(tmp_path: Path, has_hint: bool) -> None:
    journal = filled(tmp_path, 3)
    path, begin = end_of(tmp_path)
    hint = (tmp_path / HINT_NAME).read_bytes()
    journal.record([entry("lost", 0)])
    _, end = end_of(tmp_path)
    whole = path.read_bytes()
    for cut in range(begin, end, 7 if has_hint else 13):
        for rest in (b"", bytes(len(whole) - cut)):
            path.write_bytes(whole[:cut] + rest)
            write_at(tmp_path / HINT_NAME, 0, hint)
            assert labels(tmp_path) == [("p", number) for number in range(3)]
            record(next_writer(tmp_path, has_hint=has_hint), "q", [cut])
            assert check_whole(tmp_path)[3:] == [("q", cut)]


def test_garbage_behind_zeros_is_never_read(tmp_path: Path, has_hint: bool) -> None:
    journal = filled(tmp_path, 3)
    path, end = end_of(tmp_path)
    write_at(path, end + 3_000, b"TTf1" + b"garbage" * 500)
    assert len(check_whole(tmp_path)) == 3
    record(journal, "p", range(3, 10))
    record(next_writer(tmp_path, has_hint=has_hint), "p", range(10, 20))
    assert check_whole(tmp_path) == [("p", number) for number in range(20)]


def test_a_whole_frame_of_a_lost_tail_is_never_read(tmp_path: Path, has_hint: bool) -> None:
    journal = filled(tmp_path, 3)
    path, begin = end_of(tmp_path)
    hint = (tmp_path / HINT_NAME).read_bytes()
    # Two facts in one write, of which a power cut keeps the second one alone.
    first, second = journal.append([entry("lost", 0), entry("lost", 1)])
    assert second.offset > first.offset
    write_at(path, begin, bytes(first.offset - begin))
    write_at(tmp_path / HINT_NAME, 0, hint)
    assert len(check_whole(tmp_path)) == 3
    # The next frame ends where the old one begins.
    again = entry("late", 0)._replace(repeated=())
    (cursor,) = next_writer(tmp_path, has_hint=has_hint).record([again])
    assert cursor.offset == first.offset
    assert check_whole(tmp_path)[3:] == [("late", 0)]
    record(next_writer(tmp_path, has_hint=has_hint), "p", range(3, 6))
    assert check_whole(tmp_path)[3:] == [("late", 0), ("p", 3), ("p", 4), ("p", 5)]


def test_a_hint_that_is_ahead_of_the_segment_leads_no_writer_past_a_hole(tmp_path: Path) -> None:
    journal = filled(tmp_path, 3)
    path, begin = end_of(tmp_path)
    # A power cut keeps the hint and the last frame, and not the frame between.
    first, _ = journal.append([entry("lost", 0), entry("lost", 1)])
    write_at(path, begin, bytes(first.offset - begin))
    record(JournalLog(tmp_path), "p", [3])
    assert check_whole(tmp_path) == [("p", number) for number in range(4)]


def test_a_flipped_bit_anywhere_in_an_acknowledged_frame_is_one_gap(
    tmp_path: Path, has_hint: bool
) -> None:
    filled(tmp_path, COUNT).close()
    frames = read_all(tmp_path)[0]
    (path,) = segment_files(tmp_path)
    whole = path.read_bytes()
    frame = frames[5]
    for place in range(frame.offset, frame.end, 11):
        path.write_bytes(whole)
        alter(path, place, bit=1 << place % 8)
        gap = check_one_gap(tmp_path, {5})
        assert (gap.segment, gap.offset) == (1, frame.offset)
        assert gap.data == path.read_bytes()[frame.offset : frame.end]
        assert gap.cursor == Cursor(1, frame.end, 6, None)
        assert "byte" in gap.reason
    check_goes_on(tmp_path, {5}, has_hint=has_hint)


def test_damage_in_several_places_is_one_gap_for_each(tmp_path: Path, has_hint: bool) -> None:
    filled(tmp_path, COUNT).close()
    frames = read_all(tmp_path)[0]
    (path,) = segment_files(tmp_path)
    for index in (0, 7, 8, 15):
        alter(path, frames[index].offset + 8)
    found, gaps = read_all(tmp_path)
    assert {label(frame)[1] for frame in found} == {*range(COUNT)} - {0, 7, 8, 15}
    assert [gap.offset for gap in gaps] == [frames[index].offset for index in (0, 7, 15)]
    check_goes_on(tmp_path, {0, 7, 8, 15}, has_hint=has_hint)


def test_a_block_of_zeros_is_one_gap_and_never_written_over(tmp_path: Path, has_hint: bool) -> None:
    filled(tmp_path, COUNT).close()
    frames = read_all(tmp_path)[0]
    (path,) = segment_files(tmp_path)
    write_at(path, frames[3].offset, bytes(frames[9].end - frames[3].offset))
    assert check_one_gap(tmp_path, {*range(3, 10)}).offset == frames[3].offset
    check_goes_on(tmp_path, {*range(3, 10)}, has_hint=has_hint)


@pytest.mark.parametrize("place", range(6))
def test_a_flipped_bit_in_a_sealed_segment_is_one_gap_even_in_its_last_frame(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: int
) -> None:
    frames = several(tmp_path, monkeypatch)
    second = [frame for frame in frames if frame.segment == 2]
    frame = second[min(place, len(second) - 1)]
    alter(segment_files(tmp_path)[1], frame.offset + 20)
    gap = check_one_gap(tmp_path, {frame.index})
    assert (gap.segment, gap.offset) == (2, frame.offset)
    check_goes_on(tmp_path, {frame.index})


@pytest.mark.parametrize("is_amid_a_frame", [True, False])
def test_a_cut_sealed_segment_is_one_gap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_amid_a_frame: bool
) -> None:
    frames = several(tmp_path, monkeypatch)
    second = [frame for frame in frames if frame.segment == 2]
    cut = second[1].offset + (100 if is_amid_a_frame else 0)
    path = segment_files(tmp_path)[1]
    path.write_bytes(path.read_bytes()[:cut])
    lost = {frame.index for frame in second[1:]}
    gap = check_one_gap(tmp_path, lost)
    assert (gap.segment, gap.offset) == (2, second[1].offset)
    check_goes_on(tmp_path, lost)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_missing_segment_is_one_gap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    frames = several(tmp_path, monkeypatch)
    segment_files(tmp_path)[number - 1].unlink()
    lost = {frame.index for frame in frames if frame.segment == number}
    gap = check_one_gap(tmp_path, lost)
    assert f"frames {min(lost)} to {max(lost)} of the journal are missing" in gap.reason
    assert gap.data == b""
    check_goes_on(tmp_path, lost)


@pytest.mark.parametrize("is_only_one", [True, False])
def test_a_missing_newest_segment_is_one_gap_before_the_journal_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_only_one: bool
) -> None:
    if is_only_one:
        filled(tmp_path, COUNT).close()
    else:
        several(tmp_path, monkeypatch)
    journal, frames = read_journal_id(tmp_path), read_all(tmp_path)[0]
    newest = segment_files(tmp_path)[-1]
    newest.unlink()
    lost = {frame.index for frame in frames if frame.segment == frames[-1].segment}
    gap = check_one_gap(tmp_path, lost)
    assert f"frames {min(lost)} to {max(lost)} of the journal are missing" in gap.reason
    assert read_journal_id(tmp_path) == journal
    before = [Cursor(), *(frame.cursor for frame in frames if frame.index not in lost)][-1]
    assert has_frames(tmp_path, before)
    assert not has_frames(tmp_path, gap.cursor)
    # What was read before is not lost.
    assert not has_frames(tmp_path, frames[-1].cursor)
    assert read_all(tmp_path, frames[-1].cursor) == ([], [])
    record(JournalLog(tmp_path), "later", range(3))
    found, gaps = read_all(tmp_path, gap.cursor)
    assert ([label(frame) for frame in found], gaps) == ([("later", n) for n in range(3)], [])


def test_a_missing_newest_segment_is_one_gap_once_the_journal_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frames = several(tmp_path, monkeypatch)
    newest = segment_files(tmp_path)[-1]
    newest.unlink()
    lost = {frame.index for frame in frames if frame.segment == frames[-1].segment}
    record(JournalLog(tmp_path), "later", [0])
    found, (gap,) = read_all(tmp_path)
    assert found[-1].segment == frames[-1].segment + 1
    assert found[-1].index == COUNT
    assert [label(frame)[1] for frame in found[:-1]] == [*range(min(lost))]
    assert "are missing" in gap.reason


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("place", [0, 4, 8, 24, 32, 40, 72])
def test_an_altered_head_is_one_gap_and_its_frames_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, place: int
) -> None:
    several(tmp_path, monkeypatch)
    path = segment_files(tmp_path)[number - 1]
    alter(path, place)
    gap = check_one_gap(tmp_path, set())
    assert (gap.segment, gap.offset) == (number, 0)
    assert gap.data == path.read_bytes()[:FRAMES_FROM]
    check_goes_on(tmp_path, set())


@pytest.mark.parametrize("is_only_one", [True, False])
def test_an_altered_head_of_the_newest_segment_begins_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_hint: bool, is_only_one: bool
) -> None:
    if is_only_one:
        filled(tmp_path, COUNT).close()
    else:
        several(tmp_path, monkeypatch)
    newest = segment_files(tmp_path)[-1]
    alter(newest, 40)
    before = newest.read_bytes()
    assert check_one_gap(tmp_path, set()).offset == 0
    check_goes_on(tmp_path, set(), has_hint=has_hint)
    assert newest.read_bytes() == before
    frames = read_all(tmp_path)[0]
    assert [frame.index for frame in frames] == [*range(COUNT + 3)]
    assert frames[-1].segment == frames[COUNT - 1].segment + 1
    assert [frame.is_linked for frame in frames[-3:]] == [True] * 3


@pytest.mark.parametrize("content", [b"", b"TTj1", bytes(70_000), b"\xff" * 70_000])
def test_a_newest_segment_of_garbage_does_not_stop_the_recording(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_hint: bool, content: bytes
) -> None:
    frames = several(tmp_path, monkeypatch)
    newest = segment_files(tmp_path)[-1]
    newest.write_bytes(content)
    record(next_writer(tmp_path, has_hint=has_hint), "later", [0])
    assert newest.read_bytes() == content
    found, gaps = read_all(tmp_path)
    lost = {frame.index for frame in frames if frame.segment == frames[-1].segment}
    assert [label(frame)[1] for frame in found[:-1]] == [*range(min(lost))]
    assert label(found[-1]) == ("later", 0)
    assert 1 <= len(gaps) <= 3


def test_a_body_that_holds_a_segment_is_never_read_as_one(tmp_path: Path) -> None:
    filled(tmp_path / "other", 30)
    other = segment_files(tmp_path / "other")[0].read_bytes()[:16_000]
    folder = tmp_path / "journal"
    journal = filled(folder, 3)
    own = segment_files(folder)[0].read_bytes()[: end_of(folder)[1]]
    plain = entry("p", 3)
    (cursor,) = journal.record([plain._replace(bodies=[*plain.bodies, other, own])])
    (path,) = segment_files(folder)
    begin = read_all(folder)[0][-1].offset
    whole = path.read_bytes()
    for size in (10, HEADER_SIZE + 10, 4_096, 12_000, cursor.offset - begin - 1):
        path.write_bytes(whole[: begin + size] + bytes(100_000))
        assert len(check_whole(folder)) == 3
    # A torn header, with the rest of the frame there.
    path.write_bytes(whole[:begin] + bytes(16) + whole[begin + 16 :])
    assert len(check_whole(folder)) == 3
    record(JournalLog(folder), "p", [3, 4])
    assert check_whole(folder) == [("p", number) for number in range(5)]


def test_a_frame_that_is_no_fact_is_read_and_its_fact_refused(tmp_path: Path) -> None:
    frame = Frame(0, 1, 76, 100, 0, b"", b"", b'{"kind":"new","v":1}', b"")
    with pytest.raises(InvalidRecordError):
        _ = frame.fact
