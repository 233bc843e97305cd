"""What stands stays: every table refuses changes, but for the few that its own rule allows."""

from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import (
    Connection,
    Executable,
    Table,
    TextClause,
    Update,
    delete,
    insert,
    text,
    update,
)
from tests.support.rows import MOMENT, all_rows, fill_every_table, row_for

from tooltrail.records import InvalidRecordError
from tooltrail.store import Store, create_store
from tooltrail.store.tables import (
    DERIVED,
    BodyRow,
    InvocationRow,
    LedgerHeadRow,
    StoreInfoRow,
    metadata,
)

TABLES = [table for table in metadata.tables.values() if table.name not in DERIVED]
APPEND_ONLY = [table for table in TABLES if table.name != "store_info"]
TABLE = metadata.tables["invocations"]
START_COLUMNS = {
    "key": 99,
    "id": UUID(int=99),
    "session_key": 2,
    "seq": 99,
    "call_id": "other",
    "tool_name": "other",
    "tool_digest": "other",
    "family": "other",
    "policy_digest": "other",
    "arguments_digest": "other",
    "arguments_preview": "other",
    "started_at": MOMENT + timedelta(seconds=1),
}
FINISH: dict[str, Any] = {"state": "success", "finished_at": MOMENT}


@pytest.fixture
def full(store: Store) -> Store:
    """A store with a row in every table."""
    with store.database.write() as connection:
        fill_every_table(connection)
    return store


def refused(store: Store, *changes: Executable) -> None:
    """Each statement must fail as a record that breaks the contract, and change no row."""
    with store.database.read() as connection:
        before = all_rows(connection)
    assert all(before.values())
    for change in changes:
        with pytest.raises(InvalidRecordError, match="is append-only"), store.database.write() as c:
            c.execute(change)
    with store.database.read() as connection:
        assert all_rows(connection) == before


def allowed(store: Store, statement: Update) -> None:
    with store.database.write() as connection:
        assert connection.execute(statement).rowcount == 1


def test_no_row_of_any_table_can_be_deleted(full: Store) -> None:
    refused(full, *map(delete, TABLES))


def test_no_row_can_be_updated_not_even_to_itself(full: Store) -> None:
    for table in APPEND_ONLY:
        refused(full, *(update(table).values({c.name: c}) for c in table.columns))


def test_no_row_can_be_replaced_by_an_upsert(full: Store) -> None:
    refused(full, *map(upsert, APPEND_ONLY))


def upsert(table: Table) -> TextClause:
    names = ", ".join(f'"{c.name}"' for c in table.columns)
    keys = ", ".join(f'"{c.name}"' for c in table.primary_key.columns)
    column = next(iter(table.columns)).name
    return text(
        f"INSERT INTO {table.name} ({names}) SELECT {names} FROM {table.name} WHERE true "
        f'ON CONFLICT ({keys}) DO UPDATE SET "{column}" = EXCLUDED."{column}"'
    )


def test_insert_or_replace_cannot_delete_behind_the_triggers(sqlite_store: Store) -> None:
    with sqlite_store.database.write() as connection:
        fill_every_table(connection)
    refused(sqlite_store, *map(replace, TABLES))


def replace(table: Table) -> TextClause:
    names = ", ".join(f'"{c.name}"' for c in table.columns)
    return text(f"INSERT OR REPLACE INTO {table.name} ({names}) SELECT {names} FROM {table.name}")


def test_no_table_can_be_truncated(postgres_url: str, tmp_path: Path) -> None:
    with create_store(postgres_url, artifacts=str(tmp_path)) as store:
        with store.database.write() as connection:
            fill_every_table(connection)
        refused(store, *(text(f"TRUNCATE {table.name} CASCADE") for table in TABLES))


def test_the_start_columns_that_are_tested_are_all_that_there_are() -> None:
    written_at_the_end = {
        "state",
        "finished_at",
        "duration_ms",
        "error_kind",
        "exit_status",
        "signal",
        "timed_out",
        "output_size",
        "truncated",
    }
    assert {c.name for c in TABLE.columns} == written_at_the_end | START_COLUMNS.keys()


def test_an_invocation_is_finished_once_with_its_start_unchanged(full: Store) -> None:
    with full.database.write() as connection:
        add_what_start_columns_refer_to(connection)
    for column, value in START_COLUMNS.items():
        refused(full, update(InvocationRow).values(FINISH | {column: value}))
    refused(full, update(InvocationRow).values(exit_status=1))

    allowed(full, update(InvocationRow).values(**FINISH, exit_status=1, truncated=False))

    for change in (
        {"state": "error"},
        {"exit_status": 2},
        {"state": "started", "finished_at": None},
    ):
        refused(full, update(InvocationRow).values(change))


