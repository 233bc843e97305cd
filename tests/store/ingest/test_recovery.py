"""Calls whose program died are ended by whoever ingests next."""

import json
import os
import signal
from pathlib import Path

import pytest
from tests.support import schema
from tests.support.call_facts import ended, next_id, started
from tests.support.killing import end_of, fork
from tests.support.store_parts import StoreParts, spool

from tooltrail.artifacts import Capture, artifact_path
from tooltrail.journal import Owner, is_alive
from tooltrail.records.digests import digest_of

STDOUT = ("stdout", "bytes")
LONG = b"".join(b"%d some line of a log\n" % n for n in range(20_000))


def dead_owner(store: StoreParts) -> str:
    """The name of an owner lock whose process was killed."""
    read, write = os.pipe()

    def own() -> None:
        owner = Owner(store.spool)
        os.write(write, owner.name().encode())
        signal.pause()

    child = fork(own)
    os.close(write)
    name = os.read(read, 64).decode()
    os.close(read)
    assert is_alive(store.spool, name)
    os.kill(child, signal.SIGKILL)
    assert end_of(child) == -signal.SIGKILL
    assert not is_alive(store.spool, name)
    return name


def test_a_call_of_a_living_program_stays_open(parts: StoreParts) -> None:
    owner = Owner(parts.spool)
    parts.ingest(started(next_id(), next_id(), owner=owner.name()))
    assert parts.ingest().recovered_count == 0
    assert parts.rows(schema.invocations, "state") == [("started",)]
    owner.release()
    assert parts.ingest().recovered_count == 1
    assert parts.rows(schema.invocations, "state") == [("interrupted",)]


@pytest.mark.parametrize("fact", ["7", "x'0102'", "'text'"])
def test_a_damaged_ledger_entry_keeps_no_other_call_open(parts: StoreParts, fact: str) -> None:
    session, owner = next_id(), Owner(parts.spool)
    calls = [next_id(), next_id()]
    parts.ingest(*(started(session, one, owner=owner.name()) for one in calls))
    parts.alter(f"UPDATE ledger_entries SET fact = {fact} WHERE n = 0")
    owner.release()
    assert parts.ingest().recovered_count == 1
    states = dict(parts.rows(schema.invocations, "id", "state"))
    assert states == {calls[0]: "started", calls[1]: "interrupted"}


def test_a_call_without_an_owner_stays_open(parts: StoreParts) -> None:
    parts.ingest(started(next_id(), next_id()))
    assert parts.rows(schema.invocations, "state") == [("started",)]


@pytest.mark.both_engines
def test_the_call_of_a_dead_program_is_ended_with_the_output_it_left(parts: StoreParts) -> None:
    session, call, owner = next_id(), next_id(), dead_owner(parts)
    spool(parts, call, LONG)
    spool(parts, call, b"short", role="stderr")
    done = parts.ingest(started(session, call, owner=owner))
    assert done.recovered_count == 1
    assert parts.rows(schema.invocations, "state", "error_kind", "output_size", "truncated") == [
        ("interrupted", "interrupted", len(LONG) + 5, True)
    ]
    assert parts.rows(schema.streams, "role", "digest", "size", "loss_reason") == [
        ("stderr", digest_of(b"short"), 5, None),
        ("stdout", digest_of(LONG), len(LONG), None),
    ]
    with parts.archive.open(artifact_path(digest_of(LONG))) as file:
        assert file.read() == LONG
    ((output, receipt),) = parts.rows(schema.surfaces, "output", "receipt")
    assert json.loads(output)["partial_output"] == [
        {"$tooltrail.stream": 0},
        {"$tooltrail.stream": 1},
    ]
    assert "interrupted" in receipt
    assert "\nstderr:\nshort\n" in receipt
    assert f"full output: {artifact_path(digest_of(LONG))}]" in receipt
    left_out = parts.rows(schema.omissions, "field", "unit", "before_count", "after_count")
    ((before, after),) = [(b, a) for field, unit, b, a in left_out if (field, unit) == STDOUT]
    assert before == len(LONG)
    assert 0 < after < 32_000
    assert not (parts.spool / str(call)).exists()
    assert not is_alive(parts.spool, owner)
    assert not (parts.spool / "owners" / f"{owner}.lock").exists()


def test_a_call_is_ended_once(parts: StoreParts) -> None:
    owner = dead_owner(parts)
    parts.ingest(started(next_id(), next_id(), owner=owner))
    assert parts.ingest().recovered_count == 0
    assert parts.rows(schema.ledger_entries, "kind") == [("call.started",), ("call.ended",)]


def test_an_end_that_waits_in_the_journal_counts(parts: StoreParts) -> None:
    session, call, owner = next_id(), next_id(), dead_owner(parts)
    parts.ingest(started(session, call, owner=owner), ended(session, call))
    assert parts.rows(schema.invocations, "state") == [("success",)]
    assert parts.count(schema.ledger_entries) == 2


