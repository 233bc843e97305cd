"""Ctrl-C at any moment of a capture leaves a true beginning, and says what is missing."""

import contextlib
import os
from functools import partial
from itertools import count
from pathlib import Path

import pytest
from tests.support.effort import times
from tests.support.interrupting import interrupted, interrupted_at

from tooltrail.artifacts import FrameIndex
from tooltrail.artifacts.capture import INTERRUPTED, Capture
from tooltrail.artifacts.captured import CapturedStream
from tooltrail.artifacts.codec import open_plain
from tooltrail.artifacts.limits import CaptureLimits
from tooltrail.records.counted_streams import count_lines
from tooltrail.records.digests import digest_of
from tooltrail.records.errors import InvalidRecordError

FRAME, EDGE = 1000, 150
CHUNKS = [os.urandom(n) for n in (300, 2500, 10, 900, 0, 1000, 200)]
WHOLE = b"".join(CHUNKS)
STEP = max(1, 10 // times(1))
"""Of all pairs of moments, one in so many is tried, evenly."""

TOO_LONG = "longer than the limit of 3,300 bytes for one stream"


def content_of(captured: CapturedStream) -> bytes:
    if captured.staged is None:
        assert captured.record.content is not None
        return captured.record.content
    assert captured.index is not None
    stored = captured.staged.read_bytes()
    assert captured.stored_size == len(stored)
    assert FrameIndex.from_bytes(stored) == captured.index
    assert captured.index.object_size == len(stored)
    with open_plain(captured.staged.open("rb")) as plain:
        return plain.read()


def check(captured: CapturedStream) -> None:
    """What was kept is the beginning of the whole, and the record says all that is so."""
    record, content = captured.record, content_of(captured)
    assert WHOLE.startswith(content)
    assert (record.size, record.digest) == (len(content), digest_of(content))
    assert record.line_count == count_lines(content)
    assert record.head == content[:EDGE]
    assert record.tail == content[len(record.head) :][-EDGE:]
    assert record.produced_size == len(WHOLE)
    assert record.loss_reason in (None, INTERRUPTED, TOO_LONG)


def write_all(capture: Capture) -> bytes:
    """Write it all, whatever comes; what was acknowledged before the first Ctrl-C."""
    acknowledged, is_interrupted = b"", False
    for number, chunk in enumerate(CHUNKS):
        try:
            capture.write(chunk)
            if number == 3:
                capture.flush()
        except KeyboardInterrupt:
            is_interrupted = True
        if not is_interrupted:
            acknowledged += chunk
    return acknowledged


# Between the call that opens a file and the next step nobody holds it.
@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
@pytest.mark.parametrize("limit", [None, 3300])
def test_ctrl_c_at_any_moment_leaves_a_true_beginning(tmp_path: Path, limit: int | None) -> None:
    moment, is_over = 0, False
    while not is_over:
        moment += 1
        capture = Capture(
            "stdout",
            tmp_path / str(moment) / "stdout.zst",
            edge_bytes=EDGE,
            frame_size=FRAME,
            limits=CaptureLimits(limit),
        )
        with interrupted_at(moment) as interruption:
            acknowledged = write_all(capture)
            with contextlib.suppress(KeyboardInterrupt):
                capture.close()
        captured = capture.close()
        check(captured)
        assert captured.record.size >= min(len(acknowledged), limit or len(WHOLE))
        is_over = not interruption
        assert not is_over or captured.record.loss_reason == (limit and TOO_LONG)
    assert moment > 300


def test_what_is_behind_a_call_that_was_interrupted_is_counted_and_not_kept(tmp_path: Path) -> None:
    capture = Capture("stdout", tmp_path / "stdout.zst", edge_bytes=EDGE)
    capture.write(b"a line\n")
    with interrupted_at(2), pytest.raises(KeyboardInterrupt):
        capture.write(b"not taken\n")
    capture.write(b"later\n")
    captured = capture.close()
    assert content_of(captured) == b"a line\n"
    assert captured.record.produced_size == len(b"a line\nnot taken\nlater\n")
    assert captured.record.loss_reason == INTERRUPTED


def small_capture(spool_path: Path) -> Capture:
    return Capture("stdout", spool_path, edge_bytes=EDGE, frame_size=FRAME)


PAIRS = {"flush": Capture.flush, "close": Capture.close}


@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
@pytest.mark.parametrize("second", PAIRS)
def test_a_second_ctrl_c_at_any_moment_after_a_first_one_leaves_a_true_beginning_too(
    tmp_path: Path, second: str
) -> None:
    first_chunk, chunk, last_chunk = CHUNKS[0], CHUNKS[1][:900], CHUNKS[1][900:1200]
    whole = WHOLE[:1500]
    pair_count = 0
    for moment in count(1):
        is_reached = True
        for other in count(1 + moment % STEP, STEP):
            capture = small_capture(tmp_path / f"{moment}-{other}" / "stdout.zst")
            capture.write(first_chunk)
            is_reached = interrupted(partial(capture.write, chunk), moment)
            if not is_reached or not interrupted(partial(PAIRS[second], capture), other):
                capture.close()
                break
            pair_count += 1
            written = len(whole)
            try:
                capture.write(last_chunk)
            except InvalidRecordError:  # its close was done, but for the answer
                written -= len(last_chunk)
            captured = capture.close()
            record, content = captured.record, content_of(captured)
            assert whole[:written].startswith(content)
            assert len(content) >= 300
            assert (record.size, record.digest) == (len(content), digest_of(content))
            assert record.produced_size == written
            assert record.loss_reason == (None if len(content) == written else INTERRUPTED)
        if not is_reached:
            break
    assert pair_count > 600 // STEP


def test_what_is_written_after_a_close_that_was_interrupted_is_counted(tmp_path: Path) -> None:
    moment = 0
    for moment in count(1):
        capture = small_capture(tmp_path / str(moment) / "stdout.zst")
        capture.write(CHUNKS[0])
        assert interrupted(capture.close, moment)
        try:
            capture.write(CHUNKS[1][:10])
        except InvalidRecordError:
            break
        record = capture.close().record
        assert record.produced_size == 310
        assert record.loss_reason == (None if record.size == 310 else INTERRUPTED)
    assert moment > 20
