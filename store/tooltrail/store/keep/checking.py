"""Checks the database itself: its pages, its schema, its own rows, and the index of words."""

import re
from collections.abc import Callable, Container, Generator, Iterable, Iterator
from contextlib import closing
from typing import Final, TypeAlias

from tooltrail.migrations import HEAD_REVISION, VERSION_TABLE, statements_of
from tooltrail.records.errors import DamageError, SchemaMismatchError
from tooltrail.store.engines.connection import Connection, Values
from tooltrail.store.engines.database import Database
from tooltrail.store.engines.failures import CHECK
from tooltrail.store.engines.sqlite_library import sqlite3
from tooltrail.store.info import check_revision, read_info
from tooltrail.store.read.columns import Columns, damage_of
from tooltrail.store.read.rows import Sql, fetch
from tooltrail.store.search.index import check_index
from tooltrail.store.verify.pages import check_tables, run_check

Shape: TypeAlias = dict[tuple[str, str], str | None]
"""The parts of a schema: kind, such as `index`, and name; with a definition if there is one."""

_MADE: Final = re.compile(r"CREATE (TABLE|TRIGGER|VIEW|INDEX) (\w+)")
_COLUMN: Final = re.compile(r"^\s+\"?([a-z]\w*)", re.MULTILINE)
_INDEXED: Final = re.compile(r"CONSTRAINT (\w+) (?:PRIMARY KEY|UNIQUE)")
"""Patterns of a script: created objects, columns of a table, and constraints with an index."""

_PARTS_OF_FILE: Final = "SELECT type, name, tbl_name, sql FROM sqlite_master"

_PARTS_ON_SERVER: Final = """
SELECT CASE relkind WHEN 'v' THEN 'view' ELSE 'table' END, relname, relname, NULL FROM pg_class
    WHERE relnamespace = quote_ident(current_schema())::regnamespace AND relkind IN ('r', 'p', 'v')
UNION ALL SELECT 'column', c.relname || '.' || a.attname, c.relname, NULL
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
    WHERE c.relnamespace = quote_ident(current_schema())::regnamespace AND c.relkind IN ('r', 'p')
    AND a.attnum > 0 AND NOT a.attisdropped
UNION ALL SELECT 'index', indexname, tablename, NULL FROM pg_indexes
    WHERE schemaname = current_schema()
UNION ALL SELECT 'trigger', t.tgname, c.relname, t.tgenabled::text
    FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
    WHERE c.relnamespace = quote_ident(current_schema())::regnamespace AND NOT t.tgisinternal
"""
"""Selects kind, name, table and definition: `tgenabled` for a trigger, else NULL."""

_OWN_ROWS: Final = {
    "store_info": Columns("store_info: key created_at"),
    "journals": Columns(
        "journals: key id host spool branch_of entry_count next_index head segment segment_offset"
        " frame_offset created_at ingested_at"
    ),
}
"""Columns of own rows, by table; `read_info` checks the others."""

_ENABLED: Final = "O"
"""`pg_trigger.tgenabled` of an enabled trigger."""


def iter_problems(
    database: Database, on_step: Callable[[int, int], None] | None = None
) -> Generator[str]:
    """Every problem of a database at head, one sentence each.

    SQLite: reads all pages, and compares every definition in the schema. PostgreSQL manages its
    pages itself: only names in the schema are compared, and no trigger may be disabled. If damage
    prevents a check, that is a problem, too, and the other checks still run. Writes nothing.

    Args:
        database: the database of a store.
        on_step: called after each step with the number of finished steps and of all. The first
            step is by far the longest.

    Raises:
        StoreNotFoundError, SchemaMismatchError: there is no store at head.
        UnavailableError: the database cannot be read now.
    """
    try:
        with database.read() as connection:
            check_revision(connection)
    except DamageError as error:
        # No other check is possible.
        yield str(error).removesuffix(CHECK)
        return
    steps = [
        ("the schema", _schema),
        ("the rows of the store and its journals", _own_rows),
        ("the index of words", check_index),
    ]
    if not database.is_server:
        steps.insert(0, ("the file as a whole", _pages))
    for number, (subject, problems) in enumerate(steps, 1):
        # One snapshot per step: a single one would prevent the WAL of SQLite from shrinking.
        try:
            with database.read() as connection:
                yield from problems(connection)
        except DamageError as error:
            yield f"{subject} cannot be checked: {str(error).removesuffix(CHECK)}"
        if on_step is not None:
            on_step(number, len(steps))


