"""A check of the database names what is wrong with its pages, its schema and its own row."""

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from tests.support.evidence import check_database
from tests.support.keeping import ingested, rows

from tooltrail.records import SchemaMismatchError, StoreNotFoundError
from tooltrail.store.engines.database import Database
from tooltrail.store.engines.sqlite_library import sqlite3
from tooltrail.store.engines.targets import PostgresTarget, parse_target
from tooltrail.store.keep.checking import iter_problems
from tooltrail.store.store import Store


@pytest.fixture
def used(store: Store) -> Store:
    return ingested(store, b"fine\n")


@pytest.fixture
def at_server(postgres_store: Store) -> Iterator[psycopg.Connection]:
    """A connection beside the store's own."""
    target = postgres_store.database.target
    assert isinstance(target, PostgresTarget)
    with psycopg.connect(target.url, autocommit=True) as connection:
        yield connection


def alter(store: Store, *statements: str) -> None:
    with store.database.write() as connection:
        for statement in statements:
            connection.run(statement)


@pytest.mark.both_engines
def test_a_fresh_store_and_one_with_records_are_sound(store: Store) -> None:
    assert check_database(store.database) == []
    ingested(store, b"a line\n" * 20_000, b"short\n")
    assert check_database(store.database) == []


@pytest.mark.both_engines
def test_tables_of_other_programs_are_none_of_ours(store: Store) -> None:
    alter(
        store,
        "CREATE TABLE theirs (x INTEGER)",
        "CREATE INDEX ix_theirs ON theirs (x)",
        "CREATE VIEW v_theirs AS SELECT x FROM theirs",
    )
    assert check_database(store.database) == []


@pytest.mark.both_engines
@pytest.mark.parametrize(
    ("statements", "problem"),
    [
        (("DROP VIEW v_omissions",), "view v_omissions is missing"),
        (("DROP INDEX ix_tools_name",), "index ix_tools_name is missing"),
        (("CREATE INDEX mine ON tools (name)",), "index mine is not part of the schema"),
    ],
)
def test_what_differs_in_the_schema_is_named(
    store: Store, statements: tuple[str, ...], problem: str
) -> None:
    alter(store, *statements)
    assert check_database(store.database) == [problem]


@pytest.mark.parametrize(
    ("statements", "problem"),
    [
        (("DROP TRIGGER bodies_no_delete",), "append-only trigger bodies_no_delete is missing"),
        (
            (
                "DROP TRIGGER bodies_no_delete",
                (
                    "CREATE TRIGGER bodies_no_delete BEFORE DELETE ON bodies WHEN 0"
                    " BEGIN SELECT RAISE(ABORT, 'bodies is append-only'); END"
                ),
            ),
            "append-only trigger bodies_no_delete differs from its definition",
        ),
        (("ALTER TABLE tools ADD COLUMN mine TEXT",), "table tools differs from its definition"),
        (
            (
                "DROP INDEX ix_tools_name",
                "CREATE INDEX ix_tools_name ON tools (name) WHERE name > 'a'",
            ),
            "index ix_tools_name differs from its definition",
        ),
        (
            ("CREATE TRIGGER mine AFTER INSERT ON tools BEGIN SELECT 1; END",),
            "append-only trigger mine is not part of the schema",
        ),
    ],
)
def test_each_definition_in_a_file_is_compared(
    used: Store, statements: tuple[str, ...], problem: str
) -> None:
    alter(used, *statements)
    assert check_database(used.database) == [problem]


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        (
            "DROP TRIGGER bodies_no_truncate ON bodies",
            "append-only trigger bodies_no_truncate is missing",
        ),
        (
            "ALTER TABLE bodies DISABLE TRIGGER bodies_no_update",
            "append-only trigger bodies_no_update differs from its definition",
        ),
        ("ALTER TABLE tools ADD COLUMN mine text", "column tools.mine is not part of the schema"),
        (
            "ALTER TABLE tools RENAME CONSTRAINT uq_tools_digest TO mine",
            "index uq_tools_digest is missing",
        ),
    ],
)
def test_names_on_a_server_are_compared(
    postgres_store: Store, at_server: psycopg.Connection, statement: str, problem: str
) -> None:
    at_server.execute(statement.encode())
    assert problem in check_database(postgres_store.database)


