"""Damage is found by the reads that touch it, and by no others; an old index is no damage."""

import random
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import pytest
import zstandard
from tests.support.sinks import CountingSink, Framed, counting_sink, framed, put_raw, retold

from tooltrail.artifacts import ArtifactArchive
from tooltrail.artifacts._decoding import (
    MAX_FRAME_SIZE,
    FrameFacts,
    FrameMismatchError,
    decode_frame,
    decode_unknown,
)
from tooltrail.artifacts.codec import compress_frame
from tooltrail.artifacts.frame_index import FrameIndex
from tooltrail.records.errors import (
    DamageError,
    DigestMismatchError,
    IndexMismatchError,
    UnavailableError,
)

FRAME = 1_000
PLAIN = b"".join(b"%d a line of some length\n" % n for n in range(400))
MADE = framed(PLAIN, FRAME)
OTHER = framed(PLAIN, 777)
COARSE = framed(PLAIN, 2_500)


@pytest.fixture
def sink() -> CountingSink:
    return counting_sink()


@pytest.fixture
def archive(sink: CountingSink) -> ArtifactArchive:
    return ArtifactArchive(sink)


def flipped(data: bytes, offset: int, bits: int = 1) -> bytes:
    return data[:offset] + bytes([data[offset] ^ bits]) + data[offset + 1 :]


def frames_that_fail(archive: ArtifactArchive, index: FrameIndex | None) -> list[int]:
    """The frames whose bytes cannot be read; every other one is right."""
    failing: list[int] = []
    reader = archive.reader(MADE.path, index=index)
    for frame in range(len(MADE.index)):
        start, stop = MADE.index.plain_span(frame)
        try:
            assert reader.read_bytes(start, stop) == PLAIN[start:stop]
        except DamageError:
            failing.append(frame)
    return failing


@pytest.mark.parametrize("index", [MADE.index, None])
def test_a_flipped_byte_fails_the_reads_that_touch_its_frame_and_no_others(
    sink: CountingSink, archive: ArtifactArchive, tmp_path: Path, index: FrameIndex | None
) -> None:
    chance = random.Random(7)
    for _ in range(60):
        offset = chance.randrange(MADE.index.frames_size)
        put_raw(sink, tmp_path, MADE.path, flipped(MADE.stored, offset, 1 << chance.randrange(8)))
        hit = [n for n in range(len(MADE.index)) if offset < MADE.index.stored_span(n)[1]][:1]
        assert frames_that_fail(archive, index) == hit


def test_a_damaged_frame_is_named_by_its_beginning(
    sink: CountingSink, archive: ArtifactArchive, tmp_path: Path
) -> None:
    offset = MADE.index.stored_span(3)[0] + 20
    put_raw(sink, tmp_path, MADE.path, flipped(MADE.stored, offset))
    with pytest.raises(DamageError, match=r"in the frame at byte 3,000 of the output: "):
        archive.reader(MADE.path).read_bytes(3_456, 3_460)


def test_every_bit_of_a_frame_counts_but_the_one_that_means_nothing() -> None:
    frame = compress_frame(PLAIN[:200])
    facts = FrameFacts(200, int.from_bytes(frame.data[-4:], "little"))
    assert decode_frame(frame.data, facts) == PLAIN[:200]
    # RFC 8878, section 3.1.1.1.1.3: a decoder ignores bit 4 of the descriptor.
    bits = {(offset, bit) for offset in range(len(frame.data)) for bit in range(8)} - {(4, 4)}
    for offset, bit in bits:
        with pytest.raises(FrameMismatchError):
            decode_frame(flipped(frame.data, offset, 1 << bit), facts)


def test_a_frame_that_is_cut_or_goes_on_is_another() -> None:
    frame = compress_frame(PLAIN[:200])
    facts = FrameFacts(200, int.from_bytes(frame.data[-4:], "little"))
    for data in (b"", frame.data[:3], frame.data[:-1], frame.data + frame.data):
        with pytest.raises(FrameMismatchError):
            decode_frame(data, facts)


