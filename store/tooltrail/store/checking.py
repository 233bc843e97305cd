"""Is the database itself sound: its pages, its references, its schema, the store's own row?"""

from collections.abc import Callable, Generator

from sqlalchemy import Connection, func, inspect, select, text

from tooltrail.migrations import VERSION_TABLE
from tooltrail.store._database import Database
from tooltrail.store._shape import differences, read_shape, shape_of_head
from tooltrail.store._targets import SqliteTarget
from tooltrail.store.tables import StoreInfoRow, metadata

OnStep = Callable[[int, int], None]
"""Called with the steps that are done and those that there are."""

_BATCH = 1_000
"""Findings that are held at once."""


def check_database(database: Database) -> list[str]:
    """Every problem that `iter_problems` finds; none means that the database is sound."""
    return list(iter_problems(database))


def iter_problems(database: Database, on_step: OnStep | None = None) -> Generator[str]:
    """Every problem of a database at head, one sentence each, found at constant memory.

    Reads the whole of an SQLite file. A server keeps its pages and references itself and has no
    cheap way to be asked about them; that it was not told to stop doing so is checked.

    Args:
        database: of a store at head. Nothing is written.
        on_step: called after each step, of which the first is by far the longest.

    Raises:
        UnavailableError: the database cannot be read now.
        DamageError: it is too damaged to be asked.
    """
    steps = _steps(database)
    for number, step in enumerate(steps, 1):
        # A snapshot for each step: one for all would keep SQLite's log from shrinking meanwhile.
        with database.read() as connection:
            yield from step(connection)
        if on_step is not None:
            on_step(number, len(steps))


_Step = Callable[[Connection], Generator[str]]


def _steps(database: Database) -> list[_Step]:
    steps: list[_Step] = [_schema, _own_row]
    if isinstance(database.target, SqliteTarget):
        steps = [_pages, *map(_references_of, metadata.tables), *steps]
    return steps


def _pages(connection: Connection) -> Generator[str]:
    # SQLite stops after a hundred findings, which are enough to know that a page is damaged.
    for answer in connection.scalars(text("PRAGMA integrity_check")):
        if answer != "ok":
            yield f"integrity check: {answer}"


def _references_of(table: str) -> _Step:
    def check(connection: Connection) -> Generator[str]:
        if not inspect(connection).has_table(table):
            return
        found = connection.execute(text(f'PRAGMA foreign_key_check("{table}")'))
        for row in found.yield_per(_BATCH):
            which = f"row {row[1]}" if row[1] is not None else "a row"
            yield f"{which} of {row[0]} refers to a row of {row[2]} that is missing"

    return check


def _schema(connection: Connection) -> Generator[str]:
    dialect = connection.dialect.name
    wanted = shape_of_head(dialect)
    found = read_shape(connection, frozenset({*metadata.tables, VERSION_TABLE}))
    yield from differences(found, wanted, dialect)


def _own_row(connection: Connection) -> Generator[str]:
    table = StoreInfoRow.__tablename__
    if not inspect(connection).has_table(table):
        return
    if not connection.scalar(select(func.count()).select_from(StoreInfoRow)):
        yield f"table {table} has no row: the store does not know itself"
