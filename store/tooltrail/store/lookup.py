"""Finds one artifact, or the id, of an SQLite store by the standard library alone.

Whoever wants the last lines of an artifact needs one row, and would wait longer for the database
toolkit to be imported than for the lines. This asks for that row and nothing else, changes nothing,
and answers None whenever anything is unusual: `open_store` is asked then, which has words for it.
"""

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote
from uuid import UUID

from tooltrail.migrations import HEAD_REVISION, VERSION_TABLE
from tooltrail.store._mark_names import mark_path

_FORMAT = 1
"""The layout of artifacts that is read here; see `info.FORMAT`."""

_SQLITE = "sqlite:///"

_REVISION = f"SELECT version_num FROM {VERSION_TABLE}"  # noqa: S608  a constant
_STORE_ID = "SELECT id FROM store_info"
_INFO = "SELECT format, id, artifact_root FROM store_info"
# What begins so lies before what goes on with a character that no path has.
_ARTIFACT = (
    "SELECT path, size, line_count, frame_index FROM artifacts"
    " WHERE path >= ?1 AND path < ?1 || '~' LIMIT 2"
)


class ArtifactPlace(NamedTuple):
    """An artifact, and where it is.

    Attributes:
        root: the artifact root, a URL or an absolute path.
        mark: the object without which that is not the root of the store; see `defer_sink`.
        path: relative to it.
        size: plain bytes.
        line_count: lines of the plain bytes.
        frame_index: where its frames are, None when the row does not say.
    """

    root: str
    mark: str
    path: str
    size: int
    line_count: int
    frame_index: bytes | None


def look_up_artifact(database: str, beginning: str) -> ArtifactPlace | None:
    """The only artifact whose path begins so, in a store of this program's revision.

    Args:
        database: as for `open_store`.
        beginning: of the path.

    Returns:
        None when the store is no such file, when it or the artifact is not there, when there are
        several, or when they cannot be read now.
    """
    file = _file_of(database)
    if file is None:
        return None
    try:
        with closing(_connected(file)) as connection:
            return _found(connection, file, beginning)
    except (sqlite3.Error, OSError, ValueError):
        return None


def look_up_store_id(database: str) -> UUID | None:
    """The id of a store in a file, also when it cannot be opened now, its disk full for instance.

    Args:
        database: as for `open_store`.

    Returns:
        None when the store is no such file, or cannot be read at once.
    """
    file = _file_of(database)
    if file is None:
        return None
    try:
        with closing(_connected(file)) as connection:
            match connection.execute(_STORE_ID).fetchall():
                case [[bytes() as store_id]]:
                    return UUID(bytes=store_id)
                case _:
                    return None
    except (sqlite3.Error, OSError, ValueError):
        return None


def _found(connection: sqlite3.Connection, file: Path, beginning: str) -> ArtifactPlace | None:
    connection.execute("BEGIN")
    revisions = connection.execute(_REVISION).fetchall()
    infos = connection.execute(_INFO).fetchall()
    rows = connection.execute(_ARTIFACT, (beginning,)).fetchall()
    if revisions != [(HEAD_REVISION,)] or [info[0] for info in infos] != [_FORMAT]:
        return None
    match infos, rows:
        case (
            [[_, bytes() as store_id, str(root)]],
            [[str(path), int(size), int(lines), bytes() | None as index]],
        ):
            place = root if "://" in root else str(file.parent / root)
            mark = mark_path(UUID(bytes=store_id))
            return ArtifactPlace(place, mark, path, size, lines, index)
        case _:
            return None


def _connected(file: Path) -> sqlite3.Connection:
    # It waits for nobody and can write nothing: not even a checkpoint at its end.
    uri = f"file:{quote(os.fsencode(file))}?mode=ro"
    return sqlite3.connect(uri, uri=True, timeout=0, isolation_level=None)


def _file_of(database: str) -> Path | None:
    name = database.removeprefix(_SQLITE)
    # What a URL says besides the path is for others to read.
    if "://" in name or (name != database and not {"?", "%", "#"}.isdisjoint(name)):
        return None
    try:
        return Path(os.path.realpath(Path(name).expanduser()))
    except (RuntimeError, ValueError):  # no home folder; a NUL
        return None
