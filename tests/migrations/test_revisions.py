"""The schema's history: linear, frozen, the same on both engines and in a new store."""

import ast
import re
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from importlib.resources import files
from pathlib import Path

import pytest
from alembic.script import ScriptDirectory
from tests.support import schema
from tests.support.empty_databases import empty_database

from tooltrail.migrations import HEAD_REVISION, VERSION_TABLE, statements_of
from tooltrail.records import InvalidRecordError
from tooltrail.store.engines.connection import Connection
from tooltrail.store.engines.database import Database
from tooltrail.store.info import read_revision
from tooltrail.store.keep.upgrading import migrate
from tooltrail.store.opening import create_store

SCRIPTS = Path(str(files("tooltrail.migrations")))
REVISIONS = sorted((SCRIPTS / "versions").glob("*.py"))

ON_SERVER = f"""
SELECT 'column', c.relname || '.' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod)
    || a.attnotnull || coalesce(pg_get_expr(d.adbin, d.adrelid), '')
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
    LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    WHERE c.relnamespace = current_schema()::regnamespace AND a.attnum > 0
    AND c.relname NOT LIKE '{VERSION_TABLE}%'
UNION ALL SELECT 'index', indexdef FROM pg_indexes
    WHERE schemaname = current_schema() AND tablename <> '{VERSION_TABLE}'
UNION ALL SELECT 'constraint', conname || pg_get_constraintdef(oid) FROM pg_constraint
    WHERE connamespace = current_schema()::regnamespace AND conname NOT LIKE '{VERSION_TABLE}%'
UNION ALL SELECT 'trigger', pg_get_triggerdef(t.oid)
    FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
    WHERE c.relnamespace = current_schema()::regnamespace
UNION ALL SELECT 'function', pg_get_functiondef(oid) FROM pg_proc
    WHERE pronamespace = current_schema()::regnamespace
UNION ALL SELECT 'view', viewname || definition FROM pg_views WHERE schemaname = current_schema()
"""
IN_FILE = f"SELECT name, sql FROM sqlite_master WHERE tbl_name <> '{VERSION_TABLE}'"


@contextmanager
def opened_at(database: str) -> Generator[Database]:
    """An empty database of this kind."""
    opened = empty_database(database)
    try:
        yield opened
    finally:
        opened.close()


def definitions(connection: Connection) -> list[tuple[str, str]]:
    """Every definition in a schema, but for the version table and the index of words."""
    asked = IN_FILE if connection.is_sqlite else ON_SERVER
    found = [(str(name), str(made)) for name, made in connection.query(asked)]
    return sorted(one for one in found if "search_" not in f"{one}")


def test_the_head_that_the_program_knows_is_the_one_head_of_the_revisions() -> None:
    assert ScriptDirectory(str(SCRIPTS)).get_heads() == [HEAD_REVISION]


def test_revisions_form_one_line_and_are_named_by_their_number() -> None:
    previous: str | None = None
    history = list(ScriptDirectory(str(SCRIPTS)).walk_revisions())
    for revision in reversed(history):
        assert revision.down_revision == previous
        assert re.fullmatch(rf"{revision.revision}_[a-z]+_[a-z_]+\.py", Path(revision.path).name)
        previous = revision.revision
    assert len(history) == len(REVISIONS)


@pytest.mark.parametrize("path", REVISIONS, ids=lambda path: path.stem)
def test_a_revision_is_frozen_and_does_not_import_the_tables(path: Path) -> None:
    imported: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            imported.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            imported.add(str(node.module))
    assert imported <= {"alembic", "sqlalchemy", "tooltrail.migrations"}


def meaning_of(dialect: str) -> set[str]:
    """The statements of the head, in the words that both dialects share."""
    shared = {
        r"\b(BIGSERIAL|BIGINT|SMALLINT|TIMESTAMP WITH TIME ZONE)\b": "INTEGER",
        r"\b(UUID|BYTEA)\b": "BLOB",
        r'"key"': "key",
        r" USING (hash|btree)|\s+WITHOUT ROWID": "",
        r"IS DISTINCT FROM": "IS NOT",
        r"( FOR EACH ROW)?( WHEN \((?P<rule>.*)\))? EXECUTE FUNCTION .*": r" WHEN \g<rule>",
        r" BEGIN SELECT RAISE.*": "",
        r"(?m)^    .* AS (\w+),?$": r"\1",
    }
    found = set[str]()
    for statement in statements_of(HEAD_REVISION, dialect):
        for pattern, spelled in shared.items():
            statement = re.sub(pattern, spelled, statement)  # noqa: PLW2901  each works on the last
        found.add(statement.removesuffix(" WHEN ").rstrip())
    return found


def test_both_scripts_of_the_head_describe_the_same_schema() -> None:
    """`test_guards` tests the trigger and the functions that only one dialect can spell."""
    differences = meaning_of("sqlite") ^ meaning_of("postgresql")
    unlike = r"CREATE FUNCTION|CREATE TRIGGER (\w+_no_truncate|bodies_no_erasure) "
    assert [one for one in differences if not re.match(unlike, one)] == []


@pytest.mark.both_engines
def test_migrations_and_a_store_that_is_made_have_the_same_schema(
    database: str, tmp_path: Path
) -> None:
    with opened_at(database) as opened:
        migrate(opened.target)
        with opened.read() as connection:
            assert read_revision(connection) == HEAD_REVISION
            migrated = definitions(connection)
        with opened.write() as connection:
            if connection.is_sqlite:
                database = str(tmp_path / "made.db")
            else:
                connection.run("DROP SCHEMA public CASCADE")
                connection.run("CREATE SCHEMA public")
    with (
        create_store(database, artifacts=str(tmp_path / "artifacts")) as store,
        store.database.read() as connection,
    ):
        assert definitions(connection) == migrated
        made = statements_of(HEAD_REVISION, "sqlite" if connection.is_sqlite else "postgresql")
    assert len(made) > len(schema.metadata.tables)


@pytest.mark.both_engines
def test_to_migrate_twice_changes_nothing(database: str) -> None:
    with opened_at(database) as opened:
        migrate(opened.target)
        with opened.read() as connection:
            before = definitions(connection)
        migrate(opened.target)
        with opened.read() as connection:
            assert definitions(connection) == before


def test_the_first_revision_does_not_go_down() -> None:
    (first,) = REVISIONS
    module = import_module(f"tooltrail.migrations.versions.{first.stem}")
    with pytest.raises(NotImplementedError, match="0001 is the first revision"):
        module.downgrade()


@pytest.mark.both_engines
def test_a_migration_that_fails_leaves_the_schema_as_it_was(database: str) -> None:
    with opened_at(database) as opened:
        with opened.write() as connection:
            connection.run("CREATE TABLE tombstones (key INTEGER)")
            before = definitions(connection)
        with pytest.raises(InvalidRecordError, match="already exists"):
            migrate(opened.target)
        with opened.read() as connection:
            assert definitions(connection) == before
            assert read_revision(connection) is None
