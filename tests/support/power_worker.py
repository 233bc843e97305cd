"""A process that records while its power is to fail: `python -m tests.support.power_worker WHAT …`.

record DB ARTIFACTS SPOOL LEVEL   record into a store that is there, in all ways
create DB ARTIFACTS SPOOL         make a store and record a little
wait DB ARTIFACTS SPOOL           record while the artifacts are away, and set records aside
hide DB ARTIFACTS SPOOL           record while the database is away, which stays so
repair DB ARTIFACTS SPOOL         store whatever waits
upgrade DB ARTIFACTS SPOOL        bring the database to the newest schema

What is begun, and what the store has acknowledged, it says on standard output, a line each:

begin N        the call, or the message, of that number is given to the store
session ID     that session was opened
started N ID   so was that call, as that invocation
ended N ID     its end, with all it printed
said N ID      that message
set N ID       the start of that call was set aside, or waits in the outbox
kept N ID      so was its end, or does, with all it printed
awaited ID     that session waits in the outbox
queued N ID    so does that call, with all it printed
sent N ID      and that message
closed ID      that session was closed
made ID        the store of that id was made
upgraded REV   the database is of that revision
"""

import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from random import Random
from typing import cast
from unittest.mock import patch
from uuid import UUID

from sqlalchemy import Engine, event
from sqlalchemy.engine.interfaces import DBAPIConnection
from tests.support.asides import output_of, streams_of
from tests.support.ended import made
from tests.support.recording import command_output

from tooltrail.records import DEFAULT_POLICY, ToolCall
from tooltrail.store import (
    Durability,
    EndedCall,
    Finished,
    Invocation,
    Session,
    Store,
    WantedStore,
    create_store,
    open_aside,
    open_store,
    upgrade_store,
)
from tooltrail.store import repair as store_what_waits
from tooltrail.store._engines import sqlite_connections

LINES = (1, 40, 1_700, 150)
"""Lines of 61 bytes that a call prints, by its number; the third kind becomes an artifact."""

LOG_PAGES = 50
"""Pages of the log after which it is moved into the database: a record takes some ten."""

LOG_BYTES = 60 * 4096
"""Bytes beyond which readers are waited for, and the log is cut."""


def printed(number: int) -> bytes:
    """What the call of a number prints: lines that cannot be compressed to nothing."""
    chance = Random(number)
    lines = [f"{number}", *(chance.randbytes(30).hex() for _ in range(LINES[number % len(LINES)]))]
    return ("\n".join(lines) + "\n").encode()


def text_of(number: int) -> str:
    return f"message {number}: {'?' * number}"


def call_of(number: int) -> ToolCall:
    return ToolCall.of("Bash", {"command": f"print {number}"}, call_id=str(number))


def record(database: str, artifacts: str, spool: str, durability: str) -> None:
    keep_log_short()
    with open_store(
        database,
        artifacts=artifacts,
        spool=Path(spool),
        durability=cast("Durability", durability),
    ) as store:
        session = opened(store)
        run_all(session, range(4))
        add_message(session, 4)
        record_one(session, 5)
        record_one(session, 6)
        record_batch(session, range(10, 19))
        record_at_once(session, range(30, 38))
        left = start(session, 50)
        left.capture("stdout").write(printed(50))
        run_all(opened(store), range(51, 54))
        session.close()
        say("closed", session.id)


def create(database: str, artifacts: str, spool: str) -> None:
    with create_store(database, artifacts=artifacts, spool=Path(spool)) as store:
        say("made", store.info.id)
        session = opened(store)
        run_all(session, range(1, 4))
        record_one(session, 4)


def wait(database: str, artifacts: str, spool: str) -> None:
    away = f"{artifacts}-away"
    with open_store(database, artifacts=away, spool=Path(spool)) as store:
        wanted = WantedStore(database=database, id=store.info.id)
        put_aside(Path(spool), wanted, range(60, 64))
        session = opened(store)
        run_all(session, range(1, 7))
        put_aside(Path(spool), wanted, range(64, 66))


def hide(database: str, artifacts: str, spool: str) -> None:
    with open_store(
        database, artifacts=artifacts, spool=Path(spool), on_unavailable="outbox"
    ) as store:
        session = opened(store)
        run_all(session, range(71, 74))
        store.database.close()
        Path(database).rename(hidden(Path(database)))
        queue(session, range(75, 79))
        later = store.open_session(title="later", parent=session.id)
        say("awaited", later.id)
        queue(later, range(79, 81))
        say("begin", 82)
        say("sent", 82, later.add_message("user", text_of(82)))
        queue(session, range(83, 85))
        queue_in_two_steps(session, range(85, 89))
        later.close()


