"""Facts about the legs of agent runs, and the submissions in them, recorded and read again."""

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text
from tests.support.agents.recorded import (
    SCHEMA,
    beginning,
    ending,
    record_leg,
    submit,
    submit_nothing_readable,
    version,
)
from tests.support.altering import alter
from tests.support.away import away, without_pause
from tests.support.evidence import check_evidence

from tooltrail.records import (
    AmbiguousNameError,
    CompleteOutput,
    DigestMismatchError,
    InvalidRecordError,
    NotFoundError,
    SchemaViolation,
    SessionClosedError,
    StructuredOutput,
    ToolCall,
)
from tooltrail.store import (
    EndedCall,
    Store,
    agent_version,
    agent_versions,
    iter_accepted_values,
    iter_legs,
    iter_message_checks,
    iter_record_checks,
)

MISSING = ("findings[0].files", "missing field `findings[0].files`")


def problems(store: Store) -> list[str]:
    found = [*iter_message_checks(store.reader), *iter_record_checks(store.reader)]
    return [one.problem for one in found if one.problem]


def test_a_leg_is_read_as_it_was_recorded(store: Store) -> None:
    agent = version()
    with store.open_session() as session:
        began = beginning(session)
        session.record_leg(began, agent)
        first = submit(session, {"findings": [{}]}, MISSING)
        second = submit_nothing_readable(session)
        third = submit(session, {"findings": []}, attempt=3)
        ended = ending(attempt_count=3, result_id=third, input_tokens=5)
        session.record_leg(ended)
    [leg] = iter_legs(store.reader)
    assert (leg.session_id, leg.started, leg.ended) == (session.id, began, ended)
    assert leg.started_at.tzinfo is not None
    assert [attempt.invocation_id for attempt in leg.attempts] == [first, second, third]
    assert [(one.attempt, one.valid, one.state) for one in leg.attempts] == [
        (1, False, "success"),
        (None, None, "error"),
        (3, True, "success"),
    ]
    assert leg.attempts[0].errors == (SchemaViolation(path=MISSING[0], message=MISSING[1]),)
    assert [one.error_count for one in leg.attempts] == [1, 0, 0]
    assert problems(store) == []
    check_evidence(store)


def test_more_errors_than_are_listed_are_counted(store: Store) -> None:
    errors = [(f"a[{number}]", "wrong") for number in range(40)]
    session_id = record_leg(store, "result_invalid", values=[({}, tuple(errors))])
    [leg] = iter_legs(store.reader)
    assert leg.session_id == session_id
    assert leg.attempts[0].error_count == 40
    assert 0 < len(leg.attempts[0].errors) < 40


