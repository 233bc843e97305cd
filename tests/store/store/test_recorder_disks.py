"""Finishing on a full disk: room is held back for it, and no output is lost."""

from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest
from sqlalchemy import Connection, event
from tests.support.disks import SmallDisk, small_disk
from tests.support.evidence import check_evidence
from tests.support.outputs import returned
from tests.support.processes import run_python
from tests.support.recording import captured, command_output, content_of, in_memory, stream_of
from tests.support.template_stores import make_store

from tooltrail.records import (
    CommandOutput,
    CompleteOutput,
    DiskFullError,
    ToolCall,
    UnavailableError,
    digest_of,
)
from tooltrail.store import Store, open_store, repair

BASH = ToolCall(tool_name="Bash")


@pytest.mark.parametrize("on_unavailable", ["raise"])
def test_a_full_disk_leaves_a_started_invocation_and_a_retry_succeeds(sqlite_store: Store) -> None:
    store = sqlite_store
    session = store.open_session()
    running = [session.start(BASH) for _ in range(100)]
    outputs = [command_output(one, digest_of(b"%d" % n).encode()) for n, one in enumerate(running)]
    with store.database.read() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()

    def limit(connection: Connection) -> None:
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")

    event.listen(store.database.engine, "begin", limit)
    ended: list[UUID] = []

    def finish_all() -> None:
        # Some have room in pages that are there.
        for one, output in zip(running, outputs, strict=True):
            ended.append(one.finish(output).invocation_id)

    with pytest.raises(UnavailableError, match="the disk is full"):
        finish_all()
    event.remove(store.database.engine, "begin", limit)

    def lift(connection: Connection) -> None:
        connection.exec_driver_sql("PRAGMA max_page_count = 1000000")

    rest = running[len(ended) :]
    states = {one.id: one.state for one in store.reader.invocations(limit=1000).items}
    assert {states[one.id] for one in rest} == {"started"}
    event.listen(store.database.engine, "begin", lift)
    for one, output in zip(rest, outputs[len(ended) :], strict=True):
        assert one.finish(output).state == "success"
    check_evidence(store)


@pytest.fixture
def disk_store(tmp_path: Path) -> Iterator[tuple[SmallDisk, Store]]:
    """A store whose database alone is on a small disk."""
    with (
        small_disk(tmp_path / "disk", 8 << 20) as disk,
        make_store(
            disk.folder / "trail.db",
            artifacts=str(tmp_path / "artifacts"),
            spool=tmp_path / "spool",
            on_unavailable="raise",
        ) as store,
    ):
        yield disk, store


NOISE = b"".join(digest_of(b"%d" % n).encode() for n in range(30_000))
"""Not compressible, so that it needs room."""


def begun_anew(store: Store) -> Store:
    """The same store with a log that has no room of its own yet."""
    store.close()
    return store


def test_on_a_full_disk_a_small_record_is_whole_in_the_room_that_is_held_back(
    disk_store: tuple[SmallDisk, Store],
) -> None:
    disk, store = disk_store
    session = store.open_session()
    invocation, other = session.start(BASH), session.start(BASH)
    output, later = command_output(invocation, b"one\n"), command_output(other, b"two\n")
    reserve = disk.folder / "trail.db-reserve"
    assert reserve.stat().st_size == 1024 * 1024
    begun_anew(store)
    disk.fill()

    assert invocation.finish(output).state == "success"
    assert not reserve.exists()
    check_evidence(store)

    begun_anew(store)
    disk.fill()
    with pytest.raises(DiskFullError, match="the disk is full"):
        other.finish(later)
    assert store.reader.invocation(other.id).summary.state == "started"
    assert other.spool.exists()
    disk.free()
    other.finish(later)
    check_evidence(store)
    store.open_session()
    assert reserve.exists()


def test_the_room_that_is_held_back_serves_for_many_records_of_every_size(
    disk_store: tuple[SmallDisk, Store],
) -> None:
    disk, store = disk_store
    session = store.open_session()
    running = [session.start(BASH) for _ in range(90)]
    texts = [
        [b"short %d\n" % n, NOISE[n : n + 12_000], NOISE[n : n + 90_000]][n % 3] for n in range(90)
    ]
    outputs = [command_output(one, text) for one, text in zip(running, texts, strict=True)]
    begun_anew(store)
    disk.fill()

    ended = [one.finish(output) for one, output in zip(running, outputs, strict=True)]

    assert [one.state for one in ended] == ["success", "error", "error"] * 30
    kinds = {one.canonical.error.kind for one in ended if one.canonical.error}
    assert kinds == {"low_disk_space"}
    for one, text in zip(ended, texts, strict=True):
        stdout = stream_of(store.reader.invocation(one.invocation_id), "stdout")
        assert content_of(store.reader, stdout) == text
    check_evidence(store)


