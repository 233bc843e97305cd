"""The schema's history: forward and back, the same as the tables, and nothing when it is cut off.

`TOOLTRAIL_REWRITE_GOLDEN=1` writes the golden DDL anew instead of comparing it.
"""

import ast
import io
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import inspect
from tests.support.evidence import check_evidence
from tests.support.processes import start_worker
from tests.support.recording import run_command
from tests.support.rows import all_rows, fill_every_table
from tests.support.schema import (
    SCRIPTS,
    alembic_config,
    downgraded,
    names_of,
    upgraded,
)
from tests.support.shapes import document, document_path, shape_of

from tooltrail.migrations import HEAD_REVISION, VERSION_TABLE
from tooltrail.records import InvalidRecordError, StoreNotFoundError
from tooltrail.store import Store, create_store, open_store, store_revision, upgrade_store
from tooltrail.store._engines.database import Database, open_database
from tooltrail.store._engines.targets import parse_target
from tooltrail.store._roots.mark_names import mark_path
from tooltrail.store._schema.revision import migrate_within
from tooltrail.store.tables import DERIVED, metadata

GOLDEN = Path(__file__).parent / "golden"
REVISIONS = sorted(Path(SCRIPTS, "versions").glob("*.py"))


@pytest.fixture
def opened(database: str) -> Iterator[Database]:
    """A connection that may migrate, to an empty database."""
    target = open_database(parse_target(database), create=True, foreign_keys=False)
    with target.write():
        pass  # the file is made at the first connection
    yield target
    target.close()


def migrate(opened: Database) -> None:
    """To head, as the program does."""
    with opened.write() as connection:
        migrate_within(connection, opened.target)


def test_the_head_that_the_program_knows_is_the_one_head_of_the_revisions() -> None:
    assert ScriptDirectory(SCRIPTS).get_heads() == [HEAD_REVISION]


def test_revisions_form_one_line_and_are_named_by_their_number() -> None:
    previous: str | None = None
    history = list(ScriptDirectory(SCRIPTS).walk_revisions())
    for revision in reversed(history):
        assert revision.down_revision == previous
        assert re.fullmatch(rf"{revision.revision}_[a-z]+_[a-z_]+\.py", Path(revision.path).name)
        previous = revision.revision
    assert len(history) == len(REVISIONS)


@pytest.mark.parametrize("path", REVISIONS, ids=lambda path: path.stem)
def test_a_revision_is_frozen_and_imports_alembic_and_sqlalchemy_only(path: Path) -> None:
    imported: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            imported.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            imported.add(str(node.module).partition(".")[0])
    assert imported == {"alembic", "sqlalchemy"}


def test_up_and_down_twice_leaves_nothing_and_gives_the_same_again(
    opened: Database, database: str
) -> None:
    upgraded(database)
    everything = names_of(database)
    downgraded(database)
    nothing = names_of(database)
    upgraded(database)
    assert names_of(database) == everything
    upgraded(database)
    assert names_of(database) == everything
    downgraded(database)
    downgraded(database)
    assert names_of(database) == nothing
    assert {name for name in nothing if VERSION_TABLE not in name} == set()
    assert {f"table {name}" for name in metadata.tables} <= everything


def test_a_store_with_rows_can_go_down_and_is_no_store_then(
    store: Store, database: str, tmp_path: Path
) -> None:
    with store.database.write() as connection:
        fill_every_table(connection)
    store.close()

    downgraded(database)

    with pytest.raises(StoreNotFoundError):
        store_revision(database)
    # Whoever takes a store away says what becomes of its artifacts.
    with pytest.raises(InvalidRecordError, match="When that one is gone, delete the file"):
        create_store(database, artifacts=str(tmp_path / "artifacts"))
    (tmp_path / "artifacts" / mark_path(store.info.id)).unlink()
    create_store(database, artifacts=str(tmp_path / "artifacts")).close()
    with open_store(database, artifacts=str(tmp_path / "artifacts")) as again:
        check_evidence(again)


def test_upgrading_a_store_that_is_at_head_keeps_every_row(store: Store, database: str) -> None:
    with store.database.write() as connection:
        fill_every_table(connection)
        before = all_rows(connection)

    assert upgrade_store(database) == (HEAD_REVISION, HEAD_REVISION)

    with store.database.read() as connection:
        assert all_rows(connection) == before


