"""Statements that are compiled once and then go to the driver as they are.

SQLAlchemy takes several times as long to execute a statement as SQLite takes for it. What is
compiled here is the same statement over the same tables, on the same connection and in the same
transaction, and its values pass through the same column types; only the way is shorter. Errors are
the same, too.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, cast

from sqlalchemy import BindParameter, ClauseElement, Connection, Dialect, Integer
from sqlalchemy.exc import StatementError
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.types import TypeDecorator

from tooltrail.store._engines.driver_errors import as_raised
from tooltrail.store._engines.pipelines import answered, many_at_once

Row = dict[str, Any]

_Process = Callable[[Any], Any]
_Values = list[Any] | Row
"""As a driver takes them: by place, or by name."""


class _Answer(Protocol):
    rowcount: int

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row, None behind the last; values are as the driver gives them."""
        ...

    def executemany(self, sql: str, values: Sequence[_Values], /) -> object: ...


class _Driver(Protocol):
    """What the connections of both drivers have in common beyond PEP 249."""

    def execute(self, sql: str, values: _Values, /) -> _Answer: ...

    def cursor(self) -> _Answer: ...


class _Compiled(NamedTuple):
    """A statement in the words of one driver.

    Attributes:
        sql: what the driver gets.
        values_of: makes of a row what the driver takes.
    """

    sql: str
    values_of: Callable[[Row], _Values]


class Prepared:
    """One statement. Safe to share between threads."""

    def __init__(self, build: Callable[[str], ClauseElement]) -> None:
        """Keep how it is built; it is compiled when it is first needed.

        Args:
            build: gives the statement for the dialect of this name.
        """
        self._build = build
        self._compiled: dict[tuple[str, ...], _Compiled] = {}

    def run(self, connection: Connection, row: Row) -> None:
        """Execute it once; see `pipelined` for when it is done.

        Args:
            connection: within a transaction.
            row: values by column, or by the name of their parameter.

        Raises:
            sqlalchemy.exc.DBAPIError: the driver refused it.
            sqlalchemy.exc.StatementError: a value is not of its column's kind.
        """
        self._execute(connection, row)

    def run_one(self, connection: Connection, row: Row) -> tuple[Any, ...] | None:
        """Execute it once; the first row of its answer, None without one.

        Raises:
            sqlalchemy.exc.DBAPIError: the driver refused it, or cannot read the answer.
            sqlalchemy.exc.StatementError: a value is not of its column's kind.
        """
        answer = self._execute(connection, row)
        # Or the server would wait for more, and not know a program that stands still for idle.
        answered(connection)
        try:
            return answer.fetchone()
        except connection.dialect.loaded_dbapi.Error as error:
            raise as_raised(error, connection, "FETCH") from error

    def count(self, connection: Connection, row: Row) -> int:
        """Execute it once; how many rows were inserted or updated.

        Raises:
            sqlalchemy.exc.DBAPIError: the driver refused it.
            sqlalchemy.exc.StatementError: a value is not of its column's kind.
        """
        answer = self._execute(connection, row)
        answered(connection)
        return answer.rowcount

    def run_many(self, connection: Connection, rows: Sequence[Row]) -> None:
        """Execute it for each of several rows of the same columns; for none, nothing.

        Raises:
            sqlalchemy.exc.DBAPIError: the driver refused it.
            sqlalchemy.exc.StatementError: a value is not of its column's kind.
        """
        if rows:
            self._execute_many(connection, rows)

    def count_many(self, connection: Connection, rows: Sequence[Row]) -> int:
        """The same; how many rows were inserted or updated by all of them."""
        if not rows:
            return 0
        answer = self._execute_many(connection, rows)
        answered(connection)
        return answer.rowcount

    def _execute(self, connection: Connection, row: Row) -> _Answer:
        sql, values_of = self._for(connection.dialect, row)
        values = _accepted(sql, values_of, row)
        try:
            return driver_of(connection).execute(sql, values)
        except connection.dialect.loaded_dbapi.Error as error:
            raise as_raised(error, connection, sql) from error

    def _execute_many(self, connection: Connection, rows: Sequence[Row]) -> _Answer:
        sql, values_of = self._for(connection.dialect, rows[0])
        values = [_accepted(sql, values_of, row) for row in rows]
        try:
            with many_at_once(connection):
                cursor = driver_of(connection).cursor()
                cursor.executemany(sql, values)
        except connection.dialect.loaded_dbapi.Error as error:
            raise as_raised(error, connection, sql) from error
        return cursor

    def _for(self, dialect: Dialect, row: Row) -> _Compiled:
        key = (dialect.name, *row)
        found = self._compiled.get(key)
        if found is None:
            found = self._compiled[key] = _compile(self._build(dialect.name), dialect, list(row))
        return found


def driver_of(connection: Connection) -> _Driver:
    """The driver's own connection."""
    return cast("_Driver", connection.connection.driver_connection)


def _accepted(sql: str, values_of: Callable[[Row], _Values], row: Row) -> _Values:
    """The values of a row as the driver takes them."""
    try:
        return values_of(row)
    except (TypeError, ValueError, AttributeError) as error:
        raise StatementError(str(error), sql, None, error, hide_parameters=True) from error


def _compile(statement: ClauseElement, dialect: Dialect, names: list[str]) -> _Compiled:
    compiled = cast("SQLCompiler", statement.compile(dialect=dialect, column_keys=names))
    processes = {n: _process_of(parameter, dialect) for n, parameter in compiled.binds.items()}
    constants = {
        name: parameter.value for name, parameter in compiled.binds.items() if name not in names
    }
    order = compiled.positiontup
    if order is None:
        return _Compiled(str(compiled), _by_name(processes, constants))
    return _Compiled(str(compiled), _by_place([(n, processes[n]) for n in order], constants))


def _process_of(parameter: BindParameter[Any], dialect: Dialect) -> _Process | None:
    kind = parameter.type.dialect_impl(dialect)
    if dialect.name == "postgresql" and isinstance(kind, Integer):
        return _integers_alike()
    if isinstance(kind, TypeDecorator) and kind.impl_instance.bind_processor(dialect) is None:
        # As its own processor does, in one call less.
        bind, with_dialect = kind.process_bind_param, dialect
        return lambda value: bind(value, with_dialect)
    return kind.bind_processor(dialect)


def _integers_alike() -> _Process:
    """Gives integers of one type, whatever their size.

    A statement is prepared for the types of its values, and psycopg chooses the smallest for each:
    then every mixture of sizes would be another statement, and most would never be prepared.
    """
    from psycopg.types.numeric import Int8  # noqa: PLC0415  comes with the extra `postgres`

    return lambda value: None if value is None else Int8(value)


def _by_name(processes: Mapping[str, _Process | None], constants: Row) -> Callable[[Row], _Values]:
    places = tuple(processes.items())

    def values_of(row: Row) -> _Values:
        row = row | constants
        return {n: row[n] if process is None else process(row[n]) for n, process in places}

    return values_of


def _by_place(
    places: Sequence[tuple[str, _Process | None]], constants: Row
) -> Callable[[Row], _Values]:
    names = [name for name, _ in places]
    processes = [(n, process) for n, (_, process) in enumerate(places) if process is not None]

    def values_of(row: Row) -> _Values:
        row = row | constants if constants else row
        values = list(map(row.__getitem__, names))
        for n, process in processes:
            values[n] = process(values[n])
        return values

    return values_of
