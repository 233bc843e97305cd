"""Publishing the streams of one invocation: once each, from wherever their bytes are."""

from pathlib import Path

import pytest

from tooltrail.artifacts import ArtifactArchive, Capture, FsspecSink, ObjectStat, open_sink
from tooltrail.records import (
    InvalidRecordError,
    MissingArtifactError,
    Postponed,
    StreamRecord,
    UnavailableError,
    digest_of,
)
from tooltrail.store._recording.publisher import StreamPublisher, refuse_false_digests


@pytest.fixture
def archive(tmp_path: Path) -> ArtifactArchive:
    return ArtifactArchive(open_sink(str(tmp_path / "artifacts"), create=True))


def test_a_stream_is_published_once_however_often_it_is_asked_for(
    archive: ArtifactArchive, tmp_path: Path
) -> None:
    publisher = StreamPublisher(archive, {}, tmp_path / "scratch")
    stream = StreamRecord.from_bytes("content.0", b"content")
    twin = StreamRecord.from_bytes("content.1", b"content")

    published = [publisher.publish(stream), publisher.publish(stream), publisher.publish(twin)]
    references = [found for found in published if not isinstance(found, Postponed)]

    assert len(references) == 3
    assert len({reference.path for reference in references}) == 1
    assert [stored.outcome for stored in publisher.published] == ["created"]
    assert publisher.path_of(twin) == references[0].path
    with archive.open(references[0].path) as source:
        assert source.read() == b"content"


def test_a_stream_that_was_not_published_has_no_path(
    archive: ArtifactArchive, tmp_path: Path
) -> None:
    publisher = StreamPublisher(archive, {}, tmp_path / "scratch")
    assert publisher.path_of(StreamRecord.from_bytes("stdout", b"")) is None
    assert publisher.published == ()


def test_a_captured_stream_is_published_from_its_spool(
    archive: ArtifactArchive, tmp_path: Path
) -> None:
    capture = Capture("stdout", tmp_path / "stdout.zst", edge_bytes=1, inline_bytes=0)
    capture.write(b"captured")
    captured = capture.close()
    publisher = StreamPublisher(archive, {captured.record.digest: captured}, tmp_path / "scratch")

    reference = publisher.publish(captured.record)

    assert not isinstance(reference, Postponed)
    with archive.open(reference.path) as source:
        assert source.read() == b"captured"


def test_a_stream_that_cannot_be_synced_does_not_wait(
    archive: ArtifactArchive, tmp_path: Path
) -> None:
    scratch = tmp_path / "spool" / "invocation"
    capture = Capture("stdout", scratch / "stdout.zst", edge_bytes=1, inline_bytes=0)
    capture.write(b"captured")
    captured = capture.close()
    streams = {captured.record.digest: captured}
    away = Postponed("the disk is not there")

    publisher = StreamPublisher(archive, streams, scratch, away)
    assert publisher.publish(captured.record) == publisher.publish(captured.record) == away

    (scratch / "stdout.zst").unlink()
    with pytest.raises(UnavailableError, match="'stdout' cannot wait in the spool: No such file"):
        StreamPublisher(archive, streams, scratch, away).publish(captured.record)


class FaultySink(FsspecSink):
    """Somebody else is always first with the same object; it is pruned before it is looked at."""

    losses = 0

    def put(self, path: str, source: Path) -> bool:
        super().put(path, source)
        return False

    def stat(self, path: str) -> ObjectStat:
        if self.losses:
            self.losses -= 1
            self.delete(path)
        return super().stat(path)


def faulty_sink(folder: Path, losses: int) -> FaultySink:
    sink = open_sink(str(folder), create=True)
    assert isinstance(sink, FsspecSink)
    sink.__class__ = FaultySink
    assert isinstance(sink, FaultySink)
    sink.losses = losses
    return sink


def test_what_is_pruned_while_it_is_published_is_published_again(tmp_path: Path) -> None:
    stream = StreamRecord.from_bytes("content.0", b"content")
    archive = ArtifactArchive(faulty_sink(tmp_path / "artifacts", 3))
    reference = StreamPublisher(archive, {}, tmp_path / "scratch").publish(stream)
    assert not isinstance(reference, Postponed)
    assert archive.verify(reference.path) == len(b"content")

    hopeless = ArtifactArchive(faulty_sink(tmp_path / "artifacts 2", 1_000))
    with pytest.raises(MissingArtifactError):
        StreamPublisher(hopeless, {}, tmp_path / "scratch").publish(stream)


def test_a_stream_whose_bytes_are_nowhere_is_refused(
    archive: ArtifactArchive, tmp_path: Path
) -> None:
    publisher = StreamPublisher(archive, {}, tmp_path / "scratch")
    stream = StreamRecord.from_bytes("stdout", b"x").model_copy(update={"content": None})
    with pytest.raises(InvalidRecordError, match="'stdout' was not captured"):
        publisher.publish(stream)
    assert list(archive.sink.list()) == []


def test_a_stream_under_the_digest_of_other_bytes_is_refused() -> None:
    right = StreamRecord.from_bytes("stdout", b"right")
    refuse_false_digests([right, right.model_copy(update={"content": None})])
    with pytest.raises(InvalidRecordError, match="'stdout' has another content"):
        refuse_false_digests([right, right.model_copy(update={"digest": digest_of(b"wrong")})])
