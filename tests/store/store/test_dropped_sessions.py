"""Which sessions were dropped is read once, however large the file of drops and often asked."""

import os
from pathlib import Path
from uuid import UUID

import pytest
from tests.support.processes import run_python

from tooltrail.records import digest_of
from tooltrail.store import SessionOpened, new_id
from tooltrail.store._outbox.dropped_sessions import iter_appended
from tooltrail.store.outbox import Outbox

COUNTED = Path("/proc/thread-self/io")
"""What the system has counted of this thread."""

DROP = """
import sys
from pathlib import Path
from tooltrail.store.outbox import Outbox, SessionOpened

entry = SessionOpened()
Outbox(Path(sys.argv[1])).count_dropped(entry, "away")
print(entry.id)
"""


@pytest.fixture
def outbox(tmp_path: Path) -> Outbox:
    return Outbox.of(tmp_path, new_id())


def dropped_by_another_process(outbox: Outbox) -> UUID:
    printed, _ = run_python(DROP, str(outbox.journal.folder))
    return UUID(printed.strip())


def drop(outbox: Outbox) -> UUID:
    entry = SessionOpened()
    outbox.count_dropped(entry, "away")
    return entry.id


def line_of(session: UUID, *, reason: str = "away") -> bytes:
    """As a program appends it, or half of it one that is killed."""
    data = f'{{"id":"{session}","kind":"session.opened","reason":"{reason}"}}'.encode()
    return b"%b %b\n" % (digest_of(data).encode(), data)


def write_lines(outbox: Outbox, *lines: bytes) -> None:
    path = outbox.put_away.dropped
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(lines))


def size_read() -> int:
    (found,) = (line for line in COUNTED.read_text().splitlines() if line.startswith("rchar"))
    return int(found.removeprefix("rchar: "))


@pytest.mark.skipif(not COUNTED.exists(), reason="the system does not count what is read")
def test_a_large_file_is_read_once_and_then_what_was_appended(outbox: Outbox) -> None:
    sessions = [new_id() for _ in range(20_000)]
    write_lines(outbox, *map(line_of, sessions))
    size = outbox.put_away.dropped.stat().st_size

    before = size_read()
    assert outbox.was_dropped(sessions[-1])
    assert size <= size_read() - before < 1.1 * size

    before = size_read()
    assert outbox.was_dropped(sessions[0])
    for number in range(100):
        assert not outbox.was_dropped(new_id())
        if number % 10 == 0:
            # As another process.
            assert outbox.was_dropped(drop(Outbox(outbox.journal.folder)))
    # Its head each time, and a line or two.
    assert size_read() - before < size / 20


def test_what_another_process_drops_is_known_at_once(outbox: Outbox) -> None:
    assert not outbox.was_dropped(new_id())
    for _ in range(2):
        assert outbox.was_dropped(dropped_by_another_process(outbox))


def test_what_was_acknowledged_is_known_still(outbox: Outbox) -> None:
    first = drop(outbox)
    assert outbox.was_dropped(first)
    Outbox(outbox.journal.folder).put_away.acknowledge()
    assert outbox.was_dropped(first)
    assert outbox.was_dropped(drop(outbox))
    assert outbox.was_dropped(first)


def test_what_somebody_removed_is_not_known_any_more(outbox: Outbox) -> None:
    first, path = drop(outbox), outbox.put_away.dropped
    assert outbox.was_dropped(first)
    path.unlink()
    assert not outbox.was_dropped(first)
    assert outbox.was_dropped(drop(outbox))


@pytest.mark.parametrize("more", [0, 3])
def test_a_file_that_was_written_anew_is_read_anew(outbox: Outbox, more: int) -> None:
    """Shorter and longer than before, with the inode that it had."""
    sessions = [new_id() for _ in range(5 + more)]
    write_lines(outbox, line_of(sessions[0]), line_of(sessions[1]))
    assert outbox.was_dropped(sessions[0])
    write_lines(outbox, *map(line_of, sessions[1 : 2 + more]))
    assert not outbox.was_dropped(sessions[0])
    assert outbox.was_dropped(sessions[1 + more])


def test_a_file_of_which_the_end_was_cut_off_is_read_anew(outbox: Outbox) -> None:
    sessions = [drop(outbox) for _ in range(3)]
    assert outbox.was_dropped(sessions[2])
    write_lines(outbox, *outbox.put_away.dropped.read_bytes().splitlines(keepends=True)[:1])
    assert [outbox.was_dropped(one) for one in sessions] == [True, False, False]
    assert outbox.was_dropped(drop(outbox))


@pytest.mark.parametrize("lost", [1, 10, 200])
def test_a_line_that_was_torn_is_read_when_another_stands_there(outbox: Outbox, lost: int) -> None:
    torn = new_id()
    write_lines(outbox, line_of(new_id()), line_of(torn, reason="a" * 200)[:-lost])
    # All but the newline is enough.
    assert outbox.was_dropped(torn) is (lost == 1)
    session = drop(outbox)
    assert outbox.was_dropped(session)
    assert outbox.was_dropped(torn) is (lost == 1)


def test_a_line_that_was_altered_is_left_out(outbox: Outbox) -> None:
    sessions = [new_id() for _ in range(3)]
    lines = list(map(line_of, sessions))
    lines[1] = lines[1].replace(b"away", b"gone")
    write_lines(outbox, *lines)
    for _ in range(2):
        assert [outbox.was_dropped(one) for one in sessions] == [True, False, True]


def test_what_takes_the_place_of_a_torn_line_while_that_is_read_is_read_again(
    outbox: Outbox,
) -> None:
    # Longer than what is read at a time.
    first, torn = line_of(new_id()), line_of(new_id(), reason="a" * (1 << 20))[:-10]
    write_lines(outbox, first, torn)
    path = outbox.put_away.dropped
    with path.open("rb") as file:
        lines = iter_appended(file, 0)
        assert next(lines) == ([first[72:-1]], len(first))
        os.truncate(path, len(first))
        instead = [line_of(new_id(), reason="b" * (1 << 20)), line_of(new_id())]
        with path.open("ab") as appended:
            appended.write(b"".join(instead))
        mixed, last = lines
        assert None in mixed[0]
        assert last[0] == [instead[1][72:-1]]
        again = list(iter_appended(file, last[1]))
    assert [parts for parts, _ in again] == [[line[72:-1]] for line in instead]
    assert again[-1][1] == path.stat().st_size


def test_what_cannot_be_read_is_said_each_time(outbox: Outbox) -> None:
    outbox.put_away.dropped.mkdir(parents=True)
    for _ in range(2):
        with pytest.raises(IsADirectoryError):
            outbox.was_dropped(new_id())
    outbox.put_away.dropped.rmdir()
    assert outbox.was_dropped(drop(outbox))
