"""The check of a database names what is wrong with it, and finds nothing in a sound one."""

from pathlib import Path

import pytest
from sqlalchemy import text
from tests.support.recording import run_command

from tooltrail.records import DamageError
from tooltrail.store import Store, check_database, create_store, iter_problems
from tooltrail.store._shape import differences
from tooltrail.store._sqlite import sqlite3


def alter(store: Store, *statements: str) -> None:
    """Change the schema behind the program's back."""
    with store.database.engine.begin() as connection:
        for statement in statements:
            connection.execute(text(statement))


def test_a_sound_database_has_no_problems(store: Store) -> None:
    run_command(store.open_session(), b"fine\n")
    assert check_database(store.database) == []


def test_a_missing_trigger_is_named(store: Store) -> None:
    on_table = "" if store.database.engine.dialect.name == "sqlite" else " ON bodies"
    alter(store, f"DROP TRIGGER bodies_no_delete{on_table}")
    assert check_database(store.database) == ["append-only trigger bodies_no_delete is missing"]


def test_a_trigger_that_was_switched_off_is_missing(postgres_url: str, tmp_path: Path) -> None:
    with create_store(postgres_url, artifacts=str(tmp_path)) as store:
        alter(store, "ALTER TABLE receipts DISABLE TRIGGER receipts_no_update")
        assert check_database(store.database) == [
            "append-only trigger receipts_no_update is missing"
        ]


def test_a_missing_table_and_a_missing_column_are_named(store: Store) -> None:
    alter(store, "DROP TABLE redactions", "ALTER TABLE tools DROP COLUMN document")
    problems = check_database(store.database)
    assert "table redactions is missing" in problems
    assert "column tools.document is missing" in problems
    assert {p for p in problems if "redactions" not in p and "tools" not in p} == set()


RULE = "CREATE TRIGGER invocations_no_update BEFORE UPDATE ON invocations "
ALTERED = {
    "sqlite": "WHEN OLD.state = 'never' BEGIN SELECT RAISE(ABORT, 'append-only'); END",
    "postgresql": "FOR EACH ROW WHEN (OLD.state = 'never') EXECUTE FUNCTION tooltrail_refuse()",
}


def test_a_trigger_with_another_rule_under_its_name_is_named(store: Store) -> None:
    dialect = store.database.engine.dialect.name
    on_table = "" if dialect == "sqlite" else " ON invocations"
    alter(store, f"DROP TRIGGER invocations_no_update{on_table}", RULE + ALTERED[dialect])
    assert check_database(store.database) == [
        "append-only trigger invocations_no_update is not what it was made as"
    ]


def test_what_no_revision_makes_on_a_table_of_the_store_is_named(store: Store) -> None:
    alter(
        store,
        "ALTER TABLE sessions ADD COLUMN mine TEXT",
        "CREATE INDEX other ON receipts (body_digest)",
        "CREATE TABLE of_another_program (x INTEGER)",
    )
    assert check_database(store.database) == [
        "index other of table receipts is no part of the schema",
        "column sessions.mine is no part of the schema",
    ]


def test_a_trigger_that_does_nothing_any_more_is_found_by_its_function(
    postgres_store: Store,
) -> None:
    alter(
        postgres_store,
        "CREATE OR REPLACE FUNCTION tooltrail_refuse() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RETURN NEW; END $$",
    )
    assert check_database(postgres_store.database) == [
        "function tooltrail_refuse is not what it was made as"
    ]


def test_references_that_a_server_does_not_enforce_any_more_are_named(
    postgres_store: Store,
) -> None:
    alter(postgres_store, "ALTER TABLE receipts DISABLE TRIGGER ALL")
    problems = check_database(postgres_store.database)
    assert "constraint fk_receipts_invocation_key is not what it was made as" in problems
    assert "append-only trigger receipts_no_delete is missing" in problems


def test_a_server_of_another_version_may_word_the_same_otherwise() -> None:
    made = {"t": {"constraint c": "CHECK (a = ANY (ARRAY['x'::text, 'y'::text]))"}}
    words = {"t": {"constraint c": "CHECK ((a = ANY (ARRAY['x', 'y'])))"}}
    other = {"t": {"constraint c": "CHECK ((a = ANY (ARRAY['x', 'z'])))"}}
    assert list(differences(words, made, "postgresql")) == []
    assert list(differences(other, made, "postgresql")) == [
        "constraint c is not what it was made as"
    ]


def test_a_check_says_how_many_of_its_steps_are_done(store: Store) -> None:
    steps: list[tuple[int, int]] = []
    list(iter_problems(store.database, lambda done, of: steps.append((done, of))))
    assert steps == [(n, len(steps)) for n in range(1, len(steps) + 1)]


def test_a_reference_to_nothing_is_named(sqlite_store: Store) -> None:
    run_command(sqlite_store.open_session(), b"fine\n")
    with sqlite3.connect(str(sqlite_store.database.target)) as connection:
        connection.execute("DROP TRIGGER policies_no_delete")
        connection.execute("DELETE FROM policies")
    connection.close()
    problems = check_database(sqlite_store.database)
    assert "row 1 of invocations refers to a row of policies that is missing" in problems


def test_a_damaged_index_is_found(sqlite_store: Store) -> None:
    run_command(sqlite_store.open_session(), b"fine\n")
    with sqlite3.connect(str(sqlite_store.database.target)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("DROP TRIGGER invocations_no_update")
        connection.execute(
            "UPDATE sqlite_master SET sql = replace(sql, '(started_at)', '(seq)') "
            "WHERE name = 'ix_invocations_started_at'"
        )
    connection.close()
    assert any(p.startswith("integrity check: ") for p in check_database(sqlite_store.database))


def test_a_database_that_cannot_be_asked_is_damage(sqlite_store: Store) -> None:
    path = Path(str(sqlite_store.database.target))
    sqlite_store.close()
    data = bytearray(path.read_bytes())
    data[100:4096] = bytes(3996)
    path.write_bytes(data)
    with pytest.raises(DamageError):
        check_database(sqlite_store.database)
