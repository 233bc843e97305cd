"""The output of `tooltrail status`: facts about the store, and warnings."""

import json
import socket
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from shlex import quote
from typing import Any, Final

from tooltrail.cli._indexing import index_line, index_record
from tooltrail.cli._output import counted, size_of
from tooltrail.cli._redaction import used_rules
from tooltrail.cli._times import shown
from tooltrail.journal import read_journal_id
from tooltrail.journal.environment import NOT_REDACTED
from tooltrail.journal.segments import JOURNAL_FOLDER
from tooltrail.migrations import HEAD_REVISION
from tooltrail.records.errors import DamageError, TooltrailError, UnavailableError
from tooltrail.store.engines.sqlite_library import SAFE_VERSION
from tooltrail.store.engines.targets import SqliteTarget
from tooltrail.store.info import StoreInfo
from tooltrail.store.ingest.places import what_is_behind
from tooltrail.store.keep.condition import JournalState, read_condition
from tooltrail.store.read.reader import Reader
from tooltrail.store.roots import mark_path
from tooltrail.store.store import Store

_LOW_BYTES: Final = 16 << 20
"""Free bytes below which `status` warns: the size of one journal segment."""

_NEWEST: Final = 1000
"""Sessions that are searched for those that were recorded with `--no-redact`."""

_LISTED: Final = 5
"""Maximum number of rejected facts in the warning."""

_DAMAGED: Final = "unknown, since the database is damaged"

_COUNTS: Final = {
    "lossy_count": "lossy_invocations",
    "body_count": "bodies",
    "artifact_count": "artifacts",
}
"""The members of `StoreCounts` that have another name in JSON."""


def status_of(store: Store, *, with_bodies: bool) -> dict[str, Any]:
    """Read all members that `--json` prints. Counting the bodies reads all of them."""
    reader = store.reader
    counts = reader.counts(with_bodies=with_bodies).as_dict()
    own, lag, condition = _own_row(store), store.lag, read_condition(store)
    return {
        "database": str(store.database.target),
        "engine": _engine(store),
        "revision": HEAD_REVISION,
        "artifact_root": own and store.archive.sink.url,
        "artifacts_unavailable": own and _why_unavailable(store, own),
        "spool": str(store.spool),
        "store_id": own and own.id,
        "created_at": own and own.created_at,
        "not_ingested": None if lag is None else str(lag),
        **{_COUNTS.get(name, name): value for name, value in counts.items()},
        "database_bytes": _database_size(store),
        "spool_bytes": _folder_size(store.spool),
        "index": _index(store),
        "redaction_rules": len(used_rules().rules),
        "not_redacted_sessions": _not_redacted(reader),
        "other_spools": _other_spools(store, condition.journals),
        "condition": condition.as_dict(),
    }


def _own_row(store: Store) -> StoreInfo | None:
    """The row of the store; None if the row is damaged, which `Store.lag` says."""
    with suppress(DamageError):
        return store.info
    return None


def _index(store: Store) -> dict[str, int] | None:
    """The state of the index of words; None if the index is damaged."""
    with suppress(DamageError):
        return index_record(store)
    return None


def _other_spools(store: Store, journals: Sequence[JournalState]) -> list[str]:
    """Other spools of this machine that were ingested before, and where something waits now."""
    found = set[str]()
    for one in journals:
        spool = Path(one.spool)
        is_here = one.host == socket.gethostname() and one.damage is None
        if not is_here or spool == store.spool:
            continue
        # A spool that cannot be read is reported when it is used.
        with suppress(OSError, TooltrailError), store.database.read() as connection:
            is_same = read_journal_id(spool / JOURNAL_FOLDER) in (one.id, one.branch_of)
            if is_same and what_is_behind(connection, spool) is not None:
                found.add(one.spool)
    return sorted(found)


def _not_redacted(reader: Reader) -> int:
    newest = reader.sessions(limit=_NEWEST)
    return sum(_is_not_redacted(one.environment) for one in newest)


def _is_not_redacted(environment: str) -> bool:
    found: Any = None
    with suppress(ValueError):  # the session is damaged
        found = json.loads(environment)
    return isinstance(found, dict) and NOT_REDACTED.items() <= found.items()


def lines_of(status: dict[str, Any]) -> Iterator[str]:
    """The status as lines of text."""
    outcomes: dict[str, int] = status["invocations"]
    by_outcome = ", ".join(f"{count:,} {kind}" for kind, count in sorted(outcomes.items()))
    yield f"database     {status['database']} ({status['engine']}, revision {status['revision']})"
    yield f"artifacts    {status['artifact_root'] or _DAMAGED}"
    yield f"spool        {status['spool']}"
    newest = counted(min(status["sessions"], _NEWEST), "session")
    off = f"off in {status['not_redacted_sessions']:,} of the newest {newest}"
    yield f"redaction    {status['redaction_rules']} rules; {off}"
    created_at = status["created_at"]
    yield f"created      {_DAMAGED if created_at is None else shown(created_at)}"
    yield f"sessions     {status['sessions']:,}"
    yield f"invocations  {sum(outcomes.values()):,}{f' ({by_outcome})' if outcomes else ''}"
    yield f"produced     {size_of(status['produced_bytes'])}{_lost(status)}"
    if status["bodies"] is not None:
        stored, plain = size_of(status["body_stored_bytes"]), size_of(status["body_bytes"])
        bodies = "1 body" if status["bodies"] == 1 else f"{status['bodies']:,} bodies"
        yield f"bodies       {bodies}, {stored} for {plain}"
    yield f"on disk      {_on_disk(status)}"
    yield f"index        {_DAMAGED if status['index'] is None else index_line(status['index'])}"


