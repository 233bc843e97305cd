"""What `tooltrail status` warns of: one sentence for each thing that needs attention."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from tooltrail.cli._output import counted, printable, size_of
from tooltrail.cli._times import shown

_SAFE_SQLITE = (3, 51, 3)
"""First SQLite release without the WAL-reset corruption of 3.7.0 to 3.51.2."""


def warnings_of(status: dict[str, Any], *, utc: bool) -> Iterator[str]:
    """What needs attention."""
    engine, _, version = status["engine"].partition(" ")
    if engine == "SQLite" and tuple(map(int, version.split("."))) < _SAFE_SQLITE:
        yield (
            f"SQLite {version} has the WAL-reset fault of 3.7.0 to 3.51.2, which can corrupt a "
            "database that several processes write; "
            "pip install 'tooltrail[sqlite]' brings a newer one"
        )
    if (reason := status["artifacts_away"]) is not None:
        yield f"the artifact root is unavailable, so long output waits in the spool: {reason}"
    yield from _room_warnings(status["room"])
    if not status["is_spool_writable"]:
        yield f"the spool cannot be written, so no output can be captured in it: {status['spool']}"
    if (reason := status["spool_unreadable"]) is not None:
        yield f"the spool cannot be read, so its content is unknown: {printable(reason)}"
        return
    yield from _unsettled_warnings(status, utc=utc)
    yield from _aside_warnings(status["set_aside"], utc=utc)
    yield from outbox_warnings(status["outbox"], utc=utc)


def _room_warnings(room: dict[str, Any]) -> Iterator[str]:
    if room["is_database_full"] or room["is_reserve_missing"]:
        free = counted(room["database_free_bytes"], "free byte")
        held = "; no megabyte is held back for the end of a call"
        yield f"the disk of the database has {free}{held if room['is_reserve_missing'] else ''}"
    free, held = room["spool_free_bytes"], room["spool_held_back_bytes"]
    if free is not None and free < held:
        yield (
            f"the disk of the spool has {counted(free, 'free byte')}, and {held:,} are held back:"
            " long output is counted and not kept"
        )


def _unsettled_warnings(status: dict[str, Any], *, utc: bool) -> Iterator[str]:
    unsettled, streams = status["unsettled"], status["waiting_streams"]
    if count := unsettled["killed"]:
        yield (
            f"{counted(count, 'invocation')} of killed programs: `tooltrail repair` ends"
            f" {_them(count)} as interrupted"
        )
    if count := unsettled["waiting"]:
        since = _since(streams["oldest_at"], utc=utc)
        when = "" if status["artifacts_away"] is None else " when the artifacts are back"
        yield (
            f"{counted(count, 'invocation')} {'has' if count == 1 else 'have'} ended with output"
            f" that waits in the spool{since}: `tooltrail repair` stores it{when}"
        )
    if count := unsettled["answers"]:
        yield (
            f"{counted(count, 'answer')} of models cut off by the end of their program: "
            "`tooltrail repair` records what had come"
        )
    if count := unsettled["leftover"]:
        yield (
            f"{counted(count, 'invocation')} {'has' if count == 1 else 'have'} ended and left"
            " something in the spool: `tooltrail repair` clears it"
        )
    if count := unsettled["unknown"]:
        yield (
            f"output of {counted(count, 'invocation')} in the spool that this store does not know:"
            f" `tooltrail repair` names {_them(count)}"
        )
    if count := unsettled["elsewhere"]:
        yield (
            f"{counted(count, 'invocation')} not ended and not in this spool: running elsewhere, or"
            " killed there"
        )
    if count := streams["missing"]:
        since = _since(streams["oldest_missing_at"], utc=utc)
        yield (
            f"{counted(count, 'stream')} neither stored nor in this spool{since}: missing, unless"
            " recorded with another spool; see `tooltrail verify`"
        )


def _aside_warnings(aside: dict[str, Any], *, utc: bool) -> Iterator[str]:
    if count := aside["ready"] + aside["unfinished"]:
        cut = f", {aside['unfinished']:,} of killed programs" if aside["unfinished"] else ""
        oldest = _since(aside["oldest_at"], utc=utc)
        yield (
            f"{counted(count, 'record')} set aside while this store was away{cut}{oldest}:"
            f" `tooltrail repair` stores {_them(count)}"
        )
    if aside["running"]:
        yield f"{counted(aside['running'], 'running invocation')} being set aside"
    if count := aside["unreadable"]:
        records = counted(count, "record")
        yield f"{records} set aside and not as written: `tooltrail repair` says why"
    if count := aside["foreign"]:
        since = _since(aside["oldest_foreign_at"], utc=utc)
        where = printable(", ".join(aside["foreign_databases"]))
        yield f"{counted(count, 'record')} set aside for {where}{since}: repair there"


def outbox_warnings(outbox: dict[str, Any], *, utc: bool) -> Iterator[str]:
    """One warning for all that there is, since it has one cause: the store was away."""
    told: list[str] = []
    if count := outbox["entries"]:
        since = _since(outbox["oldest_at"], utc=utc)
        told.append(
            f"{counted(count, 'record')} ({size_of(outbox['bytes'])}) in the outbox{since}:"
            f" `tooltrail repair` stores {_them(count)}"
        )
    if count := outbox["unreadable"]:
        told.append(f"{counted(count, 'line')} of the outbox cut or altered")
    if count := outbox["dropped"]:
        told.append(f"{counted(count, 'record')} dropped while this store was away")
    if count := outbox["kept"]:
        where = printable(", ".join(outbox["kept_in"]))
        told.append(f"{counted(count, 'record')} of the outbox not deliverable, kept in {where}")
    if told:
        yield "; ".join(told)
    for one in outbox["foreign"]:
        yield printable(f"records of the outbox for another store: {one['told']}")


def _them(count: int) -> str:
    return "it" if count == 1 else "them"


def _since(oldest: datetime | None, *, utc: bool) -> str:
    return "" if oldest is None else f", the oldest of {shown(oldest, utc=utc)}"