def test_a_frame_that_does_not_tell_its_size_is_decoded_up_to_the_known_one() -> None:
    silent = zstandard.ZstdCompressor(write_content_size=False, write_checksum=True)
    data = silent.compress(PLAIN)
    checksum = int.from_bytes(data[-4:], "little")
    assert decode_frame(data, FrameFacts(len(PLAIN), checksum)) == PLAIN
    for size in (len(PLAIN) - 1, len(PLAIN) + 1):
        with pytest.raises(FrameMismatchError):
            decode_frame(data, FrameFacts(size, checksum))


def test_a_frame_that_claims_too_much_is_not_decoded() -> None:
    giant = zstandard.ZstdCompressor().compress(bytes(MAX_FRAME_SIZE + 1))
    with pytest.raises(ValueError, match="it speaks of 67,108,865 bytes"):
        decode_unknown(giant)
    with pytest.raises(FrameMismatchError, match="another size"):
        decode_frame(giant, FrameFacts(10, int.from_bytes(giant[-4:], "little")))


@pytest.mark.parametrize("part", ["lines", "table", "footer"])
def test_an_altered_index_is_said_to_be_and_the_whole_is_read_all_the_same(
    sink: CountingSink, archive: ArtifactArchive, tmp_path: Path, part: str
) -> None:
    size = len(MADE.stored)
    begin = MADE.index.frames_size
    offsets = {
        "lines": range(begin, begin + 8 + 4 + 4 * len(MADE.index)),
        "table": range(size - 9 - 12 * (len(MADE.index) + 1), size - 9),
        "footer": range(size - 9, size),
    }
    for offset in offsets[part]:
        put_raw(sink, tmp_path, MADE.path, flipped(MADE.stored, offset))
        with pytest.raises(DamageError) as caught:
            archive.reader(MADE.path)
        assert caught.value.path == MADE.path
        # Who has the index from elsewhere needs none here.
        reader = archive.reader(MADE.path, index=MADE.index)
        assert reader.read_bytes(1_500, 4_200) == PLAIN[1_500:4_200]
    put_raw(sink, tmp_path, MADE.path, flipped(MADE.stored, size - 30))
    with archive.open(MADE.path) as whole:
        assert whole.read() == PLAIN


def test_instead_of_an_altered_index_from_elsewhere_the_own_is_read(
    sink: CountingSink, archive: ArtifactArchive, tmp_path: Path
) -> None:
    put_raw(sink, tmp_path, MADE.path, MADE.stored)
    for index in (flipped(MADE.index.to_bytes(), 20), b""):
        reader = archive.reader(MADE.path, index=index)
        assert reader.read_bytes(0, len(PLAIN)) == PLAIN


@pytest.mark.parametrize("start", [0, 1, 776, 5_000, len(PLAIN) - 3])
def test_an_index_of_other_frames_is_replaced_by_the_objects_own(
    sink: CountingSink, archive: ArtifactArchive, tmp_path: Path, start: int
) -> None:
    put_raw(sink, tmp_path, MADE.path, OTHER.stored)
    reader = archive.reader(MADE.path, index=MADE.index)
    assert reader.read_bytes(start, start + 2_000) == PLAIN[start : start + 2_000]
    # The object was read once for the frames that are not there, and once for its index.
    assert len(sink.requests) == 2
    assert b"".join(reader.iter_lines(3, 50)) == reader.read_lines(3, 50)


@pytest.mark.parametrize("lines", [1, 30, 399, 400, 500])
def test_lines_are_right_with_an_index_of_other_frames(
    sink: CountingSink, archive: ArtifactArchive, tmp_path: Path, lines: int
) -> None:
    put_raw(sink, tmp_path, MADE.path, OTHER.stored)
    plain_lines = PLAIN.splitlines(keepends=True)
    by_tail = archive.reader(MADE.path, index=MADE.index)
    assert by_tail.tail(lines) == b"".join(plain_lines[-lines:])
    by_lines = archive.reader(MADE.path, index=MADE.index)
    assert by_lines.read_lines(100, 100 + lines) == b"".join(plain_lines[99 : 100 + lines])
    found = archive.reader(MADE.path, index=MADE.index).grep("7 a", literal=True)
    wanted = [(n + 1, line) for n, line in enumerate(plain_lines) if b"7 a" in line]
    assert [(match.line_number, match.line) for match in found] == wanted


