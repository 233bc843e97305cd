"""After a loss of power at any moment all is there that was acknowledged, and the store is sound.

What a recorder does to its files is seen by `strace`; what a disk may have kept of it at a moment
is made by `tests.support.power`, and opened as a new process would open it.
`TOOLTRAIL_TEST_EFFORT=100` tries nearly all moments.
"""

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

import pytest
from tests.support.effort import times
from tests.support.old_stores import old_rows, old_store, rows_of
from tests.support.power import Chance, Choice, Everything, Nothing
from tests.support.power_checks import Found, check_store
from tests.support.power_disk import Disk
from tests.support.power_worker import hidden
from tests.support.system_calls import Said, Trace, require_strace, trace

from tooltrail.migrations import VERSION_TABLE
from tooltrail.records import StoreExistsError
from tooltrail.store import check_database, create_store, open_store, upgrade_store

CUTS = times(8)
"""Moments that are tried of each run, with three images each."""

CUTS_OF_MAKING = times(16)
"""Of the making of a store, where a moment that matters is short, and an image is quickly tried."""

pytestmark = pytest.mark.timeout(1200)


@pytest.fixture
def memory() -> Iterator[Path]:
    """A folder for images on a fast disk, since hundreds are synced."""
    place = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=place if place.is_dir() else None) as name:
        yield Path(name).resolve()


@dataclass
class Tally:
    """What came of many cuts."""

    cuts: int = 0
    images: int = 0
    lost: int = 0
    strayed: int = 0

    def __str__(self) -> str:
        return (
            f"{self.cuts} cuts, {self.images} images that differ, acknowledged records lost in "
            f"{self.lost}, calls that the spool does not know in {self.strayed}"
        )


def test_whatever_was_acknowledged_is_there_after_a_loss_of_power(memory: Path) -> None:
    require_strace()
    disk, traced = recorded(memory, "record", "full")
    # The log was moved into the database while records were made, and not only at the end.
    assert disk.syncs_of("trail.db") > 2
    tally = try_cuts(memory, disk, traced, check_store, allows_loss=False)
    print(tally)  # noqa: T201  for docs/design.md
    assert tally.lost == 0


def test_a_store_that_survives_the_end_of_a_program_alone_loses_the_newest(memory: Path) -> None:
    require_strace()
    disk, traced = recorded(memory, "record", "process")
    check = partial(check_store, may_lose=True)
    tally = try_cuts(memory, disk, traced, check, allows_loss=True)
    print(tally)  # noqa: T201  for docs/design.md
    # Otherwise the test above could not fail either.
    assert tally.lost > 0


def test_a_store_is_there_once_it_was_made(memory: Path) -> None:
    require_strace()
    work = memory / "work"
    work.mkdir()
    place = work / "new" / "place"
    disk, traced = run("create", work, place)

    def check_made(image: Path, said: Sequence[Said]) -> Found:
        folder = image / "new" / "place"
        if not any(one.words[0] == "made" for one in said):
            with suppress(StoreExistsError):
                create_store(folder / "trail.db").close()
        return check_store(folder, said)

    tally = try_cuts(memory, disk, traced, check_made, allows_loss=False, count=CUTS_OF_MAKING)
    print(tally)  # noqa: T201  for docs/design.md
    assert tally.lost == 0


def test_what_waits_in_the_spool_or_was_set_aside_there_is_there_too(memory: Path) -> None:
    require_strace()
    disk, traced = recorded(memory, "wait")
    tally = try_cuts(memory, disk, traced, check_store, allows_loss=False)
    print(tally)  # noqa: T201  for docs/design.md
    assert tally.lost == 0


def test_what_waits_in_the_outbox_is_there_too(memory: Path) -> None:
    require_strace()
    disk, traced = recorded(memory, "hide")
    tally = try_cuts(memory, disk, traced, check_store, allows_loss=False)
    print(tally)  # noqa: T201  for docs/design.md
    assert tally.lost == 0


def test_a_repair_that_is_cut_off_loses_nothing_and_does_nothing_twice(memory: Path) -> None:
    require_strace()
    work = memory / "work"
    _, waiting = recorded(memory, "wait")
    _, queued = run("hide", work, work)
    hidden(work / "trail.db").rename(work / "trail.db")
    disk, traced = run("repair", work, work)
    before = [Said(at=0, words=one.words) for one in (*waiting.said, *queued.said)]

    def check(image: Path, said: Sequence[Said]) -> Found:
        return check_store(image, [*before, *said])

    tally = try_cuts(memory, disk, traced, check, allows_loss=False)
    print(tally)  # noqa: T201  for docs/design.md
    assert tally.lost == 0


