"""Streams that could not be stored when their invocation ended: they are stored from the spool.

The row of such a stream says why it had to wait, and is never changed. Its digest is what leads to
the artifact that it becomes, so that one row of `artifacts` is all that is missing.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from tooltrail.artifacts import CapturedStream, artifact_path
from tooltrail.journal.clock import now
from tooltrail.records import Postponed, UnavailableError
from tooltrail.store._recording.finishing import write_artifacts
from tooltrail.store._recording.publisher import StreamPublisher
from tooltrail.store._recording.upkeep import ensure_standing
from tooltrail.store.views import StreamView

if TYPE_CHECKING:
    from tooltrail.store.store import Store


def is_stored(store: "Store", stream: StreamView) -> bool:
    """Whether the bytes of a stream are in the database or in the sink.

    Raises:
        UnavailableError: one of them cannot be asked.
    """
    path = stream.artifact_path
    if stream.postponed_reason is not None:
        path = artifact_path(stream.digest)
        if not store.reader.artifacts(beginning=path):
            return False
    return path is None or store.archive.exists(path)


def store_postponed(store: "Store", streams: Iterable[CapturedStream], scratch: Path) -> None:
    """Publish streams and write the rows of their artifacts.

    Raises:
        DamageError: a staged file was cut.
        UnavailableError: the sink or the database cannot be written now.
    """
    seen = store.upkeep
    captured = {stream.record.digest: stream for stream in streams}
    publisher = StreamPublisher(store.archive, captured, scratch)
    for stream in captured.values():
        found = publisher.publish(stream.record)
        if isinstance(found, Postponed):
            raise UnavailableError(found.reason)
    with store.database.write() as connection:
        ensure_standing(connection, store, publisher, seen)
        write_artifacts(connection, publisher, now())
