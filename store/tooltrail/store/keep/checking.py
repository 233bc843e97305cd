"""Is the database itself sound: its pages, its references, its schema, the store's own row?"""

from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from sqlalchemy import func, inspect, select, text

from tooltrail.migrations import VERSION_TABLE
from tooltrail.records import DamageError
from tooltrail.store._engines.database import Database
from tooltrail.store._engines.targets import SqliteTarget
from tooltrail.store._reading.ranges import iter_wrong
from tooltrail.store._schema.revision import read_revision
from tooltrail.store._schema.server_words import in_words_of_server
from tooltrail.store._schema.shape import differences, read_shape, shape_of_head
from tooltrail.store.tables import RangeTraitRow, StoreInfoRow, metadata

OnStep = Callable[[int, int], None]
"""Called with the steps that are done and those that there are."""

_BATCH = 1_000
"""Findings that are held at once."""

_TABLES = frozenset({*metadata.tables, VERSION_TABLE})


def check_database(database: Database) -> list[str]:
    """Every problem that `iter_problems` finds; none means that the database is sound."""
    return list(iter_problems(database))


def iter_problems(database: Database, on_step: OnStep | None = None) -> Generator[str]:
    """Every problem of a database at head, one sentence each, found at constant memory.

    Reads the whole of an SQLite file. A server keeps its pages and references itself and has no
    cheap way to be asked about them; that it was not told to stop doing so is checked.
    What damage keeps from being checked is a problem, and all else is checked still.

    Args:
        database: of a store at head. Nothing is written.
        on_step: called after each step, of which the first is by far the longest.

    Raises:
        UnavailableError: the database cannot be read now.
    """
    try:
        with database.read() as connection:
            read_revision(connection)
    except DamageError as error:
        # Nothing else can be asked then, and would only say the same.
        yield str(error)
        return
    steps = _steps(database)
    for number, step in enumerate(steps, 1):
        # Each has a snapshot of its own: one for all would keep SQLite's log from shrinking.
        try:
            yield from step.problems(database)
        except DamageError as error:
            yield f"{step.subject} cannot be checked: {error}"
        if on_step is not None:
            on_step(number, len(steps))


@dataclass(frozen=True, slots=True)
class _Step:
    subject: str
    problems: Callable[[Database], Iterator[str]]


def _steps(database: Database) -> list[_Step]:
    steps = [
        _Step("the schema", _schema),
        _Step("the store's own row", _own_row),
        _Step("what ranges of invocations tell", _ranges),
    ]
    if isinstance(database.target, SqliteTarget):
        references = [
            _Step(f"table {table}", partial(_references_of, table)) for table in metadata.tables
        ]
        steps = [_Step("the file as a whole", _pages), *references, *steps]
    return steps


def _pages(database: Database) -> Generator[str]:
    told: set[str] = set()
    try:
        for answer in _answers(database, "PRAGMA integrity_check"):
            told.add(answer)
            yield answer
    except DamageError:
        # SQLite gives up at a table or an index that it cannot begin to read, without a name.
        for answer in _narrower_answers(database):
            if answer not in told:
                told.add(answer)
                yield answer
        raise


def _narrower_answers(database: Database) -> Generator[str]:
    """The page, which the quick check may know, and the tables that cannot be checked alone."""
    with suppress(DamageError):
        yield from _answers(database, "PRAGMA quick_check")
    with database.read() as connection:
        tables = inspect(connection).get_table_names()
    for table in tables:
        # Those of other programs, too, whatever they are called.
        quoted = table.replace('"', '""')
        try:
            yield from _answers(database, f'PRAGMA integrity_check("{quoted}")')
        except DamageError:
            yield f"integrity check: table {table} or an index of it is damaged"


def _answers(database: Database, asked: str) -> Generator[str]:
    # SQLite stops after a hundred findings, which are enough to know that a page is damaged.
    with database.read() as connection:
        for answer in connection.scalars(text(asked)):
            if answer != "ok":
                yield f"integrity check: {answer}"


def _references_of(table: str, database: Database) -> Generator[str]:
    with database.read() as connection:
        if not inspect(connection).has_table(table):
            return
        found = connection.execute(text(f'PRAGMA foreign_key_check("{table}")'))
        for row in found.yield_per(_BATCH):
            which = f"row {row[1]}" if row[1] is not None else "a row"
            yield f"{which} of {row[0]} refers to a row of {row[2]} that is missing"


def _schema(database: Database) -> Generator[str]:
    dialect = database.engine.dialect.name
    wanted = shape_of_head(dialect)
    with database.read() as connection:
        found = read_shape(connection, _TABLES)
    if dialect == "postgresql":
        wanted = in_words_of_server(database, wanted, found)
    yield from differences(found, wanted)


def _own_row(database: Database) -> Generator[str]:
    table = StoreInfoRow.__tablename__
    with database.read() as connection:
        if not inspect(connection).has_table(table):
            return
        if not connection.scalar(select(func.count()).select_from(StoreInfoRow)):
            yield f"table {table} has no row: the store does not know itself"


def _ranges(database: Database) -> Generator[str]:
    with database.read() as connection:
        if not inspect(connection).has_table(RangeTraitRow.__tablename__):
            return
    for number in iter_wrong(database):
        yield (
            f"range {number} of invocations tells what they are not, so that lists may leave some "
            "out; `tooltrail db index` makes it anew"
        )
