"""Whose artifact root a folder or a bucket is, said by an object in it.

Without it the folder on which a disk is not mounted would be taken for the root, and so would the
root of another store, whose objects all look unreferenced. The object is named after the store, so
that to look for it is one request, and who it belongs to is seen by whoever lists the root.
"""

import tempfile
from contextlib import suppress
from pathlib import Path
from uuid import UUID

from tooltrail.artifacts import PRIVATE_FOLDER, ArtifactSink
from tooltrail.records import InvalidRecordError, MissingArtifactError, UnavailableError
from tooltrail.store._mark_names import MARK_PREFIX, mark_path


def mark_root(sink: ArtifactSink, store_id: UUID, place: str, scratch: Path | None = None) -> None:
    """Mark a root as that of a store, durably; nothing happens when it is.

    Args:
        sink: at the root.
        store_id: of the store.
        place: of its database, without credentials. The mark of another store with its database
            there gives way: whoever calls this knows that it was never finished.
        scratch: folder for a temporary file, which is made when it is missing; the system's by
            default.

    Raises:
        InvalidRecordError: the root is that of another store.
        UnavailableError: the root or the temporary file cannot be read or written.
    """
    for other in other_marks(sink, store_id):
        if sink.read(other, 0) != _content(other.removeprefix(MARK_PREFIX), place):
            raise InvalidRecordError(_belongs(sink, other))
        sink.delete(other)
    try:
        if scratch is not None:
            scratch.mkdir(PRIVATE_FOLDER, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(prefix="tooltrail-", dir=scratch) as file:
            file.write(_content(str(store_id), place))
            file.flush()
            sink.put(mark_path(store_id), Path(file.name))
    except OSError as error:
        raise UnavailableError(f"{sink.url} cannot be marked: {error}") from error


def unmark_root(sink: ArtifactSink, store_id: UUID) -> None:
    """Remove the mark of a store; nothing happens when there is none, or it cannot be removed."""
    with suppress(MissingArtifactError, UnavailableError):
        sink.delete(mark_path(store_id))


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


def _content(store_id: str, place: str) -> bytes:
    return (
        f"The artifacts of the Tooltrail store {store_id} are here.\n"
        f"Its database, when this was written: {place}\n"
    ).encode("utf-8", "surrogateescape")


def _belongs(sink: ArtifactSink, mark: str) -> str:
    return (
        f"{sink.url} is the artifact root of another store, as its file {mark} says: "
        "an artifact root belongs to one store. When that one is gone, delete the file"
    )
