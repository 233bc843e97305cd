"""Makes the long streams of one invocation durable, and remembers where each went."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from tooltrail.artifacts import (
    ArtifactArchive,
    CapturedStream,
    StoredArtifact,
    sync_file,
    sync_folder,
)
from tooltrail.records import (
    ArtifactReference,
    Digest,
    InvalidRecordError,
    MissingArtifactError,
    Postponed,
    StreamRecord,
    UnavailableError,
    digest_of,
)
from tooltrail.records.tool_calls import storable


def refuse_false_digests(streams: Iterable[StreamRecord]) -> None:
    """Raise for a stream that carries other bytes than its digest names.

    Both bodies and artifacts are found by that digest later.

    Raises:
        InvalidRecordError: there is such a stream.
    """
    for stream in streams:
        if stream.content is not None and digest_of(stream.content) != stream.digest:
            raise InvalidRecordError(f"stream {stream.role!r} has another content than its digest")


_BODY = "kept in the database"
"""Where the bytes of a stream in memory are that could not become an artifact."""

_ATTEMPTS = 10
"""Publications of a stream before giving up: each one more was pruned while it was being done."""


def _nothing() -> None:
    """What there is to do for an invocation that is in the spool already."""


class StreamPublisher:
    """Publishes streams of one invocation, from the spool or from memory; used by one thread.

    Args:
        archive: where artifacts go.
        captured: what was captured for this invocation, by digest.
        scratch: this invocation's folder in the spool, for streams that are in memory.
        away: why the sink need not be asked; None when it is to be found out.
        claim: called before something is put into the scratch folder.
    """

    def __init__(
        self,
        archive: ArtifactArchive,
        captured: Mapping[Digest, CapturedStream],
        scratch: Path,
        away: Postponed | None = None,
        *,
        claim: Callable[[], None] = _nothing,
    ) -> None:
        self._claim = claim
        self._archive = archive
        self._captured = captured
        self._scratch = scratch
        self._published: dict[Digest, StoredArtifact] = {}
        self._sources: dict[Digest, CapturedStream] = {}
        self._postponed: set[Digest] = set()
        self._away = away

    def publish(self, stream: StreamRecord) -> ArtifactReference | Postponed:
        """Publish a stream once and say where it is; see `ArtifactPublisher`.

        Once the sink was away it is not asked again: a record must not wait for it many times.

        Raises:
            InvalidRecordError: a stream that was not captured for this invocation.
            DamageError: its spool file was cut since.
            UnavailableError: it is to wait in the spool, and that cannot be synced.
        """
        if stream.digest not in self._published:
            source = self._source(stream)
            if self._away is None:
                self._try(stream, source)
            if self._away is not None:
                is_known = stream.digest in self._postponed
                if stream.content is None and source.staged is not None and not is_known:
                    self._keep(stream.role, source.staged)
                self._postponed.add(stream.digest)
                return self._away if stream.content is None else self._away._replace(place=_BODY)
        return ArtifactReference(path=self._published[stream.digest].path)

    @property
    def away(self) -> Postponed | None:
        """Why the sink could not be written; None when it could."""
        return self._away

    def postponed_reason(self, stream: StreamRecord) -> str | None:
        """Why a stream waits in the spool; None for one that is stored, here or as a body."""
        if self._away is None or stream.digest not in self._postponed or stream.content is not None:
            return None
        return storable(self._away.reason)

    def leave(self, stream: StreamRecord, reason: str) -> None:
        """Have a stream wait in the spool, as was told of it already; nothing is asked or synced.

        To be called after everything that is published.
        """
        self._away = Postponed(reason)
        self._postponed.add(stream.digest)

    def _keep(self, role: str, staged: Path) -> None:
        """Make the file in which a stream waits durable, since the record refers to nothing else.

        Raises:
            UnavailableError: it is not.
        """
        try:
            sync_file(staged)
            # Its name in the folder of the invocation, and the name of that in the spool.
            for folder in staged.parents:
                if folder.is_relative_to(self._scratch.parent):
                    sync_folder(folder)
        except OSError as error:
            raise UnavailableError(
                f"stream {role!r} cannot wait in the spool: {error.strerror}"
            ) from error

    def _try(self, stream: StreamRecord, source: CapturedStream) -> None:
        try:
            self._published[stream.digest] = self._stored(source)
        except UnavailableError as error:
            self._away = Postponed(str(error))
        else:
            self._sources[stream.digest] = source

    def move_to(self, archive: ArtifactArchive) -> None:
        """Publish there from now on; what was published is not there yet."""
        self._archive = archive

    def republish_missing(self) -> None:
        """Publish anew what does not stand in the archive any more.

        Raises:
            UnavailableError: the sink cannot serve now.
        """
        for digest, stored in self._published.items():
            if not self._archive.exists(stored.path):
                self._published[digest] = self._stored(self._sources[digest])

    def path_of(self, stream: StreamRecord) -> str | None:
        """Where a stream was published, None when it was not."""
        stored = self._published.get(stream.digest)
        return None if stored is None else stored.path

    @property
    def published(self) -> tuple[StoredArtifact, ...]:
        """Everything published so far."""
        return tuple(self._published.values())

    @property
    def sources(self) -> tuple[tuple[StreamRecord, str], ...]:
        """Each stream that was published, and the path of its artifact."""
        return tuple((self._sources[d].record, s.path) for d, s in self._published.items())

    @property
    def damages(self) -> tuple[str, ...]:
        """What is known to be damaged of that, each in one sentence."""
        return tuple(stored.damage for stored in self.published if stored.damage is not None)

    def _stored(self, source: CapturedStream) -> StoredArtifact:
        for _ in range(_ATTEMPTS - 1):
            # An old object may be found there and be pruned before it is looked at once more.
            with suppress(MissingArtifactError):
                return self._publish(source)
        return self._publish(source)

    def _publish(self, source: CapturedStream) -> StoredArtifact:
        self._claim()
        return self._archive.publish(source, scratch=self._scratch)

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
