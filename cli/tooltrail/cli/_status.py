"""The facts behind `tooltrail status`."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from tooltrail.artifacts import iter_spool_folders, spooled_streams
from tooltrail.cli._output import counted, size_of
from tooltrail.cli._repairing import dead_sentence
from tooltrail.cli._times import shown
from tooltrail.migrations import HEAD_REVISION
from tooltrail.store import Store, engine_facts, recoverable, user_spool

_ASIDE = "aside-"
"""How the folder of a record begins that no store could take."""

_SAFE_SQLITE = (3, 51, 3)
"""First SQLite release without the WAL-reset corruption of 3.7.0 to 3.51.2."""


def status_of(store: Store) -> dict[str, Any]:
    """Where a store is, what it holds, and how much room that takes."""
    counts = store.reader.counts()
    engine = engine_facts(store.database)
    return {
        "database": str(store.database.target),
        "engine": f"{engine.name} {engine.version}",
        "revision": HEAD_REVISION,
        "artifact_root": store.archive.sink.url,
        "spool": str(store.spool),
        "store_id": store.info.id,
        "created_at": store.info.created_at,
        "sessions": counts.sessions,
        "invocations": counts.invocations,
        "produced_bytes": counts.produced_bytes,
        "bodies": counts.body_count,
        "body_bytes": counts.body_bytes,
        "body_stored_bytes": counts.body_stored_bytes,
        "artifacts": counts.artifact_count,
        "artifact_bytes": counts.artifact_bytes,
        "artifact_stored_bytes": counts.artifact_stored_bytes,
        "database_bytes": engine.size,
        "spooled_invocations": _spooled(store.spool),
        "recoverable_invocations": len(recoverable(store)),
        "set_aside_records": _set_aside(store.spool),
    }


def lines_of(status: dict[str, Any], *, utc: bool) -> Iterator[str]:
    """The status for people."""
    states: dict[str, int] = status["invocations"]
    by_state = ", ".join(f"{count:,} {state}" for state, count in sorted(states.items()))
    yield f"database     {status['database']} ({status['engine']}, revision {status['revision']})"
    yield f"artifacts    {status['artifact_root']}"
    yield f"spool        {status['spool']}"
    yield f"created      {shown(status['created_at'], utc=utc)}"
    yield f"sessions     {status['sessions']:,}"
    yield f"invocations  {sum(states.values()):,}{f' ({by_state})' if states else ''}"
    yield f"captured     {size_of(status['produced_bytes'])}"
    stored = status["database_bytes"] + status["artifact_stored_bytes"]
    yield (
        f"on disk      {size_of(stored)}: database {size_of(status['database_bytes'])}, "
        f"{counted(status['artifacts'], 'artifact')} {size_of(status['artifact_stored_bytes'])} "
        f"for {size_of(status['artifact_bytes'])}"
    )


def warnings_of(status: dict[str, Any]) -> Iterator[str]:
    """What needs attention."""
    engine, _, version = status["engine"].partition(" ")
    if engine == "SQLite" and tuple(map(int, version.split("."))) < _SAFE_SQLITE:
        yield (
            f"SQLite {version} has the WAL-reset fault of 3.7.0 to 3.51.2, which can corrupt a "
            "database that several processes write; use a newer SQLite where you can"
        )
    started = status["invocations"].get("started", 0)
    if started:
        yield f"{counted(started, 'invocation')} not ended: running, or the process was killed"
    if status["spooled_invocations"]:
        spooled = counted(status["spooled_invocations"], "invocation")
        yield f"{spooled} with output in the spool: running, or the process was killed"
    if status["recoverable_invocations"]:
        yield f"{dead_sentence(status['recoverable_invocations'])}"
    if status["set_aside_records"]:
        aside = counted(status["set_aside_records"], "record")
        yield f"{aside} set aside while a store was away, in the spool or in {user_spool()}"


def _set_aside(spool: Path) -> int:
    count = _count(spool, _ASIDE)
    if user_spool() != spool:
        # The user's own spool says nothing of this store when it cannot be read.
        with suppress(OSError):
            count += _count(user_spool(), _ASIDE)
    return count


def _spooled(spool: Path) -> int:
    """How many invocations have output in a spool."""
    _count(spool)  # says who may not read it, by which name
    return sum(1 for folder in iter_spool_folders(spool) if spooled_streams(folder.path))


def _count(spool: Path, prefix: str = "") -> int:
    """How many folders of a spool begin so."""
    if not spool.is_dir():
        return 0
    return sum(1 for entry in spool.iterdir() if entry.is_dir() and entry.name.startswith(prefix))
