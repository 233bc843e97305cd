"""Triggers keep the evidence append-only, but for the few changes that a life makes."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import Boolean, Column, LargeBinary, Text
from tests.support import schema
from tests.support.every_fact import AT, fill
from tests.support.raw_rows import all_rows
from tests.support.store_parts import StoreParts, store_parts

from tooltrail.records import InvalidRecordError, digest_of
from tooltrail.store.column_groups import CLOSING, ENDING, OPENING, OUTCOME

APPEND_ONLY = [table for table in schema.EVIDENCE if table is not schema.store_info]


@pytest.fixture(params=["sqlite", "postgresql"])
def filled(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StoreParts]:
    """A store with rows of every kind, whose guards stand."""
    target = str(tmp_path / "trail.db")
    if request.param == "postgresql":
        target = request.getfixturevalue("postgres_url")
    with store_parts(target, tmp_path) as store:
        fill(store, guarded=True)
        yield store


def refused(store: StoreParts, *statements: str) -> None:
    """Each statement fails because of a guard, and changes no row."""
    before = all_rows(store.database)
    for statement in statements:
        with pytest.raises(InvalidRecordError, match="is append-only"), store.database.write() as c:
            c.execute(statement)
    assert all_rows(store.database) == before


def test_no_row_can_be_deleted(filled: StoreParts) -> None:
    refused(
        filled,
        *(f"DELETE FROM {table.name}" for table in schema.EVIDENCE if rows(filled, table.name)),
    )


def test_no_row_can_be_updated_not_even_to_itself(filled: StoreParts) -> None:
    changes = {"invocations", "surfaces", "sessions", "bodies"}
    for table in APPEND_ONLY:
        if table.name not in changes and rows(filled, table.name):
            refused(
                filled, *(f'UPDATE {table.name} SET "{c.name}" = "{c.name}"' for c in table.columns)
            )


@pytest.mark.parametrize(
    ("table", "names", "where"),
    [
        ("invocations", {*schema.invocations.c.keys()} - {*ENDING}, "state = 'started'"),
        ("invocations", {*schema.invocations.c.keys()}, "state <> 'started'"),
        ("surfaces", {"invocation_key", "arguments", *OUTCOME}, "receipt IS NOT NULL"),
        ("sessions", {"id", "opened_at", "journal_key"}, "closed_at IS NULL"),
        ("sessions", OPENING, "entry IS NOT NULL"),
        ("sessions", CLOSING, "closed_at IS NOT NULL"),
        ("bodies", {"key", "digest", "size", "data"}, "data IS NOT NULL"),
        ("store_info", {"key", "id", "format", "created_at"}, "key = 1"),
    ],
)
def test_what_is_written_once_stays_as_it_is(
    filled: StoreParts, table: str, names: Iterable[str], where: str
) -> None:
    columns = [schema.metadata.tables[table].c[name] for name in names]
    changes = (f'"{one.name}" = {other_value(filled, one)}' for one in columns)
    refused(filled, *(f"UPDATE {table} SET {one} WHERE {where}" for one in changes))


def other_value(store: StoreParts, column: Column[Any]) -> str:
    """A value of the type of the column that no row has, as a statement spells it."""
    if isinstance(column.type, Boolean):
        return f'NOT coalesce("{column.name}", FALSE)'
    if column.type is schema.Moment:
        return "-1" if store.is_sqlite else "'2001-01-01'"
    if column.type is schema.Uuid16:
        return "x'00'" if store.is_sqlite else f"'{UUID(int=0)}'"
    if isinstance(column.type, LargeBinary):
        return store.literal(digest_of(b"other"))
    return "'other'" if isinstance(column.type, Text) else "-1"


def test_a_body_goes_only_when_it_leaves_a_tombstone(filled: StoreParts) -> None:
    ((key, digest),) = filled.run("SELECT key, digest FROM bodies ORDER BY key LIMIT 1")
    erase = f"UPDATE bodies SET data = NULL WHERE key = {key}"
    refused(filled, erase, f"UPDATE bodies SET size = 0 WHERE key = {key}")
    with filled.database.write() as connection:
        connection.execute(
            "INSERT INTO tombstones (kind, digest, size, reason, rule, actor, removed_at)"
            " VALUES ('body', ?, 5, 'r', 'r', 'a', ?)",
            (digest, connection.moment(AT)),
        )
        assert connection.execute(erase) == 1


def test_no_table_can_be_truncated(postgres_url: str, tmp_path: Path) -> None:
    with store_parts(postgres_url, tmp_path) as store:
        fill(store, guarded=True)
        refused(store, *(f"TRUNCATE {table.name} CASCADE" for table in schema.EVIDENCE))


def test_insert_or_replace_cannot_delete_behind_the_triggers(tmp_path: Path) -> None:
    with store_parts(str(tmp_path / "trail.db"), tmp_path) as store:
        fill(store, guarded=True)
        for table in APPEND_ONLY:
            if rows(store, table.name):
                names = ", ".join(f'"{one.name}"' for one in table.columns)
                copy = f"SELECT {names} FROM {table.name}"
                refused(store, f"INSERT OR REPLACE INTO {table.name} ({names}) {copy}")


def rows(store: StoreParts, table: str) -> int:
    return int(store.run(f"SELECT count(*) FROM {table}")[0][0])
