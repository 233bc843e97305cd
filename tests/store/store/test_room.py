"""The limit of a store holds for everything that is kept of output, and costs nothing known."""

import os
import random
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from threading import Barrier, Event
from typing import Any

import pytest
from tests.support.asides import in_a_fork, set_aside_whole, wanted
from tests.support.ended import made, numbered_calls
from tests.support.evidence import check_evidence
from tests.support.processes import run_python
from tests.support.recording import (
    captured,
    command_output,
    content_of,
    run_command,
    run_tool,
    statements_of,
    stream_of,
)
from tests.support.spools import left_in
from tests.support.template_stores import make_store

from tooltrail.artifacts import (
    FRAME_SIZE,
    ArtifactArchive,
    CapturedStream,
    StoredArtifact,
    artifact_path,
    encode,
)
from tooltrail.records import (
    CommandOutput,
    CompleteOutput,
    DamageError,
    InvalidRecordError,
    SessionClosedError,
    StreamRecord,
    ToolCall,
    UnavailableError,
)
from tooltrail.store import (
    EndedCall,
    Finished,
    Invocation,
    InvocationDetail,
    RecordedCalls,
    Store,
    StoreLimits,
    open_store,
    repair,
)
from tooltrail.store._recording import room as _room
from tooltrail.store._recording import writes
from tooltrail.store._recording.room import StoreRoom

BASH = ToolCall(tool_name="Bash")
INLINE = 16_384
MIB = 1024 * 1024


def noise(size: int, seed: int = 0) -> bytes:
    """Not compressible, so that it takes as much room as it is long."""
    return random.Random(seed).randbytes(size)


@pytest.fixture
def limited(tmp_path: Path) -> Iterator[Callable[[int], Store]]:
    """Opens one store with a limit."""
    make_store(tmp_path / "trail.db").close()
    opened: list[Store] = []

    def open_limited(store_bytes: int) -> Store:
        limits = StoreLimits(store_bytes)
        opened.append(open_store(tmp_path / "trail.db", limits=limits, on_unavailable="raise"))
        return opened[-1]

    yield open_limited
    for store in opened:
        store.close()


def stored_bytes(store: Store) -> int:
    return store.reader.counts().artifact_stored_bytes


def detail(store: Store, finished: Finished) -> InvocationDetail:
    return store.reader.invocation(finished.invocation_id)


def kept(store: Store, finished: Finished, role: str = "stdout") -> bytes:
    return content_of(store.reader, stream_of(detail(store, finished), role))


def test_of_what_does_not_fit_the_whole_frames_that_do_are_kept(
    limited: Callable[[int], Store],
) -> None:
    limit = 5 * FRAME_SIZE
    store = limited(limit)
    session = store.open_session()
    first, second = noise(3 * FRAME_SIZE, 1), noise(3 * FRAME_SIZE, 2)
    assert kept(store, run_command(session, first)) == first
    finished = run_command(session, second)
    assert kept(store, finished) == second[:FRAME_SIZE]
    assert limit - FRAME_SIZE < stored_bytes(store) <= limit
    stdout = stream_of(detail(store, finished), "stdout")
    reason = f"the store has reached its limit of {limit:,} bytes"
    assert (stdout.produced_size, stdout.loss_reason) == (len(second), reason)
    (lost, *_) = [o for o in detail(store, finished).omissions if o.stage == "capture"]
    assert (lost.before, lost.after, lost.reason) == (len(second), FRAME_SIZE, reason)
    assert f"the last {2 * FRAME_SIZE:,} bytes were not kept: {reason}" in finished.receipt.text
    check_evidence(store)


def test_content_that_is_stored_already_is_kept_whole_however_full_the_store_is(
    limited: Callable[[int], Store],
) -> None:
    data = noise(3 * FRAME_SIZE)
    run_command(limited(4 * FRAME_SIZE).open_session(), data)
    for limit in (3 * FRAME_SIZE, 0):
        store = limited(limit)
        before = stored_bytes(store)
        assert kept(store, run_command(store.open_session(), data)) == data
        assert stored_bytes(store) == before
        other = noise(2 * FRAME_SIZE, 7)
        assert kept(store, run_command(store.open_session(), other)) == other[:INLINE]
        check_evidence(store)


