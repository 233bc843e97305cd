"""After a power cut at any moment, every acknowledged fact is there once, and nothing is damage.

Two processes with two threads each append to one journal while `strace` sees what they do to its
files. What a disk may have kept of that at a moment is made by `tests.support.power`, read as the
next process would read it, and written to. `TOOLTRAIL_TEST_EFFORT` says how many moments are tried.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest
from tests.support.effort import times
from tests.support.journals import check_acknowledged, record
from tests.support.power import Chance, Choice, Everything, Nothing
from tests.support.power_disk import Disk
from tests.support.system_calls import Said, require_strace, trace

from tooltrail.journal import JournalLog

CUTS = 30
"""Moments that are tried, with up to four images each."""

SEAL_BYTES = 12_000
SEED = "power cuts of a journal"

pytestmark = pytest.mark.timeout(1200)


def test_every_acknowledged_fact_is_there_after_a_power_cut(memory: Path) -> None:
    require_strace()
    work = memory / "work"
    work.mkdir()
    disk = Disk(work)
    traced = trace(
        work,
        memory / "log",
        "tests.support.journal_worker",
        *("pair", str(work / "spool" / "journal"), "2", "60", str(SEAL_BYTES)),
        follows_all=True,
    )
    disk.follow(traced.calls)
    assert sum(one.words[0] == "acked" for one in traced.said) == 240
    assert sum(call.name == "rename" for call in traced.calls) > 8, "segments were begun"
    count = min(times(CUTS, most=400), len(disk.moments))
    images: set[int] = set()
    for cut in sorted(Random(SEED).sample(disk.moments, count)):
        choices = (Nothing(), Everything(), Chance(f"{SEED} {cut}"), Chance(f"{SEED} again {cut}"))
        for choice in choices:
            if _try_image(memory / "image", disk, cut, choice, images):
                said = [one for one in traced.said if one.at <= cut]
                _check(memory / "image" / "spool" / "journal", said)
                shutil.rmtree(memory / "image")
    print(f"{count} cuts of {len(disk.moments)} moments, {len(images)} images")  # noqa: T201
    assert len(images) > count


def _try_image(folder: Path, disk: Disk, cut: int, choice: Choice, images: set[int]) -> bool:
    """Put an image into a folder, if it is one that was not tried yet."""
    image = disk.image(cut, choice)
    if (print_ := hash((cut, image.fingerprint()))) in images:
        return False
    images.add(print_)
    image.put(folder)
    return True


def _check(journal: Path, said: Sequence[Said]) -> None:
    """Check what is left of a journal, append to it as the next process does, and check again."""
    acknowledged = [(one.words[1], int(one.words[2])) for one in said if one.words[0] == "acked"]
    check_acknowledged(journal, acknowledged)
    record(JournalLog(journal), "next", range(3))
    check_acknowledged(journal, [*acknowledged, *(("next", number) for number in range(3))])
    record(JournalLog(journal), "after", range(2))
    check_acknowledged(journal, [*acknowledged, *(("after", number) for number in range(2))])
