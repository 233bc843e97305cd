"""The tools that models are offered: each version once, and which ones when."""

from datetime import UTC, datetime

import pytest
from sqlalchemy import select, text
from tests.support.away import away

from tooltrail.records import (
    DamageError,
    DigestMismatchError,
    InvalidRecordError,
    SessionClosedError,
    ToolDefinition,
    ToolPolicy,
    canonical_json,
)
from tooltrail.store import MessageAdded, Store, ToolView, new_id, open_store, repair
from tooltrail.store.entries import entry_json, read_entry
from tooltrail.store.tables import LedgerEntryRow
from tooltrail.transcripts import conversation_of, load_transcript, until

ADD = ToolDefinition(name="add", description="Adds.", parameters={"type": "object"})
RUN = ToolDefinition(name="Bash", parameters={"type": "object", "properties": {}}, strict=True)
NEWER = ADD.model_copy(update={"description": "Adds two numbers. \ud800"})


def definitions(tools: list[ToolView]) -> list[ToolDefinition]:
    return [tool.definition for tool in tools]


def test_what_was_offered_is_told_back_in_its_order(store: Store) -> None:
    before = datetime.now(UTC)
    with store.open_session() as session:
        session.offer_tools([RUN, NEWER])
    tools = store.reader.offered_tools(session.id)
    assert definitions(tools) == [RUN, NEWER]
    assert [tool.digest for tool in tools] == [RUN.digest, NEWER.digest]
    assert [tool.family for tool in tools] == ["command", "generic"]
    assert all(before <= tool.offered_at <= datetime.now(UTC) for tool in tools)


def test_the_policy_chooses_the_family_as_it_does_for_calls(store: Store, database: str) -> None:
    policy = store.policy.model_copy(update={"tools": {"add": ToolPolicy(family="command")}})
    with open_store(database, policy=policy) as chosen:
        with chosen.open_session() as session:
            session.offer_tools([ADD])
        assert [tool.family for tool in chosen.reader.tools()] == ["command"]


def test_each_version_is_kept_once_and_each_offer_is_known(store: Store) -> None:
    with store.open_session() as first, store.open_session() as second:
        first.offer_tools([ADD])
        second.offer_tools([RUN, ADD])
        first.offer_tools([NEWER, RUN])
        first.add_message("user", "hello")
        second.offer_tools([])
    assert definitions(store.reader.tools()) == [RUN, ADD, NEWER]
    assert definitions(store.reader.tools("add")) == [ADD, NEWER]
    assert store.reader.tools("sub") == []
    assert definitions(store.reader.offered_tools(first.id)) == [NEWER, RUN]
    assert store.reader.offered_tools(second.id) == []
    messages = store.reader.conversation(first.id)[1]
    assert [(one.role, one.text) for one in messages] == [
        ("tools", "add"),
        ("tools", "add, Bash"),
        ("user", "hello"),
    ]
    offers = [None if one.tools is None else definitions([*one.tools]) for one in messages]
    assert offers == [[ADD], [NEWER, RUN], None]
    assert [one.tools for one in store.reader.conversation(second.id)[1]][-1] == ()


def test_the_latest_version_is_the_one_that_was_offered_last(store: Store) -> None:
    with store.open_session() as first, store.open_session() as second:
        first.offer_tools([ADD, RUN])
        second.offer_tools([NEWER])
        assert definitions(store.reader.tools(latest=True)) == [RUN, NEWER]
        first.offer_tools([ADD])
    assert definitions(store.reader.tools(latest=True)) == [RUN, ADD]
    assert definitions(store.reader.tools("add", latest=True)) == [ADD]
    assert definitions(store.reader.tools()) == [RUN, ADD, NEWER]


@pytest.mark.parametrize("is_reversed", [False, True])
def test_versions_that_were_first_offered_together_are_in_the_order_of_the_offer(
    store: Store, is_reversed: bool
) -> None:
    versions = sorted((ADD, NEWER), key=lambda tool: tool.digest, reverse=is_reversed)
    with store.open_session() as session:
        session.offer_tools(versions)
    assert definitions(store.reader.tools()) == versions
    assert definitions(store.reader.tools(latest=True)) == versions[1:]