def test_what_runs_at_the_same_time_shares_what_is_left(limited: Callable[[int], Store]) -> None:
    limit = 6 * FRAME_SIZE
    store = limited(limit)
    session = store.open_session()
    running = [session.start(BASH) for _ in range(4)]
    outputs = [
        command_output(one, noise(2 * FRAME_SIZE, n), noise(FRAME_SIZE, -n - 1))
        for n, one in enumerate(running)
    ]
    for one, output in zip(running, outputs, strict=True):
        one.finish(output)
    assert limit - 3 * FRAME_SIZE < stored_bytes(store) <= limit
    check_evidence(store)


def test_threads_together_never_pass_the_limit(limited: Callable[[int], Store]) -> None:
    limit = 5 * FRAME_SIZE
    store = limited(limit)
    session = store.open_session()
    together = Barrier(6)

    def run(seed: int) -> None:
        invocation = session.start(BASH)
        capture = invocation.capture("stdout")
        capture.write(noise(2 * FRAME_SIZE, seed))
        closed = capture.close()
        together.wait(60)
        result = CommandOutput(
            command="make",
            exit_status=0,
            stdout=invocation.captured(closed),
            stderr=StreamRecord.from_bytes("stderr", b""),
        )
        invocation.finish(CompleteOutput.success("Bash", result))

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(run, range(6)))
    assert stored_bytes(store) <= limit
    assert len(store.reader.invocations().items) == 6
    check_evidence(store)


CAPTURING = """
from tests.support.recording import captured
from tooltrail.records import ToolCall
from tooltrail.store import open_store
import os, random
with open_store(sys.argv[1]) as store:
    invocation = store.open_session().start(ToolCall(tool_name="Bash"))
    captured(invocation, "stdout", random.Random(5).randbytes(int(sys.argv[2])))
    os._exit(0)
"""


def test_what_another_process_has_in_the_spool_counts(limited: Callable[[int], Store]) -> None:
    store = limited(4 * FRAME_SIZE)
    run_python(CAPTURING, str(store.database.target), str(3 * FRAME_SIZE))
    data = noise(2 * FRAME_SIZE)
    assert kept(store, run_command(store.open_session(), data)) == data[:INLINE]
    (folder,) = filter(Path.is_dir, (store.spool / name for name in left_in(store.spool)))
    (folder / "stdout.zst").unlink()
    assert kept(store, run_command(store.open_session(), data)) == data


def test_what_another_store_has_in_the_same_spool_does_not_count(
    tmp_path: Path, limited: Callable[[int], Store]
) -> None:
    store = limited(3 * FRAME_SIZE)
    with make_store(tmp_path / "other" / "trail.db", spool=store.spool) as other:
        captured(other.open_session().start(BASH), "stdout", noise(3 * FRAME_SIZE))
        data = noise(2 * FRAME_SIZE, 1)
        assert kept(store, run_command(store.open_session(), data)) == data


