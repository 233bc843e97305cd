"""A short stream stays in memory, and a long one goes to a spool file."""

from pathlib import Path

import pytest
import zstandard

from tooltrail.artifacts import Capture, CapturedStream, ShortCapture, open_plain
from tooltrail.records import InvalidRecordError, StreamRecord


def capture(path: Path, most: int = 8) -> ShortCapture:
    return ShortCapture("stdout", most, lambda: Capture("stdout", path, edge_bytes=4))


def plain(captured: CapturedStream) -> bytes:
    assert captured.staged is not None
    with open_plain(captured.staged.open("rb")) as stream:
        return stream.read()


def test_a_short_stream_makes_no_file(tmp_path: Path) -> None:
    short = capture(tmp_path / "call" / "stdout.zst")
    short.write(b"abc\n")
    short.write(b"defg")
    captured = short.close()
    assert captured.staged is None
    assert captured.record == StreamRecord.from_bytes("stdout", b"abc\ndefg")
    assert list(tmp_path.iterdir()) == []


def test_a_stream_that_nothing_was_written_to_is_empty(tmp_path: Path) -> None:
    short = capture(tmp_path / "stdout.zst")
    short.flush()
    assert short.close().record == StreamRecord.from_bytes("stdout", b"")
    assert list(tmp_path.iterdir()) == []


def test_a_long_stream_goes_to_a_file_from_its_first_byte_on(tmp_path: Path) -> None:
    short = capture(tmp_path / "stdout.zst")
    for chunk in (b"abc\n", b"defgh", b"ijk"):
        short.write(chunk)
    captured = short.close()
    assert plain(captured) == b"abc\ndefghijk"
    assert (captured.record.size, captured.record.line_count) == (12, 2)


def test_what_is_flushed_can_be_read_at_once(tmp_path: Path) -> None:
    path = tmp_path / "stdout.zst"
    short = capture(path)
    short.write(b"abc")
    short.flush()
    assert zstandard.ZstdDecompressor().decompressobj().decompress(path.read_bytes()) == b"abc"
    short.write(b"d")
    captured = short.close()
    assert captured.record.content == b"abcd"


@pytest.mark.parametrize("role", ["", "x" * 65, "\udcff"])
def test_a_role_that_no_record_can_have_is_refused(role: str) -> None:
    with pytest.raises(InvalidRecordError):
        ShortCapture(role, 8, lambda: pytest.fail("opened"))
