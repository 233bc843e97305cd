"""A process that records into a store: `python -m tests.support.store_worker WHAT …`.

many DB ARTIFACTS SPOOL SESSION COUNT   record COUNT messages and COUNT commands
loop DB                                 record commands until it is killed
hold DB                                 begin to write, and stay there until standard input ends
keep DB SPOOL SESSION                   begin to record in that session, and stay there the same way
endure DB SPOOL THREADS                 record by so many threads until standard input ends, and go
                                        on when a server is away; print what is acknowledged
persist DB SPOOL                        the same with `record`, `arecord` and `record_many`, by keys
outlast DB SPOOL THREADS                the same, with an outbox for when a server is away; print a
                                        digest of what was handed back, too
accompany DB SPOOL THREADS              as `outlast`, each call in two steps: its start and its end
share DB SPOOL SESSION SECONDS          record commands in that session and in an own one, and
                                        print what was acknowledged and how long each took
bulk DB ARTIFACTS SPOOL SESSION         record commands, many at a time, until it is killed, and
                                        print the id of each that is durable
once DB ARTIFACTS COUNT                 record so many commands in one session, all with keys that
                                        every such process has, and print their ids
create DB ARTIFACTS AT [NTH]            create a store, be killed before the NTH statement with AT,
                                        or AT being "before the mark" or "after the mark"
upgrade DB [AT]                         upgrade a store and print from where to where; be killed
                                        before a statement with AT
"""

import asyncio
import faulthandler
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import TypeVar
from unittest.mock import patch
from uuid import UUID

from sqlalchemy import Connection, Engine, event
from tests.support.ended import BASH, made
from tests.support.recording import command_output, run_command

from tooltrail.artifacts import ArtifactSink
from tooltrail.records import DiskFullError, ToolCall, UnavailableError, digest_of
from tooltrail.store import (
    Durability,
    EndedCall,
    Finished,
    OnUnavailable,
    Session,
    _making,
    create_store,
    open_store,
    upgrade_store,
)
from tooltrail.store._recording.group_commit import Write
from tooltrail.store._recording.writes import lock_chain
from tooltrail.store._roots.marks import mark_root

T = TypeVar("T")


def many(database: str, artifacts: str, spool: str, session_id: str, count: str) -> None:
    with open_store(database, artifacts=artifacts, spool=Path(spool)) as store:
        session = store.join_session(UUID(session_id))
        for number in range(int(count)):
            session.add_message("user", f"{os.getpid()} says {number}")
            run_command(session, f"{os.getpid()} prints {number}\n".encode())


def loop(database: str, durability: Durability = "full") -> None:
    with open_store(database, durability=durability) as store:
        session = store.open_session(title="loop")
        number = 0
        while True:
            invocation = session.start(ToolCall(tool_name="Bash"))
            big = f"{os.getpid()} {number}\n".encode() * (5_000 if number % 3 else 10)
            invocation.finish(command_output(invocation, big, b"common\n"))
            number += 1
            print(number, flush=True)  # noqa: T201  the parent waits for it


def hold(database: str) -> None:
    with open_store(database) as store, store.database.write():
        print("holding", flush=True)  # noqa: T201  the parent waits for it
        sys.stdin.read()


def keep(database: str, spool: str, session_id: str) -> None:
    with open_store(database, spool=Path(spool)) as store:
        session = store.join_session(UUID(session_id))

        def stay(connection: Connection) -> None:
            lock_chain(connection, session.key, session.id)
            print("holding", flush=True)  # noqa: T201  the parent waits for it
            sys.stdin.read()

        store.writes.run(Write(stay))


def endure(database: str, spool: str, thread_count: str) -> None:
    def record(session: Session, _: int) -> None:
        with suppress(UnavailableError):
            invocation = session.start(ToolCall(tool_name="Bash"))
            say(f"started {invocation.id}")
            output = command_output(invocation, f"{invocation.id}\n".encode(), b"common\n")
            until_it_is_taken(partial(invocation.finish, output))
            say(f"ended {invocation.id}")

    until_told(database, spool, [record] * int(thread_count))