@pytest.mark.both_engines
def test_a_store_without_its_row_is_named(store: Store) -> None:
    drop = "DROP TRIGGER store_info_no_delete"
    alter(
        store,
        drop if not store.database.is_server else f"{drop} ON store_info",
        "DELETE FROM store_info",
    )
    assert any("lacks its row in store_info" in one for one in check_database(store.database))


def test_what_is_no_store_at_head_is_no_problem_but_an_error(store: Store, tmp_path: Path) -> None:
    alter(store, "UPDATE tooltrail_version SET version_num = '9999'")
    with pytest.raises(SchemaMismatchError):
        check_database(store.database)
    (tmp_path / "empty.db").touch()
    empty = Database(parse_target(tmp_path / "empty.db"))
    with pytest.raises(StoreNotFoundError):
        check_database(empty)
    empty.close()


def test_a_check_says_how_many_of_its_steps_are_done(store: Store) -> None:
    steps: list[tuple[int, int]] = []
    list(iter_problems(store.database, lambda done, of: steps.append((done, of))))
    assert steps == [(n, len(steps)) for n in range(1, len(steps) + 1)]


def test_a_damaged_index_is_found(used: Store) -> None:
    with closing(sqlite3.connect(str(used.database.target))) as connection, connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(
            "UPDATE sqlite_master SET sql = replace(sql, '(opened_at)', '(closed_at)') "
            "WHERE name = 'ix_sessions_opened_at'"
        )
    used.database.close()  # its connections know the schema as it was
    problems = check_database(used.database)
    assert any(one.startswith("integrity check: ") for one in problems)
    assert "index ix_sessions_opened_at differs from its definition" in problems


def page_of(store: Store, name: str) -> tuple[int, int]:
    """The first page of a table or an index, in a file that has all of it, and the page size."""
    with store.database.autocommit() as connection:
        connection.query("PRAGMA wal_checkpoint(TRUNCATE)")
    ((page,),) = rows(store, f"SELECT rootpage FROM sqlite_master WHERE name = '{name}'")
    ((size,),) = rows(store, "PRAGMA page_size")
    return int(page), int(size)


def damaged(store: Store, offset: int, data: bytes) -> Database:
    """The database of a store that nobody has open, with other bytes in it."""
    path = Path(str(store.database.target))
    store.close()
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(data)
    return Database(parse_target(path))


@pytest.mark.parametrize("table", ["messages", "invocations"])
def test_the_table_of_a_damaged_page_is_named_and_all_else_is_checked(
    used: Store, table: str
) -> None:
    alter(used, "DROP TRIGGER bodies_no_delete", 'CREATE TABLE "o""ther" (x)')
    page, size = page_of(used, table)
    opened = damaged(used, (page - 1) * size, bytes(size))
    problems = check_database(opened)
    opened.close()
    assert len(set(problems)) == len(problems)
    assert f"integrity check: table {table} or an index of it is damaged" in problems
    assert any(one.startswith("the file as a whole cannot be checked: ") for one in problems)
    assert "append-only trigger bodies_no_delete is missing" in problems


def test_the_page_of_a_damaged_index_is_named(used: Store) -> None:
    page, size = page_of(used, "ix_tools_name")
    opened = damaged(used, (page - 1) * size, bytes(size))
    problems = check_database(opened)
    opened.close()
    assert any(f"page {page}" in one.lower() for one in problems)


@pytest.mark.parametrize("offset", [0, 100])
def test_a_database_that_cannot_be_asked_is_one_problem(used: Store, offset: int) -> None:
    page_of(used, "messages")
    opened = damaged(used, offset, b"\xff" * 3_000)
    (problem,) = check_database(opened)
    opened.close()
    headless = f"{opened.target} is not an SQLite database, or its beginning is damaged"
    wanted = f"database {opened.target} is damaged: .*" if offset else headless
    assert re.fullmatch(wanted, problem)
