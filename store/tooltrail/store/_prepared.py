"""Statements that are compiled once and then go to the driver as they are.

SQLAlchemy's own execution of a statement takes five times as long as SQLite takes for it. What is
compiled here is the same statement over the same tables, and its values pass through the same
column types; only the way is shorter. Errors are translated as everywhere (`translated_errors`).
"""

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple, cast

from sqlalchemy import ClauseElement, Connection, CursorResult, Dialect
from sqlalchemy.sql.compiler import SQLCompiler

Row = dict[str, Any]

_Process = Callable[[Any], Any]


class _Compiled(NamedTuple):
    """A statement in the words of one driver.

    Attributes:
        sql: what the driver gets.
        values: takes the values of a row in the driver's order; None where they go by name.
        processes: turn values into what the driver takes, by name.
        constants: values that are part of the statement.
    """

    sql: str
    values: Callable[[Row], Any] | None
    processes: Sequence[tuple[str, _Process]]
    constants: Row

    def of(self, row: Row) -> Any:
        """The values of a row as the driver takes them."""
        taken = row | self.constants
        for name, process in self.processes:
            taken[name] = process(taken[name])
        return taken if self.values is None else self.values(taken)


class Prepared:
    """One statement. Safe to share between threads."""

    def __init__(self, build: Callable[[str], ClauseElement]) -> None:
        """Keep how it is built; it is compiled when it is first needed.

        Args:
            build: gives the statement for the dialect of this name.
        """
        self._build = build
        self._compiled: dict[tuple[object, ...], _Compiled] = {}

    def run(self, connection: Connection, row: Row) -> CursorResult[Any]:
        """Execute it once; values by column, or by the name of their parameter.

        What it answers is as the driver gives it.
        """
        compiled = self._for(connection.dialect, row)
        return connection.exec_driver_sql(compiled.sql, compiled.of(row))

    def run_many(self, connection: Connection, rows: Sequence[Row]) -> None:
        """Execute it for each of several rows of the same columns; for none, nothing."""
        if rows:
            compiled = self._for(connection.dialect, rows[0])
            connection.exec_driver_sql(compiled.sql, [compiled.of(row) for row in rows])

    def _for(self, dialect: Dialect, row: Mapping[str, Any]) -> _Compiled:
        key = (dialect.name, *row)
        found = self._compiled.get(key)
        if found is None:
            found = self._compiled[key] = _compile(self._build(dialect.name), dialect, list(row))
        return found


def _compile(statement: ClauseElement, dialect: Dialect, names: list[str]) -> _Compiled:
    compiled = cast("SQLCompiler", statement.compile(dialect=dialect, column_keys=names))
    processes: list[tuple[str, _Process]] = []
    constants: Row = {}
    for name, parameter in compiled.binds.items():
        if name not in names:
            constants[name] = parameter.value
        process = parameter.type.dialect_impl(dialect).bind_processor(dialect)
        if process is not None:
            processes.append((name, process))
    return _Compiled(str(compiled), _taker(compiled.positiontup), processes, constants)


def _taker(order: list[str] | None) -> Callable[[Row], Any] | None:
    """What takes the values of a row in an order; None for drivers that take them by name."""
    if order is None:
        return None
    if len(order) == 1:
        (only,) = order
        return lambda row: (row[only],)
    return itemgetter(*order)
