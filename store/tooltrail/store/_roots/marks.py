"""Whose artifact root a folder or a bucket is, said by an object in it.

Without it the folder on which a disk is not mounted would be taken for the root, and so would the
root of another store, whose objects all look unreferenced. The object is named after the store, so
that to look for it is one request, and who it belongs to is seen by whoever lists the root.

A mark is never removed for another store: that one cannot know whether this one lives. Of several
that mark a root at the same time at most one keeps it, for each looks once more when its own mark
stands.
"""

import tempfile
from contextlib import suppress
from pathlib import Path
from uuid import UUID

from tooltrail.artifacts import ArtifactSink, make_private_folders
from tooltrail.records import InvalidRecordError, MissingArtifactError, UnavailableError
from tooltrail.store._roots.mark_names import MARK_PREFIX, mark_path


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
        UnavailableError: the root or the temporary file cannot be read or written.
    """
    _refuse_others(sink, store_id)
    if not put_mark(sink, store_id, place, scratch):
        return
    try:
        _refuse_others(sink, store_id)
    except InvalidRecordError:
        unmark_root(sink, store_id)
        raise


def unmark_root(sink: ArtifactSink, store_id: UUID) -> None:
    """Remove the mark of a store; nothing happens when there is none.

    Raises:
        UnavailableError: it cannot be removed.
    """
    with suppress(MissingArtifactError):
        sink.delete(mark_path(store_id))


def refuse_other_roots(sink: ArtifactSink, store_id: UUID) -> None:
    """Raise unless a root is that of a store, and of no other.

    Raises:
        InvalidRecordError: it is not.
        UnavailableError: the root cannot be read.
    """
    _refuse_others(sink, store_id)
    # By the list, since it is not for a missing mark to say that the disk is away.
    if not any(stat.path == mark_path(store_id) for stat in sink.list(MARK_PREFIX)):
        raise InvalidRecordError(
            f"{sink.url} is not marked as the artifact root of this store: there is no file "
            f"{mark_path(store_id)} in it"
        )


def _refuse_others(sink: ArtifactSink, store_id: UUID) -> None:
    own = mark_path(store_id)
    for other in sink.list(MARK_PREFIX):
        if other.path != own:
            raise InvalidRecordError(
                f"{sink.url} is the artifact root of another store, as its file {other.path} says: "
                "an artifact root belongs to one store. When that one is gone, delete the file"
            )


def put_mark(sink: ArtifactSink, store_id: UUID, place: str, scratch: Path | None) -> bool:
    """Put the mark of a store; False when it stands already.

    Raises:
        UnavailableError: see `mark_root`.
    """
    content = (
        f"The artifacts of the Tooltrail store {store_id} are here.\n"
        f"Its database, when this was written: {place}\n"
    )
    return put_text(sink, mark_path(store_id), content, scratch)


def put_text(sink: ArtifactSink, path: str, content: str, scratch: Path | None) -> bool:
    """Put a few words into a root; False when there is something by that name already.

    Raises:
        UnavailableError: see `mark_root`.
    """
    try:
        if scratch is not None:
            make_private_folders(scratch)
        with tempfile.NamedTemporaryFile(prefix="tooltrail-", dir=scratch) as file:
            file.write(content.encode("utf-8", "surrogateescape"))
            file.flush()
            return sink.put(path, Path(file.name))
    except OSError as error:
        raise UnavailableError(f"{sink.url} cannot be marked: {error}") from error
