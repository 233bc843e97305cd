"""Who still runs is told by nothing that a clock, a process id or a container could make untrue."""

import json
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import pytest
from tests.support.evidence import check_evidence
from tests.support.processes import ROOT
from tests.support.recording import content_of, stream_of
from tests.support.spool_writer import SpoolWriter
from tests.support.waiting import until

from tooltrail.store import Repairable, Store, find_repairable, repair

CONTAINER = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--uts", "--ipc")
"""Runs a command that sees other process ids than everybody else; it is the first there."""

LAST_PID = Path("/proc/sys/kernel/ns_last_pid")


def writer_of(store: Store, database: str, within: Sequence[str] = ()) -> SpoolWriter:
    root = Path(store.archive.sink.url.removeprefix("file://"))
    return SpoolWriter(database, root, store.spool, within=within)


def outcomes(store: Store) -> list[str]:
    return [folder.outcome for folder in repair(store).folders]


def check_interrupted(store: Store, name: UUID, said: bytes) -> None:
    detail = store.reader.invocation(name)
    summary = detail.summary
    assert (summary.state, summary.duration_ms) == ("interrupted", None)
    assert summary.finished_at is not None
    assert summary.finished_at >= summary.started_at
    assert content_of(store.reader, stream_of(detail, "stdout")) == said
    assert not find_repairable(store)
    check_evidence(store)


@pytest.mark.parametrize("days", [-4_000, 400], ids=["behind", "ahead"])
def test_a_clock_that_is_wrong_or_jumps_does_not_end_who_lives(
    store: Store, database: str, days: int
) -> None:
    with writer_of(store, database) as writer:
        writer.do("clock", days)
        name = UUID(writer.do("start"))
        writer.do("write", "stdout", "said")
        writer.do("flush", "stdout")
        writer.do("clock", -days)
        writer.do("write", "stdout", "more")
        writer.do("flush", "stdout")
        assert outcomes(store) == ["running"]
        writer.kill()
    assert find_repairable(store) == Repairable(killed=(name,))
    assert outcomes(store) == ["interrupted"]
    check_interrupted(store, name, b"said\nmore\n")
    started_at = store.reader.invocation(name).summary.started_at
    away = started_at - datetime.now(UTC)
    assert abs(away - timedelta(days=days)) < timedelta(days=1)


def test_another_process_with_the_same_id_is_not_taken_for_the_one_that_was_killed(
    store: Store, database: str
) -> None:
    with writer_of(store, database) as writer:
        name = UUID(writer.do("start"))
        writer.do("write", "stdout", "said")
        writer.do("flush", "stdout")
        pid = writer.process.pid
        writer.kill()
    stranger = _started_as(pid)
    try:
        assert stranger.pid == pid
        assert outcomes(store) == ["interrupted"]
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()
    check_interrupted(store, name, b"said\n")


def _started_as(pid: int) -> "subprocess.Popen[bytes]":
    """A process that sleeps and has a given id; skips the test where none can have that."""
    for _ in range(200):
        try:
            LAST_PID.write_text(str(pid - 1))
        except OSError:
            pytest.skip("only root can choose the next process id")
        process = subprocess.Popen(["sleep", "600"])
        if process.pid == pid:
            return process
        process.kill()
        process.wait()
    pytest.skip("another process was always quicker to take the id")


def repaired_in_a_container(store: Store, database: str) -> dict[str, str]:
    """What a repair in another container makes of each folder of the spool."""
    tool = (sys.executable, "-m", "tooltrail.cli", "repair", "--json", "--db", database)
    done = subprocess.run(
        [*CONTAINER, *tool, "--spool", str(store.spool)], cwd=ROOT, capture_output=True, check=True
    )
    return {one["invocation_id"]: one["outcome"] for one in json.loads(done.stdout)}


def test_who_lives_in_one_container_is_not_taken_for_gone_in_another(
    store: Store, database: str
) -> None:
    if subprocess.run([*CONTAINER, "true"], capture_output=True, check=False).returncode:
        pytest.skip("only root may begin a namespace of process ids here")
    with writer_of(store, database, within=CONTAINER) as writer:
        name = UUID(writer.do("start"))
        # Whoever asks for a process of that id finds one, or none that it could mean.
        assert json.loads(store.reader.sessions()[0].environment)["pid"] == 1
        writer.do("write", "stdout", "said")
        writer.do("flush", "stdout")
        assert outcomes(store) == ["running"]
        assert repaired_in_a_container(store, database) == {str(name): "running"}
        writer.kill()
    until(lambda: find_repairable(store) == Repairable(killed=(name,)))
    assert repaired_in_a_container(store, database) == {str(name): "interrupted"}
    check_interrupted(store, name, b"said\n")