def _pages(connection: Connection) -> Iterator[str]:
    try:
        for problem in run_check(connection, "PRAGMA integrity_check"):
            yield f"integrity check: {problem}"
    except DamageError:
        # SQLite stops at a table that it cannot start to read.
        for _, problems in check_tables(connection):
            yield from (f"integrity check: {problem}" for problem in problems)
        raise


def _own_rows(connection: Connection) -> Iterator[str]:
    """Problems of the row of the store and of the rows of journals, which no fact has."""
    try:
        read_info(connection)
    except (DamageError, SchemaMismatchError) as error:
        yield str(error)
    for table, columns in _OWN_ROWS.items():
        select = Sql(f"SELECT {columns.sql} FROM {table}")  # noqa: S608  our own names
        rows = fetch(connection, select)
        for values, problems in map(columns.read, rows):
            if damage := damage_of(table, values["key"], problems):
                yield damage


def _schema(connection: Connection) -> Iterator[str]:
    wanted = _made_of_file() if connection.is_sqlite else _made_on_server()
    ours = {name for (kind, name) in wanted if kind in ("table", "view")}
    asked = _PARTS_OF_FILE if connection.is_sqlite else _PARTS_ON_SERVER
    found = _shape(connection.query(asked), ours)
    for part, definition in sorted(wanted.items()):
        if part not in found:
            yield f"{_named(part)} is missing"
        elif found[part] != definition:
            yield f"{_named(part)} differs from its definition"
    for part in sorted(found.keys() - wanted.keys()):
        yield f"{_named(part)} is not part of the schema"


def _named(part: tuple[str, str]) -> str:
    kind, name = part
    return f"append-only trigger {name}" if kind == "trigger" else f"{kind} {name}"


def _shape(rows: Iterable[Values], ours: Container[str]) -> Shape:
    """The parts of our own tables; other programs may have tables in the same database.

    The definition of the version table is ignored: alembic creates the table with other SQL.
    """
    return {
        (kind, name): None if table == VERSION_TABLE else definition
        for kind, name, table, definition in rows
        if table in ours and not (table == VERSION_TABLE and kind == "index")
    }


def _made_of_file() -> Shape:
    with closing(sqlite3.connect(":memory:")) as fresh:
        for statement in statements_of(HEAD_REVISION, "sqlite"):
            fresh.execute(statement)
        rows = fresh.execute(_PARTS_OF_FILE).fetchall()
    shape = _shape(rows, {table for _, _, table, _ in rows})
    return {**shape, ("table", VERSION_TABLE): None}


def _made_on_server() -> Shape:
    """The parts that the statements create by name, as `_PARTS_ON_SERVER` lists them."""
    shape: Shape = {
        ("table", VERSION_TABLE): None,
        ("column", f"{VERSION_TABLE}.version_num"): None,
    }
    for statement in statements_of(HEAD_REVISION, "postgresql"):
        made = _MADE.match(statement)
        if made is None:
            continue
        kind, name = made[1].lower(), made[2]
        shape[(kind, name)] = _ENABLED if kind == "trigger" else None
        if kind == "table":
            shape |= {("column", f"{name}.{one}"): None for one in _COLUMN.findall(statement)}
            shape |= {("index", one): None for one in _INDEXED.findall(statement)}
    return shape
