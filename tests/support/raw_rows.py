"""Rows of a table as Python values, for tests that read the database directly."""

from collections.abc import Callable, Mapping
from typing import Any

from sqlalchemy import Boolean, Table
from tests.support import schema

from tooltrail.store.engines.connection import Connection
from tooltrail.store.engines.database import Database
from tooltrail.store.engines.values import digest_from, moment_of, uuid_from

_READERS: Mapping[int, Callable[[Any], Any]] = {
    id(schema.Uuid16): uuid_from,
    id(schema.Moment): moment_of,
    id(schema.Sha256): digest_from,
}


def table_rows(connection: Connection, table: Table, *names: str) -> list[tuple[Any, ...]]:
    """Rows of a table in the order of its key, all columns or some."""
    columns = [table.c[name] for name in names] or list(table.c)
    spelled = ", ".join(f'"{column.name}"' for column in columns)
    order = ", ".join(column.name for column in table.primary_key.columns)
    found = connection.query(f"SELECT {spelled} FROM {table.name} ORDER BY {order}")
    return [
        tuple(_read(column.type, value) for column, value in zip(columns, row, strict=True))
        for row in found
    ]


def all_rows(database: Database) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table."""
    with database.read() as connection:
        return {
            table.name: table_rows(connection, table) for table in schema.metadata.sorted_tables
        }


def _read(kind: object, value: Any) -> Any:
    if value is None:
        return None
    if isinstance(kind, Boolean):
        return bool(value)
    reader = _READERS.get(id(kind))
    if reader is not None:
        return reader(value)
    return value
