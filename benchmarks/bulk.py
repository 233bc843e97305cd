"""Importing many calls, beside the quickest way to write the very same rows.

The same rows are those that such an import leaves. They are read back before anything is measured,
and go into an empty store of the same schema, with its indexes, foreign keys and triggers, in one
transaction: by `executemany` of raw sqlite3, or by COPY.
"""

from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql
from sqlalchemy import URL, make_url
from tests.support.postgres import fresh_database, running_server

from benchmarks._measure import Ratio, compare
from benchmarks.recording import INVOCATIONS, made_rounds
from tooltrail.records import ToolCall
from tooltrail.store import EndedCall, create_store
from tooltrail.store._engines.sqlite import sqlite3

ROUNDS = 5
CALLS = INVOCATIONS

_TABLES = (
    *("sessions", "policies", "bodies", "artifacts", "invocations", "complete_outputs"),
    *("output_streams", "canonical_results", "receipts", "invocation_artifacts", "omissions"),
    *("ledger_entries", "ledger_heads"),
)

Rows = dict[str, list[tuple[Any, ...]]]


def measure_sqlite(folder: Path) -> Ratio:
    """An import beside `executemany` of its rows, both with synchronous FULL."""

    def database(name: str) -> str:
        return str(folder / name / "tooltrail.db")

    return _measure(database, folder, _read_sqlite, _write_sqlite)


def measure_postgresql(folder: Path) -> Ratio:
    """An import beside COPY of its rows."""
    with running_server() as server, ExitStack() as stack:

        def database(_: str) -> str:
            return stack.enter_context(fresh_database(server))

        return _measure(database, folder, _read_postgresql, _write_postgresql)


def _measure(
    database: Callable[[str], str],
    folder: Path,
    read: Callable[[str], Rows],
    write: Callable[[str, Rows], None],
) -> Ratio:
    rounds = [
        [EndedCall(ToolCall.of("Bash", c.arguments), c.complete_output()) for c in calls]
        for calls in made_rounds()
    ]
    raw: list[tuple[str, Rows]] = []
    for n, calls in enumerate(rounds):
        model, empty = database(f"model-{n}"), database(f"raw-{n}")
        with create_store(model, artifacts=str(folder / f"model-{n}-artifacts")) as store:
            store.open_session().record_many(calls)
        create_store(empty, artifacts=str(folder / f"raw-{n}-artifacts")).close()
        raw.append((empty, read(model)))
    ours, theirs = iter(rounds), iter(raw)
    with create_store(database("ours"), artifacts=str(folder / "ours-artifacts")) as store:
        session = store.open_session()
        return compare(
            lambda: _nothing(session.record_many(next(ours))), lambda: write(*next(theirs)), ROUNDS
        )


def _nothing(_: object) -> None:
    """What is measured gives nothing back."""


def _read_sqlite(database: str) -> Rows:
    with closing(sqlite3.connect(database)) as raw:
        return {table: raw.execute(f"SELECT * FROM {table}").fetchall() for table in _TABLES}


def _write_sqlite(database: str, rows: Rows) -> None:
    with closing(sqlite3.connect(database, isolation_level=None)) as raw:
        raw.execute("PRAGMA synchronous = FULL")
        raw.execute("PRAGMA foreign_keys = ON")
        raw.execute("BEGIN IMMEDIATE")
        for table, some in rows.items():
            if some:
                places = ", ".join("?" * len(some[0]))
                raw.executemany(f"INSERT INTO {table} VALUES ({places})", some)
        raw.execute("COMMIT")


def _plain(database: str) -> str:
    url: URL = make_url(database).set(drivername="postgresql")
    return url.render_as_string(hide_password=False)


def _read_postgresql(database: str) -> Rows:
    with psycopg.connect(_plain(database)) as raw:
        return {
            table: raw.execute(sql.SQL("SELECT * FROM {}").format(sql.Identifier(table))).fetchall()
            for table in _TABLES
        }


def _write_postgresql(database: str, rows: Rows) -> None:
    with psycopg.connect(_plain(database)) as raw, raw.cursor() as cursor:
        for table, some in rows.items():
            statement = sql.SQL("COPY {} FROM STDIN").format(sql.Identifier(table))
            with cursor.copy(statement) as copy:
                for row in some:
                    copy.write_row(row)
