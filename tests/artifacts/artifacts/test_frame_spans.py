"""Frames are found by their headers in a file that has no index, or not yet."""

import io
import os
import subprocess
from itertools import pairwise
from pathlib import Path

import zstandard
from tests.artifacts.artifacts.test_codec import needs_zstd

from tooltrail.artifacts.codec import FrameWriter, compress_frame
from tooltrail.artifacts.frame_spans import FrameSpan, iter_spans

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