def test_legs_are_asked_for_by_agent_and_time(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tooltrail.store.agent_runs.PAGE", 2)
    other = version("tester")
    names = [record_leg(store), record_leg(store, agent=other), record_leg(store, None)]
    names += [record_leg(store), record_leg(store)]
    assert [leg.session_id for leg in iter_legs(store.reader)] == names
    assert [leg.session_id for leg in iter_legs(store.reader, agent="tester")] == [names[1]]
    open_ones = [leg.session_id for leg in iter_legs(store.reader) if leg.ended is None]
    assert open_ones == [names[2]]
    at = [leg.started_at for leg in iter_legs(store.reader)]
    later = [leg.session_id for leg in iter_legs(store.reader, since=at[3])]
    assert later == names[3:]
    earlier = [leg.session_id for leg in iter_legs(store.reader, until=at[3])]
    assert earlier == names[:3]
    assert list(iter_legs(store.reader, since=datetime.now(UTC) + timedelta(days=1))) == []


def test_a_version_is_kept_once_and_found_by_the_beginning_of_its_digest(store: Store) -> None:
    older, newer, other = version(), version(name="2"), version("tester")
    for agent in (older, newer, older, other):
        record_leg(store, agent=agent)
    found = agent_versions(store.reader)
    assert [one.digest for one in found] == [older.digest, newer.digest, other.digest]
    assert [one.version for one in agent_versions(store.reader, "researcher")] == ["1", "2"]
    assert agent_version(store.reader, newer.digest).document == newer.document
    assert agent_version(store.reader, newer.digest[7:19]).digest == newer.digest
    with pytest.raises(AmbiguousNameError):
        agent_version(store.reader, "sha256:")
    with pytest.raises(NotFoundError, match="no version of an agent"):
        agent_version(store.reader, "sha256:zz")


def test_accepted_values_are_given_whole(store: Store) -> None:
    large = {"text": "x" * 300_000, "n": None}
    record_leg(store, values=[({"a": 1}, (MISSING,)), (large, ())])
    record_leg(store, agent=version("tester"), values=[({"b": 2}, ())])
    [accepted] = iter_accepted_values(store.reader, "researcher")
    assert accepted.value == large
    assert accepted.schema_digest == SCHEMA
    assert [one.value for one in iter_accepted_values(store.reader, "tester")] == [{"b": 2}]


def test_a_leg_without_its_agent_or_with_another_is_refused(store: Store) -> None:
    with store.open_session() as session:
        began = beginning(session)
        with pytest.raises(InvalidRecordError, match="no version of an agent"):
            session.record_leg(began)
        with pytest.raises(InvalidRecordError, match="the leg is not of version"):
            session.record_leg(began, version(name="2"))
    with pytest.raises(SessionClosedError):
        session.record_leg(ending())
    assert list(iter_legs(store.reader)) == []
    assert agent_versions(store.reader) == []


@pytest.mark.parametrize("gone", ["beginning", "end", "both"])
def test_a_leg_waits_in_the_outbox_while_the_store_is_away(
    patient: Store, database: str, gone: str
) -> None:
    store = patient
    session = store.open_session()
    began, agent = beginning(session), version()
    if gone == "end":
        session.record_leg(began, agent)
    with away(store, database):
        if gone != "end":
            session.record_leg(began, agent)
            submit(session, {"a": 1}, MISSING)
        if gone != "beginning":
            session.record_leg(ending("result_invalid"))
    without_pause(store)
    if gone == "beginning":
        session.record_leg(ending("result_invalid"))
    session.close()
    [leg] = iter_legs(store.reader)
    assert leg.started == began
    assert leg.ended is not None
    assert leg.ended.outcome == "result_invalid"
    assert [one.valid for one in leg.attempts] == ([] if gone == "end" else [False])
    assert problems(store) == []


def test_a_submission_that_is_recorded_whole_has_a_verdict_too(store: Store) -> None:
    with store.open_session() as session:
        session.record_leg(beginning(session), version())
        call = ToolCall.of("submit_result", {"a": 1})
        verdict = StructuredOutput.of({"a": 1}, agent="researcher", schema_digest=SCHEMA)
        output = CompleteOutput.success("submit_result", verdict)
        session.record(call, output)
        session.record_many([EndedCall(call, output)])
    [leg] = iter_legs(store.reader)
    assert [one.valid for one in leg.attempts] == [True, True]


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("UPDATE agent_legs SET tier = 'large'", "leg"),
        ("UPDATE agent_legs SET started_at = '2020-01-01T00:00:00.000000Z'", "leg"),
        ("UPDATE agent_outcomes SET outcome = 'answered'", "leg"),
        ("DELETE FROM agent_outcomes", "missing: leg"),
        ("DELETE FROM agent_legs", "missing: leg"),
        ("UPDATE agent_outcomes SET document = replace(document, 'so it was', 'so it is')", "leg"),
        ("UPDATE agent_outcomes SET document = '{}'", "a fact of an agent run is damaged"),
        ("UPDATE agent_outcomes SET document = x'00'", "a fact of an agent run is damaged"),
        ("DELETE FROM structured_outputs", "its verdict is missing"),
        ("UPDATE agents SET document = '{}'", "the version of its agent is altered"),
        ("UPDATE agents SET agent_id = 'b'", "the version of its agent is altered"),
        ("DELETE FROM agents", "the version of its agent is missing"),
        ("UPDATE structured_outputs SET valid = 0", "its verdict is not what its canonical"),
        ("UPDATE structured_outputs SET document = '{}'", "its verdict is not what its canonical"),
    ],
)
def test_what_was_altered_behind_its_back_is_named(
    sqlite_store: Store, statement: str, problem: str
) -> None:
    record_leg(sqlite_store, values=[({"a": 1}, ())])
    assert problems(sqlite_store) == []
    alter(sqlite_store, statement)
    [found] = problems(sqlite_store)
    assert problem in found


def test_an_altered_version_is_not_handed_out(sqlite_store: Store) -> None:
    record_leg(sqlite_store)
    alter(sqlite_store, "UPDATE agents SET document = '{}'")
    with pytest.raises(DigestMismatchError):
        agent_versions(sqlite_store.reader)


def test_facts_are_told_with_the_messages_of_the_session(store: Store) -> None:
    session_id = record_leg(store, "answered")
    _, messages, _ = store.reader.conversation(session_id)
    assert [message.role for message in messages] == ["agent", "agent"]
    assert [message.leg and message.leg.kind for message in messages] == [
        "leg_started",
        "leg_ended",
    ]
    with store.open_session() as plain:
        plain.add_message("agent", "words of a runtime in that role")
    _, [message], _ = store.reader.conversation(plain.id)
    assert message.leg is None


def test_legs_are_found_by_an_index_and_submissions_by_their_session(sqlite_store: Store) -> None:
    record_leg(sqlite_store)
    statements: list[str] = []
    queries = (
        (
            "SELECT * FROM agent_legs WHERE agent_id = 'a' AND started_at >= '2026' "
            "AND message_key > 5 ORDER BY message_key LIMIT 200"
        ),
        "SELECT * FROM agent_outcomes WHERE session_key IN (1, 2)",
        (
            "SELECT * FROM invocations AS i LEFT JOIN structured_outputs AS s "
            "ON s.invocation_key = i.key WHERE i.session_key IN (1, 2) "
            "AND i.tool_name = 'submit_result' ORDER BY i.session_key, i.seq"
        ),
    )
    with sqlite_store.database.read() as connection:
        for query in queries:
            plan = connection.execute(text(f"EXPLAIN QUERY PLAN {query}")).all()
            statements += [str(row[-1]) for row in plan]
    assert not [line for line in statements if line.startswith("SCAN")]
