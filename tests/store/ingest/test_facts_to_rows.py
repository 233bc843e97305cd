"""Every kind of fact becomes its rows."""

import json
from functools import partial
from typing import Any
from uuid import UUID

import pytest
from tests.support import schema
from tests.support.call_facts import ended, message, moment, next_id, offered, opened, started
from tests.support.store_parts import StoreParts

from tooltrail.journal import Entry
from tooltrail.records.canonical_json import encode
from tooltrail.records.digests import EMPTY, digest_of
from tooltrail.records.facts import AgentLeg, AgentOutcome, Maintenance, SessionClosed

pytestmark = pytest.mark.both_engines

SESSION = ("id", "name", "title", "agent", "environment", "opened_at", "closed_at", "close_reason")


ENVIRONMENT = b'{"host":"h"}'
nightly = partial(opened, name="nightly", title="t", agent="a", environment=ENVIRONMENT)


def test_a_session_is_opened_and_closed(parts: StoreParts) -> None:
    session = next_id()
    parts.ingest(
        nightly(session), Entry(SessionClosed(session=session, at=moment(9), reason="done"))
    )
    said = ("nightly", "t", "a", digest_of(ENVIRONMENT), moment(), moment(9), "done")
    assert parts.rows(schema.sessions, *SESSION) == [(session, *said)]
    assert parts.body(digest_of(ENVIRONMENT)) == ENVIRONMENT
    assert parts.rows(schema.sessions, "entry", "close_entry") == [(0, 1)]


def test_a_session_that_a_fact_joins_begins_with_that_fact_and_is_opened_late(
    parts: StoreParts,
) -> None:
    session = next_id()
    parts.ingest(message(session))
    assert parts.rows(schema.sessions, "name", "opened_at", "entry") == [(None, moment(), None)]
    parts.ingest(nightly(session, at=5))
    assert parts.rows(schema.sessions, "name", "opened_at", "entry") == [("nightly", moment(), 1)]


def test_a_session_is_joined_and_opened_in_one_batch(parts: StoreParts) -> None:
    session = next_id()
    parts.ingest(message(session), nightly(session, at=5))
    assert parts.rows(schema.sessions, "name", "opened_at", "entry") == [("nightly", moment(), 1)]


def test_a_call_after_the_end_of_its_session_is_late(parts: StoreParts) -> None:
    session, before, after, later = next_id(), next_id(), next_id(), next_id()
    closed = Entry(SessionClosed(session=session, at=moment(1)))
    parts.ingest(started(session, before), closed, started(session, after))
    parts.ingest(started(session, later))
    assert parts.rows(schema.invocations, "id", "is_late") == [
        (before, False),
        (after, True),
        (later, True),
    ]


def test_a_session_that_is_closed_twice_stays_as_it_was_closed_first(parts: StoreParts) -> None:
    session = next_id()
    parts.ingest(Entry(SessionClosed(session=session, at=moment(1), reason="one")))
    parts.ingest(Entry(SessionClosed(session=session, at=moment(2), reason="two")))
    assert parts.rows(schema.sessions, "closed_at", "close_reason") == [(moment(1), "one")]
    assert not parts.rejections()


def test_a_message_keeps_its_text_document_and_payload(parts: StoreParts) -> None:
    session, name = next_id(), next_id()
    bodies = [b"text \xf0\x9f\x90\xa2", b'{"role":"user"}', b"\xff raw"]
    text, document, payload = bodies
    more: dict[str, Any] = {"document": document, "payload": payload, "wire_format": "anthropic"}
    parts.ingest(message(session, text, id=name, **more))
    row = parts.rows(
        schema.messages, "id", "seq", "role", "text", "document", "payload", "wire_format"
    )
    assert row == [(name, 1, "user", *map(digest_of, bodies), "anthropic")]
    assert [parts.body(digest_of(one)) for one in bodies] == bodies


def test_offered_tools_are_stored_once_and_offered_in_order(parts: StoreParts) -> None:
    session = next_id()
    one, two = b'{"name":"one"}', b'{"name":"two"}'
    digests = (digest_of(two), digest_of(one))
    parts.ingest(offered(session, two, one))
    # The definitions were written to the segment before, so the second offer carries none.
    parts.ingest(offered(session, one, two, at=1)._replace(bodies=[]))
    assert not parts.rejections()
    assert sorted(parts.rows(schema.tools, "name", "digest")) == [
        ("one", digest_of(one)),
        ("two", digest_of(two)),
    ]
    offers = parts.rows(schema.tool_offers, "position", "tool")
    assert offers == [(0, digests[0]), (1, digests[1]), (0, digests[1]), (1, digests[0])]
    assert parts.rows(schema.messages, "role", "text", "seq") == [
        ("tools", EMPTY, 1),
        ("tools", EMPTY, 2),
    ]


def test_an_offer_of_a_tool_that_nobody_defined_is_rejected(parts: StoreParts) -> None:
    parts.ingest(offered(next_id(), b"never seen")._replace(bodies=[]))
    assert parts.rejections() == [f"body {digest_of(b'never seen')} is missing"]
    assert not parts.count(schema.sessions)


