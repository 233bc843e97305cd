"""`kill -9` at any moment of a call, and of its repair: what was acknowledged is there, whole."""

import random
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from uuid import UUID

import pytest
from tests.support.effort import times
from tests.support.evidence import check_evidence
from tests.support.killing import Said, count_moments, run_and_kill
from tests.support.recording import content_of, stream_of
from tests.support.spools import names_in

from tooltrail.artifacts import CapturedStream
from tooltrail.records import CommandOutput, CompleteOutput, ToolCall
from tooltrail.store import InvocationDetail, Store, find_repairable, open_store, repair

KILLS = times(12)
"""Kills of a writer, and as many of a repair."""

STEPS = times(12)
"""Moments of a repair, spread over it, at which it is killed."""

CHUNK = 60_000
CHUNKS = 8


def content(seed: int) -> bytes:
    """What the call of this number prints: no two print the same."""
    line = b"call %d prints a line of output\n" % seed
    return (line * (CHUNK * CHUNKS // len(line) + 1))[: CHUNK * CHUNKS]


def call(database: str, seed: int, said: Callable[[str], None]) -> None:
    """Record one call, saying what is acknowledged: the start, each flush, the finish."""
    data = content(seed)
    with open_store(database) as store:
        invocation = store.open_session().start(ToolCall(tool_name="Bash"))
        said(f"started {invocation.id}")
        streams: dict[str, CapturedStream] = {}
        out, err = invocation.capture("stdout"), invocation.capture("stderr")
        for n in range(CHUNKS):
            out.write(data[n * CHUNK : (n + 1) * CHUNK])
            out.flush()
            said(f"flushed {(n + 1) * CHUNK}")
        err.write(b"call %d warns\n" % seed)
        streams = {"stdout": out.close(), "stderr": err.close()}
        result = CommandOutput(
            command="make",
            exit_status=0,
            stdout=invocation.captured(streams["stdout"]),
            stderr=invocation.captured(streams["stderr"]),
        )
        invocation.finish(CompleteOutput.success("Bash", result))
        said("finished")


def mend(database: str) -> None:
    with open_store(database) as store:
        repair(store)


def check(store: Store, seed: int, said: Said) -> str:
    """What was acknowledged is there, byte for byte; the state of the call."""
    for name in said.of("started"):
        detail = store.reader.invocation(UUID(name))
        state = detail.summary.state
        kept = stdout_of(store, detail)
        if said.of("finished"):
            assert state == "success"
        if state == "success":
            assert kept == content(seed)
            assert (
                content_of(store.reader, stream_of(detail, "stderr")) == b"call %d warns\n" % seed
            )
        else:
            assert state == "interrupted"
            assert content(seed).startswith(kept)
            assert len(kept) >= max(map(int, said.of("flushed")), default=0)
        return state
    return "not acknowledged"


def stdout_of(store: Store, detail: InvocationDetail) -> bytes:
    stream = detail.stream("stdout")
    return b"" if stream is None else content_of(store.reader, stream)


@pytest.mark.timeout(1200)
def test_a_kill_at_any_moment_of_a_call_or_of_its_repair_loses_nothing(
    sqlite_store: Store, tmp_path: Path
) -> None:
    database, said = str(sqlite_store.database.target), Said(tmp_path / "said")
    moments = count_moments(partial(call, database, 0, said))
    states: Counter[str] = Counter()
    killed_repairs = 0
    for seed in range(1, KILLS + 1):
        said = Said(tmp_path / "said")
        # One in each part of the call, so that few kills hit all of them.
        moment = int(moments * (seed - random.random()) / KILLS)
        run_and_kill(partial(call, database, seed, said), max(1, moment))
        if find_repairable(sqlite_store):
            # As many calls as a repair of one makes at the least, so that most are hit.
            done = run_and_kill(partial(mend, database), random.randrange(1, moments // 4))
            killed_repairs += not done
        repair(sqlite_store)
        assert names_in(sqlite_store.spool) == []
        states[check(sqlite_store, seed, said)] += 1
    check_evidence(sqlite_store)
    found = sqlite_store.reader.counts().invocations
    assert set(found) <= {"success", "interrupted"}
    assert states["interrupted"] >= KILLS // 6
    assert killed_repairs >= KILLS // 6


def dead_call(database: str, seed: int, moments: int, path: Path) -> Said:
    """A call that was killed when it had flushed something, and what it said."""
    for at in range(moments - 1, 0, -(moments // 50)):
        said = Said(path)
        run_and_kill(partial(call, database, seed, said), at)
        if said.of("flushed") and not said.of("finished"):
            with open_store(database) as store:
                (name,) = map(UUID, said.of("started"))
                if store.reader.invocation(name).summary.state == "started":
                    return said
                repair(store)
    raise AssertionError("no moment of a call leaves something to recover")


def test_a_repair_that_is_killed_at_each_of_its_steps_is_finished_by_the_next(
    sqlite_store: Store, tmp_path: Path
) -> None:
    database, path = str(sqlite_store.database.target), tmp_path / "said"
    moments = count_moments(partial(call, database, 0, Said(path)))
    # What a repair imports is not to be counted: one that is killed later has it already.
    dead_call(database, STEPS + 2, moments, path)
    mend(database)
    dead_call(database, 1, moments, path)
    of_repair = count_moments(partial(mend, database))
    late = 0
    for step in range(STEPS):
        said = dead_call(database, step + 2, moments, path)
        # A few calls more or less are made from time to time, so that the last may come too late.
        late += run_and_kill(partial(mend, database), 1 + step * of_repair // STEPS)
        repair(sqlite_store)
        assert names_in(sqlite_store.spool) == []
        assert check(sqlite_store, step + 2, said) == "interrupted"
    assert late <= STEPS // 6
    check_evidence(sqlite_store)
