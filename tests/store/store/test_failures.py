"""What a driver says becomes an error of ours that tells the caller what to do, and no secrets."""

from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Connection, insert, text
from sqlalchemy.exc import DBAPIError
from tests.support.rows import MOMENT

from tooltrail.records import (
    AccessRefusedError,
    DamageError,
    DiskFullError,
    InvalidRecordError,
    TooltrailError,
    UnavailableError,
)
from tooltrail.store import Store, create_store
from tooltrail.store._engines.database import open_database
from tooltrail.store._engines.failures import translated_errors
from tooltrail.store._engines.targets import parse_target
from tooltrail.store.tables import PolicyRow, ToolRow

SECRET = "what the tool printed"

RAISE = "DO $$ BEGIN RAISE EXCEPTION 'injected' USING ERRCODE = '{}'; END $$"


@pytest.mark.parametrize(
    ("code", "expected", "said"),
    [
        ("XX001", DamageError, "is damaged: injected"),
        ("XX002", DamageError, "is damaged: injected"),
        ("42P01", DamageError, "is damaged: injected"),
        ("42501", AccessRefusedError, "access is denied"),
        ("28000", AccessRefusedError, "injected"),
        ("28P01", AccessRefusedError, "injected"),
        ("3D000", AccessRefusedError, "injected"),
        ("25006", UnavailableError, "it is read-only"),
        ("53100", DiskFullError, "the disk is full"),
        ("40P01", UnavailableError, "injected"),
        ("40001", UnavailableError, "injected"),
        ("57P01", UnavailableError, "injected"),
        ("22003", InvalidRecordError, "refused the record: injected"),
        ("P0001", InvalidRecordError, "refused the record: injected"),
    ],
)
def test_what_a_server_says_is_translated(
    postgres_url: str, code: str, expected: type[Exception], said: str
) -> None:
    database = open_database(parse_target(postgres_url))
    with pytest.raises(expected, match=said) as caught, database.write() as connection:
        connection.exec_driver_sql(RAISE.format(code))
    assert type(caught.value) is expected
    assert caught.value.__cause__ is not None
    database.close()


def attempt(store: Store, statement: str) -> TooltrailError:
    with pytest.raises(TooltrailError) as caught, store.database.write() as connection:
        connection.exec_driver_sql(statement)
    assert isinstance(caught.value.__cause__, DBAPIError)
    assert "\n" not in str(caught.value)
    return caught.value


def test_tables_that_are_missing_or_in_the_way_are_told_apart(store: Store) -> None:
    assert type(attempt(store, "SELECT * FROM nowhere")) is DamageError
    assert type(attempt(store, "SELECT nowhere FROM bodies")) is DamageError
    assert type(attempt(store, "CREATE TABLE bodies (x INTEGER)")) is InvalidRecordError


def test_a_record_that_is_there_already_is_refused_without_quoting_it(store: Store) -> None:
    def add(connection: Connection) -> None:
        row = {"digest": SECRET, "document": SECRET, "created_at": MOMENT}
        connection.execute(insert(PolicyRow).values(row))

    with store.database.write() as connection:
        add(connection)
    with (
        pytest.raises(InvalidRecordError, match="refused the record") as caught,
        store.database.write() as connection,
    ):
        add(connection)
    assert SECRET not in str(caught.value)
    # The statement's values must not stand in a traceback either: they are tool output.
    cause = caught.value.__cause__
    assert isinstance(cause, DBAPIError)
    assert cause.hide_parameters


def test_text_that_is_not_utf8_is_damage_and_is_not_quoted(sqlite_store: Store) -> None:
    with sqlite_store.database.write() as connection:
        connection.exec_driver_sql(
            "INSERT INTO policies VALUES ('x', CAST(? AS TEXT), '2026')",
            (SECRET.encode() + b"\xff",),
        )
    with (
        pytest.raises(DamageError, match="Could not decode to UTF-8") as caught,
        sqlite_store.database.read() as connection,
    ):
        connection.scalars(text("SELECT document FROM policies")).all()
    assert SECRET not in str(caught.value)


def test_the_words_of_a_trigger_that_are_not_utf8_are_damage(tmp_path: Path) -> None:
    file = tmp_path / "trail.db"
    create_store(file).close()
    file.write_bytes(file.read_bytes().replace(b"policies is append-only", b"\xae" * 23))
    with closing(open_database(parse_target(file))) as database:
        with database.write() as connection:
            row = {"digest": "x", "document": "{}", "created_at": MOMENT}
            connection.execute(insert(PolicyRow).values(row))
        with (
            pytest.raises(DamageError, match="it holds text that is not UTF-8"),
            database.write() as connection,
        ):
            connection.exec_driver_sql("DELETE FROM policies")


def test_a_value_that_no_row_could_have_is_damage_and_is_not_quoted(sqlite_store: Store) -> None:
    with sqlite_store.database.write() as connection:
        connection.exec_driver_sql("INSERT INTO policies VALUES ('x', '{}', ?)", (SECRET,))
    with (
        pytest.raises(DamageError, match="a row holds what was never stored") as caught,
        sqlite_store.database.read() as connection,
    ):
        connection.scalars(
            PolicyRow.__table__.select().with_only_columns(PolicyRow.created_at)
        ).all()
    assert SECRET not in str(caught.value)


def test_a_value_that_no_column_holds_is_refused(store: Store) -> None:
    row = {"digest": "x", "name": "x", "family": "x", "document": "x", "created_at": MOMENT}
    for change in ({"created_at": MOMENT.replace(tzinfo=None)}, {"created_at": "yesterday"}):
        with pytest.raises(InvalidRecordError), store.database.write() as connection:
            connection.execute(insert(ToolRow).values(row | change))


def test_a_text_too_big_for_the_engine_is_refused(sqlite_store: Store) -> None:
    with (
        pytest.raises(InvalidRecordError, match="too big"),
        sqlite_store.database.write() as connection,
    ):
        # More than the library was made to take; it says so before there is such a text.
        connection.exec_driver_sql("INSERT INTO policies VALUES ('x', zeroblob(2000000000), 'x')")


def test_errors_that_are_not_of_a_database_pass_through() -> None:
    target = parse_target("/nowhere/trail.db")
    for error in (KeyError("x"), UnavailableError("x"), KeyboardInterrupt()):
        with pytest.raises(type(error)) as caught, translated_errors(target):
            raise error
        assert caught.value is error


def test_an_option_that_cannot_be_is_no_server_that_is_away() -> None:
    database = open_database(parse_target("postgresql://127.0.0.1:1/x?sslmode=nonsense"))
    with pytest.raises(InvalidRecordError, match="invalid sslmode value"), database.read():
        pass
    database.close()
