"""Makes the long streams of one invocation durable, and remembers where each went."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from tooltrail.artifacts import ArtifactArchive, CapturedStream, StoredArtifact
from tooltrail.records import (
    ArtifactReference,
    Digest,
    InvalidRecordError,
    StreamRecord,
    digest_of,
)


def refuse_false_digests(streams: Iterable[StreamRecord]) -> None:
    """Raise for a stream that carries other bytes than its digest names.

    Both bodies and artifacts are found by that digest later.

    Raises:
        InvalidRecordError: there is such a stream.
    """
    for stream in streams:
        if stream.content is not None and digest_of(stream.content) != stream.digest:
            raise InvalidRecordError(f"stream {stream.role!r} has another content than its digest")


class StreamPublisher:
    """Publishes streams of one invocation, from the spool or from memory; used by one thread.

    Args:
        archive: where artifacts go.
        captured: what was captured for this invocation, by digest.
        scratch: this invocation's folder in the spool, for streams that are in memory.
    """

    def __init__(
        self, archive: ArtifactArchive, captured: Mapping[Digest, CapturedStream], scratch: Path
    ) -> None:
        self._archive = archive
        self._captured = captured
        self._scratch = scratch
        self._published: dict[Digest, StoredArtifact] = {}

    def publish(self, stream: StreamRecord) -> ArtifactReference:
        """Publish a stream once and say where it is; see `ArtifactPublisher`.

        Raises:
            InvalidRecordError: a stream that was not captured for this invocation.
            UnavailableError: the sink cannot be written now.
        """
        stored = self._published.get(stream.digest)
        if stored is None:
            stored = self._archive.publish(self._source(stream), scratch=self._scratch)
            self._published[stream.digest] = stored
        return ArtifactReference(path=stored.path)

    def path_of(self, stream: StreamRecord) -> str | None:
        """Where a stream was published, None when it was not."""
        stored = self._published.get(stream.digest)
        return None if stored is None else stored.path

    @property
    def published(self) -> tuple[StoredArtifact, ...]:
        """Everything published so far."""
        return tuple(self._published.values())

    def _source(self, stream: StreamRecord) -> CapturedStream:
        captured = self._captured.get(stream.digest)
        if captured is not None and captured.staged is not None:
            return captured
        if stream.content is None:
            raise InvalidRecordError(
                f"stream {stream.role!r} was not captured for this invocation: "
                "its bytes are not at hand"
            )
        return CapturedStream(stream, None)