def test_what_a_runtime_says_in_the_role_of_offers_offers_nothing(store: Store) -> None:
    with store.open_session() as session:
        session.offer_tools([ADD])
        session.add_message("tools", "add, run")
        assert definitions(store.reader.offered_tools(session.id)) == [ADD]
        session.offer_tools([])
    assert store.reader.offered_tools(session.id) == []


def test_a_conversation_has_the_tools_that_it_offered_last(store: Store) -> None:
    with store.open_session() as session:
        session.offer_tools([ADD])
        said = session.add_message("user", "hello")
        session.offer_tools([RUN])
    transcript = load_transcript(store.reader, str(session.id))
    assert conversation_of(transcript).tools == (RUN,)
    assert conversation_of(until(transcript, str(said))).tools == (ADD,)
    # No provider is told of it in words.
    assert [message.text for message in conversation_of(transcript).messages] == ["hello"]


def test_the_ledger_commits_to_what_was_offered(store: Store) -> None:
    with store.open_session() as session:
        offered = session.offer_tools([RUN, ADD])
        session.offer_tools([])
    with store.database.read() as connection:
        row = LedgerEntryRow
        query = select(row.subject_id, row.payload).where(row.kind == "message").order_by(row.n)
        (first, payload), (_, nothing) = connection.execute(query).all()
    assert first == offered
    committed = canonical_json.decode(payload)
    assert isinstance(committed, dict)
    assert committed["tools"] == [RUN.digest, ADD.digest]
    assert '"tools":[]' in nothing


def test_offers_wait_in_the_outbox(patient: Store, database: str) -> None:
    session = patient.open_session()
    with away(patient, database):
        session.offer_tools([NEWER, RUN])
        session.offer_tools([])
        session.offer_tools([RUN, ADD])
    assert repair(patient).outbox.delivered_count == 3
    assert definitions(patient.reader.offered_tools(session.id)) == [RUN, ADD]
    offers = [one.tools for one in patient.reader.conversation(session.id)[1]]
    assert [None if one is None else len(one) for one in offers] == [2, 0, 2]


def test_a_line_of_the_journal_holds_an_offer() -> None:
    tools = (RUN.to_json().decode(), NEWER.to_json().decode())
    entry = MessageAdded(session=new_id(), role="tools", text="Bash, add", tools=tools)
    assert read_entry(entry_json(entry)) == entry
    assert b'"v":3' in entry_json(entry)
    nothing = MessageAdded(session=new_id(), role="tools", text="", tools=())
    assert read_entry(entry_json(nothing)) == nothing


@pytest.mark.parametrize("on_unavailable", ["raise"])
def test_a_closed_session_takes_no_offer(store: Store) -> None:
    with store.open_session() as session:
        pass
    with pytest.raises(SessionClosedError):
        session.offer_tools([ADD])


def test_a_definition_comes_back_from_its_json() -> None:
    grammar = ToolDefinition(name="sql", kind="custom", grammar={"syntax": "lark"}, extras={"a": 1})
    for tool in (ADD, RUN, NEWER, grammar):
        assert ToolDefinition.from_json(tool.to_json()) == tool
    with pytest.raises(InvalidRecordError, match="no definition of a tool"):
        ToolDefinition.from_json('{"name":1}')


@pytest.mark.parametrize(
    ("change", "error", "told"),
    [
        ("""UPDATE tools SET document = '{"name":"sub"}'""", DigestMismatchError, "'add' is not"),
        ("UPDATE tools SET document = x'00'", DamageError, "it is not text"),
    ],
)
def test_a_damaged_definition_is_told(
    sqlite_store: Store, change: str, error: type[DamageError], told: str
) -> None:
    with sqlite_store.open_session() as session:
        session.offer_tools([ADD])
    with sqlite_store.database.write() as connection:
        connection.execute(text("DROP TRIGGER tools_no_update"))
        connection.execute(text(change))
    with pytest.raises(error, match=told):
        sqlite_store.reader.offered_tools(session.id)
    with pytest.raises(error, match=told):
        sqlite_store.reader.tools()
