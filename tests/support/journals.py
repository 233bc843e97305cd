"""Facts for journals in tests, and checks that every journal must pass."""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from uuid import UUID

import pytest
from tests.support.killing import fork
from tests.support.processes import NOBODY

from tooltrail.journal import FIRST_HASH, Cursor, Entry, Frame, Gap, JournalLog, log, read_journal
from tooltrail.journal.frames import link
from tooltrail.records.digests import digest_of
from tooltrail.records.facts import MessageAdded

AT = datetime(2026, 3, 1, tzinfo=UTC)
POLICY = b'{"budget":1}'
"""A body that many facts name."""

Label = tuple[str, int]
"""The producer of a fact, and the number of the fact at the producer."""


def body_of(producer: str, number: int, size: int = 60) -> bytes:
    """A unique body that cannot be compressed."""
    return f"{producer} {number} ".encode() + Random(f"{producer} {number}").randbytes(size)


def entry(producer: str, number: int, size: int = 60) -> Entry:
    """A fact that contains its label, with a unique body and a body that all facts share."""
    body = body_of(producer, number, size)
    fact = MessageAdded(
        session=UUID(int=1),
        id=UUID(int=number),
        at=AT,
        role=producer,
        text=digest_of(body),
        document=digest_of(POLICY),
    )
    return Entry(fact, [body], [POLICY])


def record(journal: JournalLog, producer: str, numbers: Iterable[int]) -> None:
    """Record facts one by one."""
    for number in numbers:
        journal.record([entry(producer, number)])


def filled(folder: Path, count: int, *, producer: str = "p") -> JournalLog:
    """A journal with `count` facts; the log stays open."""
    journal = JournalLog(folder)
    record(journal, producer, range(count))
    return journal


def read_all(folder: Path, cursor: Cursor | None = None) -> tuple[list[Frame], list[Gap]]:
    """The frames and the gaps behind a cursor."""
    items = list(read_journal(folder, cursor or Cursor()))
    frames = [one for one in items if isinstance(one, Frame)]
    return frames, [one for one in items if isinstance(one, Gap)]


def label(frame: Frame) -> Label:
    fact = frame.fact
    assert isinstance(fact, MessageAdded)
    return fact.role, fact.id.int


def labels(folder: Path, cursor: Cursor | None = None) -> list[Label]:
    return [label(frame) for frame in read_all(folder, cursor)[0]]


def check_whole(folder: Path) -> list[Label]:
    """Check that a journal has one unbroken chain, no gap and all bodies; return its labels."""
    frames, gaps = read_all(folder)
    assert gaps == []
    previous_hash = FIRST_HASH
    for index, frame in enumerate(frames):
        assert frame.index == index
        assert frame.hash == link(previous_hash, frame.fact_json)
        previous_hash = frame.hash
        fact = frame.fact
        assert isinstance(fact, MessageAdded)
        assert fact.text in frame.bodies()
    return [label(frame) for frame in frames]


def check_acknowledged(folder: Path, acknowledged: Iterable[Label]) -> None:
    """Run `check_whole`; check that the journal has each acknowledged fact once and in order."""
    found = check_whole(folder)
    twice = [one for one, count in Counter(found).items() if count > 1]
    assert twice == []
    assert set(acknowledged) - set(found) == set()
    for producer in {one[0] for one in found}:
        numbers = [number for name, number in found if name == producer]
        assert numbers == sorted(numbers)


def segment_files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.seg"))


def alter(path: Path, offset: int, *, bit: int = 1) -> None:
    """Flip one bit of a file, as a failing disk does."""
    with path.open("r+b") as file:
        file.seek(offset)
        (byte,) = file.read(1)
        file.seek(offset)
        file.write(bytes([byte ^ bit]))


def write_at(path: Path, offset: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(data)


def end_of(folder: Path) -> tuple[Path, int]:
    """The newest segment and the offset behind its last frame."""
    last = read_all(folder)[0][-1]
    return folder / f"{last.segment:08d}.seg", last.end


def seal_at(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """Seal segments at `size` bytes."""
    monkeypatch.setattr(log, "SEAL_BYTES", size)


def run_forks(tasks: Sequence[Callable[[], object]]) -> None:
    """Run tasks at the same time, each in a fork; all must succeed."""
    children = [fork(task) for task in tasks]
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * len(children)


def become_nobody() -> None:
    """Drop the rights of root. Call this in a fork."""
    if os.geteuid() == 0:
        os.setgid(NOBODY)
        os.setuid(NOBODY)