def test_an_object_that_is_replaced_while_it_is_read_is_read_on(
    sink: CountingSink, archive: ArtifactArchive, tmp_path: Path
) -> None:
    put_raw(sink, tmp_path, MADE.path, MADE.stored)
    reader = archive.reader(MADE.path, index=MADE.index)
    assert reader.read_bytes(0, 1_500) == PLAIN[:1_500]
    put_raw(sink, tmp_path, MADE.path, OTHER.stored)
    assert reader.read_bytes(0, len(PLAIN)) == PLAIN
    put_raw(sink, tmp_path, MADE.path, MADE.stored)
    assert reader.read_bytes(100, len(PLAIN)) == PLAIN[100:]


@dataclass
class InterruptedSink(CountingSink):
    """Lets something happen once, between the reading of some bytes and their use."""

    meanwhile: Callable[[], object] = bool

    def read(self, path: str, start: int, stop: int | None = None) -> bytes:
        data = super().read(path, start, stop)
        meanwhile, self.meanwhile = self.meanwhile, bool
        meanwhile()
        return data


@pytest.mark.parametrize("before", [MADE, COARSE], ids=["before", "replaced"])
@pytest.mark.parametrize("read", ["bytes", "tail", "count"])
def test_threads_that_share_a_reader_take_the_index_of_a_replaced_object_once(
    sink: CountingSink, tmp_path: Path, read: str, before: Framed
) -> None:
    put_raw(sink, tmp_path, MADE.path, before.stored)
    interrupted = InterruptedSink(sink.sink)
    reader = ArtifactArchive(interrupted).reader(MADE.path, index=MADE.index)

    def replace_and_read() -> None:
        put_raw(sink, tmp_path, MADE.path, COARSE.stored)
        with ThreadPoolExecutor(1) as other:
            assert other.submit(reader.read_bytes, 0, len(PLAIN)).result() == PLAIN

    interrupted.meanwhile = replace_and_read
    if read == "bytes":
        assert reader.read_bytes(0, len(PLAIN)) == PLAIN
    elif read == "tail":
        assert reader.tail(400) == PLAIN
    else:
        assert reader.count_matches("of some") == 400
    assert interrupted.opened == 1


def test_frames_that_agree_at_first_and_differ_later_are_read_on_in_the_middle(
    sink: CountingSink, archive: ArtifactArchive, tmp_path: Path
) -> None:
    blocks = [PLAIN[:FRAME], PLAIN[FRAME : FRAME + 300], PLAIN[FRAME + 300 :]]
    late = Framed.of(blocks)
    put_raw(sink, tmp_path, MADE.path, late.stored)
    reader = archive.reader(MADE.path, index=MADE.index)
    assert b"".join(reader.iter_bytes(10)) == PLAIN[10:]


@pytest.mark.parametrize("with_index", [True, False])
def test_an_object_with_other_content_is_damage(
    sink: CountingSink, archive: ArtifactArchive, tmp_path: Path, with_index: bool
) -> None:
    exchanged = framed(PLAIN[:-100], FRAME)
    put_raw(sink, tmp_path, MADE.path, exchanged.stored)
    index = MADE.index if with_index else None
    with pytest.raises(DigestMismatchError):
        archive.reader(MADE.path, index=index, size=len(PLAIN)).read_bytes(0, len(PLAIN))


@pytest.mark.parametrize("content", [b"", b"a", b"another text\n"])
def test_an_object_of_one_frame_is_compared_with_its_digest(
    sink: CountingSink, archive: ArtifactArchive, tmp_path: Path, content: bytes
) -> None:
    put_raw(sink, tmp_path, MADE.path, framed(content, FRAME).stored)
    with pytest.raises(DigestMismatchError, match="another digest than its name"):
        archive.reader(MADE.path).read_bytes(0, 1)