def test_a_call_whose_end_was_rejected_is_not_called_interrupted(parts: StoreParts) -> None:
    session, call, owner = next_id(), next_id(), dead_owner(parts)
    end = ended(session, call)
    parts.ingest(started(session, call, owner=owner), end._replace(bodies=[]))
    assert len(parts.rejections()) == 1
    assert parts.ingest().recovered_count == 0
    assert parts.rows(schema.invocations, "state") == [("started",)]


def test_an_owner_that_is_no_name_of_a_lock_is_dead(parts: StoreParts) -> None:
    parts.ingest(started(next_id(), next_id(), owner="../../etc/passwd"))
    assert parts.rows(schema.invocations, "state") == [("interrupted",)]


@pytest.mark.both_engines
def test_calls_of_one_living_and_one_dead_program_are_told_apart(parts: StoreParts) -> None:
    session, living, dead = next_id(), next_id(), next_id()
    owner = Owner(parts.spool)
    gone = dead_owner(parts)
    parts.ingest(started(session, living, owner=owner.name()), started(session, dead, owner=gone))
    assert parts.rows(schema.invocations, "id", "state") == [
        (living, "started"),
        (dead, "interrupted"),
    ]
    owner.release()


def test_streams_with_any_role_are_recovered(parts: StoreParts) -> None:
    session, call, owner = next_id(), next_id(), dead_owner(parts)
    for role in ("logs/out", "x.recovered", "x"):
        spool(parts, call, role.encode() + LONG, role=role)
    parts.ingest(started(session, call, owner=owner))
    assert parts.rows(schema.streams, "role", "digest") == [
        (role, digest_of(role.encode() + LONG)) for role in ("logs/out", "x.recovered", "x")
    ]
    assert not (parts.spool / str(call)).exists()


def test_damaged_streams_of_like_roles_are_both_kept(parts: StoreParts) -> None:
    session, call, owner = next_id(), next_id(), dead_owner(parts)
    for role in ("a/b", "a-b"):
        spool(parts, call, role.encode() + LONG, role=role)
        file = parts.spool / str(call) / f"{role}.zst"
        file.write_bytes(file.read_bytes()[:200] + b"damaged" + file.read_bytes()[207:])
    parts.ingest(started(session, call, owner=owner))
    kept = [one for one in (parts.spool / "damaged").rglob("*.zst") if one.is_file()]
    assert len(kept) == 2
    assert kept[0].read_bytes() != kept[1].read_bytes()


def test_what_a_killed_recovery_left_is_in_nobody_s_way(parts: StoreParts) -> None:
    session, call, owner = next_id(), next_id(), dead_owner(parts)
    spool(parts, call, LONG)
    (parts.spool / str(call) / "stdout.recovered").write_bytes(b"half a fra")
    parts.ingest(started(session, call, owner=owner))
    assert parts.rows(schema.streams, "digest") == [(digest_of(LONG),)]
    assert not parts.rejections()


@pytest.mark.parametrize("cut", [1, 40, 2_000])
def test_a_file_that_ends_in_the_middle_of_a_frame_is_recovered_as_far_as_it_goes(
    parts: StoreParts, cut: int
) -> None:
    store, session, call = parts, next_id(), next_id()
    owner = dead_owner(store)
    file = store.spool / str(call) / "stdout.zst"
    with Capture("stdout", file, edge_bytes=64, frame_size=64 << 10) as capture:
        capture.write(LONG)
    data = file.read_bytes()
    file.write_bytes(data[: len(data) // 2 - cut])
    store.ingest(started(session, call, owner=owner))
    ((digest, size, produced, reason),) = store.rows(
        schema.streams, "digest", "size", "produced_size", "loss_reason"
    )
    assert 0 < size < produced
    assert digest == digest_of(LONG[:size])
    assert "in the middle of a frame" in reason
    assert not store.rejections()


def test_a_damaged_file_is_kept_as_evidence(parts: StoreParts) -> None:
    store, session, call = parts, next_id(), next_id()
    owner = dead_owner(store)
    file = store.spool / str(call) / "stdout.zst"
    with Capture("stdout", file, edge_bytes=64, frame_size=64 << 10) as capture:
        capture.write(LONG)
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 0xFF
    file.write_bytes(data)
    store.ingest(started(session, call, owner=owner))
    assert not store.rejections()
    assert store.rows(schema.invocations, "state") == [("interrupted",)]
    kept: Path = store.spool / "damaged" / f"{call}-stdout.zst"
    assert kept.read_bytes() == data


def test_a_call_without_its_policy_is_not_recovered_for_ever(parts: StoreParts) -> None:
    start = started(next_id(), next_id(), owner=dead_owner(parts))
    parts.ingest(start._replace(repeated=[]))
    for _ in range(3):
        parts.ingest()
    assert parts.count(schema.ledger_entries) == 2
    assert "policy" in parts.rejections()[0]