def test_a_start_column_cannot_be_emptied_by_the_finish(full: Store) -> None:
    with full.database.write() as connection:
        add_what_start_columns_refer_to(connection)
        connection.execute(
            insert(InvocationRow).values(
                row_for(TABLE)
                | {"key": 2, "id": UUID(int=2), "seq": 2, "call_id": "c", "tool_digest": "other"}
            )
        )
    for column in ("call_id", "tool_digest"):
        finish = update(InvocationRow).where(InvocationRow.key == 2)
        refused(full, finish.values(FINISH | {column: None}))


def add_what_start_columns_refer_to(connection: Connection) -> None:
    """Targets for the foreign keys, so that only the trigger stands in the way."""
    for name in ("tools", "bodies", "policies"):
        table = metadata.tables[name]
        connection.execute(insert(table).values(row_for(table) | {"digest": "other"}))
    add_a_session(connection)


def add_a_session(connection: Connection) -> None:
    sessions = metadata.tables["sessions"]
    connection.execute(insert(sessions).values(row_for(sessions) | {"key": 2, "id": UUID(int=2)}))


def test_an_invocation_cannot_end_in_no_state_or_without_a_time(full: Store) -> None:
    for values in ({"state": "lost", "finished_at": MOMENT}, {"state": "success"}):
        with pytest.raises(InvalidRecordError), full.database.write() as connection:
            connection.execute(update(InvocationRow).values(values))


def test_a_body_goes_only_when_it_leaves_a_tombstone_and_nothing_else_of_it_changes(
    full: Store,
) -> None:
    erase = update(BodyRow).values(data=None)
    # There is a tombstone for an artifact of the same name, which is none for the body.
    refused(full, erase)
    tombstones = metadata.tables["tombstones"]
    buried = row_for(tombstones) | {"key": 2, "kind": "body"}
    with full.database.write() as connection:
        connection.execute(insert(tombstones).values(buried | {"subject": "other"}))
    refused(full, erase)
    with full.database.write() as connection:
        connection.execute(insert(tombstones).values(buried | {"key": 3}))
    changes: list[dict[str, Any]] = [
        {"data": b"y"},
        {"data": None, "size": 2},
        {"data": None, "encoding": "zstd"},
        {"data": None, "digest": "y"},
    ]
    for change in changes:
        refused(full, update(BodyRow).values(change))

    allowed(full, erase)

    # The same bytes may be recorded anew; nothing else of the row may change with them.
    refused(full, update(BodyRow).values(data=b"x", size=2))
    allowed(full, update(BodyRow).values(data=b"x", encoding="zstd"))


def test_a_ledger_head_moves_only_forward(full: Store) -> None:
    with full.database.write() as connection:
        add_a_session(connection)
    changes: list[dict[str, Any]] = [
        {"digest": "y"},
        {"entry_count": 0},
        {"entry_count": 2, "next_seq": 0},
        {"entry_count": 2, "session_key": 2},
        {"next_seq": 2},
        {"closed_at": MOMENT},
    ]
    for change in changes:
        refused(full, update(LedgerHeadRow).values(change))

    allowed(full, update(LedgerHeadRow).values(entry_count=2, digest="y"))
    allowed(full, update(LedgerHeadRow).values(entry_count=3, next_seq=2, closed_at=MOMENT))
    allowed(full, update(LedgerHeadRow).values(entry_count=4))
    for closed_at in (None, MOMENT + timedelta(seconds=1)):
        reopened = {"entry_count": 5, "closed_at": closed_at}
        refused(full, update(LedgerHeadRow).values(reopened))


def test_a_store_keeps_its_identity_and_may_change_its_artifact_root(full: Store) -> None:
    for change in ({"id": UUID(int=3)}, {"created_at": MOMENT}):
        refused(full, update(StoreInfoRow).values(change))
    allowed(full, update(StoreInfoRow).values(artifact_root="elsewhere"))
    with pytest.raises(InvalidRecordError), full.database.write() as connection:
        connection.execute(
            insert(StoreInfoRow).values(row_for(metadata.tables["store_info"]) | {"key": 2})
        )


def test_a_reference_to_nothing_is_refused(store: Store) -> None:
    with pytest.raises(InvalidRecordError), store.database.write() as connection:
        connection.execute(insert(TABLE).values(row_for(TABLE)))
