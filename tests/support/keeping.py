"""Stores with records for tests of maintenance, and checks of the results."""

import hashlib
import json
import os
from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.support.ended import made, shell_call

from tooltrail.artifacts import Capture, artifact_path
from tooltrail.journal.clock import new_id
from tooltrail.records.digests import digest_of
from tooltrail.store.bodies import unpack_fact
from tooltrail.store.engines.values import digest_from
from tooltrail.store.keep.pruning import PruningReport, plan_pruning, prune
from tooltrail.store.read.bodies import read_body
from tooltrail.store.store import Store
from tooltrail.store.verify import verify

NO_GRACE = timedelta(0)
BIG = b"a line of a long output\n" * 5_000


def record(store: Store, *outputs: bytes) -> None:
    """Record calls in a new session, without ingesting them."""
    with store.open_session() as session:
        for output in outputs:
            session.start(shell_call()).finish(made(output))


def ingested(store: Store, *outputs: bytes) -> Store:
    """Record calls and ingest them."""
    record(store, *outputs)
    store.ingest()
    return store


END_LOCK_HOLDERS = """
SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'
AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"""
"""Closes the connections that hold locks of a store on PostgreSQL."""


def rows(store: Store, sql: str) -> list[tuple[Any, ...]]:
    """The rows of a query, without ingesting first."""
    with store.database.read() as connection:
        return connection.query(sql)


def check(store: Store) -> None:
    """Ingest all facts, and verify the complete store."""
    store.ingest()
    _ = store.info
    found = list(verify(store.database, store.archive, families=store.families))
    assert found == []


def accounts(store: Store) -> list[tuple[str, dict[str, Any]]]:
    """Action and details of each maintenance run, oldest first."""
    store.ingest()
    found: list[tuple[str, dict[str, Any]]] = []
    for (packed,) in rows(
        store, "SELECT fact FROM ledger_entries WHERE kind = 'maintenance' ORDER BY n"
    ):
        fact = json.loads(unpack_fact(bytes(packed)))
        with store.database.read() as connection:
            stored = read_body(connection, fact["details"])
        found.append((fact["action"], json.loads(stored)))
    return found


def paths(store: Store) -> set[str]:
    """Paths of the artifacts that the store refers to."""
    found = rows(store, "SELECT digest FROM artifacts")
    return {artifact_path(digest_from(digest)) for (digest,) in found}


def publish(store: Store, data: bytes) -> str:
    """Publish an object without a row, like an ingester that died before its commit."""
    spooled = store.spool / f"{new_id()}.zst"
    capture = Capture("stdout", spooled, edge_bytes=10)
    capture.write(data)
    captured = capture.close()
    store.archive.publish(captured)
    spooled.unlink()
    return artifact_path(captured.record.digest)


def scatter(root: Path, count: int, *, name: str = "object") -> list[Path]:
    """Create files with names of artifacts, which is enough for tests that read only names."""
    files: list[Path] = []
    for number in range(count):
        data = f"{name} {number}".encode()
        file = root / artifact_path(digest_of(data))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
        files.append(file)
    return files


def make_older(file: Path, age: timedelta) -> None:
    moment = file.stat().st_mtime - age.total_seconds()
    os.utime(file, (moment, moment))


def prune_all(store: Store) -> PruningReport:
    """Plan and prune without a grace period."""
    return prune(store, plan_pruning(store, NO_GRACE))


def folder_digests(root: Path) -> dict[str, str]:
    """The digests of all files, by path."""
    return {
        file.relative_to(root).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(root.rglob("*"))
        if file.is_file()
    }