def warnings_of(status: dict[str, Any]) -> Iterator[str]:
    """The warnings, one per condition that needs attention."""
    engine, _, version = status["engine"].partition(" ")
    if engine == "SQLite" and tuple(map(int, version.split("."))) < SAFE_VERSION:
        yield (
            f"SQLite {version} has the WAL-reset fault of 3.7.0 to 3.51.2, which can corrupt a "
            "database that several processes write; "
            "pip install 'tooltrail[sqlite]' installs a newer one"
        )
    yield from _journal_warnings(status)
    found: dict[str, Any] = status["condition"]
    if status["index"] is None:
        yield "the index of words is damaged; `tooltrail db index --rebuild` makes it again"
    if (reason := status["artifacts_unavailable"]) is not None:
        yield f"the artifact root is unavailable: {reason}"
    if found["pending_count"]:
        waiting = counted(found["pending_count"], "artifact")
        oldest, size = found["pending"][0], size_of(found["pending_bytes"])
        yield (
            f"{waiting} ({size}) waiting for the artifact root; the oldest since "
            f"{shown(oldest['noticed_at'])} in the spool {oldest['spool']} of host "
            f"{oldest['host']}: {oldest['reason']}"
        )
    yield from _rejections(found)
    for disk in ("database", "spool"):
        free = found[f"{disk}_free_bytes"]
        if free is not None and free < _LOW_BYTES:
            yield f"the disk of the {disk} has {free:,} free bytes"
    if found["lossy_count"]:
        streams = counted(found["lossy_count"], "stream")
        lost = size_of(found["lost_bytes"])
        yield f"{lost} of {streams} were not kept: see `tooltrail log --where 'lost > 0'`"


def is_complete(status: dict[str, Any]) -> bool:
    """Whether all recorded facts could be applied."""
    found: dict[str, Any] = status["condition"]
    return not found["rejected_count"] and not found["damaged_count"]


def _journal_warnings(status: dict[str, Any]) -> Iterator[str]:
    found: dict[str, Any] = status["condition"]
    if (reason := status["not_ingested"]) is not None:
        count = found["waiting_count"]
        waiting = "facts" if count is None else counted(count, "fact")
        of_these = f"{waiting} of this machine not in the database yet"
        yield f"{'no new fact can be ingested' if count == 0 else of_these}: {reason}"
    host, spool = socket.gethostname(), status["spool"]
    known = [(one["host"], one["spool"]) for one in found["journals"]]
    is_readable = found["waiting_count"] is not None
    if (host, spool) in known and is_readable and not Path(spool, JOURNAL_FOLDER).exists():
        yield (
            f"the journal of the spool {spool} is gone, with the facts that waited; "
            "if the spool was moved, name its folder with --spool"
        )
    yield from (one["damage"] for one in found["journals"] if one["damage"] is not None)
    for other in status["other_spools"]:
        repair = f"`tooltrail repair --spool={quote(other)}`"
        yield f"facts, or calls of ended programs, wait in the spool {other}; {repair} ingests them"


def _rejections(found: dict[str, Any]) -> Iterator[str]:
    count, damaged = found["rejected_count"], found["damaged_count"]
    if not count and not damaged:
        return
    kinds = [f"{counted(count, 'fact')} could not be applied"] if count else []
    kinds += [f"{counted(damaged, 'place')} damaged, cut off or replaced"] if damaged else []
    yield f"journals: {', '.join(kinds)}; the newest are:"
    for one in found["rejected"][:_LISTED]:
        yield f"  {one['subject'] or one['journal']}: {one['reason']}"


def _lost(status: dict[str, Any]) -> str:
    if not status["lost_bytes"]:
        return ""
    of = counted(status["lossy_invocations"], "invocation")
    return f", of which {size_of(status['lost_bytes'])} of {of} not kept"


def _on_disk(status: dict[str, Any]) -> str:
    sizes = ("database_bytes", "artifact_stored_bytes", "spool_bytes")
    return (
        f"{size_of(sum(status[size] for size in sizes))}: "
        f"database {size_of(status['database_bytes'])}, "
        f"{counted(status['artifacts'], 'artifact')} {size_of(status['artifact_stored_bytes'])} "
        f"for {size_of(status['artifact_bytes'])}, spool {size_of(status['spool_bytes'])}"
    )


def _engine(store: Store) -> str:
    is_sqlite = isinstance(store.database.target, SqliteTarget)
    asked = "sqlite_version()" if is_sqlite else "current_setting('server_version')"
    with store.database.read() as connection:
        version = str(connection.query(f"SELECT {asked}")[0][0]).split()[0]
    return f"{'SQLite' if is_sqlite else 'PostgreSQL'} {version}"


def _database_size(store: Store) -> int:
    target = store.database.target
    if isinstance(target, SqliteTarget):
        files = (target.path.with_name(f"{target.path.name}{end}") for end in ("", "-wal", "-shm"))
        return sum(file.stat().st_size for file in files if file.exists())
    with store.database.read() as connection:
        return int(connection.query("SELECT pg_database_size(current_database())")[0][0])


def _folder_size(folder: Path) -> int:
    total = 0
    with suppress(OSError):  # the folder cannot be reached
        for path in folder.rglob("*"):
            with suppress(OSError):  # the ingester deleted the file
                total += path.lstat().st_size
    return total


def _why_unavailable(store: Store, own: StoreInfo) -> str | None:
    try:
        store.archive.sink.exists(mark_path(own.id))
    except UnavailableError as error:
        return str(error)
    return None
