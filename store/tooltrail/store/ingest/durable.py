"""Makes what was committed survive a power cut, before the journal gives up its copy."""

from pathlib import Path

from tooltrail.artifacts import sync_file
from tooltrail.records.errors import UnavailableError
from tooltrail.store.engines.database import Database
from tooltrail.store.engines.targets import SqliteTarget


def make_durable(database: Database) -> None:
    """Return when every committed transaction survives a power cut.

    Commits of the ingester do not wait for the disk, since the journal still has their facts.

    Raises:
        UnavailableError: the disk or the server failed.
    """
    if isinstance(database.target, SqliteTarget):
        path = database.target.path
        # What is not in the log any more was synced when SQLite moved it. The database itself must
        # not be opened here: closing it would give up the locks of this process.
        sync(path.with_name(f"{path.name}-wal"))
        sync(path.parent)
        return
    with database.write() as connection:
        # A commit that waits for the disk waits for all commits before it. Only a transaction with
        # an id is written there.
        connection.query("SELECT set_config('synchronous_commit', 'on', true)")
        connection.query("SELECT txid_current()")


def sync(path: Path) -> None:
    """Make a file or the names in a folder survive a power cut, if the path is there.

    Raises:
        UnavailableError: the disk failed.
    """
    try:
        sync_file(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise UnavailableError(f"{path} cannot be synced: {error.strerror}") from error
