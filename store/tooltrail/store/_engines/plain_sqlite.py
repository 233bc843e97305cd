"""An SQLite store as the standard library alone can read it, for questions that must be quick.

Whoever asks waits for nobody, records nothing, leaves no file behind, and goes to `open_store`
whenever anything is unusual: that one has words for it.
"""

import os
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote
from uuid import UUID

from tooltrail.migrations import HEAD_REVISION, VERSION_TABLE
from tooltrail.store._engines.forks import no_fork, refusal
from tooltrail.store._engines.sqlite import sqlite3

_FORMAT = 1
"""The layout of artifacts that is read here; see `info.FORMAT`."""

_SQLITE = "sqlite:///"
_SIDE_FILES = ("-wal", "-shm")

_REVISION = f"SELECT version_num FROM {VERSION_TABLE}"  # noqa: S608  a constant
_INFO = "SELECT format, id, artifact_root FROM store_info"


class PlainInfo(NamedTuple):
    """What the store's own row says.

    Attributes:
        id: of the store.
        artifact_root: as the store remembers it.
    """

    id: UUID
    artifact_root: str


def plain_file_of(database: str) -> Path | None:
    """The file of an SQLite store; None for any other, and where a URL says more than the path."""
    name = database.removeprefix(_SQLITE)
    # What a URL says besides the path is for others to read.
    if "://" in name or (name != database and not {"?", "%", "#"}.isdisjoint(name)):
        return None
    try:
        return Path(os.path.realpath(Path(name).expanduser()))
    except (RuntimeError, ValueError):  # no home folder; a NUL
        return None


@contextmanager
def plain_connection(file: Path) -> Generator[sqlite3.Connection]:
    """A connection for a few questions, closed after them.

    Even who only reads needs two files beside the database. SQLite makes them where they are not
    there, and the last who may write removes them. One who may not would leave them behind, where
    the owner of the store may have no right to them and could record nothing any more.

    Raises:
        sqlite3.Error: there is no such file, or it cannot be read now, or not without a trace.
    """
    if os.access(file, os.W_OK):
        mode = "rw"
    elif all(file.with_name(file.name + end).exists() for end in _SIDE_FILES):
        mode = "ro"
    else:
        raise sqlite3.OperationalError(f"{file}: to read it would leave files beside it")
    refused = refusal(file)
    if refused is not None:
        raise sqlite3.OperationalError(refused)
    uri = f"file:{quote(os.fsencode(file))}?mode={mode}"
    with (
        no_fork(file),
        closing(sqlite3.connect(uri, uri=True, timeout=0, isolation_level=None)) as connection,
    ):
        yield connection


def plain_info(connection: sqlite3.Connection) -> PlainInfo | None:
    """The store's own row; None unless the store is of this program's revision and format.

    Raises:
        sqlite3.Error: it cannot be read.
    """
    revisions = connection.execute(_REVISION).fetchall()
    infos = connection.execute(_INFO).fetchall()
    match revisions, infos:
        case [[revision]], [[layout, bytes() as store_id, str(root)]]:
            is_known = revision == HEAD_REVISION and layout == _FORMAT
            return PlainInfo(UUID(bytes=store_id), root) if is_known else None
        case _:
            return None
