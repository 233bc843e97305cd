"""Many calls that have ended are recorded in order, and what is acknowledged is durable."""

import os
import signal
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import Connection, Table, text
from tests.support.disks import small_disk
from tests.support.ended import BASH, failed, made, numbered_calls, rows_about, shared_rows
from tests.support.interleaving import before_write
from tests.support.lossy_server import LossyServer
from tests.support.outboxes import check_all
from tests.support.outputs import returned
from tests.support.processes import start_worker
from tests.support.recording import content_of, stream_of
from tests.support.template_stores import make_store
from tests.support.threads import at_once
from tests.support.upkeep import prune_all

from tooltrail.records import (
    CompleteOutput,
    DiskFullError,
    IdempotencyConflictError,
    InvalidRecordError,
    RecordUncertainError,
    SessionClosedError,
    ToolCall,
    UnavailableError,
    digest_of,
)
from tooltrail.store import (
    EndedCall,
    Finished,
    RecordedCalls,
    Session,
    Store,
    open_store,
    repair,
)
from tooltrail.store._engines.copying_in import copy_in
from tooltrail.store._engines.prepared import Row
from tooltrail.store._recording import writes
from tooltrail.store._recording.batches import MOST, MOST_BYTES
from tooltrail.store._recording.writes import lock_chain

BIG = b"a line of a long output\n" * 20_000
NOISE = b"\n".join(digest_of(b"%d" % n).encode() for n in range(10_000))
ODD = [
    EndedCall(BASH, made(BIG, b"warning\n", 3)),
    EndedCall(BASH, made(b"\xff\0\r\n")),
    EndedCall(BASH, failed("denied")),
    EndedCall(BASH, made(b"")),
    EndedCall(
        ToolCall(tool_name="a\0b", arguments_raw="\ud800", call_id="\0"),
        returned("a\0b", "nul \0", b"\x89PNG", structured={"a": [1, None, "\udc80"]}),
    ),
    EndedCall(BASH, made(BIG, b"warning\n", 3)),
]


def outputs_of(store: Store, session: Session) -> list[bytes]:
    """What the invocations of a session printed, in their order."""
    _, _, invocations = store.reader.conversation(session.id)
    return [content_of(store.reader, stream_of(one, "stdout")) for one in invocations]


def test_they_leave_the_rows_that_recording_one_by_one_leaves(store: Store) -> None:
    one_by_one, at_a_time = store.open_session(), store.open_session()
    calls = ODD + numbered_calls(20)
    told: list[Finished] = []
    summary = at_a_time.record_many(calls, on_durable=told.append)
    shared = shared_rows(store)
    recorded = [one_by_one.record(call.call, call.output) for call in calls]

    assert summary == RecordedCalls(len(calls), 0)
    assert shared_rows(store) == shared
    for ours, theirs in zip(told, recorded, strict=True):
        assert rows_about(store, ours.invocation_id) == rows_about(store, theirs.invocation_id)
        assert replace(ours, invocation_id=theirs.invocation_id) == theirs
    check_all(store)


def test_more_than_a_batch_is_in_order_and_none_is_recorded_as_none(store: Store) -> None:
    session = store.open_session()
    count = MOST + 44
    assert session.record_many(iter(numbered_calls(count))) == RecordedCalls(count, 0)
    assert session.record_many([]) == RecordedCalls(0, 0)
    assert outputs_of(store, session) == [b"%d\n" % n for n in range(count)]
    session.record(BASH, made())
    check_all(store)


