"""On a disk without a free byte everything can be read, `gc` makes room, and `repair` repairs."""

import json
import subprocess
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from random import Random

import pytest
from tests.support.cli import HANG_S, Cli, kill_group, python, without_coverage
from tests.support.disks import SmallDisk, small_disk
from tests.support.evidence import check_evidence
from tests.support.keeping import make_older, publish

from tooltrail.store import create_store

MIB = 1024 * 1024
LONG = python("print('line\\n' * 20_000)")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk", 8 * MIB) as mounted:
        yield mounted


@pytest.fixture
def cli(disk: SmallDisk) -> Cli:
    """The command line of a store that is whole on the small disk, with two records."""
    create_store(disk.folder / "trail.db").close()
    found = Cli(str(disk.folder / "trail.db"))
    assert found.exec("--", "echo", "short").code == 0
    assert found.exec("--", *LONG).code == 0
    return found


READING = (
    ("status", "--json"),
    ("log", "--json"),
    ("log", "--tool", "exec"),
    ("show", "@last"),
    ("show", "@last", "--stream", "stdout"),
    ("show", "@last", "--rerender"),
    ("transcript", "@last"),
    ("session", "ls", "--json"),
    ("artifact", "ls", "--json"),
    ("artifact", "tail", "@last"),
    ("artifact", "grep", "-c", "line", "@last"),
    ("verify",),
    ("artifact", "verify"),
    ("db", "check"),
    ("db", "current"),
    ("gc",),
    ("repair", "--dry-run"),
)


def test_on_a_full_disk_everything_can_be_read(cli: Cli, disk: SmallDisk) -> None:
    before = [cli.run(*command) for command in READING]
    disk.fill()
    after = [cli.run(*command) for command in READING]
    for command, was, now in zip(READING, before, after, strict=True):
        assert now.code == was.code, (command, now.message)
        if command[0] != "status":
            assert now.stdout == was.stdout
    assert [one[0].records[0]["invocations"] for one in (before, after)] == [{"success": 2}] * 2
    assert (disk.folder / "trail.db-reserve").exists()
    disk.free()
    assert cli.exec("--", "echo", "next").code == 0


def leave_objects(cli: Cli, disk: SmallDisk) -> int:
    """Objects that nobody refers to; the bytes that they take."""
    with cli.open() as store:
        paths = [publish(store, Random(n).randbytes(100_000)) for n in range(5)]
    files = [disk.folder / "artifacts" / path for path in paths]
    for file in files:
        make_older(file, timedelta(days=2))
    return sum(file.stat().st_size for file in files)


def test_on_a_full_disk_pruning_makes_room(cli: Cli, disk: SmallDisk) -> None:
    size = leave_objects(cli, disk)
    disk.fill()
    assert cli.exec("--", "true").message.startswith("tooltrail: database ")

    ended = cli.ok("gc", "--yes", "--json")

    assert [(r["pruned_count"], r["pruned_bytes"]) for r in ended.records] == [(5, size)]
    assert cli.exec("--", "echo", "next").message == ""
    disk.free()
    assert cli.exec("--", "echo", "next").code == 0
    assert (disk.folder / "trail.db-reserve").exists()
    with cli.open() as store:
        check_evidence(store)


def test_without_any_room_pruning_says_what_it_needs_and_deletes_nothing(
    cli: Cli, disk: SmallDisk
) -> None:
    leave_objects(cli, disk)
    (disk.folder / "trail.db-reserve").unlink()
    disk.fill()
    ended = cli.run("gc", "--yes")
    assert ended.code == 5
    assert ended.sentence == (
        f"database {cli.database}: the disk is full;"
        " to prune needs a megabyte on that disk for its account: free it first"
    )
    disk.free()
    assert cli.ok("gc", "--json").records[0]["unreferenced_count"] == 5


def kill_one(cli: Cli, size: int) -> None:
    """Leave what a killed exec leaves: output in the spool, and a log that nobody brought home."""
    code = f"import os; os.write(1, os.urandom({size})); os.read(0, 1)"
    environment = without_coverage(cli.full_environment)
    with cli.start(
        *("exec", "--", *python(code)),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        env=environment,
    ) as process:
        spool = cli.folder / "spool"
        while not any(file.stat().st_size > size for file in spool.glob("*/stdout.zst")):
            time.sleep(0.01)
        kill_group(process)
        process.wait(60)


def test_on_a_full_disk_a_killed_call_is_read_and_its_record_ended(
    cli: Cli, disk: SmallDisk
) -> None:
    kill_one(cli, 5)
    assert (disk.folder / "trail.db-wal").stat().st_size
    disk.fill()
    states = [row["state"] for row in cli.ok("log", "--json").records]
    assert states == ["started", "success", "success"]

    ended = cli.ok("repair")

    assert ended.message.startswith("1 invocation ended as interrupted")
    states = [row["state"] for row in cli.ok("log", "--json").records]
    assert states == ["interrupted", "success", "success"]
    with cli.open() as store:
        check_evidence(store)


def test_what_repair_has_no_room_for_stays_as_it_is_and_is_said(cli: Cli, disk: SmallDisk) -> None:
    (disk.folder / "trail.db-reserve").unlink()
    kill_one(cli, 2_000_000)
    disk.fill()
    ended = cli.run("repair", "--json")
    assert ended.code == 5
    (failed,) = ended.records
    assert failed["outcome"] == "failed"
    assert "stdout.zst cannot be recovered: " in failed["reason"]
    disk.free()
    assert cli.ok("repair", "--json").records[0]["outcome"] == "interrupted"


def test_on_a_full_disk_readers_and_a_connected_program_do_not_hinder_each_other(
    cli: Cli, disk: SmallDisk
) -> None:
    with cli.open() as store:
        session = store.open_session()
        disk.fill()
        for _ in range(3):
            assert len(cli.ok("log", "--json").records) == 2
        disk.free()
        session.close()


def test_many_readers_of_a_full_disk_take_turns(cli: Cli, disk: SmallDisk) -> None:
    disk.fill()
    readers = [
        cli.start("log", "--json", env=without_coverage(cli.full_environment)) for _ in "xyz"
    ]
    ended = [reader.communicate(timeout=HANG_S) for reader in readers]
    assert [len(json.loads(out)) for out, _ in ended] == [2, 2, 2]
