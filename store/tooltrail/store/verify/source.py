"""Reads rows of a store that may be damaged, in large batches.

A batch that cannot be read is halved until only the damaged row is left. That row is reported, and
the verification continues. `query_leniently` reads the values that Python cannot represent.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from tooltrail.records.errors import DamageError, InvalidRecordError
from tooltrail.store.engines.connection import Connection, Row, Values, in_parts
from tooltrail.store.engines.failures import damage_if_unreadable
from tooltrail.store.read.rows import query_leniently

ReportUnreadable = Callable[[str, str | None, str | None], None]
"""Accepts the table, the key of the row as text, and the column; None for the complete row.

Without a key, any rows of the table may be affected.
"""

_FIRST: Final = -(1 << 63)
_END: Final = (1 << 63) - 1
"""The largest integer of the engines. No row may have it as its number: none could follow."""

_MOST_MISPLACED: Final = 200
"""Most rows of a table that are reported because their number is not an integer."""


class _Selection(NamedTuple):
    """The rows of a table to read, and their order."""

    table: str
    by: str
    where: str
    order: str

    def query(self, columns: Iterable[str], keys: Sequence[Any]) -> tuple[str, Sequence[Any]]:
        """The statement that reads some columns of the rows with some keys, and its values."""
        names = ", ".join(f'"{name}"' for name in columns)
        if isinstance(keys, range):
            wanted, keys = f'>= ? AND "{self.by}" < ?', (keys.start, keys.stop)
        else:
            wanted = f"IN ({', '.join('?' * len(keys))})"
        order = f" ORDER BY {self.order}" if self.order else ""
        where = f'"{self.by}" {wanted} AND {self.where}{order}'
        return f"SELECT {names} FROM {self.table} WHERE {where}", keys


class Source:
    """The rows of one snapshot; `report` is called for each row that cannot be read."""

    def __init__(self, connection: Connection, report: ReportUnreadable) -> None:
        self.connection = connection
        self._report = report
        self._columns: dict[str, list[str]] = {}

    def query(self, sql: str, values: Sequence[object] = ()) -> list[Values]:
        """All rows of a query. `?` marks a value.

        Raises `DamageError` or `InvalidRecordError` if the engine cannot read the rows.
        """
        with damage_if_unreadable(self.connection.target):
            if self.connection.is_sqlite:
                return query_leniently(self.connection, sql, values)
            # On a server, a failed statement would end the transaction, and with it the snapshot.
            self.connection.execute("SAVEPOINT verifying")
            try:
                return query_leniently(self.connection, sql, values)
            except BaseException:
                self.connection.execute("ROLLBACK TO SAVEPOINT verifying")
                raise
            finally:
                self.connection.execute("RELEASE SAVEPOINT verifying")

    def read(self, table: str, sql: str, values: Sequence[object] = ()) -> list[Values] | None:
        """All rows of a query; None if the engine cannot read the table, which is reported."""
        try:
            return self.query(sql, values)
        except (DamageError, InvalidRecordError):
            self._report(table, None, None)
            return None

    def rows(
        self,
        table: str,
        by: str,
        keys: Sequence[Any],
        where: str = "TRUE",
        *,
        columns: Sequence[str] = (),
        order: str = "",
    ) -> list[Row]:
        """Rows whose column `by` has one of the values `keys`, ordered by the columns in `order`.

        The condition `where` must also be true. By default, all columns are read.
        """
        selection = _Selection(table, by, where, order)
        names = columns or self._columns_of(table)
        parts = [keys] if isinstance(keys, range) else in_parts(keys)
        return [row for some in parts for row in self._rows(selection, names, some)]

    def owned(self, table: str, owner: str, keys: Sequence[Any]) -> dict[Any, list[Row]]:
        """The rows of a table by the owner that their column `owner` names, in order."""
        numbers = [one for one in self._columns_of(table) if one in {"n", "position"}]
        owned: dict[Any, list[Row]] = defaultdict(list)
        for row in self.rows(table, owner, keys, order=", ".join([owner, *numbers])):
            owned[row[owner]].append(row)
        return owned

    def scan(
        self,
        table: str,
        by: str,
        size: int,
        where: str = "TRUE",
        *,
        first: int = _FIRST,
        last: int | None = None,
    ) -> Iterator[list[Row]]:
        """All rows in the order of an integer column, in batches of at most `size`.

        `last` is the last number, which is used if the database cannot read the end of the table.
        Rows whose number is not an integer are reported, and left out.
        """
        # A query for both ends at once would read all rows between them.
        ends = f'SELECT {{}}("{by}") FROM {table} WHERE {where} AND "{by}" >= ? AND "{by}" < {_END}'
        at, end, has_rows = first, self._end(table, ends.format("max"), first, last), True
        while end is not None and at <= end:
            begin = self._end(table, ends.format("min"), at, max(at, 0) if has_rows else None)
            if begin is None:
                break
            at = min(begin + size, end + 1)
            rows = self.rows(table, by, range(begin, at), where, order=by)
            has_rows = bool(rows)
            yield [row for row in rows if isinstance(row[by], int)]
            self._report_misplaced(table, by, [row[by] for row in rows])
        # In the order of SQLite, texts and bytes are greater than every number.
        for outside in (f"< {_FIRST}", f">= {_END}") if self.connection.is_sqlite else ():
            sql = f'SELECT "{by}" FROM {table} WHERE {where} AND "{by}" {outside} LIMIT ?'
            found = self.read(table, sql, (_MOST_MISPLACED,)) or ()
            self._report_misplaced(table, by, [value for (value,) in found])

    def _end(self, table: str, sql: str, at: int, unknown: int | None) -> int | None:
        """One end of the rows from a number on, rounded down; None if there are none.

        `unknown` is returned if the database cannot read this end.
        """
        found = self.read(table, sql, (at,))
        if found is None:
            return unknown
        return None if found[0][0] is None else math.floor(found[0][0])

    def _report_misplaced(self, table: str, by: str, numbers: Iterable[Any]) -> None:
        """Report the numbers that no row may have; SQLite accepts any value in most columns."""
        for one in numbers:
            if not isinstance(one, int) or not _FIRST <= one < _END:
                self._report(table, f"{by} {one!r:.80}", by)

    def _columns_of(self, table: str) -> list[str]:
        if table not in self._columns:
            self._columns[table] = self.connection.column_names(table)
        return self._columns[table]

    def _rows(self, selection: _Selection, names: Sequence[str], keys: Sequence[Any]) -> list[Row]:
        try:
            found = self.query(*selection.query(names, keys))
            return [dict(zip(names, values, strict=True)) for values in found]
        except (DamageError, InvalidRecordError):
            if len(keys) == 1:
                key = keys[0].hex() if isinstance(keys[0], bytes) else str(keys[0])
                self._report(selection.table, f"{selection.by} {key}", None)
                return []
            middle = len(keys) // 2
            first = self._rows(selection, names, keys[:middle])
            return first + self._rows(selection, names, keys[middle:])
