"""One row in every table, made from the schema itself, so that a new table cannot be forgotten."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Boolean, Column, Connection, LargeBinary, Table, func, insert, select

from tooltrail.store import Store
from tooltrail.store.tables import metadata
from tooltrail.store.tables._types import AnyText, UtcTime, Uuid16

MOMENT = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)

CHECKED: dict[str, dict[str, Any]] = {
    "bodies": {"encoding": "raw", "data": b"x"},
    "invocations": {"state": "started"},
    "idempotency_keys": {"kind": "session"},
    "maintenance_runs": {"kind": "gc"},
    "omissions": {"before_count": 2, "after_count": 1},
    "tombstones": {"kind": "artifact"},
}
"""Values that CHECK constraints ask for."""


def row_for(table: Table) -> dict[str, Any]:
    """A value for every column that must have one; equal for columns that refer to each other."""
    required = {
        column.name: value_for(column)
        for column in table.columns
        if not column.nullable or column.primary_key
    }
    return required | CHECKED.get(table.name, {})


def value_for(column: Column[Any]) -> object:
    """A value of the column's type."""
    values: dict[type, object] = {
        AnyText: "x",
        UtcTime: MOMENT,
        Uuid16: UUID(int=7),
        LargeBinary: b"x",
        Boolean: True,
    }
    return values.get(type(column.type), 1)


def fill_every_table(connection: Connection) -> None:
    """One row in every table that has none."""
    for table in metadata.sorted_tables:
        if connection.execute(select(table).limit(1)).first() is None:
            connection.execute(insert(table).values(row_for(table)))


def all_rows(connection: Connection) -> dict[str, list[tuple[Any, ...]]]:
    return {
        table.name: [tuple(row) for row in connection.execute(select(table))]
        for table in metadata.sorted_tables
    }


def row_counts(store: Store) -> dict[str, int]:
    """How many rows each table of a store has."""
    with store.database.read() as connection:
        return {
            name: connection.scalar(select(func.count()).select_from(table)) or 0
            for name, table in metadata.tables.items()
        }
