"""Objects that nobody refers to, runs that are on record, and moments in the middle of a finish."""

import hashlib
import os
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import select

from tooltrail.artifacts import Capture, artifact_path
from tooltrail.records import MissingArtifactError, canonical_json, digest_of
from tooltrail.store import PruningReport, Store, new_id, plan_pruning, prune
from tooltrail.store.tables import MaintenanceRunRow

NO_GRACE = timedelta(0)


def publish(store: Store, data: bytes) -> str:
    """What a writer leaves that died before its commit: an object, and no row."""
    spool = store.spool / f"{new_id()}.zst"
    capture = Capture("stdout", spool, edge_bytes=10, inline_bytes=0)
    capture.write(data)
    captured = capture.close()
    # Somebody may prune it before it is looked at once more.
    with suppress(MissingArtifactError):
        store.archive.publish(captured)
    spool.unlink()
    return artifact_path(captured.record.digest)


def scatter(root: Path, count: int, *, name: str = "object") -> list[Path]:
    """Many files with the names of artifacts; whoever only looks at names needs no more."""
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
    """Plan and prune without any grace."""
    return prune(store, plan_pruning(store, NO_GRACE))


@dataclass(frozen=True)
class Run:
    """One row of `maintenance_runs`."""

    kind: str
    environment: dict[str, Any]
    facts: dict[str, Any]
    object_count: int
    stored_bytes: int
    outcome: str | None
    report: dict[str, Any] | None


def runs_of(store: Store) -> list[Run]:
    """What is on record, the oldest first."""
    row = MaintenanceRunRow
    with store.database.read() as connection:
        rows = connection.execute(
            select(
                row.kind,
                row.environment,
                row.facts,
                row.object_count,
                row.stored_bytes,
                row.outcome,
                row.report,
            ).order_by(row.key)
        ).all()
    return [
        Run(
            kind,
            _object(environment),
            _object(facts),
            object_count,
            stored_bytes,
            outcome,
            None if report is None else _object(report),
        )
        for kind, environment, facts, object_count, stored_bytes, outcome, report in rows
    ]


def folder_digest(root: Path) -> dict[str, str]:
    """Every file below a folder with the digest of its bytes."""
    return {
        file.relative_to(root).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(root.rglob("*"))
        if file.is_file()
    }


def _object(text: str) -> dict[str, Any]:
    decoded = canonical_json.decode(text)
    assert isinstance(decoded, dict)
    return decoded
