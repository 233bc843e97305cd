"""Frames are found by their headers in a file that has no index, or not yet."""

import io
import os
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from tests.artifacts.artifacts.test_codec import needs_zstd

from tooltrail.artifacts.codec import FrameWriter, compress_frame
from tooltrail.artifacts.frame_spans import FrameSpan, iter_spans
from tooltrail.records.errors import DamageError

CONTENTS = [b"text\n" * 1000, b"", b"x" * 300_000, os.urandom(300_000), b"end"]
"""Blocks that are compressed, of one repeated byte, and raw; several to a frame."""


def object_of(parts: list[bytes]) -> tuple[bytes, list[int]]:
    raw = io.BytesIO()
    writer = FrameWriter(raw)
    ends = [0]
    for part in parts:
        writer.append(compress_frame(part))
        ends.append(writer.stored_size)
    writer.close()
    return raw.getvalue(), ends


def data_spans(ends: list[int]) -> list[FrameSpan]:
    return [FrameSpan(*span, is_data=True) for span in pairwise(ends)]


def test_every_frame_is_found_and_those_of_the_index_are_no_data() -> None:
    stored, ends = object_of(CONTENTS)
    found = [*iter_spans(io.BytesIO(stored), "x")]
    assert found[:-2] == data_spans(ends)
    assert [span.is_data for span in found[-2:]] == [False, False]
    assert found[-1].stop == len(stored)
    assert [*iter_spans(io.BytesIO(stored), "x", ends[2])] == found[2:]


@given(st.lists(st.binary(max_size=30), min_size=1, max_size=4))
def test_a_file_that_is_cut_ends_with_its_last_complete_frame(parts: list[bytes]) -> None:
    stored, ends = object_of(parts)
    for size in range(ends[-1] + 1):
        complete = [end for end in ends if end <= size]
        assert [*iter_spans(io.BytesIO(stored[:size]), "x")] == data_spans(complete)


def test_frames_that_are_added_meanwhile_are_found() -> None:
    stored, ends = object_of([b"one", b"two"])
    file = io.BytesIO(stored[: ends[1]])
    spans = iter_spans(file, "x")
    assert next(spans).stop == ends[1]
    file.seek(0, io.SEEK_END)
    file.write(stored[ends[1] : ends[2]])
    assert next(spans).stop == ends[2]
    assert next(spans, None) is None


@pytest.mark.parametrize(
    "garbage", [b"this is no frame at all", b"\x28\xb5\x2f\xfd" + b"\xff" * 20]
)
def test_what_is_no_frame_is_damage(garbage: bytes) -> None:
    stored, ends = object_of([b"one"])
    file = io.BytesIO(stored[: ends[1]] + garbage)
    spans = iter_spans(file, "x.zst")
    next(spans)
    with pytest.raises(
        DamageError,
        match=rf"x\.zst is damaged: no frame begins at byte {ends[1]} of the stored file",
    ):
        next(spans)


def test_frames_of_other_writers_are_found(tmp_path: Path) -> None:
    without = zstandard.ZstdCompressor(write_checksum=False, write_content_size=False)
    streamed = zstandard.ZstdCompressor().compressobj()
    parts = [without.compress(b"a" * 10), streamed.compress(b"b" * 10) + streamed.flush()]
    spans = [*iter_spans(io.BytesIO(b"".join(parts)), "x")]
    assert [span.stop - span.start for span in spans] == [len(part) for part in parts]


@needs_zstd
def test_frames_of_the_plain_program_are_found(tmp_path: Path) -> None:
    done = subprocess.run(
        ["zstd", "-c"], input=os.urandom(700_000) + bytes(700_000), capture_output=True, check=True
    )
    [span] = iter_spans(io.BytesIO(done.stdout), "x")
    assert span == FrameSpan(0, len(done.stdout), is_data=True)