def persist(database: str, spool: str) -> None:
    def by_record(session: Session, number: int) -> None:
        (call,) = keyed(session, number, 1)
        key = call.idempotency_key
        record = partial(session.record, call.call, call.output, idempotency_key=key)
        told(until_it_is_taken(record))

    def by_arecord(session: Session, number: int) -> None:
        async def record(call: EndedCall) -> Finished:
            return await session.arecord(
                call.call, call.output, idempotency_key=call.idempotency_key
            )

        async def record_all() -> list[Finished]:
            return await asyncio.gather(*map(record, keyed(session, number, 3)))

        for finished in until_it_is_taken(lambda: asyncio.run(record_all())):
            told(finished)

    def by_record_many(session: Session, number: int) -> None:
        calls = keyed(session, number, 20)
        until_it_is_taken(lambda: session.record_many(calls, on_durable=told))

    def told(finished: Finished) -> None:
        say(f"ended {finished.invocation_id}")

    until_told(database, spool, [by_record, by_arecord, by_record_many])


def outlast(database: str, spool: str, thread_count: str) -> None:
    def record(session: Session, number: int) -> None:
        finished = session.record(BASH, made(b"%d" % number))
        session.add_message("user", f"{number}")
        say(f"shown {finished.invocation_id} {digest_of_shown(finished)}")
        say(f"ended {finished.invocation_id}")

    until_told(database, spool, [record] * int(thread_count), "outbox")


def accompany(database: str, spool: str, thread_count: str) -> None:
    def record(session: Session, number: int) -> None:
        invocation = session.start(BASH)
        session.add_message("user", f"{number}")
        # Every other one is too long for a line of the journal.
        stdout = b"%d" % number + b"\n" * (100_000 * (number % 2))
        finished = invocation.finish(command_output(invocation, stdout, b"common\n"))
        say(f"shown {finished.invocation_id} {digest_of_shown(finished)}")
        say(f"ended {finished.invocation_id}")

    until_told(database, spool, [record] * int(thread_count), "outbox")


def digest_of_shown(finished: Finished) -> str:
    return digest_of(finished.canonical.to_json() + b"\n" + finished.receipt.to_bytes())


def keyed(session: Session, number: int, count: int) -> list[EndedCall]:
    """Calls of that number; the same ones when they are asked for again."""
    keys = [f"{session.id} {number} {place}" for place in range(count)]
    return [EndedCall(BASH, made(key.encode()), idempotency_key=key) for key in keys]


def until_it_is_taken(record: Callable[[], T]) -> T:
    """Try it for as long as the server is away; a full disk is not that."""
    while True:
        try:
            return record()
        except DiskFullError:
            raise
        except UnavailableError:
            continue


def until_told(
    database: str,
    spool: str,
    recorders: Sequence[Callable[[Session, int], None]],
    on_unavailable: OnUnavailable = "raise",
) -> None:
    """Have each record in a session and a thread of its own, until standard input ends.

    Each is also told how often it has recorded before.
    """
    over = threading.Event()

    def go_on(record: Callable[[Session, int], None], session: Session) -> None:
        try:
            for number in count():
                if over.is_set():
                    return
                record(session, number)
        except BaseException as error:
            say(f"failed {error!r}")
            raise

    with (
        open_store(database, spool=Path(spool), on_unavailable=on_unavailable) as store,
        ThreadPoolExecutor(len(recorders)) as pool,
    ):
        # Before any of them records: one that fails would leave the others recording for ever.
        sessions = [store.open_session() for _ in recorders]
        say("ready")
        tasks = [pool.submit(go_on, *one) for one in zip(recorders, sessions, strict=True)]
        try:
            sys.stdin.read()
        finally:
            # Whatever comes: the pool waits for them, and nothing else would end them.
            over.set()
        for task in tasks:
            task.result()


