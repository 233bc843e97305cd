"""A reading command sees every fact that was acknowledged before it began."""

import fcntl
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import IO

import psycopg
import pytest
from tests.support.altering import alter
from tests.support.cli import Cli, python, without_coverage
from tests.support.effort import times
from tests.support.evidence import check_evidence
from tests.support.journals import write_at
from tests.support.processes import ROOT
from tests.support.recording import run_command

from tooltrail.cli import _long_commands, _searching
from tooltrail.store import Store
from tooltrail.store import store as opened
from tooltrail.store.engines import sqlite
from tooltrail.store.engines.sqlite_library import sqlite3
from tooltrail.store.locking import ingest_lock
from tooltrail.store.search.index import read_state

WRITERS = 8
READINGS = times(3)

WRITE = """
import sys, time
from tests.support.recording import run_command
from tooltrail.store import open_store
with open_store(sys.argv[1]) as store, store.open_session() as session:
    while True:
        print(run_command(session, b"some output\\n").invocation_id, flush=True)
        time.sleep(0.02)  # Eight without a pause would leave the readings no processor.
"""


class Acknowledged:
    """What the writers said was acknowledged, read as it comes. For threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ids: list[str] = []

    def read(self, lines: IO[bytes]) -> None:
        for line in lines:
            with self._lock:
                self._ids.append(line.decode().strip())

    def so_far(self) -> set[str]:
        with self._lock:
            return set(self._ids)


@contextmanager
def writing(cli: Cli, count: int) -> Generator[Acknowledged]:
    """Processes that record until the block ends, when they are killed."""
    acknowledged = Acknowledged()
    environment = without_coverage(cli.full_environment)
    command = [sys.executable, "-c", WRITE, cli.database]
    writers = [
        subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE)
        for _ in range(count)
    ]
    threads = [threading.Thread(target=acknowledged.read, args=[one.stdout]) for one in writers]
    for thread in threads:
        thread.start()
    try:
        yield acknowledged
    finally:
        for writer in writers:
            writer.kill()
            writer.wait()
        for thread in threads:
            thread.join()
        for writer in writers:
            assert writer.stdout
            writer.stdout.close()


def test_beside_many_writing_processes_nothing_acknowledged_is_missing(cli: Cli) -> None:
    with writing(cli, WRITERS) as acknowledged:
        while len(acknowledged.so_far()) < WRITERS:
            time.sleep(0.01)
        for _ in range(READINGS):
            before = acknowledged.so_far()
            listed = {row["id"] for row in cli.ok("log", "-n", "0", "--json").records}
            assert before <= listed
    assert acknowledged.so_far() <= {
        row["id"] for row in cli.ok("log", "-n", "0", "--json").records
    }
    with cli.open() as store:
        check_evidence(store)


def test_a_store_that_has_only_a_journal_gets_its_database_by_the_first_reading_command(
    nowhere: Cli, tmp_path: Path
) -> None:
    for size in (10, 50_000):
        assert nowhere.exec("--", *python(f"print('x' * {size})")).code == 0
    assert not Path(nowhere.database).exists()
    for reading in ("log", "show", "status", "session ls", "transcript", "verify"):
        copy = Cli(str(shutil.copytree(nowhere.folder, tmp_path / reading) / "trail.db"))
        copy.ok(*reading.split())
        rows = copy.ok("log", "--json").records
        assert [(row["state"], row["output_size"]) for row in rows] == [
            ("success", 50_001),
            ("success", 11),
        ], reading
        assert copy.ok("verify").text == ""


def test_a_database_that_cannot_be_written_is_read_and_the_rest_is_said_to_wait(cli: Cli) -> None:
    with cli.open() as store:
        run_command(store.open_session(), b"first\n")
    assert len(cli.ok("log", "--json").records) == 1
    assert cli.exec("--", "true").code == 0
    lock = Path(f"{cli.database}-ingest.lock")
    with suppress(FileNotFoundError):
        lock.unlink()
    lock.mkdir()
    ended = cli.ok("log", "--json")
    assert len(ended.records) == 1
    assert ended.sentence.startswith(f"newer facts may wait in {cli.spool}: ")
    assert cli.run("verify").code == 4
    lock.rmdir()
    assert len(cli.ok("log", "--json").records) == 2


def test_a_locked_database_is_read_after_a_short_wait(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A reader that waits as long as a writer does would hang here.
    monkeypatch.setattr(sqlite, "BUSY_TIMEOUT_S", 10_000.0)
    monkeypatch.setattr(opened, "READ_WAIT_S", 0.1)
    with cli.open() as store:
        run_command(store.open_session(), b"first\n")
    assert len(cli.ok("log", "--json").records) == 1
    assert cli.exec("--", "true").code == 0
    with closing(sqlite3.connect(cli.database, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        ended = cli.ok("log", "--json")
        assert len(ended.records) == 1
        assert ended.sentence.endswith("it is locked by another process")
        missing = cli.run("log", "--session", "nightly")
        assert missing.code == 3
        assert missing.message.startswith("tooltrail: newer facts may wait in ")
    assert len(cli.ok("log", "--json").records) == 2


def test_a_store_waits_once_for_a_locked_database(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opened, "READ_WAIT_S", 0.1)
    with cli.open() as store:
        run_command(store.open_session(), b"first\n")
    with cli.open() as store:
        assert store.reader.count_invocations() == 1
        assert cli.exec("--", "true").code == 0
        with closing(sqlite3.connect(cli.database, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            assert store.reader.count_invocations() == 1
            monkeypatch.setattr(opened, "READ_WAIT_S", 10_000.0)  # another wait would hang here
            assert store.reader.count_invocations() == 1
            assert store.lag is not None
        assert store.reader.count_invocations() == 2
        assert store.lag is None


def test_a_search_does_not_wait_to_fill_the_index(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "BUSY_TIMEOUT_S", 10_000.0)
    monkeypatch.setattr(_searching, "_MANY", 2)
    with cli.open() as store:
        run_command(store.open_session(), b"first\n")
    with cli.open() as store:
        assert read_index(store)["waiting_count"] > 2
    with closing(sqlite3.connect(cli.database, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert len(cli.ok("search", "first", "--json").records) == 1
    assert len(cli.ok("search", "first", "--json").records) == 1
    with cli.open() as store:
        assert read_index(store)["waiting_count"] == 0


def read_index(store: Store) -> dict[str, int]:
    with store.database.read() as connection:
        return read_state(connection)


def test_a_locked_server_is_read_after_a_short_wait(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The server would let a reader that waits as long as a writer does hang.
    patient = f"{postgres_url}&options=-c%20lock_timeout%3D0"
    cli = Cli(patient, {"TOOLTRAIL_SPOOL": str(tmp_path / "spool")})
    cli.ok("init", "--artifacts", str(tmp_path / "artifacts"))
    monkeypatch.setattr(opened, "READ_WAIT_S", 0.1)
    for number in (0, 1):
        assert cli.exec("--", "true").code == 0
        with psycopg.connect(postgres_url) as other, cli.open() as store:
            if number:
                other.execute("LOCK TABLE invocations IN SHARE MODE")
                held: AbstractContextManager[object] = nullcontext()
            else:
                held = ingest_lock(store.database, exclusive=True)
            with held:
                ended = cli.ok("log", "--json")
        assert len(ended.records) == number
        assert ended.sentence.endswith("it is locked by another process")
        assert len(cli.ok("log", "--json").records) == number + 1


def test_maintenance_does_not_stop_a_reader(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opened, "READ_WAIT_S", 0.1)
    with cli.open() as store:
        run_command(store.open_session(), b"first\n")
    assert len(cli.ok("log", "--json").records) == 1
    assert cli.exec("--", "true").code == 0
    with cli.open() as store, ingest_lock(store.database, exclusive=True):
        ended = cli.ok("log", "--json")
        assert len(ended.records) == 1
        assert f"maintenance of {cli.database} runs" in ended.sentence
    assert len(cli.ok("log", "--json").records) == 2


def test_an_ingester_that_stands_still_stops_no_reader(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opened, "STUCK_S", 0.1)
    with cli.open() as store:
        run_command(store.open_session(), b"first\n")
    assert len(cli.ok("log", "--json").records) == 1
    assert cli.exec("--", "true").code == 0
    with (cli.spool / "journal" / "ingest.lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        ended = cli.ok("log", "--json")
        assert len(ended.records) == 1
        assert ended.sentence.endswith("has not finished")
    assert len(cli.ok("log", "--json").records) == 2


@pytest.mark.parametrize(
    ("command", "work"),
    [
        ("repair", "ingesting facts"),
        ("db index --rebuild", "indexing"),
        ("db index --off", "removing the index"),
    ],
)
def test_a_command_that_waits_for_the_database_says_so(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, command: str, work: str
) -> None:
    with cli.open() as store:
        run_command(store.open_session(), b"first\n")
    assert cli.exec("--", "true").code == 0
    monkeypatch.setattr(opened, "READ_WAIT_S", 0.1)
    monkeypatch.setattr(_long_commands, "_SILENT_S", 0.0)
    monkeypatch.setattr(sqlite, "BUSY_TIMEOUT_S", 1.0)
    with closing(sqlite3.connect(cli.database, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        ended = cli.run(*command.split())
    assert ended.code == 5
    assert ended.message.startswith(
        f"tooltrail: {work}: no progress in 0 s: another program may lock the database, or "
    )


@pytest.mark.parametrize("command", ["open", "close @last"])
def test_a_session_that_waits_for_the_database_says_so(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    cli.ok("session", "open")
    cli.ok("session", "ls")
    monkeypatch.setattr(_long_commands, "_SILENT_S", 0.0)
    monkeypatch.setattr(sqlite, "BUSY_TIMEOUT_S", 1.0)
    with closing(sqlite3.connect(cli.database, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        ended = cli.ok("session", *command.split())
    assert "tooltrail: recording: no progress in 0 s: another program may" in ended.message


def test_status_says_that_a_journal_is_damaged(cli: Cli) -> None:
    with cli.open() as store:
        run_command(store.open_session(), b"first\n")
    assert cli.exec("--", "true").code == 0
    segment = cli.spool / "journal" / "00000001.seg"
    moved = segment.rename(cli.folder / "moved.seg")
    segment.symlink_to(moved)
    ended = cli.run("status")
    assert ended.code == 4
    assert "not a regular file; put the file back" in ended.message
    moved.rename(segment)
    assert cli.ok("status").message == ""
    write_at(segment, 8, b"damage")
    ended = cli.run("status")
    assert ended.code == 4
    assert "its head is altered" in ended.message


def test_a_damaged_row_is_named_and_hides_no_other(cli: Cli) -> None:
    column = "started_at"
    with cli.open() as store, store.open_session() as session:
        damaged, whole = (str(run_command(session, b"x\n").invocation_id) for _ in range(2))
        store.ingest()
        alter(store, "UPDATE invocations SET started_at = 'yesterday' WHERE key = 1")
    rows = {row["id"]: row["damage"] for row in cli.ok("log", "--json").records}
    assert set(rows) == {damaged, whole}
    assert rows[whole] is None
    assert column in rows[damaged]
    assert whole[-8:] in cli.ok("log").text
    shown = cli.run("show", damaged)
    assert shown.code == 1
    assert column in shown.message
    assert cli.ok("show", whole).code == 0
    assert sum(cli.ok("status", "--json").records[0]["invocations"].values()) == 2
    assert cli.run("verify").code == 1
