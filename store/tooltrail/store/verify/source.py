"""Reads rows of a store that may be damaged, in large batches.

A batch that cannot be read is halved until the row that is to blame stands alone. Of that row every
column is read for itself. What cannot be read is reported, and the rest goes on.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Table

from tooltrail.records.errors import DamageError, InvalidRecordError
from tooltrail.store.engines.connection import Connection
from tooltrail.store.engines.database import Database

Values = tuple[Any, ...]
ReportUnreadable = Callable[[str, str, str | None], None]
"""Takes the table, the key of the row in words, and the column; None for the whole row."""

_AT_ONCE: Final = 500
"""Keys in one query. SQLite takes 32,766 values, older ones 999."""

_FIRST: Final = -(1 << 63)
_LAST: Final = (1 << 63) - 1


class Unreadable:
    """A value that the engine cannot read. Equal to all others: it was reported already."""

    def __eq__(self, other: object) -> bool:
        """True."""
        return True

    def __hash__(self) -> int:
        """One for all."""
        return 0


UNREADABLE: Final = Unreadable()


@dataclass(frozen=True, slots=True)
class _Ask:
    """Which columns of which rows are read."""

    table: Table
    columns: tuple[str, ...]
    by: str
    where: Mapping[str, object]

    def sql(self, columns: Sequence[str], keys: Sequence[object]) -> str:
        names = ", ".join(f'"{name}"' for name in columns)
        fixed = _conditions(self.where)
        if isinstance(keys, range):
            found = f'"{self.by}" BETWEEN ? AND ?'
        else:
            found = f'"{self.by}" IN ({", ".join("?" * len(keys))})'
        sql = f'SELECT {names} FROM "{self.table.name}" WHERE {fixed}{found}'
        order = [one.name for one in self.table.primary_key.columns]
        return f"{sql} ORDER BY {', '.join(order)}" if len(order) > 1 else sql

    def values(self, keys: Sequence[object]) -> list[object]:
        some = [keys[0], keys[-1]] if isinstance(keys, range) else list(keys)
        return [*_values(self.where), *some]


def _conditions(where: Mapping[str, object]) -> str:
    return "".join(
        f'"{name}" IS NULL AND ' if value is None else f'"{name}" = ? AND '
        for name, value in where.items()
    )


def _values(where: Mapping[str, object]) -> list[object]:
    return [value for value in where.values() if value is not None]


class Source:
    """The rows of one snapshot. For one thread.

    Args:
        database: that is read.
        connection: to it, inside a transaction.
        report: is called for each value or row that cannot be read.
    """

    def __init__(
        self, database: Database, connection: Connection, report: ReportUnreadable
    ) -> None:
        self.connection = connection
        self._database = database
        self._report = report

    def query(self, sql: str, values: Sequence[object] = ()) -> list[Values]:
        """All rows of a query. `?` marks a value.

        Raises:
            DamageError, InvalidRecordError: the engine cannot read them.
            UnavailableError: the database cannot be reached.
        """
        with self._database.reading():
            if self.connection.is_sqlite:
                return self.connection.query(sql, values)
            # A statement that fails ends the transaction of a server, and with it the snapshot.
            self.connection.execute("SAVEPOINT verifying")
            try:
                return self.connection.query(sql, values)
            except BaseException:
                self.connection.execute("ROLLBACK TO SAVEPOINT verifying")
                raise
            finally:
                self.connection.execute("RELEASE SAVEPOINT verifying")

    def rows(
        self,
        table: Table,
        columns: tuple[str, ...],
        by: str,
        keys: Sequence[object],
        where: Mapping[str, object] | None = None,
    ) -> list[Values]:
        """Rows whose column `by` has one of some values.

        Args:
            table: to read.
            columns: to read.
            by: name of the column.
            keys: the values.
            where: columns that must have a value besides.
        """
        ask = _Ask(table, columns, by, where or {})
        if isinstance(keys, range):
            return self._rows(ask, keys) if keys else []
        found: list[Values] = []
        for begin in range(0, len(keys), _AT_ONCE):
            found += self._rows(ask, keys[begin : begin + _AT_ONCE])
        return found

    def scan(
        self,
        table: Table,
        columns: tuple[str, ...],
        by: str,
        size: int,
        where: Mapping[str, object] | None = None,
        *,
        first: int = _FIRST,
    ) -> Iterator[list[Values]]:
        """All rows in the order of an integer column, in batches of at most `size`."""
        fixed = where or {}
        ends = (
            f'SELECT min("{by}"), max("{by}") FROM "{table.name}" WHERE '
            f'{_conditions(fixed)}"{by}" >= ?'
        )
        at, last = first, _FIRST
        while at <= _LAST:
            try:
                ((begin, newest),) = self.query(ends, (*_values(fixed), at))
            except (DamageError, InvalidRecordError):
                if at == first or at > last:
                    self._report(table.name, f"{by} {at} and behind", None)
                    return
                begin, newest = at, last
            if not isinstance(begin, int) or not isinstance(newest, int):
                if begin is not None:
                    self._report(table.name, "a row whose key is no number", by)
                return
            last = newest
            stop = min(begin + size, _LAST)
            yield self.rows(table, columns, by, range(begin, stop), fixed)
            at = stop

    def _rows(self, ask: _Ask, keys: Sequence[object]) -> list[Values]:
        try:
            return self.query(ask.sql(ask.columns, keys), ask.values(keys))
        except (DamageError, InvalidRecordError):
            if len(keys) > 1:
                middle = len(keys) // 2
                return self._rows(ask, keys[:middle]) + self._rows(ask, keys[middle:])
            return self._salvaged(ask, keys)

    def _salvaged(self, ask: _Ask, keys: Sequence[object]) -> list[Values]:
        """Rows of one key, read column by column."""
        read: dict[str, list[Any]] = {}
        for name in ask.columns:
            try:
                found = self.query(ask.sql([name], keys), ask.values(keys))
            except (DamageError, InvalidRecordError):
                continue
            read[name] = [value for (value,) in found]
        key = keys[0].hex() if isinstance(keys[0], bytes) else str(keys[0])
        counts = {len(values) for values in read.values()}
        if len(counts) != 1:
            self._report(ask.table.name, f"{ask.by} {key}", None)
            return []
        (count,) = counts
        for name in ask.columns:
            if name not in read:
                self._report(ask.table.name, f"{ask.by} {key}", name)
                read[name] = [keys[0] if name == ask.by else UNREADABLE] * count
        return list(zip(*(read[name] for name in ask.columns), strict=True))
