"""A driver's error becomes an error that tells the caller what to do, and quotes no value."""

import pytest

from tooltrail.records import (
    AccessRefusedError,
    DamageError,
    DiskFullError,
    InvalidRecordError,
    TooltrailError,
    UnavailableError,
)
from tooltrail.store import Store
from tooltrail.store.engines.database import Database
from tooltrail.store.engines.failures import translated_errors
from tooltrail.store.engines.targets import parse_target

SECRET = "what-the-tool-printed"

RAISE = "DO $$ BEGIN RAISE EXCEPTION 'injected' USING ERRCODE = '{}'; END $$"


@pytest.mark.parametrize(
    ("code", "expected", "said"),
    [
        ("XX001", DamageError, "is damaged: injected"),
        ("42P01", DamageError, "is damaged: injected"),
        ("42501", AccessRefusedError, "injected"),
        ("28P01", AccessRefusedError, "injected"),
        ("3D000", AccessRefusedError, "injected"),
        ("25006", UnavailableError, "it is read-only"),
        ("25P03", UnavailableError, r"\(idle_in_transaction_session_timeout\)$"),
        ("57014", UnavailableError, r"\(statement_timeout\) or was cancelled$"),
        ("53100", DiskFullError, "the disk is full"),
        ("40P01", UnavailableError, "deadlock"),
        ("57P01", UnavailableError, "injected"),
        ("22003", InvalidRecordError, "refused the record: injected"),
        ("P0001", InvalidRecordError, "refused the record: injected"),
    ],
)
def test_what_a_server_says_is_translated(
    postgres_url: str, code: str, expected: type[Exception], said: str
) -> None:
    database = Database(parse_target(postgres_url))
    with pytest.raises(expected, match=said) as caught, database.write() as connection:
        connection.run(RAISE.format(code))
    assert type(caught.value) is expected
    database.close()


def attempt(store: Store, statement: str, *values: object) -> TooltrailError:
    with pytest.raises(TooltrailError) as caught, store.database.write() as connection:
        connection.execute(statement, values)
    assert "\n" not in str(caught.value)
    assert SECRET not in str(caught.value)
    return caught.value


@pytest.mark.both_engines
def test_tables_that_are_missing_or_there_already_are_told_apart(store: Store) -> None:
    assert type(attempt(store, "SELECT * FROM nowhere")) is DamageError
    assert type(attempt(store, "SELECT nowhere FROM bodies")) is DamageError
    assert type(attempt(store, "CREATE TABLE bodies (x INTEGER)")) is InvalidRecordError


@pytest.mark.both_engines
def test_values_that_no_column_holds_are_refused_without_a_quotation(store: Store) -> None:
    insert = "INSERT INTO bodies (digest, size, encoding, data) VALUES (?, ?, ?, ?)"
    for values in (
        (b"x", 1, SECRET, b""),
        (b"x", 1 << 70, "raw", b""),
        (b"x", object(), "raw", b""),
    ):
        assert isinstance(attempt(store, insert, *values), InvalidRecordError)


def test_text_that_is_not_utf8_is_damage(store: Store) -> None:
    with store.database.read() as connection, pytest.raises(DamageError) as caught:
        connection.query("SELECT CAST(? AS TEXT)", (SECRET.encode() + b"\xff",))
    assert SECRET not in str(caught.value)


def test_errors_that_are_not_of_a_database_pass_through() -> None:
    target = parse_target("/nowhere/trail.db")
    for error in (KeyError("x"), UnavailableError("x"), KeyboardInterrupt()):
        with pytest.raises(type(error)) as caught, translated_errors(target):
            raise error
        assert caught.value is error


def test_a_wrong_option_is_not_taken_for_a_server_that_is_away() -> None:
    database = Database(parse_target("postgresql://127.0.0.1:1/x?sslmode=nonsense"))
    with pytest.raises(InvalidRecordError, match="invalid sslmode value"), database.read():
        pass
    database.close()


def test_a_url_that_cannot_be_read_is_not_quoted() -> None:
    database = Database(parse_target("postgresql://user:two words@host/db"))
    with pytest.raises(InvalidRecordError, match="URL cannot be read") as caught, database.read():
        pass
    assert "words" not in f"{caught.value} {caught.value.__cause__}"


def test_a_wrong_password_and_a_server_that_is_not_there_are_told_apart(postgres_url: str) -> None:
    host = postgres_url.rpartition("@")[2]
    refused = Database(parse_target(f"postgresql://nobody-here:{SECRET}@{host}"))
    with pytest.raises(UnavailableError) as caught, refused.read():
        pass
    assert SECRET not in str(caught.value)
    away = Database(parse_target("postgresql://user@127.0.0.1:1/db"))
    with pytest.raises(UnavailableError) as gone, away.read():
        pass
    assert not isinstance(gone.value, AccessRefusedError)
