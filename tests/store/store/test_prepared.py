"""Statements that go to the driver as they are do what SQLAlchemy would have done."""

from datetime import UTC, datetime
from uuid import UUID, uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import bindparam, delete, insert, select, text, update
from sqlalchemy.exc import IntegrityError
from tests.support.effort import times
from tests.support.recording import run_command

from tooltrail.records import DamageError, InvalidRecordError, ToolCall, UnavailableError
from tooltrail.store import Store
from tooltrail.store._engines.prepared import Prepared
from tooltrail.store._engines.sqlite import sqlite3
from tooltrail.store.tables import Base, PolicyRow, SessionRow

SESSIONS = Base.metadata.tables["sessions"]
POLICIES = Base.metadata.tables["policies"]
ADD_SESSION = Prepared(lambda _: insert(SESSIONS).returning(SESSIONS.c.key))
ADD_POLICY = Prepared(lambda _: insert(POLICIES))
MOMENT = datetime(2026, 11, 22, 12, 0, 0, 5, tzinfo=UTC)


def a_session(**changes: object) -> dict[str, object]:
    row: dict[str, object] = {"id": uuid4(), "environment": "{}", "opened_at": MOMENT}
    return {**row, **changes}


def a_policy(digest: str) -> dict[str, object]:
    return {"digest": digest, "document": "{}", "created_at": MOMENT}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=times(10))
@given(
    name=st.uuids(),
    title=st.none() | st.text(st.characters(codec=None)),
    opened_at=st.datetimes(min_value=datetime(1970, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
)
def test_a_row_is_stored_as_sqlalchemy_stores_it(
    store: Store, name: UUID, title: str | None, opened_at: datetime
) -> None:
    row = a_session(id=name, title=title, opened_at=opened_at)
    with store.database.write() as connection:
        ours = connection.begin_nested()
        ADD_SESSION.run(connection, row)
        found = connection.execute(select(SESSIONS).where(SESSIONS.c.id == name)).one()
        ours.rollback()
        theirs = connection.begin_nested()
        connection.execute(insert(SESSIONS), row)
        expected = connection.execute(select(SESSIONS).where(SESSIONS.c.id == name)).one()
        theirs.rollback()
    assert found[1:] == expected[1:]


def test_it_answers_with_what_was_asked_to_be_returned(store: Store) -> None:
    row = a_session()
    with store.database.write() as connection:
        answer = ADD_SESSION.run_one(connection, row)
        key = connection.scalar(select(SessionRow.key).where(SessionRow.id == row["id"]))
    assert answer == (key,)


def test_it_counts_the_rows_and_keeps_its_own_values(store: Store) -> None:
    move = Prepared(
        lambda _: (
            update(POLICIES)
            .where(POLICIES.c.digest == bindparam("which"), POLICIES.c.document == "{}")
            .values(document=POLICIES.c.document)
        )
    )
    with store.database.write() as connection:
        connection.execute(text("SELECT 1"))
        assert move.count(connection, {"which": "not there"}) == 0


def test_several_rows_are_all_inserted_and_none_is_nothing(store: Store) -> None:
    with store.database.write() as connection:
        ADD_POLICY.run_many(connection, [a_policy("a"), a_policy("b")])
        ADD_POLICY.run_many(connection, [])
    with store.database.read() as connection:
        assert sorted(connection.scalars(select(PolicyRow.digest))) == ["a", "b"]


@pytest.mark.parametrize("many", [False, True])
def test_a_refusal_is_an_error_of_sqlalchemy_and_of_ours(store: Store, *, many: bool) -> None:
    def add_twice() -> None:
        with store.database.write() as connection:
            for _ in range(2):
                if many:
                    ADD_POLICY.run_many(connection, [a_policy("a")])
                else:
                    ADD_POLICY.run(connection, a_policy("a"))

    with pytest.raises(InvalidRecordError) as caught:
        add_twice()
    assert isinstance(caught.value.__cause__, IntegrityError)
    with store.database.read() as connection:
        assert connection.scalars(select(PolicyRow.digest)).all() == []


def test_what_the_triggers_refuse_is_refused(store: Store) -> None:
    forget = Prepared(lambda _: delete(POLICIES).where(POLICIES.c.digest == bindparam("which")))
    with store.database.write() as connection:
        ADD_POLICY.run(connection, a_policy("a"))
    with pytest.raises(InvalidRecordError), store.database.write() as connection:
        forget.run(connection, {"which": "a"})


def test_a_connection_that_the_server_ended_is_used_no_more(postgres_store: Store) -> None:
    def end_it() -> None:
        with postgres_store.database.write() as connection:
            backend = connection.scalar(text("SELECT pg_backend_pid()"))
            with postgres_store.database.autocommit() as other:
                other.execute(text("SELECT pg_terminate_backend(:pid)"), {"pid": backend})
            ADD_POLICY.run(connection, a_policy("a"))

    with pytest.raises(UnavailableError):
        end_it()
    with postgres_store.database.write() as connection:
        ADD_POLICY.run(connection, a_policy("a"))


@pytest.mark.parametrize("title", [5, b"x"])
def test_a_value_of_another_kind_is_refused_as_ever(store: Store, title: object) -> None:
    with pytest.raises(InvalidRecordError, match="cannot be asked"):
        store.open_session(title=title)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  that is what is tried
    with pytest.raises(InvalidRecordError), store.database.write() as connection:
        ADD_POLICY.run_many(connection, [a_policy("a") | {"created_at": "today"}])


@pytest.mark.parametrize(
    "altered",
    [
        "digest = 'sha256:short'",
        "digest = x'80'",
        "digest = CAST(x'ff80' AS TEXT)",
        "entry_count = 'abc'",
        "next_seq = 1.5",
        "closed_at = 'yesterday'",
    ],
)
def test_nothing_is_built_upon_a_damaged_ledger_head(sqlite_store: Store, altered: str) -> None:
    session = sqlite_store.open_session()
    with sqlite3.connect(str(sqlite_store.database.target)) as raw:
        raw.execute("DROP TRIGGER ledger_heads_no_update")
        raw.execute("PRAGMA ignore_check_constraints = ON")
        raw.execute(f"UPDATE ledger_heads SET {altered}")
    raw.close()
    with pytest.raises(DamageError):
        session.add_message("user", "x")
    with pytest.raises(DamageError):
        session.start(ToolCall(tool_name="Bash"))
    assert sqlite_store.reader.counts().invocations == {}


def test_the_statements_of_records_are_prepared_on_the_server(postgres_store: Store) -> None:
    session = postgres_store.open_session()
    for number in range(6):
        # Sizes of one, two and four bytes, which psycopg would call three types.
        run_command(session, b"x" * 10 ** (number % 3 * 2 + 1))
    with postgres_store.database.read() as connection:
        prepared = connection.execute(
            text("SELECT statement, generic_plans + custom_plans FROM pg_prepared_statements")
        ).all()
    (ends,) = [count for statement, count in prepared if statement.startswith("UPDATE inv")]
    assert ends >= 4
