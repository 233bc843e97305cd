"""The facts behind `tooltrail status`."""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from tooltrail.artifacts import iter_spool_folders, spooled_streams
from tooltrail.cli._output import counted, size_of
from tooltrail.cli._repairing import dead_sentence
from tooltrail.cli._times import shown
from tooltrail.migrations import HEAD_REVISION
from tooltrail.store import ASIDE_STATES, Store, engine_facts, recoverable, set_aside

_SAFE_SQLITE = (3, 51, 3)
"""First SQLite release without the WAL-reset corruption of 3.7.0 to 3.51.2."""


def status_of(store: Store, other_spools: Sequence[Path]) -> dict[str, Any]:
    """Where a store is, what it holds, how much room that takes, and what waits for it."""
    counts = store.reader.counts()
    engine = engine_facts(store.database)
    return {
        "database": str(store.database.target),
        "engine": f"{engine.name} {engine.version}",
        "revision": HEAD_REVISION,
        "artifact_root": store.archive.sink.url,
        "artifacts_away": store.find_artifacts(),
        "spool": str(store.spool),
        "store_id": store.info.id,
        "created_at": store.info.created_at,
        "sessions": counts.sessions,
        "invocations": counts.invocations,
        "produced_bytes": counts.produced_bytes,
        "lost_bytes": counts.lost_bytes,
        "lossy_invocations": counts.lossy_count,
        "bodies": counts.body_count,
        "body_bytes": counts.body_bytes,
        "body_stored_bytes": counts.body_stored_bytes,
        "artifacts": counts.artifact_count,
        "artifact_bytes": counts.artifact_bytes,
        "artifact_stored_bytes": counts.artifact_stored_bytes,
        "database_bytes": engine.size,
        "spooled_invocations": _spooled(store.spool),
        "recoverable_invocations": len(recoverable(store, also=other_spools)),
        "waiting_streams": _waiting(store),
        "set_aside": _set_aside(store, other_spools),
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
    lost = f", of which {size_of(status['lost_bytes'])} not kept" if status["lost_bytes"] else ""
    yield f"produced     {size_of(status['produced_bytes'])}{lost}"
    stored = status["database_bytes"] + status["artifact_stored_bytes"]
    yield (
        f"on disk      {size_of(stored)}: database {size_of(status['database_bytes'])}, "
        f"{counted(status['artifacts'], 'artifact')} {size_of(status['artifact_stored_bytes'])} "
        f"for {size_of(status['artifact_bytes'])}"
    )


def warnings_of(status: dict[str, Any], *, utc: bool) -> Iterator[str]:
    """What needs attention."""
    engine, _, version = status["engine"].partition(" ")
    if engine == "SQLite" and tuple(map(int, version.split("."))) < _SAFE_SQLITE:
        yield (
            f"SQLite {version} has the WAL-reset fault of 3.7.0 to 3.51.2, which can corrupt a "
            "database that several processes write; use a newer SQLite where you can"
        )
    if (reason := status["artifacts_away"]) is not None:
        yield f"the artifacts are away, so long output waits in the spool: {reason}"
    if status["lost_bytes"]:
        of = counted(status["lossy_invocations"], "invocation")
        yield f"{size_of(status['lost_bytes'])} of output of {of} not kept: `log` marks them"
    started = status["invocations"].get("started", 0)
    if started:
        yield f"{counted(started, 'invocation')} not ended: running, or the process was killed"
    if status["spooled_invocations"]:
        spooled = counted(status["spooled_invocations"], "invocation")
        yield f"{spooled} with output in the spool: running, or the process was killed"
    if status["recoverable_invocations"]:
        yield f"{dead_sentence(status['recoverable_invocations'])}"
    yield from _waiting_warnings(status["waiting_streams"], utc=utc)
    yield from _aside_warnings(status["set_aside"], utc=utc)


def _waiting_warnings(waiting: dict[str, Any], *, utc: bool) -> Iterator[str]:
    if waiting["here"]:
        here, since = counted(waiting["here"], "stream"), _since(waiting["oldest_at"], utc=utc)
        yield f"{here} of ended invocations in the spool{since}: `tooltrail repair` stores them"
    if waiting["missing"]:
        gone = counted(waiting["missing"], "stream")
        since = _since(waiting["oldest_missing_at"], utc=utc)
        yield (
            f"{gone} neither stored nor in this spool{since}: missing, unless recorded with another"
            " spool; see `tooltrail verify`"
        )


def _aside_warnings(aside: dict[str, Any], *, utc: bool) -> Iterator[str]:
    oldest = _since(aside["oldest_at"], utc=utc)
    if aside["ready"] or aside["unfinished"]:
        mine = counted(aside["ready"] + aside["unfinished"], "record")
        cut = f", {aside['unfinished']:,} of killed programs" if aside["unfinished"] else ""
        where = f"{mine} set aside while this store was away{cut}{oldest}"
        yield f"{where}: `tooltrail repair` stores them"
    if aside["running"]:
        yield f"{counted(aside['running'], 'running invocation')} being set aside"
    if aside["unreadable"]:
        cut = counted(aside["unreadable"], "record")
        yield f"{cut} set aside and not as written: `tooltrail repair` says why"
    if aside["foreign"]:
        other = counted(aside["foreign"], "record")
        since = _since(aside["oldest_foreign_at"], utc=utc)
        yield f"{other} set aside for another store{since}: repair that one"


def _since(oldest: datetime | None, *, utc: bool) -> str:
    return "" if oldest is None else f", the oldest of {shown(oldest, utc=utc)}"


def _waiting(store: Store) -> dict[str, Any]:
    """Streams of invocations that ended while the artifacts were away, here or nowhere."""
    waiting = store.reader.waiting_streams()
    here = [stream.finished_at for stream in waiting if stream.is_in(store.spool)]
    missing = [stream.finished_at for stream in waiting if not stream.is_in(store.spool)]
    return {
        "here": len(here),
        "oldest_at": _oldest(here),
        "missing": len(missing),
        "oldest_missing_at": _oldest(missing),
    }


def _set_aside(store: Store, other_spools: Sequence[Path]) -> dict[str, Any]:
    """Records that no store could take, for this store and for others apart."""
    found = set_aside(store, also=other_spools)
    counts = Counter(one.state for one in found)
    mine = [one.started_at for one in found if one.state in ("ready", "unfinished")]
    foreign = [one.started_at for one in found if one.state == "foreign"]
    return {
        **{state: counts[state] for state in ASIDE_STATES},
        "oldest_at": _oldest(mine),
        "oldest_foreign_at": _oldest(foreign),
    }


def _oldest(moments: Sequence[datetime | None]) -> datetime | None:
    return min((moment for moment in moments if moment is not None), default=None)


def _spooled(spool: Path) -> int:
    """How many invocations have output in a spool."""
    _readable(spool)
    return sum(1 for folder in iter_spool_folders(spool) if spooled_streams(folder.path))


def _readable(spool: Path) -> None:
    """Raise for a spool that may not be read, by its name."""
    if spool.is_dir():
        next(spool.iterdir(), None)
