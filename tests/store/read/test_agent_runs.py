"""Facts about the legs of agent runs, and the submissions in them, recorded and read again."""

from datetime import UTC, datetime, timedelta

import pytest
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
from tests.support.recording import say

from tooltrail.agents._leg_facts import leg_entry, outcome_entry
from tooltrail.records import (
    AmbiguousNameError,
    CompleteOutput,
    DamageError,
    NotFoundError,
    SchemaViolation,
    SessionClosedError,
    StructuredOutput,
    ToolCall,
    TooltrailError,
)
from tooltrail.store import (
    EndedCall,
    LegView,
    Store,
    agent_version,
    agent_versions,
    iter_accepted_values,
    iter_legs,
)
from tooltrail.store.verify import verify

MISSING = ("findings[0].files", "missing field `findings[0].files`")


def problems_of(store: Store) -> list[str]:
    store.ingest()
    return [one.message for one in verify(store.database, store.archive)]


@pytest.mark.both_engines
def test_a_leg_is_read_as_it_was_recorded(store: Store) -> None:
    agent = version()
    with store.open_session() as session:
        began = beginning(session)
        session.append([leg_entry(session.id, began, agent)])
        first = submit(session, {"findings": [{}]}, MISSING)
        second = submit_nothing_readable(session)
        third = submit(session, {"findings": []}, attempt=3)
        ended = ending(attempt_count=3, result_id=third, input_tokens=5)
        session.append([outcome_entry(session.id, ended)])
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
    assert problems_of(store) == []


def test_more_errors_than_are_listed_are_counted(store: Store) -> None:
    errors = [(f"a[{number}]", "wrong") for number in range(40)]
    session_id = record_leg(store, "result_invalid", values=[({}, tuple(errors))])
    [leg] = iter_legs(store.reader)
    assert leg.session_id == session_id
    assert leg.attempts[0].error_count == 40
    assert 0 < len(leg.attempts[0].errors) < 40


@pytest.mark.both_engines
def test_legs_are_asked_for_by_agent_and_time(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tooltrail.store.read.agent_runs.PAGE", 2)
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
    assert list(iter_legs(store.reader, since=datetime.now(UTC) + timedelta(days=1))) == []


@pytest.mark.both_engines
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
    [(_, accepted)] = iter_accepted_values(store.reader, "researcher")
    assert accepted == large
    assert [value for _, value in iter_accepted_values(store.reader, "tester")] == [{"b": 2}]


def test_a_closed_session_takes_no_leg(store: Store) -> None:
    with store.open_session() as session:
        pass
    with pytest.raises(SessionClosedError):
        session.append([outcome_entry(session.id, ending())])
    assert list(iter_legs(store.reader)) == []
    assert agent_versions(store.reader) == []


def test_a_submission_that_is_recorded_whole_has_a_verdict_too(store: Store) -> None:
    with store.open_session() as session:
        session.append([leg_entry(session.id, beginning(session), version())])
        call = ToolCall.of("submit_result", {"a": 1})
        verdict = StructuredOutput.of({"a": 1}, agent="researcher", schema_digest=SCHEMA)
        output = CompleteOutput.success("submit_result", verdict)
        session.record(EndedCall(call, output))
        list(session.record_many([EndedCall(call, output)]))
    [leg] = iter_legs(store.reader)
    assert [one.valid for one in leg.attempts] == [True, True]


@pytest.mark.parametrize("name", ["agent", "document"])
def test_a_damaged_body_is_not_handed_out(store: Store, name: str) -> None:
    record_leg(store)
    store.ingest()
    column = "l.agent" if name == "agent" else "m.document"
    alter(
        store,
        "UPDATE bodies SET data = x'00' WHERE digest IN (SELECT "
        f"{column} FROM agent_legs AS l JOIN messages AS m ON m.key = l.message_key)",
    )
    with pytest.raises(DamageError):
        _ = agent_versions(store.reader) if name == "agent" else [*legs_of(store)]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("agent_legs SET agent = 'x'", "digest holds no digest"),
        ("agent_legs SET agent = x'00'", "digest holds no digest"),
        ("agent_legs SET agent_id = CAST(x'ff' AS TEXT)", "agent_id holds no text"),
        ("agent_legs SET started_at = 'never'", "created_at holds no time"),
        (f"agent_legs SET agent = x'{'00' * 32}'", "is missing"),
    ],
)
def test_a_damaged_version_hides_no_other(store: Store, change: str, said: str) -> None:
    for name in ("researcher", "tester"):
        record_leg(store, agent=version(name))
    store.ingest()
    alter(store, f"UPDATE {change} WHERE agent_id = 'researcher'")
    with pytest.raises(DamageError, match=said):
        agent_versions(store.reader)
    errors: list[TooltrailError] = []
    [whole] = agent_versions(store.reader, on_error=errors.append)
    assert whole.agent_id == "tester"
    [error] = errors
    assert said in str(error)
    assert "of agent_legs is damaged" in str(error)


