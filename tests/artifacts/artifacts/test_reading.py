"""Any part of an artifact is what the same part of its plain bytes is."""

import io
import random
import threading
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.effort import times
from tests.support.sinks import CountingSink, Framed, counting_sink, framed, put_raw

from tooltrail.artifacts import ArtifactArchive, ArtifactReader
from tooltrail.artifacts import _frames as frames_module
from tooltrail.artifacts import frame_index as index_module
from tooltrail.artifacts._line_ends import after_newlines
from tooltrail.records.errors import InvalidRecordError, MissingArtifactError

LINES = [b"line %d, and what makes it longer\n" % n for n in range(1, 10_001)]
TEXT = b"".join(LINES)
FRAME = 4_000

PIECES = st.sampled_from(
    [b"", b"\n", b"\n\n", b"a\n", b"\r\n", b"word", b"\x00\xff\n", b"x" * 50, b"x" * 300 + b"\n"]
)
CONTENTS = st.one_of(st.lists(PIECES, max_size=40).map(b"".join), st.binary(max_size=200))
SIZES = st.sampled_from([1, 2, 3, 7, 64, 1000])


def lines_of(plain: bytes) -> list[bytes]:
    """The model: lines end with newlines alone."""
    return io.BytesIO(plain).readlines()


def stored(plain: bytes, size: int, folder: Path) -> tuple[CountingSink, Framed]:
    sink, made = counting_sink(), framed(plain, size)
    put_raw(sink, made.path, made.stored)
    return sink, made


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("reading")


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> tuple[CountingSink, Framed]:
    """The lines above, in frames of `FRAME`."""
    return stored(TEXT, FRAME, tmp_path_factory.mktemp("text"))


@pytest.fixture
def sink(text: tuple[CountingSink, Framed]) -> CountingSink:
    text[0].requests.clear()
    text[0].opened = 0
    return text[0]