def hidden(database: Path) -> Path:
    """Where the database is while it is away."""
    return database.with_name(f"{database.name}.hidden")


def queue(session: Session, numbers: range) -> None:
    for number in numbers:
        say("begin", number)
        finished = session.record(call_of(number), made(printed(number)))
        say("queued", number, finished.invocation_id)


def queue_in_two_steps(session: Session, numbers: range) -> None:
    """The start and the end of each, but for the last, which is left."""
    for number in numbers:
        say("begin", number)
        invocation = session.start(call_of(number))
        say("set", number, invocation.id)
        output = command_output(invocation, printed(number), b"common\n")
        if number != numbers[-1]:
            say("kept", number, invocation.finish(output).invocation_id)


def repair(database: str, artifacts: str, spool: str) -> None:
    keep_log_short()
    with open_store(database, artifacts=artifacts, spool=Path(spool)) as store:
        store_what_waits(store)


def upgrade(database: str, _artifacts: str, _spool: str) -> None:
    _, revision = upgrade_store(database)
    say("upgraded", revision)


def put_aside(spool: Path, wanted: WantedStore, numbers: range) -> None:
    for number in numbers:
        say("begin", number)
        call = ToolCall.of("exec", {"argv": ["print", str(number)]}, call_id=str(number))
        policy = DEFAULT_POLICY
        aside = open_aside(
            [spool], call, wanted=wanted, session=None, family="command", policy=policy
        )
        id_ = aside.folder.name.removeprefix("aside-")
        say("set", number, id_)
        aside.finish(output_of(streams_of(aside, stdout=printed(number)), exit_status=0))
        say("kept", number, id_)


def keep_log_short() -> None:
    """Have the log moved into the database, and cut, so that both happen several times."""

    def shorten(connection: DBAPIConnection, _: object) -> None:
        connection.cursor().execute(f"PRAGMA wal_autocheckpoint = {LOG_PAGES}")

    event.listen(Engine, "connect", shorten)
    patch.object(sqlite_connections, "JOURNAL_SIZE_LIMIT", LOG_BYTES).start()


def opened(store: Store) -> Session:
    session = store.open_session(title="power")
    say("session", session.id)
    return session


def run_all(session: Session, numbers: range) -> None:
    for number in numbers:
        invocation = start(session, number)
        finished = invocation.finish(command_output(invocation, printed(number), b"common\n"))
        ended(number, finished)


def start(session: Session, number: int) -> Invocation:
    say("begin", number)
    invocation = session.start(call_of(number))
    say("started", number, invocation.id)
    return invocation


def record_one(session: Session, number: int) -> None:
    say("begin", number)
    ended(number, session.record(call_of(number), made(printed(number))))


def record_batch(session: Session, numbers: range) -> None:
    for number in numbers:
        say("begin", number)
    left = iter(numbers)
    calls = [EndedCall(call_of(number), made(printed(number))) for number in numbers]
    session.record_many(calls, on_durable=lambda finished: ended(next(left), finished))


def record_at_once(session: Session, numbers: range) -> None:
    """From threads, so that one transaction has the records of several."""
    ways: tuple[Callable[[int], None], ...] = (
        partial(record_one, session),
        lambda number: run_all(session, range(number, number + 1)),
    )
    with ThreadPoolExecutor(4) as pool:
        tasks = [pool.submit(ways[number % len(ways)], number) for number in numbers]
    for task in tasks:
        task.result()


def add_message(session: Session, number: int) -> None:
    say("begin", number)
    say("said", number, session.add_message("user", text_of(number)))


def ended(number: int, finished: Finished) -> None:
    say("ended", number, finished.invocation_id)


def say(*words: str | int | UUID) -> None:
    """One line, whole, whichever thread says it."""
    os.write(sys.stdout.fileno(), (" ".join(map(str, words)) + "\n").encode())


if __name__ == "__main__":
    TASKS: dict[str, Callable[..., None]] = {
        task.__name__: task for task in (record, create, wait, hide, repair, upgrade)
    }
    TASKS[sys.argv[1]](*sys.argv[2:])
