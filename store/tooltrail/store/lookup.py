"""Finds one artifact, or the id, of an SQLite store by the standard library alone.

Whoever wants the last lines of an artifact needs one row, and would wait longer for the database
toolkit to be imported than for the lines. This asks for that row and nothing else, changes nothing,
and answers None whenever anything is unusual: `open_store` is asked then, which has words for it.
"""

from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from tooltrail.store._engines.plain_sqlite import plain_connection, plain_file_of, plain_info
from tooltrail.store._engines.sqlite import sqlite3
from tooltrail.store._roots.mark_names import mark_path

_STORE_ID = "SELECT id FROM store_info"
# What begins so lies before what goes on with a character that no path has.
_ARTIFACT = "SELECT path, size FROM artifacts WHERE path >= ?1 AND path < ?1 || '~' LIMIT 2"


class ArtifactPlace(NamedTuple):
    """An artifact, and where it is.

    Attributes:
        root: the artifact root, a URL or an absolute path.
        mark: the object without which that is not the root of the store; see `defer_sink`.
        path: relative to it.
        size: plain bytes.
    """

    root: str
    mark: str
    path: str
    size: int


def look_up_artifact(database: str, beginning: str) -> ArtifactPlace | None:
    """The only artifact whose path begins so, in a store of this program's revision.

    Args:
        database: as for `open_store`.
        beginning: of the path.

    Returns:
        None when the store is no such file, when it or the artifact is not there, when there are
        several, or when they cannot be read now.
    """
    file = plain_file_of(database)
    if file is None:
        return None
    try:
        with plain_connection(file) as connection:
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
    file = plain_file_of(database)
    if file is None:
        return None
    try:
        with plain_connection(file) as connection:
            match connection.execute(_STORE_ID).fetchall():
                case [[bytes() as store_id]]:
                    return UUID(bytes=store_id)
                case _:
                    return None
    except (sqlite3.Error, OSError, ValueError):
        return None


def _found(connection: sqlite3.Connection, file: Path, beginning: str) -> ArtifactPlace | None:
    connection.execute("BEGIN")
    info = plain_info(connection)
    rows = connection.execute(_ARTIFACT, (beginning,)).fetchall()
    match rows:
        case [[str(path), int(size)]] if info is not None:
            root = info.artifact_root
            place = root if "://" in root else str(file.parent / root)
            return ArtifactPlace(place, mark_path(info.id), path, size)
        case _:
            return None