def test_without_room_for_a_result_its_record_is_an_error_that_names_what_there_was(
    disk_store: tuple[SmallDisk, Store],
) -> None:
    disk, store = disk_store
    invocation = store.open_session().start(BASH)
    short, longer = NOISE[:100], NOISE[:5000]
    result = CommandOutput(
        command="make",
        exit_status=0,
        stdout=captured(invocation, "stdout", NOISE),
        stderr=captured(invocation, "stderr", longer),
        order=in_memory("order", short),
    )
    begun_anew(store)
    disk.fill()

    finished = invocation.finish(CompleteOutput.success("Bash", result))

    assert finished.state == "error"
    error = finished.canonical.error
    assert error is not None
    assert error.kind == "low_disk_space"
    assert error.message == "the tool ran, but the disk has no room for the record of its result"
    assert "command exited with status" in str(error.details)
    assert "no more than 4,096 are written" in str(error.details)
    disk.free()
    detail = store.reader.invocation(invocation.id)
    contents = {s.role: content_of(store.reader, s) for s in detail.streams}
    assert contents == {"stdout": NOISE, "stderr": longer, "order": short}
    check_evidence(store)


def test_of_what_is_in_memory_alone_an_error_names_what_the_disk_has_no_room_for(
    disk_store: tuple[SmallDisk, Store],
) -> None:
    disk, store = disk_store
    invocation = store.open_session().start(ToolCall(tool_name="Read"))
    begun_anew(store)
    disk.fill()

    finished = invocation.finish(returned("Read", NOISE[:3500].decode()))

    assert (finished.state, store.reader.invocation(invocation.id).streams) == ("error", ())
    assert finished.canonical.error is not None
    assert digest_of(NOISE[:3500]) in str(finished.canonical.error.details)
    check_evidence(store)


def test_on_a_full_disk_an_interruption_is_recorded_in_the_room_that_is_held_back(
    disk_store: tuple[SmallDisk, Store],
) -> None:
    disk, store = disk_store
    invocation = store.open_session().start(BASH)
    printed = captured(invocation, "stdout", NOISE)
    begun_anew(store)
    disk.fill()

    assert invocation.interrupt("killed", [printed]).state == "interrupted"

    (stdout,) = store.reader.invocation(invocation.id).streams
    assert content_of(store.reader, stdout) == NOISE
    check_evidence(store)


ON_A_FULL_DISK = """
from pathlib import Path
from tests.support.away import remove_store
from tests.support.disks import SmallDisk
from tests.support.recording import command_output
from tooltrail.records import DiskFullError, ToolCall
from tooltrail.store import open_store
folder = Path(sys.argv[1])
disk = SmallDisk(folder)
with open_store(folder / "trail.db") as store:
    session = store.open_session()
    running = [session.start(ToolCall(tool_name="Bash")) for _ in range(40)]
    texts = [b"%d " % n * (20_000 if n % 2 else 5) for n in range(40)]
    outputs = [command_output(one, text) for one, text in zip(running, texts)]
    store.close()
    disk.fill()
    for n, (one, output) in enumerate(zip(running, outputs)):
        if n == 20:
            store.close()
            disk.fill()
        try:
            print(one.id, one.finish(output).state)
        except DiskFullError as error:
            print(one.id, "told")
"""


SAID = {
    "error": "the disk has no room for the record of its result",
    "interrupted": "interrupted",
}


def test_of_many_calls_on_a_full_disk_none_is_lost_and_repair_ends_the_rest(
    tmp_path: Path,
) -> None:
    with small_disk(tmp_path / "disk", 12 << 20) as disk:
        make_store(disk.folder / "trail.db").close()
        said, _ = run_python(ON_A_FULL_DISK, str(disk.folder))
        told = [(UUID(id_), word) for id_, word in map(str.split, said.splitlines())]
        assert len(told) == 40
        assert {word for _, word in told[:20]} == {"success", "error"}
        assert {word for _, word in told[20:]} == {"told"}
        disk.free()
        with open_store(disk.folder / "trail.db") as store:
            outcomes = {one.invocation_id: one.outcome for one in repair(store).folders}
            assert [outcomes[id_] for id_, _ in told[20:]] == ["interrupted"] * 20
            assert set(outcomes.values()) <= {"interrupted", "stored"}
            for n, (id_, word) in enumerate(told):
                detail = store.reader.invocation(id_)
                state = "interrupted" if word == "told" else word
                assert detail.summary.state == state
                assert detail.receipt is not None
                assert state == "success" or SAID[state] in detail.receipt.text
                text = b"%d " % n * (20_000 if n % 2 else 5)
                assert content_of(store.reader, stream_of(detail, "stdout")) == text
            check_evidence(store)


def test_on_a_full_disk_for_artifacts_the_output_waits_in_the_spool(tmp_path: Path) -> None:
    with (
        small_disk(tmp_path / "disk", 8 << 20) as disk,
        make_store(tmp_path / "trail.db", artifacts=str(disk.folder / "artifacts")) as store,
    ):
        invocation = store.open_session().start(BASH)
        noise = b"".join(digest_of(b"%d" % n).encode() for n in range(3_000))
        output = command_output(invocation, noise)
        disk.fill()

        (postponed,) = invocation.finish(output).postponed

        assert postponed.digest == digest_of(noise)
        disk.free()
        assert [one.outcome for one in repair(store).folders] == ["stored"]
        (stdout, _) = store.reader.invocation(invocation.id).streams
        with store.reader.open_stream(stdout) as source:
            assert source.read() == noise
        check_evidence(store)