def leg_document(run: UUID) -> bytes:
    about = {"run_id": str(run), "position": 0, "tier": "small", "agent_id": "reviewer"}
    made_by = {"model": "m-1", "wire_format": "openai_chat"}
    return encode({**about, **made_by, "schema_digest": digest_of(b"schema")})


def leg(session: UUID, document: bytes, agent: bytes = b"{}") -> Entry:
    digests = {"document": digest_of(document), "agent": digest_of(agent)}
    fact = AgentLeg(session=session, id=next_id(), at=moment(), agent_version="v2", **digests)
    return Entry(fact, [document, agent])


def test_the_legs_of_an_agent_run_are_kept(parts: StoreParts) -> None:
    session, run = next_id(), next_id()
    document, agent = leg_document(run), b'{"agent":1}'
    done = encode({"outcome": "succeeded", "attempt_count": 2, "duration_ms": 70})
    outcome = AgentOutcome(session=session, id=next_id(), at=moment(3), document=digest_of(done))
    parts.ingest(leg(session, document, agent), Entry(outcome, [done]))
    names = ("run_id", "position", "model", "agent_id", "agent", "agent_version", "schema")
    assert parts.rows(schema.agent_legs, *names) == [
        (run, 0, "m-1", "reviewer", digest_of(agent), "v2", digest_of(b"schema"))
    ]
    ended_names = ("outcome", "escalated_to", "attempt_count", "duration_ms")
    assert parts.rows(schema.agent_outcomes, *ended_names) == [("succeeded", None, 2, 70)]
    assert parts.rows(schema.messages, "role") == [("agent_leg",), ("agent_outcome",)]


def test_a_leg_whose_document_has_members_of_other_types_is_rejected(parts: StoreParts) -> None:
    good = json.loads(leg_document(next_id()))
    wrong = {
        "run_id": 5,
        "position": "first",
        "tier": ["small"],
        "schema_digest": "md5:1",
        "agent_id": None,
    }
    session = next_id()
    for name, value in wrong.items():
        document = encode({**good, name: value})
        parts.append(leg(session, document))
    assert parts.ingest(message(session)).rejected_count == len(wrong)
    assert parts.count(schema.messages) == 1
    assert parts.rows(schema.messages, "seq") == [(1,)]


def test_maintenance_is_in_the_ledger(parts: StoreParts) -> None:
    details = b'{"freed":3}'
    fact = Maintenance(
        id=next_id(), at=moment(), action="gc", actor="me", details=digest_of(details)
    )
    parts.ingest(Entry(fact, [details]))
    assert parts.rows(schema.ledger_entries, "kind", "subject_id") == [("maintenance", fact.id)]
    assert parts.body(digest_of(details)) == details


def test_a_call_that_started_only_is_open(parts: StoreParts) -> None:
    session, call = next_id(), next_id()
    parts.ingest(started(session, call))
    names = ("id", "state", "tool_name", "call_id", "finished_at", "start_entry", "end_entry")
    assert parts.rows(schema.invocations, *names) == [
        (call, "started", "bash", "toolu_1", None, 0, None)
    ]
    assert parts.rows(schema.surfaces, "arguments", "output", "receipt") == [
        ('{"command":"ls"}', None, None)
    ]


def test_a_call_is_the_same_rows_in_one_batch_as_in_two(parts: StoreParts) -> None:
    session, one, two = next_id(), next_id(), next_id()
    parts.ingest(started(session, one), ended(session, one, b"text\n" * 30, exit_status=3))
    parts.ingest(started(session, two))
    parts.ingest(ended(session, two, b"text\n" * 30, exit_status=3))
    own = {"key", "id", "seq", "start_entry", "end_entry", "invocation_key"}
    for table in (schema.invocations, schema.surfaces):
        names = [column.name for column in table.columns if column.name not in own]
        first, second = parts.rows(table, *names)
        assert first == second
    assert parts.rows(schema.invocations, "start_entry", "end_entry") == [(0, 1), (2, 3)]
    streams = parts.rows(schema.streams, "role", "digest", "size", "receipt_offset")
    assert len(streams) == 4
    assert streams[:2] == streams[2:]


def test_entries_of_a_session_are_in_the_order_of_the_journal(parts: StoreParts) -> None:
    session, other, calls = next_id(), next_id(), [next_id() for _ in range(4)]
    parts.ingest(
        started(session, calls[0]),
        message(session),
        message(other),
        ended(session, calls[0]),
        started(session, calls[1]),
    )
    parts.ingest(message(session), started(session, calls[2]), started(other, calls[3]))
    assert parts.rows(schema.invocations, "id", "seq") == [
        (calls[0], 1),
        (calls[1], 3),
        (calls[2], 5),
        (calls[3], 2),
    ]
    assert parts.rows(schema.messages, "seq") == [(2,), (1,), (4,)]


def test_every_frame_is_in_the_ledger_with_its_hash(parts: StoreParts) -> None:
    session, call = next_id(), next_id()
    cursors = parts.log.record([started(session, call), ended(session, call)])
    parts.ingest()
    assert parts.rows(schema.ledger_entries, "n", "kind", "subject_id", "hash") == [
        (0, "call.started", call, cursors[0].hash),
        (1, "call.ended", call, cursors[1].hash),
    ]
    names = ("entry_count", "next_index", "head")
    assert parts.rows(schema.journals, *names) == [(2, 2, cursors[1].hash)]
