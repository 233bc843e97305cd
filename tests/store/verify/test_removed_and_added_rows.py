"""A row that is removed, a row that no fact explains, and a ledger that was rewritten."""

from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import Table
from tests.support import schema
from tests.support.every_fact import LARGE
from tests.support.store_parts import StoreParts

from tooltrail.journal.frames import link
from tooltrail.store.bodies import pack_fact, unpack_fact

CHILDREN = [
    one
    for one in schema.EVIDENCE
    if "invocation_key" in one.columns or "message_key" in one.columns
]


def listed(table: Table) -> str:
    """The columns of a table, without those that the database computes."""
    return ", ".join(f'"{one.name}"' for one in table.columns)


def keys_of(table: Table) -> list[str]:
    return [one.name for one in table.primary_key.columns]


@pytest.mark.parametrize("table", schema.EVIDENCE, ids=lambda one: str(one.name))
def test_each_removed_row_is_noticed(copied: StoreParts, table: Table) -> None:
    names = [one.name for one in table.columns]
    rows = copied.run(f"SELECT {listed(table)} FROM {table.name}")
    unseen = list[dict[str, Any]]()
    for row in rows:
        values = dict(zip(names, row, strict=True))
        where = " AND ".join(f'"{one}" = ?' for one in keys_of(table))
        copied.run(f"DELETE FROM {table.name} WHERE {where}", [values[k] for k in keys_of(table)])
        if not copied.damage():
            unseen.append(values)
        marks = ", ".join("?" * len(row))
        copied.run(f"INSERT INTO {table.name} ({listed(table)}) VALUES ({marks})", row)
    assert rows
    assert unseen == []
    assert copied.damage() == []


@pytest.mark.parametrize("table", ["invocations", "messages", "sessions", "tools"])
def test_a_row_without_a_fact_is_named(copied: StoreParts, table: str) -> None:
    columns = listed(schema.metadata.tables[table])
    (row,) = copied.run(f"SELECT {columns} FROM {table} ORDER BY key LIMIT 1")
    names = [one.name for one in schema.metadata.tables[table].columns]
    values: dict[str, Any] = dict(zip(names, row, strict=True))
    values["key"] = 1000
    if "seq" in values:
        values["seq"] = 1000
    foreign = UUID(int=999)
    if table == "tools":
        values["digest"] = bytes(32)
    else:
        values["id"] = foreign.bytes
    marks = ", ".join("?" * len(row))
    copied.run(f"INSERT INTO {table} ({columns}) VALUES ({marks})", list(values.values()))
    named = {one.subject.split()[-1] for one in copied.damage()}
    assert named == {str(foreign) if table != "tools" else f"sha256:{'00' * 32}"}


@pytest.mark.parametrize("table", CHILDREN, ids=lambda one: str(one.name))
def test_a_row_of_a_call_or_message_that_is_not_there_is_named(
    copied: StoreParts, table: Table
) -> None:
    (row,) = copied.run(f"SELECT * FROM {table.name} LIMIT 1")
    copied.run(f"INSERT INTO {table.name} VALUES ({', '.join('?' * len(row))})", [999, *row[1:]])
    assert [one.table for one in copied.damage()] == [table.name]
    assert "999" in copied.damage()[0].subject


@pytest.mark.parametrize("table", ["streams", "omissions", "invocation_artifacts", "tool_offers"])
def test_one_more_row_of_a_call_or_message_is_named(copied: StoreParts, table: str) -> None:
    (row,) = copied.run(f"SELECT * FROM {table} LIMIT 1")
    values = [row[0], 77, *row[2:]]
    copied.run(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", values)
    owner = "messages" if table == "tool_offers" else "invocations"
    ((name,),) = copied.run(f"SELECT id FROM {owner} WHERE key = ?", [row[0]])
    assert {one.subject.split()[-1] for one in copied.damage()} == {str(UUID(bytes=name))}


def test_two_entries_that_changed_places_are_named(copied: StoreParts) -> None:
    facts = dict(copied.run("SELECT n, fact FROM ledger_entries WHERE n IN (2, 3)"))
    for n, other in ((2, 3), (3, 2)):
        copied.run("UPDATE ledger_entries SET fact = ? WHERE n = ?", [facts[other], n])
    columns = {(one.subject.split(" of ")[0], one.column) for one in copied.damage()}
    assert {("entry 2", "hash"), ("entry 3", "hash")} <= columns


def test_a_chain_that_was_computed_again_ends_in_another_head(copied: StoreParts) -> None:
    rows = copied.run("SELECT n, fact FROM ledger_entries ORDER BY n")
    head = bytes(32)
    for n, fact in rows:
        new = unpack_fact(fact).replace(b"Nightly", b"Altered")
        head = link(head, new)
        values = [pack_fact(new), head, n]
        copied.run("UPDATE ledger_entries SET fact = ?, hash = ? WHERE n = ?", values)
    copied.run("UPDATE sessions SET title = 'Altered build' WHERE title IS NOT NULL")
    (found,) = copied.damage()
    assert (found.table, found.column) == ("journals", "head")


def test_a_cut_tail_is_named(copied: StoreParts) -> None:
    copied.run("DELETE FROM ledger_entries WHERE n = (SELECT max(n) FROM ledger_entries)")
    assert {one.column for one in copied.damage()} == {"entry_count", "head", "next_index"}


def test_a_journal_that_is_gone_is_named(copied: StoreParts) -> None:
    copied.run("DELETE FROM journals")
    assert {(one.table, one.column) for one in copied.damage()} == {("journals", None)}


def test_a_call_that_is_removed_with_all_its_rows_is_named(copied: StoreParts) -> None:
    ((key,),) = copied.run("SELECT key FROM invocations WHERE id = ?", [LARGE.bytes])
    for table in CHILDREN:
        if "invocation_key" in table.columns:
            copied.run(f"DELETE FROM {table.name} WHERE invocation_key = ?", [key])
    copied.run("DELETE FROM invocations WHERE key = ?", [key])
    assert [one.subject for one in copied.damage()] == [f"call {LARGE}"]


def test_a_call_that_is_removed_with_its_entries_leaves_holes(copied: StoreParts) -> None:
    ((key, start, end),) = copied.run(
        "SELECT key, start_entry, end_entry FROM invocations WHERE id = ?", [LARGE.bytes]
    )
    for table in CHILDREN:
        if "invocation_key" in table.columns:
            copied.run(f"DELETE FROM {table.name} WHERE invocation_key = ?", [key])
    copied.run("DELETE FROM invocations WHERE key = ?", [key])
    copied.run("DELETE FROM ledger_entries WHERE n IN (?, ?)", [start, end])
    named = " ".join(one.subject for one in copied.damage())
    assert end == start + 1
    assert f"entries {start} to {end} of" in named
