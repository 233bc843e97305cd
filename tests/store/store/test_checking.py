"""The check of a database names what is wrong with it, and finds nothing in a sound one."""

import re
import secrets
from collections.abc import Generator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import URL, text
from tests.support.recording import run_command
from tests.support.schema import names_of
from tests.support.template_stores import make_store

from tooltrail.store import (
    Store,
    check_database,
    checking,
    database_to_check,
    iter_problems,
    open_store,
)
from tooltrail.store._engines.sqlite import sqlite3
from tooltrail.store._engines.targets import PostgresTarget
from tooltrail.store._schema.shape import Shape, shape_of_head


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
    with make_store(postgres_url, artifacts=str(tmp_path)) as store:
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


RULE_OF_HEADS = (
    "new.session_key IS DISTINCT FROM old.session_key OR new.entry_count <= old.entry_count "
    "OR new.next_seq < old.next_seq OR old.closed_at IS NOT NULL"
)
MOVED_BRACKETS = (
    "DROP TRIGGER ledger_heads_no_update ON ledger_heads",
    (
        "CREATE TRIGGER ledger_heads_no_update BEFORE UPDATE ON ledger_heads FOR EACH ROW WHEN "
        f"(({RULE_OF_HEADS}) AND new.closed_at IS DISTINCT FROM old.closed_at) "
        "EXECUTE FUNCTION tooltrail_refuse()"
    ),
)
OTHER_LITERALS = (
    "ALTER TABLE bodies DROP CONSTRAINT ck_bodies_encoding",
    "ALTER TABLE bodies ADD CONSTRAINT ck_bodies_encoding CHECK (encoding IN ('raw', 'ZSTD'))",
)
ALTERED_ON_A_SERVER = {
    "brackets of a rule": (
        MOVED_BRACKETS,
        "append-only trigger ledger_heads_no_update is not what it was made as",
    ),
    "literals of a rule": (
        (
            "DROP TRIGGER invocations_no_update ON invocations",
            (
                "CREATE TRIGGER invocations_no_update BEFORE UPDATE ON invocations FOR EACH ROW "
                "WHEN (OLD.state <> 'STARTED') EXECUTE FUNCTION tooltrail_refuse()"
            ),
        ),
        "append-only trigger invocations_no_update is not what it was made as",
    ),
    "literals of a constraint": (
        OTHER_LITERALS,
        "constraint ck_bodies_encoding is not what it was made as",
    ),
    "a reference": (
        (
            "ALTER TABLE messages DROP CONSTRAINT fk_messages_body_digest",
            (
                "ALTER TABLE messages ADD CONSTRAINT fk_messages_body_digest "
                "FOREIGN KEY (body_digest) REFERENCES bodies (digest) ON DELETE CASCADE"
            ),
        ),
        "constraint fk_messages_body_digest is not what it was made as",
    ),
    "a column": (
        ('ALTER TABLE messages ALTER COLUMN role TYPE text COLLATE "C"',),
        "column messages.role is not what it was made as",
    ),
    "an index": (
        ("DROP INDEX ix_tools_name", "CREATE INDEX ix_tools_name ON tools (name) WHERE name > 'a'"),
        "index ix_tools_name is not what it was made as",
    ),
    "where a function looks": (
        ("ALTER FUNCTION tooltrail_refuse_unless_erased() SET search_path = elsewhere",),
        "function tooltrail_refuse_unless_erased is not what it was made as",
    ),
    "durability": (
        ("ALTER TABLE omissions SET UNLOGGED",),
        "table omissions is not what it was made as",
    ),
    "row security": (
        ("ALTER TABLE sessions ENABLE ROW LEVEL SECURITY",),
        "table sessions is not what it was made as",
    ),
    "a policy": (
        ("CREATE POLICY mine ON sessions USING (false)",),
        "policy mine of table sessions is no part of the schema",
    ),
    "a rule": (
        ("CREATE RULE gone AS ON INSERT TO messages DO INSTEAD NOTHING",),
        "rule gone of table messages is no part of the schema",
    ),
    "rows of another table": (
        ("CREATE TABLE mine () INHERITS (messages)",),
        "table messages is not what it was made as",
    ),
}


@pytest.mark.parametrize("what", ALTERED_ON_A_SERVER)
def test_what_was_altered_on_a_server_is_named(postgres_store: Store, what: str) -> None:
    statements, problem = ALTERED_ON_A_SERVER[what]
    alter(postgres_store, *statements)
    assert check_database(postgres_store.database) == [problem]


def test_the_body_of_a_function_is_compared_as_it_is(postgres_store: Store) -> None:
    with postgres_store.database.engine.begin() as connection:
        source = connection.exec_driver_sql(
            "SELECT pg_get_functiondef('tooltrail_refuse_unless_erased'::regproc)"
        ).scalar_one()
        assert "'body'" in source
        altered = source.replace("'body'", "'BODY'").replace("%", "%%")
        connection.exec_driver_sql(altered)
    assert check_database(postgres_store.database) == [
        "function tooltrail_refuse_unless_erased is not what it was made as"
    ]