def test_the_tables_and_the_revisions_describe_the_same_schema(opened: Database) -> None:
    migrate(opened)
    with opened.write() as connection:
        context = MigrationContext.configure(
            connection,
            opts={
                "compare_type": True,
                "compare_server_default": True,
                "version_table": VERSION_TABLE,
            },
        )
        assert compare_metadata(context, metadata) == []
        command.check(alembic_config(connection))


def test_constraints_are_named_alike_by_tables_and_revisions(opened: Database) -> None:
    migrate(opened)
    with opened.read() as connection:
        found = inspect(connection)
        for name, table in metadata.tables.items():
            checks = {str(c["name"]) for c in found.get_check_constraints(name)}
            foreign = {str(key["name"]) for key in found.get_foreign_keys(name)}
            named = {str(c.name) for c in table.constraints}
            assert checks == {n for n in named if n.startswith("ck_")}
            assert foreign == {n for n in named if n.startswith("fk_")}


def test_every_table_is_guarded_after_an_upgrade(opened: Database, database: str) -> None:
    migrate(opened)
    events = ["update", "delete"]
    if opened.engine.dialect.name == "postgresql":
        events.append("truncate")
    wanted = {
        f"trigger {table}_no_{event}"
        for table in metadata.tables.keys() - DERIVED
        for event in events
    }
    assert {name for name in names_of(database) if name.startswith("trigger")} == wanted


@pytest.mark.parametrize("dialect", ["sqlite", "postgresql"])
def test_the_ddl_of_every_revision_is_the_golden_one(dialect: str) -> None:
    config = alembic_config()
    config.attributes["dialect"] = dialect
    command.upgrade(config, "head", sql=True)
    command.downgrade(config, "head:base", sql=True)
    assert isinstance(config.output_buffer, io.StringIO)
    ddl = config.output_buffer.getvalue()
    path = GOLDEN / f"{dialect}.sql"
    if os.environ.get("TOOLTRAIL_REWRITE_GOLDEN") == "1":
        path.write_text(ddl)
    assert ddl == path.read_text()


def test_the_shape_that_the_check_compares_with_is_what_the_revisions_make(
    opened: Database, database: str
) -> None:
    migrate(opened)
    dialect = opened.engine.dialect.name
    if os.environ.get("TOOLTRAIL_REWRITE_GOLDEN") == "1":
        document_path(dialect).write_text(document(shape_of(database)))
    assert document(shape_of(database)) == document_path(dialect).read_text()


def test_a_migration_that_fails_leaves_the_schema_as_it_was(
    opened: Database, database: str
) -> None:
    before = names_of(database)

    with opened.write() as connection:
        connection.exec_driver_sql("CREATE TABLE holds (key INTEGER)")
    with pytest.raises(InvalidRecordError, match="already exists"):
        migrate(opened)
    assert names_of(database) == before | {"table holds"}


def test_a_developer_names_the_database_by_the_environment(
    opened: Database, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for named in {database, as_url(database)}:
        monkeypatch.setenv("TOOLTRAIL_DB", named)
        command.upgrade(alembic_config(), "head")
        assert "table holds" in names_of(database)
        command.downgrade(alembic_config(), "base")
        assert "table holds" not in names_of(database)


def as_url(database: str) -> str:
    return database if "://" in database else f"sqlite:///{database}"


@pytest.mark.parametrize(
    "at",
    ["CREATE TABLE tooltrail_version", "CREATE TABLE holds", "INSERT INTO store_info", "COMMIT"],
)
def test_a_creation_that_is_killed_leaves_nothing_that_looks_like_a_store(
    database: str, tmp_path: Path, at: str
) -> None:
    artifacts = str(tmp_path / "artifacts")

    worker = start_worker("create", database, artifacts, at)
    _, err = worker.communicate()

    assert worker.returncode == -signal.SIGKILL, err.decode()
    for look in (store_revision, open_store, upgrade_store):
        with pytest.raises(StoreNotFoundError):
            look(database)
    with create_store(database, artifacts=artifacts, spool=tmp_path / "spool") as store:
        run_command(store.open_session(), b"works\n")
        check_evidence(store)