def test_a_batch_ends_with_its_bytes(sqlite_store: Store) -> None:
    session, given, seen = sqlite_store.open_session(), 0, list[int]()
    large = made(b"x" * (MOST_BYTES // 3 + 1))

    def calls() -> Iterator[EndedCall]:
        nonlocal given
        for _ in range(7):
            given += 1
            yield EndedCall(BASH, large)

    session.record_many(calls(), on_durable=lambda _: seen.append(given))
    assert seen == [3, 3, 3, 6, 6, 6, 7]


def with_stdout(change: dict[str, object]) -> CompleteOutput:
    """What a command gave, with something else told of what it printed."""
    output = made(b"x" * 100)
    (stdout,) = (stream for stream in output.streams if stream.role == "stdout")
    assert output.result is not None
    result = output.result.model_copy(update={"stdout": stdout.model_copy(update=change)})
    return output.model_copy(update={"result": result})


@pytest.mark.parametrize("place", [0, 3, MOST + 5])
@pytest.mark.parametrize("wrong", ["times", "tool", "stream", "iterator"])
def test_what_comes_before_an_error_is_durable_and_nothing_behind_it(
    sqlite_store: Store, wrong: str, place: int
) -> None:
    session = sqlite_store.open_session()
    told: list[Finished] = []
    calls = numbered_calls(place + 5)
    one = calls[place]
    changed = {
        "times": replace(one, started_at=datetime(2025, 1, 1)),  # noqa: DTZ001
        "tool": replace(one, call=ToolCall(tool_name="Read")),
        "stream": replace(one, output=with_stdout({"content": None})),
    }

    def given() -> Iterator[EndedCall]:
        for n, call in enumerate(calls):
            if n == place and wrong == "iterator":
                raise InvalidRecordError("by the iterator")
            yield changed[wrong] if n == place else call

    with pytest.raises(InvalidRecordError):
        session.record_many(given(), on_durable=told.append)

    assert outputs_of(sqlite_store, session) == [b"%d\n" % n for n in range(place)]
    assert len(told) == place
    check_all(sqlite_store)


def test_what_the_database_alone_refuses_keeps_nobody_before_it_from_it(store: Store) -> None:
    session = store.open_session()
    calls = numbered_calls(30)
    calls[20] = replace(
        calls[20], output=with_stdout({"produced_size": 1 << 70, "loss_reason": "x"})
    )
    with pytest.raises(InvalidRecordError, match="out of range"):
        session.record_many(calls)
    assert outputs_of(store, session) == [b"%d\n" % n for n in range(20)]
    check_all(store)


def test_a_closed_session_takes_none(store: Store) -> None:
    session = store.open_session()
    session.close()
    with pytest.raises(SessionClosedError):
        session.record_many(numbered_calls(20))
    assert store.reader.counts().invocations == {}


# Keys


def test_recording_them_again_changes_nothing_and_tells_the_same(store: Store) -> None:
    session = store.open_session()
    first: list[Finished] = []
    calls = numbered_calls(30, keyed=True)
    assert session.record_many(calls[:20], on_durable=first.append) == RecordedCalls(20, 0)
    again: list[Finished] = []
    assert session.record_many(calls, on_durable=again.append) == RecordedCalls(10, 20)
    assert again[:20] == first
    session.close()
    assert session.record_many(calls) == RecordedCalls(0, 30)
    with pytest.raises(SessionClosedError):
        session.record_many(numbered_calls(31, keyed=True))
    check_all(store)


def test_a_key_twice_in_a_batch_is_one_record(store: Store) -> None:
    session = store.open_session()
    told: list[Finished] = []
    (one,) = numbered_calls(1, keyed=True)
    assert session.record_many([one, one, one], on_durable=told.append) == RecordedCalls(1, 2)
    assert told == [told[0]] * 3
    check_all(store)


@pytest.mark.parametrize("is_known", [True, False])
def test_a_conflict_ends_it_behind_what_came_before(store: Store, is_known: bool) -> None:
    session = store.open_session()
    calls = numbered_calls(40, keyed=True)
    conflict = replace(calls[0], idempotency_key="call 30")
    if is_known:
        session.record_many([conflict])
    else:
        calls.insert(20, conflict)
    with pytest.raises(IdempotencyConflictError, match="call 30"):
        session.record_many(calls)
    assert store.reader.counts().invocations == {"success": 31}
    check_all(store)


def test_several_who_import_the_same_record_it_once(
    store: Store, database: str, tmp_path: Path
) -> None:
    session = store.open_session()
    calls = numbered_calls(60, keyed=True)

    def run(calls: list[EndedCall]) -> RecordedCalls:
        with open_store(database, artifacts=str(tmp_path / "artifacts")) as other:
            return other.join_session(session.id).record_many(calls)

    told = at_once(*(partial(run, some) for some in (calls, calls[::-1], calls[20:] + calls[:20])))
    assert sum(one.recorded_count for one in told if isinstance(one, RecordedCalls)) == 60
    assert store.reader.counts().invocations == {"success": 60}
    check_all(store)


# Faults


def test_while_the_artifacts_are_away_long_output_is_kept_in_the_database(
    store: Store, database: str, tmp_path: Path
) -> None:
    session, root = store.open_session(), tmp_path / "artifacts"
    with open_store(database, artifacts=str(root)) as other:

        def come_in() -> None:
            prune_all(other)
            root.rename(tmp_path / "unmounted")

        with before_write(store, come_in):
            session.record_many([*numbered_calls(3), EndedCall(BASH, made(BIG))])
    session.record_many([*numbered_calls(3, first=3), EndedCall(BASH, made(BIG))])
    (tmp_path / "unmounted").rename(root)
    printed = [b"%d\n" % n for n in range(6)]
    assert outputs_of(store, session) == [*printed[:3], BIG, *printed[3:], BIG]
    check_all(store)


def test_objects_that_are_pruned_before_the_commit_are_published_anew(
    sqlite_store: Store, tmp_path: Path
) -> None:
    session = sqlite_store.open_session()
    with (
        open_store(tmp_path / "trail.db") as other,
        before_write(sqlite_store, lambda: prune_all(other)),
    ):
        session.record_many([EndedCall(BASH, made(BIG)), EndedCall(BASH, made(NOISE))])
    assert len(sqlite_store.reader.artifacts()) == 2
    assert not list(sqlite_store.spool.glob("0*"))
    check_all(sqlite_store)


def test_on_a_full_disk_what_went_in_is_durable_and_told(tmp_path: Path) -> None:
    with (
        small_disk(tmp_path / "disk", 12 << 20) as disk,
        make_store(disk.folder / "trail.db") as store,
    ):
        session = store.open_session()
        told: list[Finished] = []
        call = ToolCall(tool_name="Read")
        noise = (EndedCall(call, returned("Read", os.urandom(12_000))) for _ in range(3_000))
        with pytest.raises(DiskFullError):
            session.record_many(noise, on_durable=told.append)
        disk.free()
        assert told
        for one in told:
            assert store.reader.invocation(one.invocation_id).summary.state == "success"
        assert store.reader.counts().invocations == {"success": len(told)}
        check_all(store)


@pytest.mark.parametrize("is_committed", [True, False])
def test_a_batch_whose_commit_nobody_answers_is_recorded_or_not_as_a_whole(
    lossy: LossyServer, postgres_url: str, tmp_path: Path, is_committed: bool
) -> None:
    spool = tmp_path / "spool"
    make_store(postgres_url, artifacts=str(tmp_path / "artifacts"), spool=spool).close()
    calls = numbered_calls(MOST + 20, keyed=True)
    told: list[Finished] = []
    with open_store(lossy.url, spool=spool, on_unavailable="raise") as far:
        session = far.open_session()
        lossy.lose_an_answer(b"COPY invocations", is_committed=is_committed)
        with pytest.raises(RecordUncertainError, match=f"whether {MOST} invocations") as caught:
            session.record_many(calls, on_durable=told.append)
        assert told == []
        assert len(caught.value.invocation_ids) == MOST
        known = MOST if is_committed else 0
        assert sum(far.reader.counts().invocations.values()) == known
        assert session.record_many(calls) == RecordedCalls(MOST + 20 - known, known)
        check_all(far)


def test_of_a_batch_that_nobody_answers_those_are_named_that_may_be_new(
    lossy: LossyServer, postgres_url: str, tmp_path: Path
) -> None:
    spool = tmp_path / "spool"
    make_store(postgres_url, artifacts=str(tmp_path / "artifacts"), spool=spool).close()
    calls = numbered_calls(60, keyed=True)
    with open_store(lossy.url, spool=spool, on_unavailable="raise") as far:
        session = far.open_session()
        session.record_many(calls[:20])
        lossy.lose_an_answer(b"COPY invocations", is_committed=True)
        with pytest.raises(RecordUncertainError, match="whether 40 invocations") as caught:
            session.record_many(calls)
        recorded = {one.summary.id for one in far.reader.conversation(session.id)[2]}
        assert recorded > set(caught.value.invocation_ids)
        assert len(caught.value.invocation_ids) == 40
        check_all(far)


def test_calls_that_are_all_known_wait_for_no_writer(sqlite_store: Store) -> None:
    calls = numbered_calls(30, keyed=True)
    session = sqlite_store.open_session()
    session.record_many(calls)
    told: list[Finished] = []
    holder = start_worker("hold", str(sqlite_store.database.target), takes_input=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"holding\n"
    assert session.record_many(calls, on_durable=told.append) == RecordedCalls(0, 30)
    other = replace(calls[20], output=made(b"something else"))
    with pytest.raises(IdempotencyConflictError):
        session.record_many([*calls[:20], other, *calls[21:]], on_durable=told.append)
    holder.communicate(b"")
    assert len(told) == 50
    check_all(sqlite_store)


@pytest.mark.parametrize("on_unavailable", ["raise"])
def test_a_server_that_drops_the_connection_in_a_batch_leaves_nothing_of_it(
    postgres_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = postgres_store.open_session()
    copied: list[str] = []

    def copy(connection: Connection, table: Table[Any], rows: Sequence[Row]) -> None:
        copied.append(table.name)
        if table.name == "ledger_entries":
            backend = connection.scalar(text("SELECT pg_backend_pid()"))
            with postgres_store.database.engine.connect() as other:
                other.execute(text("SELECT pg_terminate_backend(:pid)"), {"pid": backend})
        copy_in(connection, table, rows)

    with monkeypatch.context() as patched:
        patched.setattr(writes, "copy_in", copy)
        with pytest.raises(UnavailableError):
            session.record_many(numbered_calls(20))
    assert copied.index("ledger_entries") > 0
    assert session.record_many(numbered_calls(20)) == RecordedCalls(20, 0)
    check_all(postgres_store)


@pytest.mark.parametrize("kills_at", [1, 40, 300, 700])
def test_what_a_killed_import_was_told_of_is_there(
    store: Store, database: str, tmp_path: Path, kills_at: int
) -> None:
    session = store.open_session()
    artifacts, spool = str(tmp_path / "artifacts"), str(store.spool)
    worker = start_worker("bulk", database, artifacts, spool, str(session.id))
    assert worker.stdout is not None
    said = b"".join(worker.stdout.readline() for _ in range(kills_at))
    os.kill(worker.pid, signal.SIGKILL)
    # By the same buffer, which has read ahead.
    said += worker.stdout.read()
    worker.communicate()
    told = [UUID(line.decode()) for line in said[: said.rindex(b"\n")].split(b"\n")]
    repair(store)

    # A server may be at work still on what the killed client had asked for.
    with store.database.write() as connection:
        lock_chain(connection, session.key, session.id)
    recorded = [one.summary.id for one in store.reader.conversation(session.id)[2]]
    assert recorded[: len(told)] == told
    assert len(recorded) % MOST == 0
    check_all(store)
