"""Upgrades the schema of a store, completely or not at all: in one transaction.

Programs that upgrade the same store at the same time wait for each other.
"""

from collections.abc import Generator
from contextlib import closing, contextmanager
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from tooltrail.migrations import HEAD_REVISION
from tooltrail.records.errors import SchemaMismatchError
from tooltrail.store.creating import SCHEMA_LOCK
from tooltrail.store.engines import postgres, sqlite
from tooltrail.store.engines.failures import translated_errors
from tooltrail.store.engines.sqlite_library import sqlite3
from tooltrail.store.engines.targets import SqliteTarget, Target, parse_target
from tooltrail.store.info import required_revision
from tooltrail.store.locking import ingest_lock
from tooltrail.store.opening import open_existing, store_revision

if TYPE_CHECKING:
    import sqlalchemy


def upgrade_store(database: str | Path) -> tuple[str, str]:
    """Upgrade the schema of a store to head, and return the revision before and after.

    Raises:
        StoreNotFoundError: there is no store.
        SchemaMismatchError: this program does not know the revision of the store.
        DamageError, UnavailableError: the database cannot be read; see `translated_errors`.
    """
    target = parse_target(database)
    store_revision(database)  # a file without a store gets no lock file beside it
    # Excludes ingesters, and other programs that upgrade the schema.
    with closing(open_existing(target)) as opened, ingest_lock(opened, exclusive=True):
        with opened.read() as connection:
            before = required_revision(connection)
        if before != HEAD_REVISION:
            from alembic.util import CommandError  # noqa: PLC0415  slow, and once in a store's life

            try:
                migrate(target)
            except CommandError as error:
                found = f"revision {before}, which this program does not know"
                message = f"the store in {target} is at {found}; use the program that wrote it"
                raise SchemaMismatchError(message, found=before, expected=HEAD_REVISION) from error
    return before, HEAD_REVISION


def migrate(target: Target) -> None:
    """Run the migrations to head, in one transaction, in an existing database.

    Raises `CommandError` if alembic does not know the revision of the database.
    """
    from alembic import command  # noqa: PLC0415  see `upgrade_store`
    from alembic.config import Config  # noqa: PLC0415  see `upgrade_store`

    config = Config()
    config.set_main_option("script_location", str(files("tooltrail.migrations")))
    with translated_errors(target), _transaction(target) as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, HEAD_REVISION)


@contextmanager
def _transaction(target: Target) -> "Generator[sqlalchemy.Connection]":
    from sqlalchemy import create_engine  # noqa: PLC0415  see `upgrade_store`
    from sqlalchemy.exc import DBAPIError  # noqa: PLC0415  see `upgrade_store`

    # The driver is in autocommit mode, so that `begin` below starts the transaction.
    if isinstance(target, SqliteTarget):
        path, begin = target.path, ["BEGIN IMMEDIATE"]
        engine = create_engine(
            "sqlite://", creator=lambda: sqlite.connect(path, is_migration=True), module=sqlite3
        )
    else:
        begin = ["BEGIN", f"SELECT pg_advisory_xact_lock({SCHEMA_LOCK})"]
        engine = create_engine("postgresql+psycopg://", creator=lambda: postgres.connect(target))
    try:
        with engine.connect() as connection:
            for statement in begin:
                connection.exec_driver_sql(statement)
            yield connection
            connection.commit()
    except DBAPIError as error:
        raise (error.orig or error) from error
    finally:
        engine.dispose()
