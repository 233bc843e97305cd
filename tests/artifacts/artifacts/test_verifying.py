"""Verifying counts anew what an index tells, and says of each disagreement what it is."""

import io
from itertools import accumulate, pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.sinks import CountingSink, Framed, counting_sink, framed, put_raw, retold

from tooltrail.artifacts import ArtifactArchive, CapturedStream
from tooltrail.artifacts._forward_window import ForwardWindow
from tooltrail.artifacts._index_checks import PlainCheck, differences, has_same_frames
from tooltrail.artifacts.codec import READ_SIZE
from tooltrail.artifacts.frame_index import FrameIndex
from tooltrail.records import StreamRecord
from tooltrail.records.errors import DamageError, DigestMismatchError, IndexMismatchError

PLAIN = b"".join(b"%d a line of some length\n" % n for n in range(400))
MADE = framed(PLAIN, 1_000)
OTHER = framed(PLAIN, 777)
NEWLINES = [MADE.index.newlines_in(n) for n in range(len(MADE.index))]
LAST, LAST_SIZE = divmod(len(PLAIN), 1_000)

LIES = {
    "newlines that add up": retold(MADE.index, newlines={2: 1, 5: -1}),
    "newlines that do not": retold(MADE.index, newlines={3: -7}),
    "sizes that add up": retold(MADE.index, plain={0: -40, 4: 40}),
    "sizes that do not": retold(MADE.index, plain={len(MADE.index) - 1: 1}),
}
SAID = {
    "newlines that add up": [
        f"frame 2: newlines {NEWLINES[2]} found, {NEWLINES[2] + 1} expected",
        f"frame 5: newlines {NEWLINES[5]} found, {NEWLINES[5] - 1} expected",
    ],
    "newlines that do not": [f"frame 3: newlines {NEWLINES[3]} found, {NEWLINES[3] - 7} expected"],
    "sizes that add up": [
        "frame 0: plain bytes 1,000 found, 960 expected",
        "frame 4: plain bytes 1,000 found, 1,040 expected",
    ],
    "sizes that do not": [f"frame {LAST}: plain bytes {LAST_SIZE} found, {LAST_SIZE + 1} expected"],
}


@pytest.fixture
def sink() -> CountingSink:
    return counting_sink()


@pytest.fixture
def archive(sink: CountingSink) -> ArtifactArchive:
    return ArtifactArchive(sink)


@pytest.mark.parametrize("lie", LIES)
def test_an_object_whose_own_index_lies_is_damaged_and_told_how(
    sink: CountingSink, archive: ArtifactArchive, tmp_path: Path, lie: str
) -> None:
    put_raw(sink, tmp_path, MADE.path, MADE.frames + LIES[lie].to_bytes())
    for index in (None, MADE.index):
        with pytest.raises(IndexMismatchError) as caught:
            archive.verify(MADE.path, size=len(PLAIN), line_count=400, index=index)
        assert caught.value.path == MADE.path
        assert list(caught.value.differences) == [f"its own index: {said}" for said in SAID[lie]]


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("in_bytes", [True, False])
def test_an_index_of_the_store_that_lies_is_told_apart_from_the_own(
    sink: CountingSink, archive: ArtifactArchive, tmp_path: Path, lie: str, in_bytes: bool
) -> None:
    put_raw(sink, tmp_path, MADE.path, MADE.stored)
    index = LIES[lie].to_bytes() if in_bytes else LIES[lie]
    with pytest.raises(IndexMismatchError) as caught:
        archive.verify(MADE.path, index=index)
    prefix = "the index that the store has of it: "
    assert list(caught.value.differences) == [prefix + said for said in SAID[lie]]


def test_both_indexes_are_told_of(
    sink: CountingSink, archive: ArtifactArchive, tmp_path: Path
) -> None:
    first, second = LIES["newlines that do not"], LIES["sizes that add up"]
    put_raw(sink, tmp_path, MADE.path, MADE.frames + first.to_bytes())
    with pytest.raises(IndexMismatchError) as caught:
        archive.verify(MADE.path, index=second)
    assert [said.partition(":")[0] for said in caught.value.differences] == [
        "its own index",
        *["the index that the store has of it"] * 2,
    ]
    with pytest.raises(IndexMismatchError) as caught:
        archive.verify(MADE.path, index=first)
    assert len(caught.value.differences) == 2


