"""The schema's revision: reading it, checking it, moving it. Only `migrate` imports alembic."""

import os
import threading
from importlib.resources import as_file, files

from sqlalchemy import Connection, Text, column, inspect, select, table, text

from tooltrail.migrations import HEAD_REVISION, VERSION_TABLE
from tooltrail.records import DamageError, SchemaMismatchError, StoreNotFoundError
from tooltrail.store._database import Database
from tooltrail.store._targets import Target

_MIGRATION_LOCK = 0x746F6F6C
"""PostgreSQL advisory lock that keeps two migrations apart ("tool" in ASCII)."""


class _Alembic:
    """alembic keeps its configuration in module globals: one migration at a time in a process."""

    lock = threading.Lock()


def _renew_lock() -> None:
    _Alembic.lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


def read_revision(connection: Connection) -> str | None:
    """The schema revision, None when the database holds no store."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    version = table(VERSION_TABLE, column("version_num", Text))
    return connection.scalar(select(version.c.version_num))


def check_revision(connection: Connection, target: Target) -> None:
    """Raise unless the store is at head.

    Raises:
        StoreNotFoundError: there is no store in this database.
        SchemaMismatchError: the store is of another revision.
    """
    found = read_revision(connection)
    if found is None:
        raise StoreNotFoundError(f"no store in {target}; create one with `tooltrail init`")
    if found != HEAD_REVISION:
        raise SchemaMismatchError(
            f"the store in {target} is at revision {found}, this program needs {HEAD_REVISION}; "
            "run `tooltrail db upgrade`, or use the program that wrote it",
            found=found,
            expected=HEAD_REVISION,
        )


def migrate(database: Database, revision: str = "head") -> None:
    """Bring the schema to a revision within one transaction.

    Raises:
        SchemaMismatchError: the store is of a revision that this program does not know.
        DamageError: rows that point nowhere, found after the migration and rolled back.
    """
    with database.write() as connection:
        migrate_within(connection, database.target, revision)


def migrate_within(connection: Connection, target: Target, revision: str = "head") -> None:
    """The same within the caller's transaction, whose foreign keys must be off on SQLite."""
    from alembic import command  # noqa: PLC0415  slow to import, and opening a store never needs it
    from alembic.config import Config  # noqa: PLC0415
    from alembic.util import CommandError  # noqa: PLC0415

    lock_schema(connection)
    with as_file(files("tooltrail.migrations")) as folder:
        config = Config()
        config.set_main_option("script_location", str(folder).replace("%", "%%"))
        config.attributes["connection"] = connection
        found = read_revision(connection)
        try:
            with _Alembic.lock:
                command.upgrade(config, revision)
        except CommandError as error:
            raise SchemaMismatchError(
                f"the store in {target} is at revision {found}, which this program does not know",
                found=found,
                expected=HEAD_REVISION,
            ) from error
    _check_foreign_keys(connection, target)


def lock_schema(connection: Connection) -> None:
    """Keep other migrations out until the transaction ends; SQLite's own lock does so already."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _MIGRATION_LOCK})


def _check_foreign_keys(connection: Connection, target: Target) -> None:
    if connection.dialect.name != "sqlite":
        return
    broken = connection.exec_driver_sql("PRAGMA foreign_key_check").first()
    if broken is not None:
        raise DamageError(f"database {target}: a row of {broken[0]} points nowhere", path=broken[0])
