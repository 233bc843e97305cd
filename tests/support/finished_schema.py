"""The finished schema of a store, made from one script instead of by all migrations in turn.

To make a store by its migrations takes thirty times as long as to read the script once and run it.
Tests of the migrations themselves call `migrate_within` and are not affected.
"""

import io
from functools import cache
from typing import Any, cast

from alembic import command
from sqlalchemy import Connection
from tests.support.schema import alembic_config

from tooltrail.store._engines.prepared import driver_of
from tooltrail.store._engines.sqlite import sqlite3
from tooltrail.store._engines.targets import SqliteTarget, Target
from tooltrail.store._schema.revision import migrate_within


def make_schema(connection: Connection, target: Target, revision: str = "head") -> None:
    """What `migrate_within` leaves in an empty database; in any other, `migrate_within` itself."""
    if revision != "head" or not _is_empty(connection):
        migrate_within(connection, target, revision)
    elif isinstance(target, SqliteTarget):
        for statement in _sqlite_statements():
            connection.exec_driver_sql(statement)
    else:
        # Without values, so that the server takes all statements at once.
        cast("Any", driver_of(connection)).execute(_script("postgresql"))


def _is_empty(connection: Connection) -> bool:
    """Whether nothing but the table of a store that is being made is there."""
    names = connection.dialect.get_table_names(connection)
    return names == ["store_being_made"]


@cache
def _script(dialect: str) -> str:
    """The statements of all migrations, without those that begin and end transactions."""
    config = alembic_config()
    config.attributes["dialect"] = dialect
    command.upgrade(config, "head", sql=True)
    assert isinstance(config.output_buffer, io.StringIO)
    lines = config.output_buffer.getvalue().splitlines()
    return "\n".join(line for line in lines if line not in {"BEGIN;", "COMMIT;"})


@cache
def _sqlite_statements() -> tuple[str, ...]:
    """The statements that the finished schema consists of, and the row with its revision."""
    finished = sqlite3.connect(":memory:")
    finished.executescript(_script("sqlite"))
    made = [
        str(sql)
        for (sql,) in finished.execute(
            "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid"
        )
    ]
    ((revision,),) = finished.execute("SELECT version_num FROM tooltrail_version")
    finished.close()
    return (*made, f"INSERT INTO tooltrail_version VALUES ('{revision}')")