@pytest.mark.parametrize("revision", ["0002", "0003"])
def test_an_upgrade_that_is_cut_off_can_be_done_again(memory: Path, revision: str) -> None:
    require_strace()
    work = memory / "work"
    work.mkdir()
    old_store(revision, work)
    wanted = old_rows(revision)
    columns = {table: list(rows[0]) for table, rows in wanted.items()}
    disk, traced = run("upgrade", work, work)

    def check(image: Path, said: Sequence[Said]) -> Found:
        before, head = upgrade_store(image / "trail.db")
        with open_store(image / "trail.db") as store:
            assert check_database(store.database) == []
        assert rows_of(image / "trail.db", columns) == {
            **wanted,
            VERSION_TABLE: [{"version_num": head}],
        }
        return Found([" ".join(one.words) for one in said if one.words != ("upgraded", before)])

    tally = try_cuts(memory, disk, traced, check, allows_loss=False)
    print(tally)  # noqa: T201  for docs/design.md
    assert tally.lost == 0


def recorded(memory: Path, what: str, *arguments: str) -> tuple[Disk, Trace]:
    """What a recorder does in a store that was there before."""
    work = memory / "work"
    work.mkdir()
    create_store(work / "trail.db").close()
    return run(what, work, work, *arguments)


def run(what: str, work: Path, place: Path, *arguments: str) -> tuple[Disk, Trace]:
    """Run a worker that has its store in a place below `work`."""
    disk = Disk(work)
    names = [str(place / name) for name in ("trail.db", "artifacts", "spool")]
    # Not in memory: a hundred megabytes, of which most is about the start of Python.
    with tempfile.TemporaryDirectory() as logs:
        log = Path(logs, "log")
        traced = trace(work, log, "tests.support.power_worker", what, *names, *arguments)
    disk.follow(traced.calls)
    # Where nothing is lost, what was followed is what is there.
    copy = work.with_name("copy")
    disk.image(max(disk.moments), Everything()).put(copy)
    assert content_below(copy) == content_below(work)
    shutil.rmtree(copy)
    return disk, traced


def content_below(folder: Path) -> dict[str, str | bytes | None]:
    """Everything in a folder: links, files and folders; without the memory of SQLite."""
    found: dict[str, str | bytes | None] = {}
    for path in folder.rglob("*"):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = str(path.readlink())
        elif path.is_dir():
            found[name] = None
        elif not name.endswith("-shm"):
            found[name] = path.read_bytes()
    return found


def try_cuts(
    memory: Path,
    disk: Disk,
    traced: Trace,
    check: Callable[[Path, Sequence[Said]], Found],
    *,
    allows_loss: bool,
    count: int = CUTS,
) -> Tally:
    """Check what is left after each of some cuts; the same image once for all that was said."""
    tally = Tally()
    seen: set[int] = set()
    # The latest first: what was said by then holds for the same image at an earlier cut, too.
    for cut in sorted(chosen_cuts(disk, traced, count), reverse=True):
        tally.cuts += 1
        said = [one for one in traced.said if one.at <= cut]
        choices: dict[str, Choice] = {
            "nothing": Nothing(),
            "everything": Everything(),
            f"chance {cut}": Chance(f"chance {cut}"),
        }
        for name, choice in choices.items():
            left = disk.image(cut, choice)
            if left.fingerprint() in seen:
                continue
            seen.add(left.fingerprint())
            image = memory / "image"
            left.put(image)
            try:
                found = check(image, said)
                assert allows_loss or not found.missing
            except BaseException as error:
                error.add_note(explained(disk, traced, cut, name, choice))
                raise
            shutil.rmtree(image)
            tally.images += 1
            tally.lost += bool(found.missing)
            tally.strayed += bool(found.strayed_count)
    return tally


def chosen_cuts(disk: Disk, traced: Trace, count: int) -> set[int]:
    """Moments between two steps, half of them those at which something was acknowledged.

    All along the run, so that none that lasts for a while is left out.
    """
    said = [one.at for one in traced.said if one.words[0] != "begin"]
    moments = sorted({*disk.moments, *said})
    return {*_spread(said, count // 2), *_spread(moments, count - min(len(said), count // 2))}


def _spread(moments: Sequence[int], count: int) -> Iterator[int]:
    """One of each of so many parts."""
    chance = Random(20)
    for part in range(min(count, len(moments))):
        size = len(moments) / min(count, len(moments))
        yield moments[int((part + chance.random()) * size)]


def explained(disk: Disk, traced: Trace, cut: int, name: str, choice: Choice) -> str:
    """What led to an image, for whoever reads of a failure."""
    before = [call for call in traced.calls if call.ended <= cut][-30:]
    return "\n".join(
        [
            f"power was lost after line {cut}; of the unsure was left: {name}",
            *(" ".join(one.words) for one in traced.said if one.at <= cut),
            *map(str, before),
        ]
    )