@pytest.fixture
def reader(sink: CountingSink, text: tuple[CountingSink, Framed]) -> ArtifactReader:
    """Of the lines above; nothing but their index was fetched."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index_module, "_SUFFIX_SIZE", 9)
        reader = ArtifactArchive(sink).reader(text[1].path)
    sink.requests.clear()
    return reader


def frames_read(sink: CountingSink, made: Framed) -> list[list[int]]:
    """Which whole frames each request fetched; anything else fails."""
    starts = {made.index.stored_span(n)[0]: n for n in range(len(made.index))}
    stops = {made.index.stored_span(n)[1]: n for n in range(len(made.index))}
    return [list(range(starts[begin], stops[end] + 1)) for begin, end in sink.requests]


class TestModel:
    """Against plain bytes, whatever part of the object comes with the index."""

    @settings(max_examples=times(37), deadline=None)
    @given(
        plain=CONTENTS,
        size=SIZES,
        request_bytes=st.sampled_from([1, 100, 8 << 20]),
        suffix=st.sampled_from([9, 100, 64 << 10]),
        data=st.data(),
    )
    def test_every_part_is_the_same_part_of_the_plain_bytes(
        self,
        *,
        plain: bytes,
        size: int,
        request_bytes: int,
        suffix: int,
        data: st.DataObject,
        tmp_path_factory: pytest.TempPathFactory,
    ) -> None:
        sink, made = counting_sink(), framed(plain, size)
        put_raw(sink, made.path, made.stored)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(frames_module, "REQUEST_BYTES", request_bytes)
            patch.setattr(index_module, "_SUFFIX_SIZE", suffix)
            reader = ArtifactArchive(sink).reader(made.path)
            for _ in range(4):
                self.check(reader, plain, data)

    def check(self, reader: ArtifactReader, plain: bytes, data: st.DataObject) -> None:
        lines = lines_of(plain)
        kind = data.draw(st.sampled_from(["bytes", "lines", "head", "tail", "facts", "iter"]))
        first = data.draw(st.integers(0, len(plain) + 3))
        last = data.draw(st.integers(first, len(plain) + 5))
        if kind == "bytes":
            assert reader.read_bytes(first, last) == plain[first:last]
            assert b"".join(reader.iter_bytes(first)) == plain[first:]
        elif kind == "lines":
            wanted = lines[first : last + 1]
            assert reader.read_lines(first + 1, last + 1) == b"".join(wanted)
            assert list(reader.iter_lines(first + 1, last + 1)) == wanted
            assert reader.line_offset(first + 1) == len(b"".join(lines[:first]))
        elif kind == "iter":
            assert list(reader.iter_lines(first + 1)) == lines[first:]
            assert b"".join(reader.iter_line_bytes(first + 1)) == b"".join(lines[first:])
        elif kind == "head":
            assert reader.head(first) == b"".join(lines[:first])
        elif kind == "tail":
            assert reader.tail(first) == b"".join(lines[-first:] if first else [])
        else:
            assert (reader.size, reader.line_count) == (len(plain), len(lines))

    @given(st.lists(PIECES, max_size=30).map(b"".join), st.integers(0, 40), st.integers(0, 40))
    def test_newlines_are_counted_off_wherever_one_starts(
        self, plain: bytes, number: int, start: int
    ) -> None:
        start = min(start, len(plain))
        ends = [n + 1 for n in range(start, len(plain)) if plain[n] == 10]
        wanted = (len(plain), number - len(ends)) if number > len(ends) else None
        if wanted is None:
            wanted = (ends[number - 1] if number else start, 0)
        assert after_newlines(plain, number, start) == wanted


class TestCost:
    """What is fetched, and with how many requests."""

    @pytest.mark.parametrize("start", [0, FRAME - 1, FRAME, 123_456, len(TEXT) - 10])
    def test_a_slice_costs_one_request_for_its_frames(
        self,
        start: int,
        sink: CountingSink,
        reader: ArtifactReader,
        text: tuple[CountingSink, Framed],
    ) -> None:
        assert (reader.size, sink.requests) == (len(TEXT), [])
        stop = min(start + 2 * FRAME, len(TEXT))
        assert reader.read_bytes(start, stop) == TEXT[start:stop]
        wanted = list(range(start // FRAME, (stop - 1) // FRAME + 1))
        assert frames_read(sink, text[1]) == [wanted]

    @pytest.mark.parametrize(("first", "last"), [(1, 10), (5_000, 5_020), (9_901, 10_000)])
    def test_lines_cost_one_request_for_their_frames(
        self,
        first: int,
        last: int,
        sink: CountingSink,
        reader: ArtifactReader,
        text: tuple[CountingSink, Framed],
    ) -> None:
        ends = {1: partial(reader.head, 10), 9_901: partial(reader.tail, 100)}
        read = ends.get(first, partial(reader.read_lines, first, last))
        assert read() == b"".join(LINES[first - 1 : last])
        begin, end = (len(b"".join(LINES[:n])) for n in (first - 1, last))
        # From the newline before the first line to the newline of the last.
        wanted = list(range(max(begin - 1, 0) // FRAME, (end - 1) // FRAME + 1))
        assert frames_read(sink, text[1]) == [wanted]

    def test_the_same_frame_twice_is_fetched_once(
        self, sink: CountingSink, reader: ArtifactReader
    ) -> None:
        for start in (10, 20, FRAME - 5):
            reader.read_bytes(start, start + 5)
        assert len(sink.requests) == 1

    def test_nothing_is_fetched_for_nothing(
        self, sink: CountingSink, reader: ArtifactReader
    ) -> None:
        assert reader.read_bytes(7, 7) == b""
        assert reader.read_bytes(len(TEXT), len(TEXT) + 9) == b""
        assert reader.read_lines(10_002, 20_000) == b""
        assert reader.head(0) == b""
        assert reader.tail(0) == b""
        assert sink.requests == []

    def test_the_end_is_read_first_and_used(
        self, sink: CountingSink, text: tuple[CountingSink, Framed]
    ) -> None:
        reader = ArtifactArchive(sink).reader(text[1].path)
        assert reader.tail(3) == b"".join(LINES[-3:])
        ((begin, end),) = sink.requests
        assert (begin, end) == (max(0, len(text[1].stored) - 64 * 1024), len(text[1].stored))

    def test_of_a_big_object_only_its_end_and_the_frames_are_fetched(self, folder: Path) -> None:
        noise = random.Random(1).randbytes(200_000)
        sink, made = stored(noise, FRAME, folder)
        size = len(made.stored)
        assert ArtifactArchive(sink).reader(made.path).read_bytes(50_000, 50_100)
        assert sink.requests == [(size - 64 * 1024, size), made.index.stored_span(12)]

    def test_requests_are_bounded(
        self, monkeypatch: pytest.MonkeyPatch, sink: CountingSink, reader: ArtifactReader
    ) -> None:
        monkeypatch.setattr(frames_module, "REQUEST_BYTES", 5_000)
        assert b"".join(reader.iter_bytes()) == TEXT
        assert len(sink.requests) > sum(end - begin for begin, end in sink.requests) // 5_000
        assert max(end - begin for begin, end in sink.requests) <= 5_000

    def test_who_stops_early_fetches_no_more(
        self, monkeypatch: pytest.MonkeyPatch, sink: CountingSink, reader: ArtifactReader
    ) -> None:
        monkeypatch.setattr(frames_module, "REQUEST_BYTES", 1)
        blocks = reader.iter_bytes()
        assert next(blocks) == TEXT[:FRAME]
        assert len(sink.requests) == 1


@pytest.mark.parametrize(("start", "stop"), [(-1, 5), (3, 2), (-3, -1)])
def test_a_range_of_bytes_that_is_none_is_refused(
    reader: ArtifactReader, start: int, stop: int
) -> None:
    for method in (reader.read_bytes, reader.iter_bytes):
        with pytest.raises(InvalidRecordError, match="not a range of bytes"):
            method(start, stop)


@pytest.mark.parametrize(("first", "last"), [(0, 5), (3, 2), (-1, 1)])
def test_a_range_of_lines_that_is_none_is_refused(
    reader: ArtifactReader, first: int, last: int
) -> None:
    for method in (reader.read_lines, reader.iter_line_bytes, reader.iter_lines):
        with pytest.raises(InvalidRecordError, match="not a range of lines"):
            method(first, last)
    with pytest.raises(InvalidRecordError, match="not the number of a line"):
        reader.line_offset(min(first, 0))


def test_less_than_no_lines_are_refused(reader: ArtifactReader) -> None:
    for method in (reader.head, reader.tail, reader.iter_head, reader.iter_tail):
        with pytest.raises(InvalidRecordError, match="not a number of lines: -1"):
            method(-1)


def test_what_is_not_there_is_missing() -> None:
    archive = ArtifactArchive(counting_sink())
    made = framed(b"some text\n", 4)
    with pytest.raises(MissingArtifactError):
        archive.reader(made.path)


def test_a_path_that_no_artifact_has_is_refused() -> None:
    with pytest.raises(InvalidRecordError, match="not the path of an artifact"):
        ArtifactArchive(counting_sink()).reader("notes.txt")


def test_several_threads_may_use_one_reader(reader: ArtifactReader) -> None:
    wrong: list[int] = []

    def read(thread: int) -> None:
        for n in range(200):
            start = (n * 7919 + thread * 104_729) % (len(TEXT) - 100)
            if reader.read_bytes(start, start + 100) != TEXT[start : start + 100]:
                wrong.append(start)

    threads = [threading.Thread(target=read, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
