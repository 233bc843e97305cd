"""Reads rows of a store that may be damaged, in large batches.

A batch that cannot be read is halved until the row that is to blame stands alone. Of that row every
column is read for itself. What cannot be read is reported, and the rest goes on.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Table

from tooltrail.records.errors import DamageError, InvalidRecordError
from tooltrail.store.engines.connection import Connection, Row, Values
from tooltrail.store.engines.failures import damage_if_unreadable

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
    columns: Sequence[str]
    by: str
    where: Mapping[str, object]

    def query(self, columns: Iterable[str], keys: Sequence[object]) -> tuple[str, list[object]]:
        """The statement that reads some columns of the rows of some keys, and its values."""
        names = ", ".join(f'"{name}"' for name in columns)
        fixed, values = _conditions(self.where)
        if isinstance(keys, range):
            wanted, keys = "BETWEEN ? AND ?", (keys[0], keys[-1])
        else:
            wanted = f"IN ({', '.join('?' * len(keys))})"
        order = [one.name for one in self.table.primary_key.columns]
        behind = f" ORDER BY {', '.join(order)}" if len(order) > 1 else ""
        sql = f'SELECT {names} FROM "{self.table.name}" WHERE {fixed}"{self.by}" {wanted}{behind}'
        return sql, [*values, *keys]


def _conditions(where: Mapping[str, object]) -> tuple[str, list[object]]:
    """Conditions that columns have certain values, and the values."""
    sql = "".join(
        f'"{name}" IS NULL AND ' if value is None else f'"{name}" = ? AND '
        for name, value in where.items()
    )
    return sql, [value for value in where.values() if value is not None]


class Source:
    """The rows of one snapshot. For one thread.

    Args:
        connection: inside a transaction.
        report: is called for each value or row that cannot be read.
    """

    def __init__(self, connection: Connection, report: ReportUnreadable) -> None:
        self.connection = connection
        self._report = report

    def query(self, sql: str, values: Sequence[object] = ()) -> list[Values]:
        """All rows of a query. `?` marks a value.

        Raises:
            DamageError, InvalidRecordError: the engine cannot read them.
            UnavailableError: the database cannot be reached.
        """
        with damage_if_unreadable(self.connection.target):
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
        by: str,
        keys: Sequence[object],
        where: Mapping[str, object] | None = None,
        columns: Sequence[str] = (),
    ) -> list[Row]:
        """Rows whose column `by` has one of some values.

        Args:
            table: to read.
            by: name of the column.
            keys: the values.
            where: columns that must have a value besides.
            columns: to read; all when empty.
        """
        ask = _Ask(table, columns or [one.name for one in table.columns], by, where or {})
        if isinstance(keys, range):
            return self._rows(ask, keys) if keys else []
        found: list[Row] = []
        for begin in range(0, len(keys), _AT_ONCE):
            found += self._rows(ask, keys[begin : begin + _AT_ONCE])
        return found

    def scan(
        self,
        table: Table,
        by: str,
        size: int,
        where: Mapping[str, object] | None = None,
        *,
        first: int = _FIRST,
    ) -> Iterator[list[Row]]:
        """All rows in the order of an integer column, in batches of at most `size`."""
        fixed, values = _conditions(where or {})
        ends = f'SELECT min("{by}"), max("{by}") FROM "{table.name}" WHERE {fixed}"{by}" >= ?'
        at, last = first, _FIRST
        while at <= _LAST:
            try:
                ((begin, newest),) = self.query(ends, (*values, at))
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
            yield self.rows(table, by, range(begin, stop), where)
            at = stop

    def _rows(self, ask: _Ask, keys: Sequence[object]) -> list[Row]:
        try:
            found = self.query(*ask.query(ask.columns, keys))
            return [dict(zip(ask.columns, values, strict=True)) for values in found]
        except (DamageError, InvalidRecordError):
            if len(keys) > 1:
                middle = len(keys) // 2
                return self._rows(ask, keys[:middle]) + self._rows(ask, keys[middle:])
            return self._salvaged(ask, keys)

    def _salvaged(self, ask: _Ask, keys: Sequence[object]) -> list[Row]:
        """Rows of one key, read column by column."""
        read: dict[str, list[Any]] = {}
        for name in ask.columns:
            try:
                found = self.query(*ask.query([name], keys))
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
        return [{name: values[n] for name, values in read.items()} for n in range(count)]