@pytest.mark.parametrize("kept", [0.2, 0.5, 0.9])
def test_an_object_that_was_cut_is_damage(
    sink: CountingSink, archive: ArtifactArchive, tmp_path: Path, kept: float
) -> None:
    put_raw(sink, tmp_path, MADE.path, MADE.stored[: int(MADE.index.frames_size * kept)])
    with pytest.raises(DamageError, match=r"ends inside a frame"):
        archive.reader(MADE.path)
    with pytest.raises(DamageError):
        archive.reader(MADE.path, index=MADE.index).tail(1)


def test_an_object_that_was_cut_between_frames_has_another_size(
    sink: CountingSink, archive: ArtifactArchive, tmp_path: Path
) -> None:
    put_raw(sink, tmp_path, MADE.path, MADE.stored[: MADE.index.stored_span(3)[0]])
    with pytest.raises(DigestMismatchError, match="it holds 3,000 bytes"):
        archive.reader(MADE.path, size=len(PLAIN))


def test_an_altered_frame_of_an_object_without_an_index_is_damage(
    sink: CountingSink, archive: ArtifactArchive, tmp_path: Path
) -> None:
    middle = sum(MADE.index.stored_span(2)) // 2
    put_raw(sink, tmp_path, MADE.path, flipped(MADE.frames, middle))
    with pytest.raises(DamageError, match=MADE.path):
        archive.reader(MADE.path)


@pytest.mark.parametrize("with_index", [True, False])
@pytest.mark.parametrize("first", [1, 40, 120, 300])
def test_a_frame_with_other_newlines_than_the_index_counts_is_named(
    sink: CountingSink, archive: ArtifactArchive, tmp_path: Path, first: int, with_index: bool
) -> None:
    index = MADE.index
    lying = retold(index, newlines={n: 1 if n % 2 else -1 for n in range(len(index))})
    own = index if with_index else lying
    put_raw(sink, tmp_path, MADE.path, MADE.frames + own.to_bytes())
    reader = archive.reader(MADE.path, index=lying if with_index else None)
    frame = lying.frame_of_newline(first - 1) if first > 1 else 0
    has, told = index.newlines_in(frame), lying.newlines_in(frame)
    said = (
        f"the index of artifact {MADE.path} is damaged: it counts other newlines than frame"
        f" {frame} has, {told} instead of {has}"
    )
    with pytest.raises(DamageError, match=re.escape(said)):
        reader.read_lines(first, first + 1)
    with pytest.raises(DamageError, match="counts other newlines"):
        b"".join(reader.iter_lines())
    # Bytes are found without them.
    assert reader.read_bytes(700, 9_000) == PLAIN[700:9_000]


def test_more_newlines_than_bytes_are_no_index(
    sink: CountingSink, archive: ArtifactArchive, tmp_path: Path
) -> None:
    lying = retold(MADE.index, newlines={2: 1_000})
    put_raw(sink, tmp_path, MADE.path, MADE.frames + lying.to_bytes())
    with pytest.raises(DamageError, match=f"the index of {MADE.path} is damaged"):
        archive.reader(MADE.path)
    # Nor is it one from elsewhere, and then the object itself is asked.
    put_raw(sink, tmp_path, MADE.path, MADE.stored)
    assert archive.reader(MADE.path, index=lying.to_bytes()).head(500) == PLAIN


def test_newlines_of_an_empty_frame_are_missed_when_they_are_wanted(
    sink: CountingSink, archive: ArtifactArchive, tmp_path: Path
) -> None:
    made = Framed.of([b"a\n", b"", b"b\n"])
    put_raw(sink, tmp_path, made.path, made.stored)
    lying = retold(made.index, newlines={1: 1})
    with pytest.raises(DamageError, match="it counts other newlines"):
        archive.reader(made.path, index=lying).read_lines(3, 3)


def exchanged(plain: bytes) -> bytes:
    """Other text with as many bytes and lines."""
    return plain.replace(b"some", b"same")


