"""The mark of an artifact root: an object that says which store the root belongs to.

The mark shows that a disk is mounted, and keeps two stores from sharing a root: the objects of the
other one would look like garbage. A store never removes the mark of another store. Of several
stores that mark a root at the same time, at most one keeps it: each one looks again after it wrote
its mark.

Every function raises `UnavailableError` when the root cannot be read or written.
"""

import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final
from uuid import UUID

from tooltrail.artifacts import ArtifactSink, make_private_folders
from tooltrail.records import InvalidRecordError, MissingArtifactError, UnavailableError
from tooltrail.store.roots import MARK_PREFIX, mark_path

_MOST_BYTES: Final = 65_536
"""More than any mark has."""


def mark_root(sink: ArtifactSink, store_id: UUID, place: str, scratch: Path | None = None) -> None:
    """Mark a root as that of a store, durably; nothing happens when it is.

    Args:
        sink: at the root.
        store_id: of the store.
        place: of its database, without credentials; for whoever reads the mark.
        scratch: folder for a temporary file, which is made when it is missing; the system's by
            default.

    Raises:
        InvalidRecordError: the root is that of another store.
    """
    refuse_others(sink, store_id)
    if not put_mark(sink, store_id, place, scratch):
        return
    try:
        refuse_others(sink, store_id)
    except InvalidRecordError:
        unmark_root(sink, store_id)
        raise


def find_own_mark(sink: ArtifactSink, place: str) -> UUID | None:
    """The id in a mark that this host wrote for the database of this place; None without one."""
    for found in sink.list(MARK_PREFIX):
        with suppress(ValueError, MissingArtifactError), sink.open(found.path) as file:
            store_id = UUID(found.path.removeprefix(MARK_PREFIX))
            if file.read(_MOST_BYTES) == _content(store_id, place):
                return store_id
    return None


def unmark_root(sink: ArtifactSink, store_id: UUID) -> None:
    """Remove the mark of a store; nothing happens when there is none."""
    with suppress(MissingArtifactError):
        sink.delete(mark_path(store_id))


def refuse_other_roots(sink: ArtifactSink, store_id: UUID) -> None:
    """Raise `InvalidRecordError` unless a root is that of a store, and of no other."""
    refuse_others(sink, store_id)
    # From the list: asking for the mark by name reports a missing one as an unmounted disk.
    if not any(stat.path == mark_path(store_id) for stat in sink.list(MARK_PREFIX)):
        raise InvalidRecordError(
            f"{sink.url} is not marked as the artifact root of this store: there is no file "
            f"{mark_path(store_id)} in it"
        )


def refuse_others(sink: ArtifactSink, store_id: UUID | None) -> None:
    """Raise `InvalidRecordError` when a root has the mark of a store with another id."""
    own = None if store_id is None else mark_path(store_id)
    for other in sink.list(MARK_PREFIX):
        if other.path != own:
            raise InvalidRecordError(
                f"{sink.url} is the artifact root of another store, as its file {other.path} says: "
                "an artifact root belongs to one store. When that one is gone, delete the file"
            )


def put_mark(sink: ArtifactSink, store_id: UUID, place: str, scratch: Path | None) -> bool:
    """Put the mark of a store; False when it stands already. See `mark_root`."""
    try:
        if scratch is not None:
            make_private_folders(scratch)
        with tempfile.NamedTemporaryFile(prefix="tooltrail-", dir=scratch) as file:
            file.write(_content(store_id, place))
            file.flush()
            return sink.put(mark_path(store_id), Path(file.name))
    except OSError as error:
        raise UnavailableError(f"{sink.url} cannot be marked: {error}") from error


def _content(store_id: UUID, place: str) -> bytes:
    text = (
        f"The artifacts of the Tooltrail store {store_id} are here.\n"
        f"Its database, when this was written: {place} on {os.uname().nodename}\n"
    )
    return text.encode("utf-8", "surrogateescape")
