"""Stores that programs of earlier revisions made, today: every row is right and can be read."""

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, MetaData, Table, insert, select
from sqlalchemy.dialects import sqlite
from tests.support.cli import Cli
from tests.support.evidence import check_evidence
from tests.support.old_stores import KEPT, old_rows, old_store, rows_of
from tests.support.recording import run_command
from tests.support.schema import SCRIPTS, upgraded

from tooltrail.migrations import HEAD_REVISION, VERSION_TABLE
from tooltrail.store import check_database, open_store, upgrade_store
from tooltrail.store._engines.database import open_database
from tooltrail.store._engines.targets import parse_target
from tooltrail.store._roots.mark_names import mark_path
from tooltrail.store.tables import metadata

REVISIONS = sorted(path.name for path in KEPT.iterdir())

READING = (
    "status",
    "log",
    "log --json",
    "log --tool Bash --state success",
    "show {finished}",
    "show {finished} --surface complete",
    "show {finished} --side-by-side",
    "show {finished} --rerender",
    "transcript {session}",
    "transcript {session} --json",
    "transcript {session} --compact 1000",
    "session ls",
    "artifact ls",
    "artifact stat {artifact}",
    "artifact cat {artifact}",
    "artifact head {artifact}",
    "artifact tail {artifact}",
    "artifact grep line {artifact}",
    "artifact verify",
    "verify --receipts",
    "gc",
    "repair --dry-run",
    "db current",
    "db check",
)


@pytest.fixture(params=REVISIONS)
def revision(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def kept(revision: str, tmp_path: Path) -> Path:
    (tmp_path / "store").mkdir()
    return old_store(revision, tmp_path / "store")


def marked(kept: Path) -> None:
    """Upgrade a store that was made before artifact roots were marked, as the documents say it."""
    upgrade_store(kept)
    with open_store(kept) as store:
        (kept.parent / "artifacts" / mark_path(store.info.id)).touch()


def test_every_revision_but_the_head_has_a_kept_store() -> None:
    made = {path.name[:4] for path in Path(SCRIPTS, "versions").glob("*.py")}
    # Objects of the first revision have no index at their end. No program released wrote any.
    assert set(REVISIONS) == made - {HEAD_REVISION, "0001"}


def test_every_row_of_a_kept_store_is_the_same_after_an_upgrade(revision: str, kept: Path) -> None:
    wanted = old_rows(revision)
    assert all(wanted.values())
    columns = {table: list(rows[0]) for table, rows in wanted.items()}
    assert rows_of(kept, columns) == wanted

    assert upgrade_store(kept) == (revision, HEAD_REVISION)

    wanted[VERSION_TABLE] = [{"version_num": HEAD_REVISION}]
    assert rows_of(kept, columns) == wanted


def test_an_upgraded_kept_store_is_sound_and_goes_on(kept: Path) -> None:
    marked(kept)
    with open_store(kept) as store:
        check_evidence(store)
        run_command(store.open_session(), b"new\n" * 30_000)
        check_evidence(store)


def test_every_reading_command_reads_an_upgraded_kept_store(kept: Path) -> None:
    cli = Cli(str(kept))
    marked(kept)
    names = {
        "finished": cli.ok("log", "--json", "--state", "success").records[0]["id"],
        "session": cli.ok("session", "ls", "--json").records[-1]["id"],
        "artifact": max(cli.ok("artifact", "ls", "--json").records, key=lambda row: row["size"])[
            "path"
        ],
    }
    for command in READING:
        ended = cli.run(*command.format(**names).split())
        assert ended.code == 0, (command, ended.message)
    verified = cli.run("verify")
    assert (verified.code, verified.text) == (0, ""), verified.message


def test_the_rows_of_a_kept_store_are_right_on_a_server_too(
    revision: str, postgres_url: str
) -> None:
    wanted = old_rows(revision)
    upgraded(postgres_url, revision)
    opened = open_database(parse_target(postgres_url), foreign_keys=False)
    try:
        with opened.write() as connection:
            tables = tables_of(connection)
            for table in metadata.sorted_tables:
                for row in wanted.get(table.name, []):
                    values = {name: converted(table, name, row[name]) for name in row}
                    connection.execute(insert(tables[table.name]).values(values))
        with opened.read() as connection:
            before = all_of(connection, tables)
        upgrade_store(postgres_url)
        with opened.read() as connection:
            assert all_of(connection, tables) == before
        assert check_database(opened) == []
    finally:
        opened.close()


def tables_of(connection: Connection) -> dict[str, Table]:
    """The tables as they are now, whatever the program thinks of them."""
    found = MetaData()
    found.reflect(connection)
    return {name: table for name, table in found.tables.items() if name != VERSION_TABLE}


def all_of(connection: Connection, tables: dict[str, Table]) -> dict[str, list[Any]]:
    return {name: list(connection.execute(select(table))) for name, table in tables.items()}


def converted(table: Table, name: str, value: object) -> object:
    """A value as SQLite holds it, as the program holds it."""
    kind = table.columns[name].type
    read = kind.dialect_impl(sqlite.dialect()).result_processor(sqlite.dialect(), None)
    return value if value is None or read is None else read(value)