OTHER_WORDS = (
    ("bodies", "constraint ck_bodies_encoding", "CHECK ((encoding) IN ('raw', ('zstd')))"),
    (
        "invocations",
        "index ix_invocations_state_error_kind",
        (
            "CREATE INDEX ix_invocations_state_error_kind ON invocations (state, error_kind) "
            "WHERE (state) <> 'success'"
        ),
    ),
    (
        "ledger_heads",
        "trigger ledger_heads_no_update",
        (
            "CREATE TRIGGER ledger_heads_no_update BEFORE UPDATE ON ledger_heads FOR EACH ROW WHEN "
            f"((({RULE_OF_HEADS} AND (new.closed_at IS DISTINCT FROM old.closed_at)))) "
            "EXECUTE FUNCTION tooltrail_refuse()"
        ),
    ),
)


def worded_otherwise(dialect: str) -> Shape:
    """What the newest revision makes, in the words of a server of another version."""
    shape = shape_of_head(dialect)
    for table, part, definition in OTHER_WORDS:
        assert part in shape[table]
        shape[table][part] = definition
    return shape


def url_of(store: Store) -> URL:
    target = store.database.target
    assert isinstance(target, PostgresTarget)
    return target.url


@pytest.fixture
def kept_in_other_words(postgres_store: Store, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setattr(checking, "shape_of_head", worded_otherwise)
    return postgres_store


def test_a_server_of_another_version_may_word_the_same_otherwise(
    kept_in_other_words: Store,
) -> None:
    database = url_of(kept_in_other_words).render_as_string(hide_password=False)
    before = names_of(database)
    assert check_database(kept_in_other_words.database) == []
    assert names_of(database) == before


def test_in_other_words_what_was_altered_is_named_all_the_same(kept_in_other_words: Store) -> None:
    alter(kept_in_other_words, *MOVED_BRACKETS, *OTHER_LITERALS)
    assert set(check_database(kept_in_other_words.database)) == {
        "append-only trigger ledger_heads_no_update is not what it was made as",
        "constraint ck_bodies_encoding is not what it was made as",
    }


def test_in_other_words_what_cannot_be_made_any_more_is_named(kept_in_other_words: Store) -> None:
    alter(kept_in_other_words, "ALTER FUNCTION tooltrail_refuse() RENAME TO tooltrail_other")
    problems = check_database(kept_in_other_words.database)
    assert "append-only trigger ledger_heads_no_update is not what it was made as" in problems
    assert "function tooltrail_refuse is missing" in problems
    assert "constraint ck_bodies_encoding is not what it was made as" not in problems


@pytest.fixture
def reader_of(kept_in_other_words: Store) -> Generator[str]:
    """The database for a user who may read it, and make nothing, not for a while either."""
    name = f"reader_{secrets.token_hex(6)}"
    url = url_of(kept_in_other_words)
    alter(
        kept_in_other_words,
        f"CREATE ROLE {name}",
        f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {name}",
        f"REVOKE TEMPORARY ON DATABASE {url.database} FROM PUBLIC",
    )
    try:
        as_reader = url.update_query_dict({"options": f"-c role={name}"})
        yield as_reader.render_as_string(hide_password=False)
    finally:
        alter(kept_in_other_words, f"DROP OWNED BY {name}", f"DROP ROLE {name}")


def test_where_nothing_can_be_made_other_words_are_another_definition(reader_of: str) -> None:
    with database_to_check(reader_of) as database:
        assert set(check_database(database)) == {
            "append-only trigger ledger_heads_no_update is not what it was made as",
            "constraint ck_bodies_encoding is not what it was made as",
            "index ix_invocations_state_error_kind is not what it was made as",
        }


def rewrite_schema(store: Store, name: str, old: str, new: str) -> None:
    """Change what SQLite keeps of a table, as no statement can."""
    with closing(sqlite3.connect(str(store.database.target))) as connection, connection:
        connection.execute("PRAGMA writable_schema = ON")
        changed = connection.execute(
            "UPDATE sqlite_master SET sql = replace(sql, ?, ?) WHERE name = ? AND instr(sql, ?)",
            (old, new, name, old),
        )
        assert changed.rowcount == 1


@pytest.mark.parametrize(
    ("table", "old", "new", "problem"),
    [
        (
            "messages",
            'REFERENCES sessions ("key")',
            'REFERENCES sessions ("key") ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED',
            "constraint fk_messages_session_key is not what it was made as",
        ),
        (
            "invocations",
            "state TEXT",
            "state TEXT COLLATE NOCASE",
            "column invocations.state is not what it was made as",
        ),
        (
            "bodies",
            "'zstd'",
            "'ZSTD'",
            "constraint ck_bodies_encoding is not what it was made as",
        ),
        (
            "bodies",
            "'zstd'",
            "'zstd' /* , ) */",
            "constraint ck_bodies_encoding is not what it was made as",
        ),
        (
            "bodies",
            "CONSTRAINT pk_bodies",
            "CHECK (size > 9), CONSTRAINT pk_bodies",
            "constraint CHECK (size > 9) of table bodies is no part of the schema",
        ),
        (
            "bodies",
            "CONSTRAINT pk_bodies",
            "CONSTRAINT ck_bodies_encoding CHECK (0), CONSTRAINT pk_bodies",
            "constraint ck_bodies_encoding is not what it was made as",
        ),
        (
            "bodies",
            "CONSTRAINT ck_bodies_encoding CHECK (encoding IN ('raw', 'zstd'))",
            "CHECK (1)",
            "constraint ck_bodies_encoding is missing",
        ),
        (
            "sessions",
            "CONSTRAINT pk_sessions",
            '"a, ""b)" TEXT, CONSTRAINT pk_sessions',
            'column sessions."a, ""b)" is no part of the schema',
        ),
        (
            "sessions",
            "CONSTRAINT pk_sessions",
            '"a""b" TEXT, CONSTRAINT pk_sessions',
            'column sessions."a""b" is no part of the schema',
        ),
    ],
)
def test_what_was_altered_in_a_table_of_sqlite_is_named(
    sqlite_store: Store, table: str, old: str, new: str, problem: str
) -> None:
    rewrite_schema(sqlite_store, table, old, new)
    with open_store(str(sqlite_store.database.target)) as store:
        assert problem in check_database(store.database)


def test_a_table_that_is_kept_otherwise_is_named(sqlite_store: Store) -> None:
    alter(sqlite_store, "DROP TABLE redactions")
    alter(
        sqlite_store,
        "CREATE TABLE redactions (invocation_key INTEGER NOT NULL, n INTEGER NOT NULL, "
        "role TEXT NOT NULL, rule TEXT NOT NULL, match_count INTEGER NOT NULL, "
        "CONSTRAINT pk_redactions PRIMARY KEY (invocation_key, n))",
    )
    problems = check_database(sqlite_store.database)
    assert "table redactions is not what it was made as" in problems
    assert not [one for one in problems if "column" in one]


def test_quotes_that_a_rename_leaves_alter_nothing(sqlite_store: Store) -> None:
    names = ("sessions", "bodies", "messages")
    for name in names:
        alter(
            sqlite_store,
            f"ALTER TABLE {name} RENAME TO other",
            f"ALTER TABLE other RENAME TO {name}",
        )
    with sqlite_store.database.read() as connection:
        kept = connection.scalars(text("SELECT sql FROM sqlite_master WHERE name = 'messages'"))
        assert 'CREATE TABLE "messages"' in kept.one()
    assert check_database(sqlite_store.database) == []


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


def damaged(store: Store, offset: int, data: bytes) -> str:
    """The database of a store that nobody has open, with other bytes in it."""
    path = Path(str(store.database.target))
    store.close()
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(data)
    return str(path)


def root_of(store: Store, name: str) -> int:
    """Where the first page of a table or an index begins, in a file that has all of it."""
    with store.database.autocommit() as connection:
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        page = connection.scalar(
            text("SELECT rootpage FROM sqlite_master WHERE name = :name"), {"name": name}
        )
    assert page is not None
    return (int(page) - 1) * PAGE


PAGE = 4096


@pytest.mark.parametrize("table", ["messages", "invocations"])
def test_the_table_of_a_damaged_page_is_named_and_all_else_is_checked(
    sqlite_store: Store, table: str
) -> None:
    run_command(sqlite_store.open_session(), b"fine\n")
    alter(sqlite_store, "DROP TRIGGER receipts_no_delete", 'CREATE TABLE "o""ther" (x)')
    database = damaged(sqlite_store, root_of(sqlite_store, table), bytes(PAGE))
    with database_to_check(database) as opened:
        problems = check_database(opened)
    assert f"integrity check: table {table} or an index of it is damaged" in problems
    assert any(one.startswith(f"table {table} cannot be checked: ") for one in problems)
    assert "append-only trigger receipts_no_delete is missing" in problems


def test_the_page_of_a_damaged_index_is_named(sqlite_store: Store) -> None:
    name = "ix_maintenance_runs_finished_at"
    offset = root_of(sqlite_store, name)
    with database_to_check(damaged(sqlite_store, offset, bytes(PAGE))) as opened:
        problems = check_database(opened)
    assert any(f"page {offset // PAGE + 1}" in one.lower() for one in problems)


@pytest.mark.parametrize("offset", [0, 100])
def test_a_database_that_cannot_be_asked_is_one_problem(sqlite_store: Store, offset: int) -> None:
    root_of(sqlite_store, "messages")
    with database_to_check(damaged(sqlite_store, offset, b"\xff" * 3_000)) as opened:
        (problem,) = check_database(opened)
    assert re.fullmatch(f"database {opened.target} is damaged: .*", problem)
