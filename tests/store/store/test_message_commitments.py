"""Every message beside what the ledger committed to, and what was altered behind its back."""

from uuid import UUID

import pytest
from tests.support.altering import alter

from tooltrail.records import CallBlock, Message, TextBlock, ToolCall, ToolDefinition
from tooltrail.store import Session, Store, iter_message_checks
from tooltrail.store.commitments import RecordCheck

TOOLS = [ToolDefinition(name="one"), ToolDefinition(name="two", description="\0 \ud800")]


def talked(session: Session) -> list[UUID]:
    """A message of each kind: a text, one with a document and bytes, an offer, and no offer."""
    asking = Message(
        role="assistant",
        blocks=(TextBlock(text="I look. \udfff"), CallBlock(call=ToolCall(tool_name="one"))),
    )
    return [
        session.add_message("odd \0 role", "text \0 \ud800"),
        session.record_message(asking, payload=b"\xff\0{}"),
        session.offer_tools(TOOLS),
        session.offer_tools([]),
        session.record_message(Message.of("user", "")),
        # Words in the role of offers, as runtimes may write them, offer nothing.
        session.add_message("tools", "You may use: one"),
        session.add_message("tools", ""),
    ]


def problems(store: Store) -> list[str]:
    return [found.problem for found in iter_message_checks(store.reader)]


def test_what_was_said_is_what_the_ledger_commits_to(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tooltrail.store._reading.listing.PAGE", 2)
    first, second = store.open_session(), store.open_session()
    names = [*talked(first), *talked(second)]
    assert list(iter_message_checks(store.reader)) == [RecordCheck(str(n), "") for n in names]
    of_second = iter_message_checks(store.reader, session=second.id)
    assert [found.name for found in of_second] == [str(name) for name in names[7:]]


SECOND = "WHERE message_key = 2"
TEXT_OF_FIRST = "(SELECT body_digest FROM messages WHERE key = 1)"


@pytest.mark.parametrize(
    ("statement", "place", "problem"),
    [
        ("UPDATE messages SET role = 'user' WHERE key = 1", 0, "role"),
        ("UPDATE messages SET seq = 99 WHERE key = 1", 0, "seq"),
        ("UPDATE messages SET created_at = '2020-01-01T00:00:00.000000Z' WHERE key = 1", 0,
         "created at"),
        (f"UPDATE messages SET body_digest = {TEXT_OF_FIRST} WHERE key = 2", 1, "body digest"),
        (f"UPDATE message_documents SET document_digest = {TEXT_OF_FIRST} {SECOND}", 1,
         "document digest"),
        (f"UPDATE message_documents SET payload_digest = NULL {SECOND}", 1, "payload digest"),
        (f"UPDATE message_documents SET wire_format = 'openai' {SECOND}", 1, "wire format"),
        (f"DELETE FROM message_documents {SECOND}", 1, "document digest, payload digest"),
        ("DELETE FROM tool_offers", 2, "tools"),
        ("UPDATE tool_offers SET position = 1 - position", 2, "tools"),
    ],
)  # fmt: skip
def test_what_was_altered_is_named(
    sqlite_store: Store, statement: str, place: int, problem: str
) -> None:
    talked(sqlite_store.open_session())
    # A primary key is not swapped in one statement.
    parts = (
        ["UPDATE tool_offers SET position = position + 10",
         "UPDATE tool_offers SET position = 11 - position"]
        if "1 - position" in statement
        else [statement]
    )  # fmt: skip
    alter(sqlite_store, *parts)
    expected = [""] * 7
    expected[place] = f"not what the ledger commits to: {problem}"
    assert problems(sqlite_store) == expected


@pytest.mark.parametrize(
    ("whose", "place"),
    [
        ("(SELECT body_digest FROM messages WHERE key = 1)", 0),
        (f"(SELECT document_digest FROM message_documents {SECOND})", 1),
        (f"(SELECT payload_digest FROM message_documents {SECOND})", 1),
    ],
)
@pytest.mark.parametrize("change", ["DELETE FROM bodies", "UPDATE bodies SET data = x'00'"])
def test_a_body_that_is_gone_or_altered_is_named(
    sqlite_store: Store, whose: str, place: int, change: str
) -> None:
    talked(sqlite_store.open_session())
    alter(sqlite_store, "PRAGMA foreign_keys = OFF", f"{change} WHERE digest = {whose}")
    found = problems(sqlite_store)
    assert found[place].startswith("body sha256:")
    assert [problem for n, problem in enumerate(found) if n != place] == [""] * 6


def test_a_definition_that_was_altered_is_named(sqlite_store: Store) -> None:
    talked(sqlite_store.open_session())
    alter(sqlite_store, "UPDATE tools SET document = '{}' WHERE name = 'two'")
    found = problems(sqlite_store)
    assert "the definition of tool 'two' is not what its digest" in found[2]
    assert found[:2] + found[3:] == [""] * 6


def test_a_message_that_is_gone_and_one_that_was_put_there_are_named(sqlite_store: Store) -> None:
    names = talked(sqlite_store.open_session())
    alter(
        sqlite_store,
        "DELETE FROM messages WHERE key = 5",
        "INSERT INTO messages (id, session_key, seq, role, body_digest, created_at) SELECT "
        "x'01890a5dac96774bbcceb302099a8057', session_key, 77, role, body_digest, created_at "
        "FROM messages WHERE key = 1",
    )
    found = list(iter_message_checks(sqlite_store.reader))
    assert [one.problem for one in found] == [
        *[""] * 6,
        "the ledger has no entry message of it",
        "the ledger has an entry of it, but it is gone",
    ]
    assert found[-1].name == str(names[4])


def test_a_message_without_an_id_has_a_line(sqlite_store: Store) -> None:
    talked(sqlite_store.open_session())
    alter(sqlite_store, "UPDATE messages SET id = x'00' WHERE key = 1")
    found = list(iter_message_checks(sqlite_store.reader))
    assert found[0] == RecordCheck("row 1 of messages", "its row has no readable id")
    assert len(found) == 8
