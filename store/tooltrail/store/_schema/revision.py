"""The schema's revision: reading it, checking it, moving it. Only moving it imports alembic."""

import os
import threading
from collections.abc import Callable
from importlib.resources import as_file, files
from typing import TYPE_CHECKING

from sqlalchemy import Connection, Text, column, inspect, select, table, text

from tooltrail.migrations import HEAD_REVISION, VERSION_TABLE
from tooltrail.records import DamageError, SchemaMismatchError, StoreNotFoundError
from tooltrail.store._engines.targets import Target

if TYPE_CHECKING:
    from alembic.config import Config

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


def required_revision(connection: Connection, target: Target) -> str:
    """The schema revision of a store.

    Raises:
        StoreNotFoundError: there is no store in this database.
    """
    found = read_revision(connection)
    if found is None:
        raise StoreNotFoundError(f"no store in {target}; create one with `tooltrail init`")
    return found


def check_revision(connection: Connection, target: Target) -> None:
    """Raise unless the store is at head.

    Raises:
        StoreNotFoundError: there is no store in this database.
        SchemaMismatchError: the store is of another revision.
    """
    found = required_revision(connection, target)
    if found != HEAD_REVISION:
        raise SchemaMismatchError(
            f"the store in {target} is at revision {found}, this program needs {HEAD_REVISION}; "
            "run `tooltrail db upgrade`, or use the program that wrote it",
            found=found,
            expected=HEAD_REVISION,
        )


def migrate_within(connection: Connection, target: Target, revision: str = "head") -> None:
    """Bring the schema up to a revision within the caller's transaction.

    The foreign keys of its connection must be off on SQLite.

    Raises:
        SchemaMismatchError: the store is of a revision that this program does not know.
        DamageError: rows that point nowhere, found after the migration.
    """
    from alembic import command  # noqa: PLC0415  slow to import, and opening a store never needs it

    _run(connection, target, lambda config: command.upgrade(config, revision))


def revert_within(connection: Connection, target: Target, revision: str) -> None:
    """Bring the schema down to an earlier revision; otherwise as `migrate_within`."""
    from alembic import command  # noqa: PLC0415  the same

    _run(connection, target, lambda config: command.downgrade(config, revision))


def known_revisions() -> list[str]:
    """Every revision that this program can make, the oldest first."""
    from alembic.script import ScriptDirectory  # noqa: PLC0415  the same

    with as_file(files("tooltrail.migrations")) as folder:
        history = [one.revision for one in ScriptDirectory(str(folder)).walk_revisions()]
    return history[::-1]


def _run(connection: Connection, target: Target, step: Callable[["Config"], object]) -> None:
    from alembic.config import Config  # noqa: PLC0415  the same
    from alembic.util import CommandError  # noqa: PLC0415

    lock_schema(connection)
    with as_file(files("tooltrail.migrations")) as folder:
        config = Config()
        config.set_main_option("script_location", str(folder).replace("%", "%%"))
        config.attributes["connection"] = connection
        found = read_revision(connection)
        try:
            with _Alembic.lock:
                step(config)
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
