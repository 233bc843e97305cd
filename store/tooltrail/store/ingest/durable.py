"""Makes commits survive a power cut, before the journal deletes its copy of the facts."""

from contextlib import suppress
from pathlib import Path

from tooltrail.artifacts import sync_path
from tooltrail.records.errors import unavailable_if_failing
from tooltrail.store.engines.database import Database
from tooltrail.store.engines.targets import SqliteTarget


def make_durable(database: Database) -> None:
    """Wait until every committed transaction survives a power cut.

    Commits of the ingester do not wait for the disk, since the journal still has their facts.
    """
    if isinstance(database.target, SqliteTarget):
        path = database.target.path
        # Pages that left the WAL were synced by the checkpoint. The database file must not be
        # opened here: closing it would drop all locks of this process on it.
        sync(path.with_name(f"{path.name}-wal"))
        sync(path.parent)
        return
    with database.write() as connection:
        # A commit that waits for the disk also waits for all earlier commits. A transaction that
        # wrote nothing to the WAL does not wait, so this one writes a message that nobody reads.
        connection.query("SELECT set_config('synchronous_commit', 'on', true)")
        connection.query("SELECT pg_logical_emit_message(true, 'tooltrail', '')")


def sync(path: Path) -> None:
    """Make a file, or the names in a folder, survive a power cut, if the path exists."""
    with unavailable_if_failing(f"{path} cannot be synced"), suppress(FileNotFoundError):
        sync_path(path)
