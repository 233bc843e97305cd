"""After a power cut at any moment, everything acknowledged is in the store once, and it is sound.

A process creates a store, records and ingests while `strace` sees what it does to its files. What a
disk may have kept of that at a moment is made by `tests.support.power`, and opened as the next
process would open it. `TOOLTRAIL_TEST_EFFORT` says how many moments are tried.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest
from tests.support.effort import times
from tests.support.evidence import check_evidence
from tests.support.power import Chance, Everything, Nothing
from tests.support.power_disk import Disk
from tests.support.power_worker import printed
from tests.support.recording import content_of, stream_of
from tests.support.system_calls import Said, require_strace, trace

from tooltrail.store import Store, open_store
from tooltrail.store.engines.values import uuid_from

CUTS = 12
"""Moments that are tried, with up to three images each."""

SEED = "power cuts of a store"

pytestmark = pytest.mark.timeout(1200)


def test_everything_acknowledged_is_in_the_store_after_a_power_cut(memory: Path) -> None:
    require_strace()
    work = memory / "work"
    work.mkdir()
    disk = Disk(work)
    places = [str(work / name) for name in ("trail.db", "artifacts", "spool")]
    traced = trace(work, memory / "log", "tests.support.power_worker", *places, follows_all=True)
    disk.follow(traced.calls)
    assert sum(one.words[0] == "ended" for one in traced.said) == 32
    assert sum(call.name == "unlink" for call in traced.calls) > 2, "segments were deleted"
    count = min(times(CUTS, most=400), len(disk.moments))
    images = 0
    for cut in sorted(Random(SEED).sample(disk.moments, count)):
        said = [one for one in traced.said if one.at <= cut]
        for choice in (Nothing(), Everything(), Chance(f"{SEED} {cut}")):
            # At the place of the store, which the mark of the artifact root names.
            shutil.rmtree(work, ignore_errors=True)
            disk.image(cut, choice).put(work)
            check(work, said)
            images += 1
    print(f"{count} cuts of {len(disk.moments)} moments, {images} images")  # noqa: T201


def check(folder: Path, said: Sequence[Said]) -> None:
    """Open a store as the next process does, and compare it with what was acknowledged."""
    with open_store(
        folder / "trail.db", artifacts=str(folder / "artifacts"), spool=folder / "spool"
    ) as store:
        # A call that was running when the power failed is ended by whoever ingests next.
        check_evidence(store)
        for kind, *words in (one.words for one in said):
            if kind == "ended":
                check_call(store, *words)
            elif kind == "message":
                check_message(store, *words)
        store.open_session(title="afterwards").close()
        check_evidence(store)


def check_call(store: Store, number: str, invocation: str) -> None:
    detail = store.reader.invocation(invocation)
    assert (detail.summary.call_id, detail.summary.state) == (number, "success")
    assert content_of(store.reader, stream_of(detail, "stdout")) == printed(int(number))


def check_message(store: Store, number: str, message: str) -> None:
    with store.database.read() as connection:
        rows = connection.query("SELECT id FROM messages")
        assert message in {str(uuid_from(one)) for (one,) in rows}
    del number
