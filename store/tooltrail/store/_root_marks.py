"""Whose artifact root a folder or a bucket is, said by an object in it.

Without it the folder on which a disk is not mounted would be taken for the root, and so would the
root of another store, whose objects all look unreferenced. The object is named after the store, so
that to look for it is one request, and who it belongs to is seen by whoever lists the root.
"""

import tempfile
from pathlib import Path
from uuid import UUID

from tooltrail.artifacts import ArtifactSink
from tooltrail.records import InvalidRecordError
from tooltrail.store._mark_names import MARK_PREFIX, mark_path
from tooltrail.store._references import is_artifact


def mark_root(sink: ArtifactSink, store_id: UUID) -> None:
    """Mark a root as that of a store, durably; nothing happens when it is.

    A mark of another store that has no artifact here is removed: that store was never finished, or
    has left.

    Raises:
        InvalidRecordError: another store has its artifacts here.
        UnavailableError: the root cannot be read or written.
    """
    for other in other_marks(sink, store_id):
        if any(is_artifact(stat.path) for stat in sink.list()):
            raise InvalidRecordError(_belongs(sink, other))
        sink.delete(other)
    with tempfile.NamedTemporaryFile(prefix="tooltrail-") as file:
        file.write(f"The artifacts of the Tooltrail store {store_id} are here.\n".encode())
        file.flush()
        sink.put(mark_path(store_id), Path(file.name))


def refuse_other_roots(sink: ArtifactSink, store_id: UUID) -> None:
    """Raise unless a root is that of a store, and of no other.

    Raises:
        InvalidRecordError: it is not.
        UnavailableError: the root cannot be read.
    """
    for other in other_marks(sink, store_id):
        raise InvalidRecordError(_belongs(sink, other))
    # By the list, since it is not for a missing mark to say that the disk is away.
    if not any(stat.path == mark_path(store_id) for stat in sink.list(MARK_PREFIX)):
        raise InvalidRecordError(
            f"{sink.url} is not marked as the artifact root of this store: there is no file "
            f"{mark_path(store_id)} in it"
        )


def other_marks(sink: ArtifactSink, store_id: UUID) -> list[str]:
    """The marks of other stores in a root.

    Raises:
        UnavailableError: the root cannot be read.
    """
    own = mark_path(store_id)
    return [stat.path for stat in sink.list(MARK_PREFIX) if stat.path != own]


def _belongs(sink: ArtifactSink, mark: str) -> str:
    return (
        f"{sink.url} is the artifact root of another store, as its file {mark} says: "
        "an artifact root belongs to one store"
    )