def test_the_message_has_the_first_differences_and_how_many_there_are(
    sink: CountingSink, archive: ArtifactArchive, tmp_path: Path
) -> None:
    lie = retold(MADE.index, newlines=dict.fromkeys(range(9), 1))
    put_raw(sink, tmp_path, MADE.path, MADE.frames + lie.to_bytes())
    with pytest.raises(
        IndexMismatchError, match=r"frame 3: newlines .* expected; and 5 more$"
    ) as e:
        archive.verify(MADE.path)
    assert len(e.value.differences) == 9
    assert "frame 4" not in str(e.value)


def test_an_altered_index_of_the_store_and_other_lines_are_told(
    sink: CountingSink, archive: ArtifactArchive, tmp_path: Path
) -> None:
    put_raw(sink, tmp_path, MADE.path, MADE.stored)
    with pytest.raises(IndexMismatchError) as caught:
        archive.verify(MADE.path, line_count=401, index=MADE.index.to_bytes()[:-1])
    assert [said.partition(": ")[2] for said in caught.value.differences] == [
        "400 lines found, 401 expected",
        "it was altered",
    ]


@pytest.mark.parametrize("end", [b"", b"\n", b"x"])
def test_lines_are_counted_as_everywhere(
    sink: CountingSink, archive: ArtifactArchive, tmp_path: Path, end: bytes
) -> None:
    # Behind the last line stands an empty frame, which ends no line.
    made = Framed.of([b"one\ntwo", end, b""])
    put_raw(sink, tmp_path, made.path, made.stored)
    assert archive.verify(made.path, line_count=2, index=made.index) == len(b"one\ntwo" + end)
    with pytest.raises(IndexMismatchError, match="2 lines found, 1 expected"):
        archive.verify(made.path, line_count=1)


def test_an_object_that_was_replaced_by_other_frames_is_right(
    sink: CountingSink, archive: ArtifactArchive, tmp_path: Path
) -> None:
    for stored in (OTHER.stored, OTHER.frames):
        put_raw(sink, tmp_path, MADE.path, stored)
        assert archive.verify(MADE.path, index=MADE.index.to_bytes()) == len(PLAIN)


def test_an_index_of_other_frames_must_be_true_of_the_content(
    sink: CountingSink, archive: ArtifactArchive, tmp_path: Path
) -> None:
    put_raw(sink, tmp_path, MADE.path, OTHER.stored)
    size, count = len(PLAIN), NEWLINES[3]
    wanted = {
        "newlines that do not": (
            "frame 3 of other frames, plain bytes 3,000 to 4,000:"
            f" newlines {count} found, {count - 7} expected"
        ),
        "sizes that do not": f"{size:,} plain bytes found, {size + 1:,} expected",
    }
    for lie, said in wanted.items():
        with pytest.raises(IndexMismatchError) as caught:
            archive.verify(MADE.path, index=LIES[lie])
        assert caught.value.differences == (f"the index that the store has of it: {said}",)


def test_an_own_index_of_more_or_fewer_frames_is_told(
    sink: CountingSink, archive: ArtifactArchive, tmp_path: Path
) -> None:
    put_raw(sink, tmp_path, MADE.path, MADE.frames + OTHER.index.to_bytes())
    with pytest.raises(IndexMismatchError) as caught:
        archive.verify(MADE.path)
    assert caught.value.differences[0] == (
        f"its own index: {len(MADE.index)} frames found, {len(OTHER.index)} expected"
    )


def test_damaged_content_is_said_before_any_index(
    sink: CountingSink, archive: ArtifactArchive, tmp_path: Path
) -> None:
    lie = LIES["newlines that do not"]
    foreign = framed(PLAIN.replace(b"some", b"same"), 1_000)
    put_raw(sink, tmp_path, MADE.path, foreign.stored)
    with pytest.raises(DigestMismatchError):
        archive.verify(MADE.path, index=lie)
    put_raw(sink, tmp_path, MADE.path, framed(b"other text\n\n", 5).stored)
    with pytest.raises(DigestMismatchError, match="it holds 12 bytes"):
        archive.verify(MADE.path, size=len(PLAIN), index=lie)