def say(line: str) -> None:
    """One line, whole, whichever thread says it."""
    os.write(sys.stdout.fileno(), f"{line}\n".encode())


def share(database: str, spool: str, session_id: str, seconds: str) -> None:
    ids: list[str] = []
    waits: list[float] = []
    with open_store(database, spool=Path(spool)) as store:
        sessions = [store.open_session(), store.join_session(UUID(session_id))]
        print("ready", flush=True)  # noqa: T201  the parent waits for it
        sys.stdin.read()
        end = time.monotonic() + float(seconds)
        while time.monotonic() < end:
            for session in sessions:
                began = time.monotonic()
                invocation = session.start(ToolCall(tool_name="Bash"))
                began, first = time.monotonic(), time.monotonic() - began
                output = f"{os.getpid()} prints {len(ids)}\n".encode()
                invocation.finish(command_output(invocation, output, b""))
                waits += [first, time.monotonic() - began]
                ids.append(str(invocation.id))
    print(json.dumps({"ids": ids, "waits": waits}))  # noqa: T201  the parent reads it


def bulk(database: str, artifacts: str, spool: str, session_id: str) -> None:
    def calls() -> Iterator[EndedCall]:
        for number in count():
            big = b"%d " % number * (9_000 if number % 50 == 0 else 9)
            yield EndedCall(BASH, made(big))

    def tell(finished: Finished) -> None:
        print(finished.invocation_id, flush=True)  # noqa: T201  the parent waits for it

    with open_store(database, artifacts=artifacts, spool=Path(spool)) as store:
        store.join_session(UUID(session_id)).record_many(calls(), on_durable=tell)


def once(database: str, artifacts: str, count: str) -> None:
    with open_store(database, artifacts=artifacts) as store:
        session = store.open_session(title="once", idempotency_key="session")
        for number in range(int(count)):
            output, key = made(b"%d\n" % number), f"call {number}"
            finished = session.record(BASH, output, idempotency_key=key)
            print(finished.invocation_id)  # noqa: T201  the parent reads it


def create(database: str, artifacts: str, at: str, nth: str = "1") -> None:
    kill_at = killed_at(at, int(nth))

    def marking(sink: ArtifactSink, store_id: UUID, place: str, scratch: Path | None) -> None:
        kill_at("before the mark")
        mark_root(sink, store_id, place, scratch)
        kill_at("after the mark")

    patch.object(_making, "mark_root", marking).start()
    create_store(database, artifacts=artifacts).close()


def upgrade(database: str, at: str = "") -> None:
    if at:
        killed_at(at, 1)
    print(*upgrade_store(database))  # noqa: T201  the parent reads it


def killed_at(at: str, left: int) -> Callable[[str], None]:
    """Be killed before so many statements with a text; what is given back asks the same."""

    def kill_at(statement: str) -> None:
        nonlocal left
        left -= at in statement
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)

    def before_statement(_c: Connection, _cursor: object, statement: str, *_: object) -> None:
        kill_at(" ".join(statement.split()))

    def before_commit(_: Connection) -> None:
        kill_at("COMMIT")

    event.listen(Engine, "before_cursor_execute", before_statement)
    event.listen(Engine, "commit", before_commit)
    return kill_at


if __name__ == "__main__":
    # Whoever waits for it in vain has it say where it is, and end.
    faulthandler.register(signal.SIGUSR1, chain=True)
    TASKS: dict[str, Callable[..., None]] = {
        task.__name__: task
        for task in (
            many,
            loop,
            hold,
            keep,
            endure,
            persist,
            outlast,
            accompany,
            share,
            bulk,
            once,
            create,
            upgrade,
        )
    }
    TASKS[sys.argv[1]](*sys.argv[2:])
