"""The facts behind `tooltrail status`."""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

from tooltrail.cli._output import counted, size_of
from tooltrail.cli._times import shown
from tooltrail.migrations import HEAD_REVISION
from tooltrail.records.errors import UnavailableError
from tooltrail.store import (
    ASIDE_STATES,
    Backlog,
    LocalRoom,
    Store,
    engine_facts,
    find_backlog,
    find_local_room,
    find_repairable,
    find_unended,
    kept_folders,
    set_aside,
)


def status_of(
    store: Store, other_spools: Sequence[Path], *, with_bodies: bool = False
) -> dict[str, Any]:
    """Where a store is, what it holds, how much room that takes, and what waits for it.

    Args:
        store: which one.
        other_spools: where records may be set aside besides its own spool.
        with_bodies: count the bodies too, which reads all of them.
    """
    counts = store.reader.counts(with_bodies=with_bodies)
    engine = engine_facts(store.database)
    room = find_local_room(store)
    unreadable = _why_unreadable([store.spool, *other_spools])
    spooled: dict[str, Any] = dict.fromkeys(
        ("kept", "unsettled", "waiting_streams", "set_aside", "outbox")
    )
    if unreadable is None:
        try:
            spooled = _spooled(store, other_spools)
        except UnavailableError as error:
            unreadable = str(error)
    return {
        "database": str(store.database.target),
        "engine": f"{engine.name} {engine.version}",
        "revision": HEAD_REVISION,
        "artifact_root": store.archive.sink.url,
        "artifacts_away": store.find_artifacts(),
        "spool": str(store.spool),
        "spool_unreadable": unreadable,
        "is_spool_writable": _is_writable(store.spool),
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
        "reserve_bytes": room.reserve_size,
        "spool_bytes": room.spool_size if unreadable is None else None,
        "room": _room(room),
        **spooled,
    }


def _spooled(store: Store, other_spools: Sequence[Path]) -> dict[str, Any]:
    """What can be told of a store only by its spool."""
    return {
        "kept": _kept(store, other_spools),
        "unsettled": asdict(find_unended(store, also=other_spools))
        | _repairable(store, other_spools),
        "waiting_streams": _waiting(store),
        "set_aside": _set_aside(store, other_spools),
        "outbox": _outbox(store, other_spools),
    }


def _repairable(store: Store, other_spools: Sequence[Path]) -> dict[str, int]:
    """How many invocations of each kind `repair` would do something about."""
    kinds = asdict(find_repairable(store, also=other_spools))
    return {kind: len(ids) for kind, ids in kinds.items()}


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
    if status["unsettled"] and status["unsettled"]["running"]:
        yield f"running      {status['unsettled']['running']:,}"
    yield f"produced     {size_of(status['produced_bytes'])}{_lost(status)}"
    if status["bodies"] is not None:
        stored, plain = size_of(status["body_stored_bytes"]), size_of(status["body_bytes"])
        bodies = "1 body" if status["bodies"] == 1 else f"{status['bodies']:,} bodies"
        yield f"bodies       {bodies}, {stored} for {plain}"
    yield f"on disk      {_on_disk(status)}"
    if status["kept"] and status["kept"]["invocations"]:
        of = counted(status["kept"]["invocations"], "invocation")
        where = ", ".join(status["kept"]["folders"])
        yield f"kept         files of {of} that are not in the store as they are: {where}"


def _lost(status: dict[str, Any]) -> str:
    """What was not kept of the output: no warning, since nothing can be done about it any more."""
    if not status["lost_bytes"]:
        return ""
    of = counted(status["lossy_invocations"], "invocation")
    return f", of which {size_of(status['lost_bytes'])} of {of} not kept: `log` marks them"


def _on_disk(status: dict[str, Any]) -> str:
    spool = status["spool_bytes"]
    sizes = ("database_bytes", "reserve_bytes", "artifact_stored_bytes")
    reserve = status["reserve_bytes"]
    held_back = f", {size_of(reserve)} held back for a full disk" if reserve else ""
    return (
        f"{size_of(sum(status[size] for size in sizes) + (spool or 0))}: "
        f"database {size_of(status['database_bytes'])}{held_back}, "
        f"{counted(status['artifacts'], 'artifact')} {size_of(status['artifact_stored_bytes'])} "
        f"for {size_of(status['artifact_bytes'])}, "
        f"spool {'of unknown size' if spool is None else size_of(spool)}"
    )


def _room(room: LocalRoom) -> dict[str, Any]:
    """What is free on the disks of the database file and of the spool, and what is held back."""
    return {
        "database_free_bytes": room.database_free,
        "is_database_full": room.is_database_full,
        "is_reserve_missing": room.is_reserve_missing,
        "spool_free_bytes": room.spool.free if room.spool else None,
        "spool_held_back_bytes": room.spool.held_back if room.spool else None,
    }


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
        "foreign_databases": sorted({str(one.database) for one in found if one.state == "foreign"}),
        "oldest_at": _oldest(mine),
        "oldest_foreign_at": _oldest(foreign),
    }


def _outbox(store: Store, other_spools: Sequence[Path]) -> dict[str, Any]:
    """Records that were made while the store was away."""
    return outbox_members(find_backlog(store, also=other_spools))


def outbox_members(found: Backlog) -> dict[str, Any]:
    """What `--json` says of an outbox."""
    return {
        "entries": found.entry_count,
        "bytes": found.size,
        "oldest_at": found.oldest_at,
        "unreadable": found.unreadable_count,
        "dropped": found.dropped_count,
        "kept": found.kept_count,
        "kept_in": list(found.kept_in),
        "foreign": [{**asdict(one), "told": str(one)} for one in found.foreign],
    }


def _oldest(moments: Sequence[datetime | None]) -> datetime | None:
    return min((moment for moment in moments if moment is not None), default=None)


def _kept(store: Store, other_spools: Sequence[Path]) -> dict[str, Any]:
    """What repairs have put away in the spools, for people to look at."""
    found = kept_folders(store, also=other_spools)
    return {"invocations": len(found), "folders": sorted({str(one.parent) for one in found})}


def _why_unreadable(spools: Sequence[Path]) -> str | None:
    """Why one of several spools cannot be read; None when all can, or are not there."""
    for spool in spools:
        try:
            os.listdir(spool)  # noqa: PTH208  that it can be is all that is wanted
            os.stat(f"{spool}/.")  # noqa: PTH116  a path would be without the dot
        except FileNotFoundError:
            continue
        except OSError as error:
            return f"{spool}: {error.strerror}"
    return None


def _is_writable(spool: Path) -> bool:
    """Whether output can be captured there, as far as rights go; it is made when it is needed."""
    there = next(f for f in (spool, *spool.absolute().parents) if os.path.exists(f))  # noqa: PTH110  raises nothing
    # With the dot it is only there if it is a folder.
    return os.access(f"{there}/.", os.W_OK | os.X_OK)
