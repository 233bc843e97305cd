"""The mark of an artifact root: an object that says which store the root belongs to.

The mark shows that a disk is mounted, and prevents two stores from sharing a root: each would see
the objects of the other as garbage. A store never removes the mark of another store. If several
stores mark a root at the same time, at most one gets it: each checks for other marks after it wrote
its own.

Every function raises `UnavailableError` if the root cannot be read or written.
"""

import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final
from uuid import UUID

from tooltrail.artifacts import ArtifactSink, make_private_folders
from tooltrail.records import InvalidRecordError, MissingArtifactError
from tooltrail.records.errors import unavailable_if_failing
from tooltrail.store.roots import MARK_PREFIX, mark_path

_MOST_BYTES: Final = 65_536
"""Most bytes to read of a mark; no mark is as long."""


def mark_root(sink: ArtifactSink, store_id: UUID, place: str, scratch: Path | None = None) -> None:
    """Mark a root as the root of a store, durably. Does nothing if the mark exists.

    `place` is the location of the database, without credentials; for people who read the mark.
    `scratch` is the folder for a temporary file, created if missing; by default the temporary
    folder of the system. Raises `InvalidRecordError` if the root belongs to another store.
    """
    if _check_marks(sink, store_id):
        return
    put_mark(sink, store_id, place, scratch)
    try:
        _check_marks(sink, store_id)
    except InvalidRecordError:
        unmark_root(sink, store_id)
        raise


def find_own_mark(sink: ArtifactSink, place: str) -> UUID | None:
    """The store id in the mark of this host for the database at `place`; None if there is no mark.

    Raises `InvalidRecordError` if the root has another mark. It lists the marks once: a process
    that creates the same store may write its mark at any time.
    """
    own: UUID | None = None
    for found in sink.list(MARK_PREFIX):
        with suppress(MissingArtifactError), sink.open(found.path) as file:
            own = _id_in(found.path)
            if own is None or file.read(_MOST_BYTES) != _content(own, place):
                raise _belongs_to_another(sink, found.path)
    return own


def unmark_root(sink: ArtifactSink, store_id: UUID) -> None:
    """Remove the mark of a store, if there is one."""
    with suppress(MissingArtifactError):
        sink.delete(mark_path(store_id))


def refuse_other_roots(sink: ArtifactSink, store_id: UUID) -> None:
    """Raise `InvalidRecordError` unless a root has the mark of this store and no other mark."""
    if not _check_marks(sink, store_id):
        raise InvalidRecordError(
            f"{sink.url} is not marked as the artifact root of this store: there is no file "
            f"{mark_path(store_id)} in it"
        )


def _check_marks(sink: ArtifactSink, store_id: UUID) -> bool:
    """Whether a root has the mark of a store; raises `InvalidRecordError` if it has another one."""
    # List the marks: a read by name reports a missing mark as an unmounted disk.
    marks = [stat.path for stat in sink.list(MARK_PREFIX)]
    for path in marks:
        if path != mark_path(store_id):
            raise _belongs_to_another(sink, path)
    return bool(marks)


def put_mark(sink: ArtifactSink, store_id: UUID, place: str, scratch: Path | None) -> None:
    """Write the mark of a store, unless the mark exists. See `mark_root`."""
    with unavailable_if_failing(f"{sink.url} cannot be marked"):
        if scratch is not None:
            make_private_folders(scratch)
        with tempfile.NamedTemporaryFile(prefix="tooltrail-", dir=scratch) as file:
            file.write(_content(store_id, place))
            file.flush()
            sink.put(mark_path(store_id), Path(file.name))


def _belongs_to_another(sink: ArtifactSink, path: str) -> InvalidRecordError:
    return InvalidRecordError(
        f"{sink.url} is the artifact root of another store, as its file {path} says; "
        "name another root (--artifacts), or delete the file if that store is gone"
    )


def _id_in(path: str) -> UUID | None:
    with suppress(ValueError):
        return UUID(path.removeprefix(MARK_PREFIX))
    return None


def _content(store_id: UUID, place: str) -> bytes:
    text = (
        f"The artifacts of the Tooltrail store {store_id} are here.\n"
        f"Its database, when this was written: {place} on {os.uname().nodename}\n"
    )
    return text.encode("utf-8", "surrogateescape")
