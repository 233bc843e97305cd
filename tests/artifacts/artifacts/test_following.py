"""A second process sees each byte of a running capture once, and when it has ended."""

import shutil
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.waiting import until

from tooltrail.artifacts import Capture, StreamFollower
from tooltrail.records import DamageError, UnavailableError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "spool" / str(uuid4())


def running() -> bool:
    return True


def ended() -> bool:
    return False


def capture_in(folder: Path, role: str = "stdout") -> Capture:
    return Capture(role, folder / f"{role}.zst", edge_bytes=10, frame_size=64)


def polled(follower: StreamFollower) -> bytes:
    return b"".join(follower.poll())


def test_what_is_flushed_is_given_once_and_then_the_end(folder: Path) -> None:
    with StreamFollower(folder, "stdout", running) as follower:
        assert (polled(follower), follower.ending) == (b"", None)  # before the first byte
        capture = capture_in(folder)
        capture.write(b"one\n")
        capture.flush()
        assert (polled(follower), follower.offset) == (b"one\n", 4)
        assert polled(follower) == b""
        capture.write(b"two\n" * 100)
        capture.close()
        assert (polled(follower), follower.offset) == (b"two\n" * 100, 404)
        assert follower.ending == "closed"


def test_a_file_that_is_published_meanwhile_is_read_to_its_end(folder: Path) -> None:
    with StreamFollower(folder, "stdout", running) as follower:
        capture = capture_in(folder)
        capture.write(b"one\n")
        capture.flush()
        assert polled(follower) == b"one\n"
        capture.write(b"two\n")
        capture.close()
        shutil.rmtree(folder)
        assert (polled(follower), follower.ending) == (b"two\n", "closed")


def test_a_stream_that_came_and_went_unseen_is_gone(folder: Path) -> None:
    states = [True, False]
    with StreamFollower(folder, "stdout", lambda: states.pop(0)) as follower:
        assert polled(follower) == b""
        capture = capture_in(folder)
        capture.write(b"one\n")
        capture.close()
        shutil.rmtree(folder)
        assert (polled(follower), follower.offset, follower.ending) == (b"", 0, "gone")


def test_what_a_dead_program_leaves_is_given_before_it_is_said_to_be_abandoned(
    folder: Path,
) -> None:
    capture = capture_in(folder)
    capture.write(b"one\n")
    capture.flush()
    with StreamFollower(folder, "stdout", ended) as follower:
        assert (polled(follower), follower.ending) == (b"one\n", "abandoned")
    capture.close()


def test_an_unfinished_frame_is_waited_for(folder: Path) -> None:
    file = folder / "stdout.zst"
    capture = capture_in(folder)
    capture.write(b"one\n")
    capture.flush()
    whole = file.read_bytes()
    capture.close()
    stored = file.read_bytes()
    given = b""
    with StreamFollower(folder, "stdout", running) as follower:
        for size in range(len(stored) + 1):
            # As a write that takes a part of what it is given leaves it.
            file.write_bytes(stored[:size])
            given += polled(follower)
            assert b"one\n".startswith(given)
            assert size < len(whole) or given == b"one\n"
        assert follower.ending == "closed"


@settings(deadline=None)
@given(
    parts=st.lists(st.sampled_from([b"a\n", b"bb", b"\n", b"c\nd\n", b"e" * 9]), max_size=8),
    lines=st.integers(0, 6),
    later=st.binary(max_size=9),
)
def test_it_can_begin_at_the_last_lines(
    parts: list[bytes], lines: int, later: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("lines")
    capture = capture_in(folder)
    for part in parts:
        capture.write(part)
        capture.flush()
    data = b"".join(parts)
    there = data.splitlines(keepends=True)
    wanted = b"".join(there[max(len(there) - lines, 0) :]) if lines else b""
    with StreamFollower(folder, "stdout", running) as follower:
        follower.skip_to_last(lines)
        assert follower.offset == len(data) - len(wanted)
        assert polled(follower) == wanted
        capture.write(later)
        capture.close()
        assert polled(follower) == later
        assert follower.offset == len(data) + len(later)


@pytest.mark.parametrize("data", [b"one\n", b"x" * 64 * 3], ids=["short", "three frames"])
def test_bytes_come_without_a_flush_of_the_writer(folder: Path, data: bytes) -> None:
    capture, got = capture_in(folder), bytearray()

    def has_come() -> bool:
        got.extend(polled(follower))
        return got == data

    with StreamFollower(folder, "stdout", running) as follower:
        capture.write(data)
        until(has_come)
        capture.close()
        assert (polled(follower), follower.ending) == (b"", "closed")


def test_an_altered_frame_is_damage(folder: Path) -> None:
    capture = capture_in(folder)
    capture.write(b"one\n")
    capture.close()
    file = folder / "stdout.zst"
    stored = bytearray(file.read_bytes())
    stored[9] ^= 0xFF  # behind six bytes of header and three of a block
    file.write_bytes(stored)
    with StreamFollower(folder, "stdout", running) as follower:
        with pytest.raises(
            DamageError, match=r"bytes 0 to .* of the stored file cannot be decoded"
        ):
            polled(follower)
        with pytest.raises(DamageError):
            follower.skip_to_last(1)


def test_a_file_that_cannot_be_read_is_unavailable(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "stdout.zst").symlink_to(folder / "stdout.zst")
    follower = StreamFollower(folder, "stdout", running)
    with pytest.raises(UnavailableError, match="Too many levels of symbolic links"):
        polled(follower)
