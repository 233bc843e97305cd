"""Triggers keep the evidence append-only, but for the few changes that a life makes."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support import schema
from tests.support.every_fact import AT, fill
from tests.support.raw_rows import all_rows
from tests.support.store_parts import StoreParts, store_parts

from tooltrail.records import InvalidRecordError

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


def test_an_ended_call_and_a_closed_session_stay_as_they_are(filled: StoreParts) -> None:
    refused(
        filled,
        "UPDATE invocations SET state = 'error' WHERE state = 'success'",
        "UPDATE invocations SET tool_name = 'other' WHERE state = 'started'",
        "UPDATE surfaces SET receipt = 'other' WHERE receipt IS NOT NULL",
        "UPDATE sessions SET closed_at = NULL WHERE closed_at IS NOT NULL",
        "UPDATE sessions SET title = 'other' WHERE title IS NOT NULL",
        "UPDATE store_info SET format = 2",
    )


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
                refused(store, f"INSERT OR REPLACE INTO {table.name} SELECT * FROM {table.name}")


def rows(store: StoreParts, table: str) -> int:
    return int(store.run(f"SELECT count(*) FROM {table}")[0][0])
