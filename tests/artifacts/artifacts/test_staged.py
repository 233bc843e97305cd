"""What a staged file holds, whatever is known of it."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tooltrail.artifacts import Capture, CapturedStream, FrameIndex
from tooltrail.artifacts._staged import find_frames, is_sound
from tooltrail.records.digests import digest_of
from tooltrail.records.errors import UnavailableError

DIGEST = digest_of(b"".join(b"%d\n" % n for n in range(5)))


@pytest.fixture
def captured(tmp_path: Path) -> CapturedStream:
    capture = Capture("stdout", tmp_path / "stdout.zst", edge_bytes=10, inline_bytes=0)
    for number in range(5):
        capture.write(b"%d\n" % number)
        capture.flush()
    return capture.close()


def test_a_file_is_sound_with_its_content_and_its_index(captured: CapturedStream) -> None:
    file, index = captured.staged, captured.index
    assert file is not None
    assert index is not None
    assert is_sound(file, index, DIGEST)
    assert not is_sound(file, index, digest_of(b"other"))
    assert not is_sound(file, None, DIGEST)
    assert not is_sound(file, FrameIndex([9], [9], [0], [0]), DIGEST)
    os.truncate(file, index.frames_size)
    assert not is_sound(file, index, DIGEST)
    assert is_sound(file, None, DIGEST)


def test_a_file_that_cannot_be_read_is_neither(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="cannot read"):
        is_sound(tmp_path / "nothing", None, DIGEST)


@given(data=st.data())
def test_of_a_file_that_was_cut_anywhere_the_whole_frames_are_found(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    file = tmp_path_factory.mktemp("cut") / "stdout.zst"
    capture = Capture("stdout", file, edge_bytes=10, inline_bytes=0)
    parts = data.draw(st.lists(st.binary(min_size=1, max_size=30), min_size=1, max_size=5))
    for part in parts:
        capture.write(part)
        capture.flush()
    index = capture.close().index
    assert index is not None
    size = data.draw(st.integers(0, index.object_size))
    os.truncate(file, size)
    found = find_frames(file)
    ends = [index.stored_span(frame)[1] for frame in range(len(index))]
    whole = sum(end <= size for end in ends)
    assert len(found.index) == whole
    assert found.index.plain_size == sum(map(len, parts[:whole]))
    assert (found.problem is None) == (size >= ends[-1] or size in (0, *ends))
