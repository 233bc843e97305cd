"""Making what ranges of invocations tell, by those who gain from it, and never by those who record.

A range is made when all of its keys have been given out, and some more after them, so that most of
its calls have ended. It is read in one snapshot and written in one transaction afterwards, whole or
not at all: `_traits` says why it stays right whatever is recorded in between. Who lists by a
filter and has to pass by invocations of a range that is due makes it, for whoever lists next.
"""

import threading
import time
from collections.abc import Generator
from itertools import islice

from sqlalchemy import Connection, bindparam, delete, func, select

from tooltrail.records import DamageError, TooltrailError
from tooltrail.store._database import Database
from tooltrail.store._members import RANGE
from tooltrail.store._traits import HEAD, UNREADABLE, Head, read_traits
from tooltrail.store._writes import insert_rows, put_each_once
from tooltrail.store.tables import InvocationRow, RangeTraitRow

SETTLING = 1024
"""Keys after a range that are given out before it is made, while its last calls end."""

DUE = RANGE + SETTLING
"""Invocations that are passed by at least where a range is due."""

_WAIT_S = 0.1
"""How long a listing waits for its turn to write."""

_AT_ONCE = 4
"""Ranges that a listing makes at most, in some 20 ms each."""


_RESPITE_S = 60.0
"""How long nothing is tried after something stood in the way."""


class RangeKeeper:
    """Makes ranges for one open store. Safe to share between threads."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._busy = threading.Lock()
        self._not_before = 0.0

    def make_some(self) -> None:
        """Make a few ranges that are due, unless another thread does, or nothing can be written.

        They only make lists quicker: what stands in the way is told to whoever has to write.
        """
        if time.monotonic() < self._not_before or not self._busy.acquire(blocking=False):
            return
        try:
            for _ in islice(iter_made(self._database, _WAIT_S), _AT_ONCE):
                pass
        except TooltrailError:
            self._not_before = time.monotonic() + _RESPITE_S
        finally:
            self._busy.release()


def iter_made(database: Database, wait_s: float | None = None) -> Generator[int]:
    """Make every range that is due and comes after all that are made; the number of each.

    A range that cannot be read for damage is left out. Its invocations are looked at one by one,
    by which whoever lists them learns of it.

    Args:
        database: of a store.
        wait_s: how long others are waited for; by default as long as for a record.

    Raises:
        UnavailableError, DamageError: the database cannot be read or written now.
    """
    number = -1
    while True:
        with database.read() as connection:
            due = _next_due(connection, number)
        if due is None:
            return
        number = due
        try:
            with database.read() as connection:
                kept = read_traits(connection, number)
        except DamageError:
            continue
        deadline = None if wait_s is None else time.monotonic() + wait_s
        with database.write(deadline) as connection:
            _write(connection, number, kept)
        yield number


def remake_all(database: Database) -> Generator[int]:
    """Throw away what all ranges tell, and make each anew; the number of each.

    Raises:
        UnavailableError, DamageError: the database cannot be read or written now.
    """
    with database.write() as connection:
        connection.execute(delete(RangeTraitRow))
    yield from iter_made(database)


def iter_wrong(database: Database) -> Generator[int]:
    """The number of each range that does not tell what its invocations were when it was made.

    Raises:
        UnavailableError, DamageError: the database cannot be read now.
    """
    number = -1
    while True:
        with database.read() as connection:
            head = connection.execute(_NEXT_HEAD, {"after": number}).one_or_none()
            if head is None:
                return
            number = head.range_number
            is_wrong = _is_wrong(connection, number, head.members)
        if is_wrong:
            yield number


def newest_key(connection: Connection) -> int:
    """The largest key of all invocations, 0 without any."""
    return connection.scalar(_NEWEST) or 0


def _next_due(connection: Connection, after: int) -> int | None:
    """The first range that is due after one of this number, and after all that are made."""
    last = connection.scalar(_LAST)
    after = after if last is None else max(after, last)
    # Of a range without any row nothing is told: there may be very many such.
    oldest = connection.scalar(_OLDEST, {"first": (after + 1) * RANGE})
    if oldest is None or newest_key(connection) < oldest // RANGE * RANGE + DUE:
        return None
    number: int = oldest // RANGE
    return number


def _is_wrong(connection: Connection, number: int, head: bytes) -> bool:
    try:
        unsettled = Head.decode(head).unsettled
    except UNREADABLE:
        return True
    wanted = read_traits(connection, number, unsettled)
    row = RangeTraitRow
    query = select(row.trait, row.members).where(
        row.range_number == number, row.trait.in_(list(wanted))
    )
    return {row.trait: row.members for row in connection.execute(query)} != wanted


def _write(connection: Connection, number: int, kept: dict[int, bytes]) -> None:
    """Write what a range tells, unless somebody has."""
    rows = [{"trait": t, "range_number": number, "members": m} for t, m in sorted(kept.items())]
    head, *others = rows
    if put_each_once(connection, RangeTraitRow, [head]):
        insert_rows(connection, RangeTraitRow, others)


_KEY = InvocationRow.key
_NEWEST = select(func.max(_KEY))
_OLDEST = select(func.min(_KEY)).where(bindparam("first") <= _KEY)
_LAST = select(func.max(RangeTraitRow.range_number)).where(RangeTraitRow.trait == HEAD)
_NEXT_HEAD = (
    select(RangeTraitRow.range_number, RangeTraitRow.members)
    .where(RangeTraitRow.trait == HEAD, RangeTraitRow.range_number > bindparam("after"))
    .order_by(RangeTraitRow.range_number)
    .limit(1)
)
