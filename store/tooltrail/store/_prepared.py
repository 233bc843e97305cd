"""Statements that are compiled once and then go to the driver as they are.

SQLAlchemy takes several times as long to execute a statement as SQLite takes for it. What is
compiled here is the same statement over the same tables, on the same connection and in the same
transaction, and its values pass through the same column types; only the way is shorter. Errors are
the same, too.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol, cast

from sqlalchemy import BindParameter, ClauseElement, Connection, Dialect, Integer
from sqlalchemy.exc import DBAPIError, StatementError
from sqlalchemy.sql.compiler import SQLCompiler

Row = dict[str, Any]

_Process = Callable[[Any], Any]
_Values = tuple[Any, ...] | Row
"""As a driver takes them: by place, or by name."""


class Answer(Protocol):
    """What a driver answers to a statement.

    Attributes:
        rowcount: how many rows were inserted or updated.
    """

    rowcount: int

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row, None behind the last; values are as the driver gives them."""
        ...


class _Driver(Protocol):
    """What the connections of both drivers have in common beyond PEP 249."""

    def execute(self, sql: str, values: _Values, /) -> Answer: ...

    def cursor(self) -> "_Cursor": ...


class _Cursor(Protocol):
    rowcount: int

    def executemany(self, sql: str, values: Sequence[_Values], /) -> object: ...


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

    def run(self, connection: Connection, row: Row) -> Answer:
        """Execute it once.

        Args:
            connection: within a transaction.
            row: values by column, or by the name of their parameter.

        Raises:
            sqlalchemy.exc.DBAPIError: the driver refused it.
            sqlalchemy.exc.StatementError: a value is not of its column's kind.
        """
        sql, values_of = self._for(connection.dialect, row)
        values = _accepted(sql, values_of, row)
        with raised_as_ever(connection, sql):
            return _driver_of(connection).execute(sql, values)

    def run_one(self, connection: Connection, row: Row) -> tuple[Any, ...] | None:
        """Execute it once; the first row of its answer, None without one.

        Raises:
            sqlalchemy.exc.DBAPIError: the driver refused it, or cannot read the answer.
            sqlalchemy.exc.StatementError: a value is not of its column's kind.
        """
        sql, values_of = self._for(connection.dialect, row)
        values = _accepted(sql, values_of, row)
        with raised_as_ever(connection, sql):
            return _driver_of(connection).execute(sql, values).fetchone()

    def run_many(self, connection: Connection, rows: Sequence[Row]) -> int:
        """Execute it for each of several rows of the same columns; for none, nothing.

        Returns:
            How many rows were inserted or updated by all of them.

        Raises:
            sqlalchemy.exc.DBAPIError: the driver refused it.
            sqlalchemy.exc.StatementError: a value is not of its column's kind.
        """
        if not rows:
            return 0
        sql, values_of = self._for(connection.dialect, rows[0])
        values = [_accepted(sql, values_of, row) for row in rows]
        with raised_as_ever(connection, sql):
            cursor = _driver_of(connection).cursor()
            cursor.executemany(sql, values)
            return cursor.rowcount

    def _for(self, dialect: Dialect, row: Row) -> _Compiled:
        key = (dialect.name, *row)
        found = self._compiled.get(key)
        if found is None:
            found = self._compiled[key] = _compile(self._build(dialect.name), dialect, list(row))
        return found


def _driver_of(connection: Connection) -> _Driver:
    return cast("_Driver", connection.connection.driver_connection)


def _accepted(sql: str, values_of: Callable[[Row], _Values], row: Row) -> _Values:
    """The values of a row as the driver takes them."""
    try:
        return values_of(row)
    except (TypeError, ValueError, AttributeError) as error:
        raise StatementError(str(error), sql, None, error, hide_parameters=True) from error


@contextmanager
def raised_as_ever(connection: Connection, sql: str) -> Generator[None]:
    """Turn the driver's errors into those that SQLAlchemy raises."""
    try:
        yield
    except connection.dialect.loaded_dbapi.Error as error:
        raise _as_raised(error, connection, sql) from error


def _as_raised(error: Exception, connection: Connection, sql: str) -> BaseException:
    """A driver's error as SQLAlchemy raises it; a connection that it ended is used no more."""
    dialect = connection.dialect
    is_lost = dialect.is_disconnect(cast("Any", error), connection.connection, None)
    if is_lost:
        connection.invalidate(error)
    return DBAPIError.instance(
        sql,
        None,
        error,
        dialect.loaded_dbapi.Error,
        hide_parameters=True,
        connection_invalidated=is_lost,
        dialect=dialect,
    )


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
    def values_of(row: Row) -> _Values:
        row = row | constants if constants else row
        return tuple(row[n] if process is None else process(row[n]) for n, process in places)

    return values_of
