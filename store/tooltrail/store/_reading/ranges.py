"""Making what ranges of invocations tell, by those who gain from it, and never by those who record.

A range is made when all of its keys have been given out, and some more after them, so that most of
its calls have ended. It is read in one snapshot and written in one transaction afterwards, whole or
not at all: `traits` says why it stays right whatever is recorded in between. Who lists by a
filter and has to pass by invocations of a range that is due makes it, for whoever lists next.
"""

import os
import threading
import time
import weakref
from collections.abc import Generator
from itertools import islice

from sqlalchemy import Connection, bindparam, delete, exists, func, select
from sqlalchemy.orm import aliased

from tooltrail.records import DamageError, TooltrailError
from tooltrail.store._engines.database import Database
from tooltrail.store._reading.members import RANGE
from tooltrail.store._reading.traits import HEAD, UNREADABLE, Head, read_traits
from tooltrail.store._recording.writes import insert_rows, put_each_once
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
"""How long nothing is tried after nothing was made: something stood in the way, or a range that is
due cannot be read, and would be read each time."""


class RangeKeeper:
    """Makes ranges for one open store. Safe to share between threads."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._busy = threading.Lock()
        self._not_before = 0.0
        _keepers.add(self)

    def make_some(self) -> None:
        """Make a few ranges that are due, unless another thread does, or nothing can be written.

        They only make lists quicker: what stands in the way is told to whoever has to write.
        """
        busy = self._busy
        if time.monotonic() < self._not_before or not busy.acquire(blocking=False):
            return
        try:
            made = list(islice(iter_made(self._database, _WAIT_S), _AT_ONCE))
        except TooltrailError:
            made = []
        finally:
            busy.release()
        if not made:
            self._not_before = time.monotonic() + _RESPITE_S

    def forget_parent(self) -> None:
        """Begin anew in a forked child, where no other thread goes on that was busy."""
        self._busy = threading.Lock()


def iter_made(database: Database, wait_s: float | None = None) -> Generator[int]:
    """Make every range that is due and not made; the number of each.

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
    """The first range that is due after one of this number, and not made."""
    newest = newest_key(connection)
    while True:
        # Of a range without any row nothing is told: there may be very many such.
        oldest = connection.scalar(_OLDEST, {"first": (after + 1) * RANGE})
        if oldest is None or newest < oldest // RANGE * RANGE + DUE:
            return None
        number: int = oldest // RANGE
        # Two who throw all away at once may leave some that are not made before some that are.
        last = connection.scalar(_LAST_IN_A_ROW, {"first": number})
        if last is None:
            return number
        after = last


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
        # Of a range without its head the rest may be there.
        connection.execute(_DELETE_ONE, [{"name": r["trait"], "number": number} for r in others])
        insert_rows(connection, RangeTraitRow, others)


_KEY = InvocationRow.key
_NEWEST = select(func.max(_KEY))
_OLDEST = select(func.min(_KEY)).where(bindparam("first") <= _KEY)
_THERE, _FOLLOWING = aliased(RangeTraitRow), aliased(RangeTraitRow)
_LAST_IN_A_ROW = (
    select(RangeTraitRow.range_number)
    .where(
        RangeTraitRow.trait == HEAD,
        RangeTraitRow.range_number >= bindparam("first"),
        # The first is made, or there is no answer.
        exists().where(_THERE.trait == HEAD, _THERE.range_number == bindparam("first")),
    )
    .where(
        ~exists().where(
            _FOLLOWING.trait == HEAD, _FOLLOWING.range_number == RangeTraitRow.range_number + 1
        )
    )
    .order_by(RangeTraitRow.range_number)
    .limit(1)
)
"""The last of the ranges that are made one behind another, from the first on."""

_DELETE_ONE = delete(RangeTraitRow).where(
    RangeTraitRow.trait == bindparam("name"), RangeTraitRow.range_number == bindparam("number")
)
_NEXT_HEAD = (
    select(RangeTraitRow.range_number, RangeTraitRow.members)
    .where(RangeTraitRow.trait == HEAD, RangeTraitRow.range_number > bindparam("after"))
    .order_by(RangeTraitRow.range_number)
    .limit(1)
)

_keepers: weakref.WeakSet[RangeKeeper] = weakref.WeakSet()


def _forget_parent() -> None:
    for keeper in list(_keepers):
        keeper.forget_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_parent)