@pytest.mark.parametrize(
    "kind", ["of other frames", "altered", "of another size", "of other lines"]
)
def test_the_own_index_is_not_believed_against_another_until_the_content_is_right(
    sink: CountingSink, archive: ArtifactArchive, tmp_path: Path, kind: str
) -> None:
    indexes: dict[str, FrameIndex | bytes] = {
        "of other frames": MADE.index,
        "altered": b"altered",
        "of another size": retold(OTHER.index, plain={0: 1}),
        "of other lines": retold(OTHER.index, newlines={0: 2}),
    }
    known = indexes[kind]
    foreign = framed(exchanged(PLAIN), 777)
    put_raw(sink, tmp_path, MADE.path, foreign.stored)
    for read in (slice(2_000, 2_050), slice(len(PLAIN) - 20, len(PLAIN))):
        with pytest.raises(DigestMismatchError, match="another digest than its name"):
            archive.reader(MADE.path, index=known, size=len(PLAIN), line_count=400).read_bytes(
                read.start, read.stop
            )
    put_raw(sink, tmp_path, MADE.path, OTHER.stored)
    reader = archive.reader(MADE.path, index=known, size=len(PLAIN), line_count=400)
    assert reader.read_bytes(2_000, 2_050) == PLAIN[2_000:2_050]
    assert reader.read_lines(17, 399) == b"".join(PLAIN.splitlines(keepends=True)[16:399])


def test_of_an_object_that_lies_of_itself_the_frames_are_found_by_decoding(
    sink: CountingSink, archive: ArtifactArchive, tmp_path: Path
) -> None:
    lying = retold(OTHER.index, plain={0: -3, 1: 3}, newlines={0: -1, 4: 1})
    put_raw(sink, tmp_path, MADE.path, OTHER.frames + lying.to_bytes())
    reader = archive.reader(MADE.path, index=MADE.index)
    assert reader.read_lines(2, 400) == PLAIN[PLAIN.index(b"\n") + 1 :]
    assert reader.read_bytes(0, len(PLAIN)) == PLAIN


def test_places_that_were_found_by_a_wrong_index_are_not_read_on_by_another(
    sink: CountingSink, archive: ArtifactArchive, tmp_path: Path
) -> None:
    put_raw(sink, tmp_path, MADE.path, OTHER.stored)
    lying = retold(MADE.index, newlines={2: -3, 5: 3})
    with pytest.raises(IndexMismatchError, match="frame 2 of other frames") as caught:
        archive.reader(MADE.path, index=lying).read_lines(120, 130)
    assert len(caught.value.differences) == 2


@pytest.mark.parametrize("told", [0, 399, 402, 1_000])
def test_a_number_of_lines_that_no_index_fits_is_not_used(
    sink: CountingSink, archive: ArtifactArchive, tmp_path: Path, told: int
) -> None:
    put_raw(sink, tmp_path, MADE.path, MADE.stored)
    for index in (MADE.index, None):
        reader = archive.reader(MADE.path, index=index, line_count=told)
        assert reader.tail(3) == b"".join(PLAIN.splitlines(keepends=True)[-3:])
        assert reader.line_count == 400


def test_an_object_without_an_index_is_compared_with_its_digest(
    sink: CountingSink, archive: ArtifactArchive, tmp_path: Path
) -> None:
    put_raw(sink, tmp_path, MADE.path, framed(exchanged(PLAIN), FRAME).frames)
    with pytest.raises(DigestMismatchError, match="another digest than its name"):
        archive.reader(MADE.path)


class UnreadableSink(CountingSink):
    """Opens what cannot be read: a process may not read its own memory at address 0."""

    def open(self, path: str) -> BinaryIO:
        del path
        return Path("/proc/self/mem").open("rb", buffering=0)


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="there is no /proc")
def test_an_object_that_cannot_be_read_through_is_unavailable(
    sink: CountingSink, tmp_path: Path
) -> None:
    put_raw(sink, tmp_path, MADE.path, MADE.frames)
    with pytest.raises(UnavailableError, match="cannot be read: Input/output error"):
        ArtifactArchive(UnreadableSink(sink.sink)).reader(MADE.path)
