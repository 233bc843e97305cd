"""Streams whose artifact is missing, cut, altered or replaced: the damage is named, never read."""

from pathlib import Path

import pytest
import zstandard
from tests.support.recording import content_of, run_command, stream_of

from tooltrail.records import (
    DamageError,
    DigestMismatchError,
    MissingArtifactError,
    PathEscapeError,
)
from tooltrail.store import Store, StreamView

BIG = b"".join(b"%08d\n" % n for n in range(100_000))


@pytest.fixture
def stream(store: Store) -> StreamView:
    finished = run_command(store.open_session(), BIG)
    return stream_of(store.reader.invocation(finished.invocation_id), "stdout")


@pytest.fixture
def stored(store: Store, stream: StreamView) -> Path:
    """The file of the artifact."""
    assert stream.artifact_path is not None
    path = Path(store.archive.sink.url.removeprefix("file://"), stream.artifact_path)
    path.chmod(0o644)
    return path


def test_a_missing_artifact_is_said_to_be_missing(
    store: Store, stream: StreamView, stored: Path
) -> None:
    stored.unlink()
    with pytest.raises(MissingArtifactError) as caught:
        content_of(store.reader, stream)
    assert caught.value.path == stream.artifact_path


def test_content_that_is_cut_anywhere_is_damage(
    store: Store, stream: StreamView, stored: Path
) -> None:
    data = stored.read_bytes()
    for length in (0, 1, len(data) // 2):
        stored.write_bytes(data[:length])
        with pytest.raises(DamageError):
            content_of(store.reader, stream)
    stored.write_bytes(data)
    assert content_of(store.reader, stream) == BIG


def test_an_index_that_is_cut_keeps_the_content_readable_and_is_found_by_verifying(
    store: Store, stream: StreamView, stored: Path
) -> None:
    stored.write_bytes(stored.read_bytes()[:-1])
    assert content_of(store.reader, stream) == BIG
    assert stream.artifact_path is not None
    with pytest.raises(DamageError):
        store.archive.verify(stream.artifact_path)


def test_an_altered_artifact_is_damage(store: Store, stream: StreamView, stored: Path) -> None:
    data = bytearray(stored.read_bytes())
    data[len(data) // 2] ^= 1
    stored.write_bytes(data)
    with pytest.raises(DamageError):
        content_of(store.reader, stream)


def test_other_bytes_are_damage_although_they_can_be_decoded(
    store: Store, stream: StreamView, stored: Path
) -> None:
    for other in (b"X" + BIG[1:], BIG + b"more"):
        stored.write_bytes(zstandard.ZstdCompressor().compress(other))
        with pytest.raises(DigestMismatchError):
            content_of(store.reader, stream)


def test_a_file_outside_of_the_root_is_never_opened(
    store: Store, stream: StreamView, stored: Path, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    stored.unlink()
    stored.symlink_to(secret)
    with pytest.raises(PathEscapeError, match="artifact root"):
        content_of(store.reader, stream)
