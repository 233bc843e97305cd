"""On a disk without a free byte everything can be read, `gc` makes room, and `repair` repairs."""

import json
import subprocess
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from random import Random

import pytest
from tests.support.cli import HANG_S, Cli, kill_group, python, without_coverage
from tests.support.disks import SmallDisk, small_disk
from tests.support.evidence import check_evidence
from tests.support.keeping import make_older, publish
from tests.support.waiting import until

from tooltrail.store import create_store

MIB = 1024 * 1024
LONG = python("print('line\\n' * 20_000)")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    """A disk with room for one segment of a journal."""
    with small_disk(tmp_path / "disk", 24 * MIB) as mounted:
        yield mounted


@pytest.fixture
def cli(disk: SmallDisk) -> Cli:
    """The command line of a store that is whole on the small disk, with two records."""
    create_store(disk.folder / "trail.db").close()
    found = Cli(str(disk.folder / "trail.db"))
    assert found.exec("--", "echo", "short").code == 0
    assert found.exec("--", *LONG).code == 0
    assert len(found.ok("log", "--json").records) == 2
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
)


def test_on_a_full_disk_everything_can_be_read(cli: Cli, disk: SmallDisk) -> None:
    before = [cli.run(*command) for command in READING]
    disk.fill()
    after = [cli.run(*command) for command in READING]
    for command, was, now in zip(READING, before, after, strict=True):
        assert now.code == was.code, (command, now.message)
        if command[0] != "status":
            assert now.stdout == was.stdout
    assert [one[0].records[0]["invocations"] for one in (before, after)] == [{"ok": 2}] * 2
    disk.free()
    assert cli.exec("--", "echo", "next").code == 0


def test_on_a_full_disk_pruning_makes_room(cli: Cli, disk: SmallDisk) -> None:
    with cli.open() as store:
        paths = [publish(store, Random(n).randbytes(100_000)) for n in range(5)]
    files = [disk.folder / "trail.db-artifacts" / path for path in paths]
    for file in files:
        make_older(file, timedelta(days=2))
    size = sum(file.stat().st_size for file in files)
    disk.fill()
    (pruned,) = cli.ok("gc", "--yes", "--json").records
    assert (pruned["pruned_count"], pruned["pruned_bytes"]) == (5, size)
    assert cli.exec("--", "echo", "next").code == 0
    disk.free()
    with cli.open() as store:
        check_evidence(store)


def test_on_a_full_disk_a_call_is_recorded_and_waits_in_the_journal(
    cli: Cli, disk: SmallDisk
) -> None:
    disk.fill()
    assert cli.exec("--", "echo", "next").stdout == b"next\n"
    ended = cli.run("log", "--json")
    assert (ended.code, len(ended.records)) == (0, 2)
    assert ended.sentence.startswith(f"newer facts may wait in {cli.spool}: ")
    assert ended.sentence.endswith("the disk is full")
    assert cli.run("repair").code == 5
    disk.free()
    assert len(cli.ok("log", "--json").records) == 3
    assert cli.ok("show", "--stream", "stdout").stdout == b"next\n"
    with cli.open() as store:
        check_evidence(store)


def test_a_call_that_was_killed_on_a_full_disk_is_ended_when_there_is_room(
    cli: Cli, disk: SmallDisk
) -> None:
    code = "import os; os.write(1, b'so far'); os.read(0, 1)"
    environment = without_coverage(cli.full_environment)
    with cli.start(
        *("exec", "--", *python(code)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
    ) as process:
        assert process.stdout
        assert process.stdout.read(6) == b"so far"
        disk.fill()
        kill_group(process)
        process.wait(60)
        assert process.stdout.read() == b""
    assert len(cli.run("log", "--json").records) == 2
    disk.free()
    # The command inherits the lock of the call, so the call ends only after the command.
    wanted = ["interrupted", "success", "success"]
    until(lambda: [row["state"] for row in cli.ok("log", "--json").records] == wanted)
    with cli.open() as store:
        check_evidence(store)


def test_many_readers_of_a_full_disk_do_not_hinder_each_other(cli: Cli, disk: SmallDisk) -> None:
    disk.fill()
    readers = [
        cli.start("log", "--json", env=without_coverage(cli.full_environment)) for _ in "xyz"
    ]
    ended = [reader.communicate(timeout=HANG_S) for reader in readers]
    assert [len(json.loads(out)) for out, _ in ended] == [2, 2, 2]
