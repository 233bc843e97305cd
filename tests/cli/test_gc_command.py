"""`tooltrail gc`: says what it would do, does it when told to, and says what it did."""

import os
import signal
import time
from datetime import timedelta
from pathlib import Path

import pytest
from tests.support.cli import HANG_S, Cli, kill_group, on_a_terminal
from tests.support.keeping import accounts, folder_digests, ingested, make_older, publish, scatter

BIG = b"a line of a long output\n" * 5_000
STRAY = b"nobody refers to it\n" * 5_000
POLL_S = 0.001
"""Between two looks at a file, which would else take the processor from who deletes it."""


@pytest.fixture
def root(cli: Cli) -> Path:
    """The artifact root, with an object that is referred to and one that is not."""
    with cli.open() as store:
        stray = publish(ingested(store, BIG), STRAY)
    folder = cli.folder / "artifacts"
    make_older(folder / stray, timedelta(hours=25))
    return folder


def test_without_yes_it_only_says_what_it_would_do(cli: Cli, root: Path) -> None:
    before = folder_digests(root)

    ended = cli.ok("gc")

    assert [line.split()[:2] for line in ended.lines] == [
        ["OBJECTS", "COUNT"],
        ["unreferenced", "1"],
        ["unfinished", "0"],
        ["young", "0"],
        ["referenced", "1"],
        ["damaged", "0"],
        ["foreign", "0"],
    ]
    assert ended.message.startswith("dry run, nothing was deleted: use --yes to prune 1 object, ")
    assert folder_digests(root) == before
    with cli.open() as store:
        assert accounts(store) == []


def test_with_yes_it_does_it_and_leaves_an_account(cli: Cli, root: Path) -> None:
    ended = cli.ok("gc", "--yes")
    assert ended.message.startswith("pruned 1 object, ")
    assert len(list(root.rglob("*.zst"))) == 1
    cli.ok("artifact", "verify")
    with cli.open() as store:
        ((action, details),) = accounts(store)
        assert (action, details["unreferenced_count"]) == ("gc", 1)
    assert cli.ok("gc", "--yes").message == "there is nothing to prune\n"
    with cli.open() as store:
        assert len(accounts(store)) == 1


def test_json_has_every_number(cli: Cli, root: Path) -> None:
    size = sum(file.stat().st_size for file in root.rglob("*.zst"))
    (dry,) = cli.ok("gc", "--json").records
    assert (dry["dry_run"], dry["run_id"], dry["pruned_count"]) == (True, None, 0)
    assert (dry["root"], dry["grace_s"]) == (f"file://{root}", 86_400)
    (record,) = cli.ok("gc", "--yes", "--json").records
    assert record["run_id"]
    assert not record["dry_run"]
    left = sum(file.stat().st_size for file in root.rglob("*.zst"))
    assert (record["pruned_count"], record["pruned_bytes"]) == (1, size - left)
    assert (record["referenced_count"], record["referenced_bytes"]) == (1, left)
    for name in ("unreferenced", "unfinished", "young", "damaged", "foreign"):
        assert record[f"{name}_count"] == dry[f"{name}_count"] == (name == "unreferenced")


def test_the_grace_decides_what_is_young(cli: Cli, root: Path) -> None:
    for grace, young in (("26h", 1), ("1d", 0), ("25 H", 0), ("0s", 0)):
        (record,) = cli.ok("gc", "--grace", grace, "--json").records
        assert (record["young_count"], record["unreferenced_count"]) == (young, 1 - young)


def test_an_interrupted_run_says_what_it_has_done(cli: Cli, root: Path) -> None:
    objects = len(list(root.rglob("*.zst")))
    files = scatter(root, 6_000)
    first, last = min(files), max(files)
    with cli.start("gc", "--grace", "0s", "--yes") as process:
        try:
            while first.exists():  # in the order of their paths
                assert process.poll() is None
                time.sleep(POLL_S)
            os.kill(process.pid, signal.SIGINT)
            _, errors = process.communicate(timeout=HANG_S)
        except BaseException:
            kill_group(process)
            raise
    assert process.returncode == 130
    assert last.exists()
    gone = objects + len(files) - len(list(root.rglob("*.zst")))
    with cli.open() as store:
        ((_, details),) = accounts(store)
    assert details["unreferenced_count"] == gone
    said = errors.decode()
    assert said.startswith(f"interrupted: {gone:,} object{'s' * (gone > 1)}, ")
    assert said.endswith(" pruned so far\n")


def test_ignored_interruptions_stay_ignored(cli: Cli, root: Path) -> None:
    """As under nohup."""
    scatter(root, 500)
    (first,) = scatter(root, 1)
    with cli.start(
        *("gc", "--grace", "0s", "--yes"),
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    ) as process:
        while first.exists():
            assert process.poll() is None
            time.sleep(POLL_S)
        os.kill(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=HANG_S)
    assert process.returncode == 0
    assert errors.decode().startswith("pruned 501 objects, ")


def test_a_terminal_shows_a_bar_and_then_no_trace_of_it(cli: Cli, root: Path) -> None:
    seen = on_a_terminal(cli, "gc", "--yes", columns=100)
    assert "checking objects" in seen
    assert "pruning" in seen
    assert "pruned 1 object" in seen.splitlines()[-1]