NO_VERDICT = '{"result":{"attempt":"two","valid":true}}'


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("agent_legs SET started_at = 'never' WHERE message_key = 1", "started_at holds no time"),
        ("agent_legs SET message_key = -1 WHERE message_key = 1", "started holds no digest"),
        ("sessions SET id = x'00' WHERE key = 1", "session_id holds no id"),
        ("messages SET document = 'x' WHERE key = 1", "started holds no digest"),
        ("messages SET document = x'00' WHERE key = 2", "ended holds no digest"),
        (
            "messages SET document = (SELECT document FROM messages WHERE key = 1) WHERE key = 2",
            "its document is not a LegEnded",
        ),
        ("invocations SET id = x'00' WHERE key = 1", "id holds no id"),
        ("invocations SET state = 'x' WHERE key = 1", "state holds no state"),
        ("surfaces SET canonical = '{}' WHERE invocation_key = 1", "verdict of call"),
        ("surfaces SET canonical = '{' WHERE invocation_key = 1", "verdict of call"),
        ("surfaces SET canonical = x'00' WHERE invocation_key = 1", "canonical holds no text"),
        (f"surfaces SET canonical = '{NO_VERDICT}' WHERE invocation_key = 1", "verdict of call"),
    ],
)
def test_a_damaged_leg_hides_no_other(store: Store, change: str, said: str) -> None:
    damaged, whole = (record_leg(store, values=[({"a": 1}, ())]) for _ in range(2))
    store.ingest()
    assert [leg.session_id for leg in legs_of(store)] == [damaged, whole]
    alter(store, f"UPDATE {change}")
    with pytest.raises(DamageError, match=said):
        legs_of(store)
    errors: list[TooltrailError] = []
    found = iter_legs(store.reader, on_error=errors.append)
    assert [leg.session_id for leg in found] == [whole]
    [error] = errors
    assert said in str(error)


def test_a_leg_of_a_lost_session_is_named(store: Store) -> None:
    record_leg(store)
    store.ingest()
    alter(store, "DELETE FROM sessions")
    with pytest.raises(DamageError, match="session_id holds no id"):
        legs_of(store)


def legs_of(store: Store) -> list[LegView]:
    return list(iter_legs(store.reader))


def test_facts_are_among_the_messages_of_the_session(store: Store) -> None:
    session_id = record_leg(store, "answered")
    _, messages, _ = store.reader.conversation(session_id)
    assert [message.role for message in messages] == ["agent", "agent"]
    assert [message.leg and message.leg.kind for message in messages] == [
        "leg_started",
        "leg_ended",
    ]
    with store.open_session() as plain:
        say(plain, "agent", "words of a runtime in that role")
    _, [message], _ = store.reader.conversation(plain.id)
    assert message.leg is None
