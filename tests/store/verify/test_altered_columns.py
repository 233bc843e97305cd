"""Every column of every evidence table: a change of one value is noticed, and named."""

import re
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import Boolean, Column, LargeBinary, Table
from tests.support import schema
from tests.support.every_fact import fill
from tests.support.postgres import fresh_database
from tests.support.processes import ROOT
from tests.support.store_parts import StoreParts, store_parts

from tooltrail.artifacts import artifact_path
from tooltrail.records.digests import Digest
from tooltrail.store.verify import Totals

_NUMBER = "a number that the database gave; nothing refers to it"
_OWN = "belongs to this database; no fact says it"
_NOTICED = "says what the ingester met, and is in no fact"
_RETENTION = "written by retention, whose facts do not name what they removed"

NOT_EVIDENCE = {
    "store_info.id": _OWN,
    "store_info.format": _OWN,
    "store_info.artifact_root": _OWN,
    "store_info.created_at": _OWN,
    "bodies.key": _NUMBER,
    "messages.key": "a number; where rows of other tables refer to it, these are missed",
    "tools.key": _NUMBER,
    "artifacts.key": _NUMBER,
    "artifacts.created_at": "when the artifact was published, which is in no fact",
    "rejected_facts.key": _NUMBER,
    "rejected_facts.segment": _NOTICED,
    "rejected_facts.segment_offset": _NOTICED,
    "rejected_facts.reason": _NOTICED,
    "rejected_facts.rejected_at": _NOTICED,
    "tombstones.key": _NUMBER,
    "tombstones.kind": _RETENTION,
    "tombstones.size": _RETENTION,
    "tombstones.reason": _RETENTION,
    "tombstones.rule": _RETENTION,
    "tombstones.actor": _RETENTION,
    "tombstones.removed_at": _RETENTION,
}
"""Columns of evidence tables that are in no fact, and why. A change of these is not noticed."""


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def filled(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[StoreParts]:
    folder: Path = tmp_path_factory.mktemp("filled")
    with ExitStack() as stack:
        target = str(folder / "trail.db")
        if request.param == "postgresql":
            # A new one each time: workers that steal tests may come back to an engine.
            server = request.getfixturevalue("postgres_server")
            target = stack.enter_context(fresh_database(server))
        store = stack.enter_context(store_parts(target, folder))
        fill(store)
        yield store


def altered(  # noqa: PLR0911  one return for each kind of column
    column: Column[Any], value: Any
) -> Any:
    """Another value of the same kind."""
    choices = {
        "invocations.state": ("error", "success"),
        "bodies.encoding": ("raw", "zstd"),
        "tombstones.kind": ("body", "artifact"),
    }
    if str(column) in choices:
        return next(one for one in choices[str(column)] if one != value)
    if isinstance(column.type, Boolean):
        return not value
    if column.type is schema.Moment:
        return value + timedelta(seconds=1) if isinstance(value, datetime) else (value or 0) + 1
    if column.type is schema.Uuid16:
        other = UUID(int=999)
        return other if isinstance(value, UUID) else other.bytes
    if isinstance(column.type, LargeBinary):
        return bytes([value[0] ^ 1]) + value[1:] if value else bytes(32)
    if isinstance(value, str):
        return value[:-1] + ("x" if value[-1:] != "x" else "y")
    if str(column) == "omissions.after_count":
        return value - 1
    return value + 1000 if isinstance(value, int) else 7


def row_of(store: StoreParts, column: Column[Any], *, is_filled: bool = True) -> dict[str, Any]:
    """A row whose value of a column is to be altered: with a value or without, if there is one."""
    table = column.table
    names = ", ".join(f'"{one.name}"' for one in table.columns)
    has_value = f'CASE WHEN "{column.name}" IS {"" if is_filled else "NOT "}NULL THEN 1 ELSE 0 END'
    order = ", ".join([has_value, *(f'"{one.name}"' for one in table.primary_key.columns)])
    where = "WHERE state <> 'started'" if table is schema.invocations else ""
    rows = store.run(f'SELECT {names} FROM "{table.name}" {where} ORDER BY {order} LIMIT 1')
    return dict(zip((one.name for one in table.columns), rows[0], strict=True))


def set_value(store: StoreParts, column: Column[Any], key: dict[str, Any], value: Any) -> None:
    where = " AND ".join(f'"{name}" = ?' for name in key)
    sql = f'UPDATE "{column.table.name}" SET "{column.name}" = ? WHERE {where}'
    store.run(sql, [value, *key.values()])


def subjects_of(  # noqa: C901, PLR0911  one case for each table
    store: StoreParts, table: Table, row: dict[str, Any]
) -> set[str]:
    """What a finding about a row may name."""

    def uuid(value: Any) -> str:
        return str(UUID(bytes=value) if isinstance(value, bytes) else value)

    def digest(value: Any) -> str:
        return f"sha256:{bytes(value).hex()}"

    match table.name:
        case "ledger_entries":
            ((journal,),) = store.run("SELECT id FROM journals")
            return {f"entry {row['n']} of journal {uuid(journal)}"}
        case "rejected_facts":
            ((journal,),) = store.run("SELECT id FROM journals")
            return {f"entry {row['n']} of journal {uuid(journal)}"}
        case "invocations":
            return {f"call {uuid(row['id'])}"}
        case "sessions":
            return {f"session {uuid(row['id'])}"}
        case "messages":
            return {f"message {uuid(row['id'])}"}
        case "bodies":
            return {f"body {digest(row['digest'])}"}
        case "tools":
            return {f"tool {digest(row['digest'])}"}
        case "artifacts":
            return {f"artifact {artifact_path(Digest(digest(row['digest'])))}"}
        case "store_info":
            return {"store_info is damaged"}
        case "tombstones":
            return {f"body {digest(row['digest'])}"}
        case _:
            owner = "message" if "message_key" in row else "call"
            owners = "messages" if "message_key" in row else "invocations"
            key = row[f"{'message' if owner == 'message' else 'invocation'}_key"]
            ((name,),) = store.run(f"SELECT id FROM {owners} WHERE key = ?", [key])
            return {f"{owner} {uuid(name)}"}


def _members_of(store: StoreParts, session_key: int) -> set[str]:
    """The calls of a session; each names its session by the key."""
    rows = store.run("SELECT id FROM invocations WHERE session_key = ?", [session_key])
    return {f"call {UUID(bytes=one) if isinstance(one, bytes) else one}" for (one,) in rows}


KEYS = {
    *(str(key) for table in schema.EVIDENCE for key in table.primary_key.columns),
    *(f"{name}.id" for name in ("sessions", "messages", "invocations")),
    *(f"{name}.digest" for name in ("bodies", "tools", "artifacts", "tombstones")),
    "rejected_facts.n",
    "rejected_facts.journal_key",
}
"""Who alters what names a row, removes a row and adds another: findings name both."""


def test_an_intact_store_has_rows_in_every_table_and_no_damage(filled: StoreParts) -> None:
    totals = Totals()
    assert {one.kind for one in filled.verify(receipts=True, totals=totals)} <= {"incomplete"}
    assert totals.checked["sessions"] == filled.count(schema.sessions)
    empty = [
        one.name
        for one in schema.EVIDENCE
        if filled.run(f"SELECT count(*) FROM {one.name}") == [(0,)]
    ]
    assert empty == []


@pytest.mark.parametrize("table", schema.EVIDENCE, ids=lambda one: str(one.name))
def test_a_change_of_one_value_is_named(filled: StoreParts, table: Table) -> None:
    columns = [column for column in table.columns if str(column) not in NOT_EVIDENCE]
    # Both engines give the same values: a few show that they do.
    for column in columns if filled.is_sqlite else columns[::4]:
        assert_change_is_named(filled, table, column)
    assert filled.damage() == []


@pytest.mark.parametrize("filled", ["sqlite"], indirect=True)
def test_a_value_that_no_fact_gave_is_named(filled: StoreParts) -> None:
    for column in schema.sessions.columns:
        row = row_of(filled, column, is_filled=False)
        if row[column.name] is None:
            assert_change_is_named(filled, schema.sessions, column, row)


def assert_change_is_named(
    store: StoreParts, table: Table, column: Column[Any], row: dict[str, Any] | None = None
) -> None:
    row = row or row_of(store, column)
    expected = subjects_of(store, table, row)
    if column is schema.sessions.c.key:
        expected = _members_of(store, row["key"])
    if table is schema.rejected_facts and str(column) in KEYS:
        expected = {"rejected fact "}
    value = row[column.name]
    key = {one.name: row[one.name] for one in table.primary_key.columns}
    new = altered(column, value)
    set_value(store, column, key, new)
    try:
        found = store.damage()
    finally:
        changed = {**key, column.name: new} if column.name in key else key
        set_value(store, column, changed, value)
    assert found, f"a change of {column} is not noticed"
    texts = " ".join(one.message for one in found)
    assert any(one in texts for one in expected), f"{column}: {found}"
    if str(column) not in KEYS:
        assert {one.subject for one in found} == expected, f"{column}: {found}"


def test_the_page_of_the_tables_names_every_column_that_is_no_evidence() -> None:
    page = (ROOT / "docs" / "tables.md").read_text(encoding="utf-8")
    listed = page.split("**What is not evidence.**")[1].split("**Limits of `verify`.**")[0]
    assert set(NOT_EVIDENCE) <= {str(one) for table in schema.EVIDENCE for one in table.columns}
    names = {word for name in NOT_EVIDENCE for word in name.split(".")}
    names -= {"id", "format", "artifact_root"}  # all of `store_info`
    assert set(re.findall(r"`(\w+)`", listed)) - {"verify"} == names