def test_a_capture_asks_what_is_left_as_it_grows_and_not_for_every_frame(
    limited: Callable[[int], Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tooltrail.store._recording.room.STEP", 4 * FRAME_SIZE)
    store = limited(9 * FRAME_SIZE)
    invocation = store.open_session().start(BASH)
    data = noise(40 * FRAME_SIZE)
    with statements_of(store.database.engine) as statements:
        capture = invocation.capture("stdout")
        for start in range(0, len(data), FRAME_SIZE):
            capture.write(data[start : start + FRAME_SIZE])
        closed = capture.close()
    asked = [sql for sql, _ in statements if "sum" in sql]
    # Noise takes a little more than itself: for the frames 4, 8 and 12, the last of which is more
    # than what is left.
    assert len(asked) == 3
    assert closed.record.size == 11 * FRAME_SIZE
    record = invocation.captured(closed)
    assert record.size == 8 * FRAME_SIZE
    assert record.loss_reason == f"the store has reached its limit of {9 * FRAME_SIZE:,} bytes"


def test_a_short_stream_is_kept_in_the_database_when_there_is_no_room_for_an_artifact(
    limited: Callable[[int], Store],
) -> None:
    store = limited(0)
    out, err = (noise(INLINE // 2, seed).hex().encode() for seed in (1, 2))
    finished = run_command(store.open_session(), out, err)
    assert (kept(store, finished), kept(store, finished, "stderr")) == (out, err)
    assert (stored_bytes(store), detail(store, finished).artifacts) == (0, ())
    assert "; full output: kept in the database]" in finished.receipt.text
    assert finished.postponed == ()
    known = run_command(limited(MIB).open_session(), out, err)
    assert len(detail(store, known).artifacts) == 2
    again = run_command(store.open_session(), out, err)
    assert len(detail(store, again).artifacts) == 2
    check_evidence(store)


def test_what_is_handed_over_in_memory_becomes_no_artifact_in_a_full_store(
    limited: Callable[[int], Store],
) -> None:
    store = limited(1000)
    data = noise(50_000)
    finished = run_tool(store.open_session(), data)
    assert stored_bytes(store) == 0
    assert detail(store, finished).artifacts == ()
    streams = [content_of(store.reader, s) for s in detail(store, finished).streams]
    assert data in streams
    check_evidence(store)


def in_record(store: Store, outputs: list[bytes]) -> None:
    session = store.open_session()
    for first, second in pairwise(outputs):
        session.record(BASH, made(first, second))


def in_finish(store: Store, outputs: list[bytes]) -> None:
    session = store.open_session()
    for first, second in pairwise(outputs):
        session.start(BASH).finish(made(first, second))


def in_record_many(store: Store, outputs: list[bytes]) -> None:
    store.open_session().record_many(EndedCall(BASH, made(one)) for one in outputs)


def at_once(store: Store, outputs: list[bytes]) -> None:
    session, start = store.open_session(), Barrier(len(outputs))

    def record(output: bytes) -> None:
        start.wait()
        session.record(BASH, made(output))

    with ThreadPoolExecutor(len(outputs)) as pool:
        list(pool.map(record, outputs))


@pytest.mark.parametrize("way", [in_record, in_finish, in_record_many, at_once])
def test_the_limit_holds_for_all_that_is_in_memory_and_not_committed_yet(
    limited: Callable[[int], Store], way: Callable[[Store, list[bytes]], None]
) -> None:
    size = 100_000
    store = limited(size * 3 // 2)
    outputs = [noise(size, n) for n in range(8)]
    way(store, outputs)
    assert stored_bytes(store) <= size * 3 // 2
    if way is not at_once:
        # Noise takes a little more than itself; of several at once each may be in the other's way.
        assert stored_bytes(store) > size
    contents = {
        content_of(store.reader, stream)
        for view in store.reader.invocations().items
        for stream in store.reader.invocation(view.id).streams
    }
    assert contents >= set(outputs)
    check_evidence(store)
    # What was refused, or is committed, takes no room twice.
    before = stored_bytes(store)
    run_tool(store.open_session(), noise(size // 4, 9))
    assert stored_bytes(store) > before


def test_the_limit_holds_for_all_that_has_the_store_open(limited: Callable[[int], Store]) -> None:
    size, count = 100_000, 6
    sessions = [limited(size * 3 // 2).open_session() for _ in range(count)]
    start = Barrier(count)

    def record(n: int) -> None:
        start.wait()
        sessions[n].record(BASH, made(noise(size, n)))

    with ThreadPoolExecutor(count) as pool:
        list(pool.map(record, range(count)))
    assert stored_bytes(limited(0)) <= size * 3 // 2


@pytest.mark.parametrize("way", ["record", "finish", "record_many"])
def test_a_record_that_failed_takes_no_room_while_its_error_is_kept(
    limited: Callable[[int], Store], monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    store = limited(250_000)
    session = store.open_session()
    invocation = session.start(BASH)
    output = made(noise(200_000))
    attempt: dict[str, Callable[[], object]] = {
        "record": lambda: session.record(BASH, output),
        "finish": lambda: invocation.finish(output),
        "record_many": lambda: session.record_many([EndedCall(BASH, output)]),
    }
    with monkeypatch.context() as patched:
        patched.setattr(writes, "lock_chain", is_away)
        with pytest.raises(UnavailableError) as kept_error:
            attempt[way]()
    run_tool(session, noise(200_000, 1))
    assert stored_bytes(store) > 200_000
    assert kept_error.value.__traceback__


def is_away(*_: object) -> None:
    raise UnavailableError("the database is away")


def test_a_forked_child_counts_nothing_of_what_its_parent_publishes(
    limited: Callable[[int], Store], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = limited(250_000)
    session, publishes, go = store.open_session(), Event(), Event()
    publish = ArtifactArchive.publish

    def slowly(self: ArtifactArchive, *args: Any, **named: Any) -> StoredArtifact:
        publishes.set()
        assert go.wait(60)
        return publish(self, *args, **named)

    with ThreadPoolExecutor(1) as pool, monkeypatch.context() as patched:
        patched.setattr(ArtifactArchive, "publish", slowly)
        recorded = pool.submit(session.record, BASH, made(noise(200_000)))
        assert publishes.wait(60)

        def record() -> None:
            patched.setattr(ArtifactArchive, "publish", publish)
            session.record(BASH, made(noise(200_000, 1)))

        with in_a_fork(record):
            pass
        go.set()
        recorded.result(60)
    assert len(store.reader.artifacts()) == 2


def test_what_nobody_will_record_is_not_published(limited: Callable[[int], Store]) -> None:
    store = limited(MIB)
    session = store.open_session()
    (known,) = numbered_calls(1, keyed=True)
    session.record_many([known])
    session.close()
    output = made(noise(200_000))
    for _ in range(2):
        with pytest.raises(SessionClosedError):
            session.record(BASH, output)
        with pytest.raises(SessionClosedError):
            session.record_many([known, EndedCall(BASH, output)])
    assert list(store.archive.sink.list("sha256")) == []
    assert session.record_many([known]) == RecordedCalls(0, 1)


def test_any_number_of_artifacts_can_be_asked_for(limited: Callable[[int], Store]) -> None:
    store = limited(MIB)
    assert store.room
    with store.room.share() as share:
        share._held.update((f"sha256/{n}", 1) for n in range(300_000))  # pyright: ignore[reportPrivateUsage]  as many as nobody publishes
        assert store.room.left(None) == MIB - 300_000
    assert store.room.left(None) == MIB


def test_while_the_database_is_away_there_is_no_limit(
    limited: Callable[[int], Store], tmp_path: Path
) -> None:
    store = limited(1000)
    invocation = store.open_session().start(BASH)
    store.close()
    (tmp_path / "trail.db").rename(tmp_path / "away.db")
    data = noise(2 * FRAME_SIZE)
    record = captured(invocation, "stdout", data)
    assert (record.size, record.loss_reason) == (len(data), None)
    (tmp_path / "away.db").rename(tmp_path / "trail.db")


def test_while_nobody_can_say_how_much_there_is_a_capture_grows(
    limited: Callable[[int], Store], tmp_path: Path
) -> None:
    store = limited(1000)
    (tmp_path / "file").write_text("")
    room = StoreRoom(1000, store.database, tmp_path / "file", str(store.info.id))
    assert room.left(None) is None
    assert room.for_capture().refusal(tmp_path / "file", 1 << 60) is None
    room = StoreRoom(1000, store.database, store.spool, str(store.info.id))
    assert room.for_capture().refusal(tmp_path / "file", 1 << 60) == room.reason


def test_a_spool_file_that_goes_while_it_is_counted_takes_no_room(
    limited: Callable[[int], Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = limited(1000)
    store.open_session().start(BASH)

    def gone(folder: Path) -> dict[str, Path]:
        return {"stdout": folder / "stdout.zst"}

    monkeypatch.setattr("tooltrail.store._recording.room.spooled_streams", gone)
    assert StoreRoom(1000, store.database, store.spool, str(store.info.id)).left(None) == 1000


@pytest.mark.parametrize("inline_bytes", [0, INLINE])
def test_what_a_killed_program_left_is_recovered_whole_whatever_the_limit(
    limited: Callable[[int], Store], inline_bytes: int
) -> None:
    store = limited(4 * FRAME_SIZE)
    run_command(store.open_session(), noise(2 * FRAME_SIZE, 1))
    policy = store.policy.model_copy(update={"inline_bytes": inline_bytes})
    long, short = noise(3 * FRAME_SIZE, 2), noise(1_000, 3)

    def leave() -> object:
        invocation = open_store(str(store.database.target)).start_alone(BASH, policy=policy)
        captures = [invocation.capture(role) for role in ("stdout", "stderr")]
        for capture, content in zip(captures, (long, short), strict=True):
            capture.write(content)
            capture.flush()
        return invocation, captures

    with in_a_fork(leave) as kill:
        kill()
    (one,) = repair(store).folders
    assert (one.outcome, one.recovered_bytes) == ("interrupted", len(long) + len(short))
    found = store.reader.invocation(one.invocation_id)
    stdout, stderr = (stream_of(found, role) for role in ("stdout", "stderr"))
    assert (stdout.loss_reason, content_of(store.reader, stdout)) == (None, long)
    assert content_of(store.reader, stderr) == short
    assert (stderr.artifact_path is None) == (inline_bytes > 0)
    assert list(store.spool.glob(f"{one.invocation_id}*")) == []
    check_evidence(store)


def test_what_was_set_aside_is_recorded_whole_whatever_the_limit(
    limited: Callable[[int], Store],
) -> None:
    store = limited(2 * FRAME_SIZE)
    content = noise(3 * FRAME_SIZE)
    set_aside_whole(store.spool, wanted(store), stdout=content)
    (one,) = repair(store).folders
    assert (one.outcome, one.recovered_bytes) == ("recorded", len(content))
    stdout = stream_of(store.reader.invocation(one.invocation_id), "stdout")
    assert content_of(store.reader, stdout) == content
    check_evidence(store)


def slowly(invocation: Invocation, lines: list[bytes]) -> CapturedStream:
    """Standard output that is flushed after every line."""
    capture = invocation.capture("stdout")
    for line in lines:
        capture.write(line)
        capture.flush()
    return capture.close()


def finished_with(invocation: Invocation, stdout: StreamRecord) -> Finished:
    output = CommandOutput(
        command="make", exit_status=0, stdout=stdout, stderr=captured(invocation, "stderr", b"")
    )
    return invocation.finish(CompleteOutput.success("Bash", output))


SLOW = [b"%06d %s\n" % (n, b"x" * 100) for n in range(400)]


def test_a_slow_stream_that_fits_in_full_frames_is_kept_whole(
    limited: Callable[[int], Store],
) -> None:
    limit = len(encode(b"".join(SLOW)))
    store = limited(limit)
    invocation = store.open_session().start(BASH)
    stream = slowly(invocation, SLOW)
    assert stream.stored_size is not None
    assert stream.stored_size > 4 * limit
    record = invocation.captured(stream)
    assert (record, record.loss_reason) == (stream.record, None)
    assert kept(store, finished_with(invocation, record)) == b"".join(SLOW)
    assert stored_bytes(store) == limit
    check_evidence(store)


def test_a_slow_stream_that_does_not_fit_even_so_is_shortened(
    limited: Callable[[int], Store],
) -> None:
    lines = [noise(FRAME_SIZE // 8, n) for n in range(40)]
    limit = 3 * FRAME_SIZE
    store = limited(limit)
    invocation = store.open_session().start(BASH)
    record = invocation.captured(slowly(invocation, lines))
    assert record.size == 2 * FRAME_SIZE
    finished = finished_with(invocation, record)
    assert kept(store, finished) == b"".join(lines)[: 2 * FRAME_SIZE]
    assert stored_bytes(store) <= limit
    check_evidence(store)


def test_what_must_stay_free_on_the_disk_is_not_taken_for_full_frames(
    limited: Callable[[int], Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = limited(10 * MIB)
    invocation = store.open_session().start(BASH)
    stream = slowly(invocation, SLOW)
    for limit in (10 * MIB, len(encode(b"".join(SLOW)))):
        room = StoreRoom(limit, store.database, store.spool, str(store.info.id))
        fitted = room.fit(
            stream,
            edge_bytes=0,
            inline_bytes=0,
            frame_size=FRAME_SIZE,
            free_bytes=1 << 60,
            begun=set(),
        )
        assert (fitted is stream) == (limit == 10 * MIB)
    assert fitted.record.loss_reason == room.reason
    invocation = store.open_session().start(BASH)
    stream = slowly(invocation, SLOW)
    monkeypatch.setattr(store, "limits", StoreLimits(10 * MIB, 1 << 60))
    finished_with(invocation, invocation.captured(stream))
    assert stored_bytes(store) == stream.stored_size


@pytest.mark.parametrize("room", [2 * FRAME_SIZE, 10 * FRAME_SIZE], ids=["no room", "room now"])
def test_a_capture_may_be_given_again_after_an_answer_that_nobody_got(
    limited: Callable[[int], Store], monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    data = noise(3 * FRAME_SIZE)
    store = limited(10 * MIB)
    invocation = store.open_session().start(BASH)
    capture = invocation.capture("stdout")
    capture.write(data)
    stream = capture.close()
    for limit in (2 * FRAME_SIZE, room):
        settled = StoreRoom(limit, store.database, store.spool, str(store.info.id))
        monkeypatch.setattr(store, "room", settled)
        record = invocation.captured(stream)
    finished = finished_with(invocation, record)
    assert kept(store, finished) == data[:FRAME_SIZE]
    stdout = stream_of(detail(store, finished), "stdout")
    assert (stdout.size, stdout.produced_size) == (FRAME_SIZE, len(data))
    assert stdout.loss_reason is not None
    check_evidence(store)


@pytest.mark.parametrize("why", ["nobody knows the room", "stopped before it was cut"])
def test_a_capture_that_was_shortened_is_never_given_back_whole(
    limited: Callable[[int], Store], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, why: str
) -> None:
    data = noise(3 * FRAME_SIZE)
    store = limited(2 * FRAME_SIZE)
    invocation = store.open_session().start(BASH)
    capture = invocation.capture("stdout")
    capture.write(data)
    stream = capture.close()
    if why == "nobody knows the room":
        assert invocation.captured(stream).size == FRAME_SIZE
    else:
        with monkeypatch.context() as patched:
            patched.setattr(_room, "shortened", interrupted)
            with pytest.raises(KeyboardInterrupt):
                invocation.captured(stream)
    store.close()
    (tmp_path / "trail.db").rename(tmp_path / "away.db")
    record = invocation.captured(stream)
    (tmp_path / "away.db").rename(tmp_path / "trail.db")
    finished = finished_with(invocation, record)
    left = data[:FRAME_SIZE] if why == "nobody knows the room" else data
    assert kept(store, finished) == left
    stdout = stream_of(detail(store, finished), "stdout")
    assert (stdout.size, stdout.produced_size) == (len(left), len(data))
    assert (stdout.loss_reason is None) == (left == data)
    check_evidence(store)


def interrupted(*_: object, **__: object) -> CapturedStream:
    raise KeyboardInterrupt


@pytest.mark.parametrize("left", [None, FRAME_SIZE + 20, 2 * FRAME_SIZE + 40_000], ids=str)
@pytest.mark.parametrize("room", [2 * FRAME_SIZE, 10 * MIB], ids=["no room", "room"])
def test_a_spool_file_that_was_cut_is_not_called_a_lack_of_room(
    limited: Callable[[int], Store], room: int, left: int | None
) -> None:
    store = limited(room)
    invocation = store.open_session().start(BASH)
    capture = invocation.capture("stdout")
    capture.write(noise(3 * FRAME_SIZE))
    stream = capture.close()
    assert stream.staged is not None
    if left is None:
        stream.staged.unlink()
    else:
        os.truncate(stream.staged, left)
    record = invocation.captured(stream)
    assert record == stream.record
    with pytest.raises((DamageError, InvalidRecordError), match=re.escape(str(stream.staged))):
        finished_with(invocation, record)
    if left is not None:
        assert stream.staged.stat().st_size == left
    assert store.reader.invocation(invocation.id).summary.state == "started"


def test_one_bad_bit_in_the_spool_costs_one_frame_and_not_the_record(
    limited: Callable[[int], Store],
) -> None:
    store = limited(10 * MIB)
    invocation = store.open_session().start(BASH)
    stream = slowly(invocation, SLOW)
    assert stream.staged is not None
    assert stream.index is not None
    data = bytearray(stream.staged.read_bytes())
    data[stream.index.stored_span(200)[1] - 1] ^= 1
    stream.staged.write_bytes(data)
    finished = finished_with(invocation, invocation.captured(stream))
    assert finished.state == "success"
    path = artifact_path(stream.record.digest)
    assert finished.damages == (
        f"artifact {path} is damaged: it was altered after it was captured",
    )
    with pytest.raises(DamageError, match=path):
        store.archive.verify(path)
    assert store.archive.reader(path).read_bytes(0, 1080) == b"".join(SLOW[:10])