def test_publishing_heals_an_object_whose_index_lies(
    sink: CountingSink, archive: ArtifactArchive, tmp_path: Path
) -> None:
    lie = LIES["newlines that add up"]
    put_raw(sink, tmp_path, MADE.path, MADE.frames + lie.to_bytes())
    captured = CapturedStream(StreamRecord.from_bytes("stdout", PLAIN), None)
    assert archive.publish(captured).outcome == "healed"
    assert archive.verify(MADE.path, line_count=400) == len(PLAIN)


def test_verifying_reads_every_stored_byte_once_and_in_order(
    sink: CountingSink, tmp_path: Path
) -> None:
    put_raw(sink, tmp_path, MADE.path, MADE.stored)
    archive = ArtifactArchive(sink)
    archive.verify(MADE.path, index=MADE.index)
    assert sink.opened == 1


blocks = st.lists(
    st.binary(max_size=30) | st.text("ab\n", max_size=30).map(str.encode), min_size=1, max_size=12
)


def index_of(plain: bytes, cuts: list[int]) -> FrameIndex:
    """An index of frames that begin at these offsets, as long as each has bytes."""
    ends = sorted({0, len(plain), *(cut % (len(plain) + 1) for cut in cuts)})
    parts = [plain[begin:end] for begin, end in pairwise(ends)] or [b""]
    sizes = [len(part) for part in parts]
    return FrameIndex(sizes, sizes, [part.count(b"\n") for part in parts], range(len(parts)))


@given(blocks, st.lists(st.integers(0, 400), max_size=8), st.data())
def test_an_index_is_true_of_the_content_in_whatever_frames(
    parts: list[bytes], cuts: list[int], data: st.DataObject
) -> None:
    told = index_of(b"".join(parts), cuts)
    frame = data.draw(st.integers(0, len(told) - 1))
    more = data.draw(st.integers(1, 9))
    lying = retold(told, newlines={frame: more})
    right, wrong = PlainCheck(told), PlainCheck(lying)
    for part in parts:
        right.see(part)
        wrong.see(part)
    assert list(right.differences()) == []
    (said,) = wrong.differences()
    assert said.startswith(f"frame {frame} of other frames, ")


@given(blocks, st.integers(-3, 3), st.integers(-3, 3), st.data())
def test_exactly_the_frames_that_differ_are_told(
    parts: list[bytes], plain: int, newlines: int, data: st.DataObject
) -> None:
    found = Framed.of(parts).index
    frame = data.draw(st.integers(0, len(found) - 1))
    start, stop = found.plain_span(frame)
    plain, newlines = max(plain, start - stop), max(newlines, -found.newlines_in(frame))
    told = retold(found, plain={frame: plain}, newlines={frame: newlines})
    assert has_same_frames(told, found)
    said = list(differences(told, found))
    assert len(said) == (plain != 0) + (newlines != 0)
    assert all(one.startswith(f"frame {frame}: ") for one in said)


@given(st.lists(st.integers(0, 3_000), min_size=1, max_size=30), st.data())
def test_a_window_gives_what_a_file_gives(sizes: list[int], data: st.DataObject) -> None:
    content = bytes(n % 251 for n in range(sum(sizes) + READ_SIZE // 64))
    file, window = io.BytesIO(content), ForwardWindow(io.BytesIO(content), "x")
    begin = 0
    for stop in accumulate(sizes):
        for _ in range(2):
            offset = data.draw(st.integers(begin, begin + 5_000))
            size = data.draw(st.integers(0, 5_000))
            file.seek(offset)
            window.seek(offset)
            assert window.read(size) == file.read(size)
            assert window.read(2) == file.read(2)
        window.seek(stop)
        window.read(0)
        window.forget(stop)
        begin = stop


def test_no_more_is_held_than_a_frame_can_have() -> None:
    window = ForwardWindow(io.BytesIO(bytes(5_000)), "sha256/x", 1_000)
    assert len(window.read(1_000)) == 1_000
    window.forget(900)
    window.seek(1_000)
    assert len(window.read(900)) == 900
    with pytest.raises(
        DamageError, match="the frame at byte 900 of the stored file has more than 1,000 bytes"
    ):
        window.read(1)
