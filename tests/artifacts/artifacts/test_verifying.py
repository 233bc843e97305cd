"""Verifying decodes every frame, and names each place where the index of an object is wrong."""

from pathlib import Path

import pytest
from tests.support.sinks import Framed, archive_with, counting_sink, framed, put_raw, retold

from tooltrail.artifacts import ArtifactArchive, CapturedStream
from tooltrail.records import StreamRecord
from tooltrail.records.errors import DamageError, DigestMismatchError, IndexMismatchError

PLAIN = b"".join(b"%d a line of some length\n" % n for n in range(400))
MADE = framed(PLAIN, 1_000)
OTHER = framed(PLAIN, 777)
NEWLINES = [MADE.index.newlines_in(n) for n in range(len(MADE.index))]
LAST = len(MADE.index) - 1

NEWLINE_LIES = {
    "newlines that add up": retold(MADE.index, newlines={2: 1, 5: -1}),
    "newlines that do not": retold(MADE.index, newlines={3: -7}),
}
SAID = {
    "newlines that add up": [
        f"its index: frame 2: newlines {NEWLINES[2]} found, {NEWLINES[2] + 1} expected",
        f"its index: frame 5: newlines {NEWLINES[5]} found, {NEWLINES[5] - 1} expected",
    ],
    "newlines that do not": [
        f"its index: frame 3: newlines {NEWLINES[3]} found, {NEWLINES[3] - 7} expected"
    ],
}
FRAME_LIES = {
    "sizes that add up": (retold(MADE.index, plain={0: -40, 4: 40}), "in the frame at byte 0 "),
    "sizes that do not": (
        retold(MADE.index, plain={LAST: 1}),
        f"in the frame at byte {LAST * 1_000:,} ",
    ),
    "other frames": (OTHER.index, "stored bytes, but its index describes "),
}


@pytest.mark.parametrize("lie", NEWLINE_LIES)
def test_an_index_that_counts_other_newlines_is_damage_and_each_frame_is_named(lie: str) -> None:
    archive = archive_with(MADE.path, MADE.frames + NEWLINE_LIES[lie].to_bytes())
    with pytest.raises(IndexMismatchError) as caught:
        archive.verify(MADE.path, size=len(PLAIN), line_count=400)
    assert caught.value.path == MADE.path
    assert list(caught.value.differences) == SAID[lie]


@pytest.mark.parametrize("lie", FRAME_LIES)
def test_an_index_of_other_frames_than_the_object_has_is_damage(lie: str) -> None:
    index, said = FRAME_LIES[lie]
    archive = archive_with(MADE.path, MADE.frames + index.to_bytes())
    with pytest.raises(DamageError, match=said) as caught:
        archive.verify(MADE.path)
    assert caught.value.path == MADE.path
    # Whoever reads it all in order needs no index.
    with archive.open(MADE.path, size=len(PLAIN)) as reader:
        assert reader.read() == PLAIN


def test_the_message_has_the_first_differences_and_how_many_there_are() -> None:
    lie = retold(MADE.index, newlines=dict.fromkeys(range(9), 1))
    archive = archive_with(MADE.path, MADE.frames + lie.to_bytes())
    with pytest.raises(
        IndexMismatchError, match=r"frame 3: newlines .* expected; and 5 more$"
    ) as e:
        archive.verify(MADE.path)
    assert len(e.value.differences) == 9
    assert "frame 4" not in str(e.value)


@pytest.mark.parametrize("end", [b"", b"\n", b"x"])
def test_lines_are_counted_as_everywhere(end: bytes) -> None:
    # Behind the last line stands an empty frame, which ends no line.
    made = Framed.of([b"one\ntwo", end, b""])
    archive = archive_with(made.path, made.stored)
    assert archive.verify(made.path, line_count=2) == len(b"one\ntwo" + end)
    with pytest.raises(IndexMismatchError, match="2 lines found, 1 expected"):
        archive.verify(made.path, line_count=1)


@pytest.mark.parametrize("more", [b"\0", MADE.frames, MADE.stored])
def test_bytes_between_the_frames_and_the_index_are_damage(more: bytes) -> None:
    archive = archive_with(MADE.path, MADE.frames + more + MADE.index.to_bytes())
    with pytest.raises(DamageError, match="stored bytes, but its index describes "):
        archive.verify(MADE.path)


def test_damaged_content_is_said_before_any_index() -> None:
    foreign = framed(PLAIN.replace(b"some", b"same"), 1_000)
    archive = archive_with(MADE.path, foreign.stored)
    with pytest.raises(DigestMismatchError):
        archive.verify(MADE.path, line_count=3)
    archive = archive_with(MADE.path, framed(b"other text\n\n", 5).stored)
    with pytest.raises(DigestMismatchError, match="it has 12 bytes"):
        archive.verify(MADE.path, size=len(PLAIN))


def test_publishing_heals_an_object_whose_index_lies() -> None:
    lie = NEWLINE_LIES["newlines that add up"]
    archive = archive_with(MADE.path, MADE.frames + lie.to_bytes())
    captured = CapturedStream(StreamRecord.from_bytes("stdout", PLAIN), None)
    archive.publish(captured)
    assert archive.verify(MADE.path, line_count=400) == len(PLAIN)


def test_verifying_reads_every_stored_byte_once_and_in_order(tmp_path: Path) -> None:
    sink = counting_sink()
    noise = Framed.of([bytes([n]) * 70_000 + b"%d" % n for n in range(9)])
    put_raw(sink, noise.path, noise.stored)
    assert ArtifactArchive(sink).verify(noise.path) == 9 * 70_001
    frames = sorted(sink.requests[1:])
    assert sum(stop - start for start, stop in frames) <= noise.index.frames_size


def test_a_reader_compares_the_digest_of_an_artifact_when_it_is_asked_to() -> None:
    archive = archive_with(MADE.path, MADE.stored)
    archive.reader(MADE.path).check()
    archive = archive_with(MADE.path, framed(PLAIN.replace(b"some", b"same"), 1_000).stored)
    reader = archive.reader(MADE.path, size=len(PLAIN))
    with pytest.raises(DigestMismatchError, match=MADE.path):
        reader.check()


@pytest.mark.parametrize("blocks", [[b""], [b"", b"a\n"], [b"a\n", b""], [b"a\n", b"", b"b"]])
def test_a_damaged_empty_frame_is_damage(blocks: list[bytes]) -> None:
    made = Framed.of(blocks)
    frame = blocks.index(b"")
    archive = archive_with(made.path, made.stored)
    assert archive.verify(made.path) == len(b"".join(blocks))
    altered = bytearray(made.stored)
    altered[made.index.stored_span(frame)[0]] ^= 1
    archive = archive_with(made.path, bytes(altered))
    with pytest.raises(DamageError, match="in the frame at byte "):
        archive.verify(made.path)
