"""What retention removed is shown as erased, with reason and rule, and not as damage."""

from dataclasses import replace

import pytest
from tests.support.new_store_read import Call, ReadStore, at, call

from tooltrail.artifacts import artifact_path
from tooltrail.journal import Entry
from tooltrail.journal.clock import new_id
from tooltrail.records import NotFoundError, ToolDefinition, digest_of
from tooltrail.records.digests import Digest
from tooltrail.records.facts import MessageAdded, SessionOpened, ToolsOffered
from tooltrail.store.views import Erasure

SESSION = new_id()
LONG = b"a line that is long enough to stand in the receipt alone, and nowhere else at all\n" * 2


def erasure_of(name: str) -> Erasure:
    """The erasure that `ReadStore.bury` leaves."""
    return Erasure(name, "a person asked", "request 7", at(60))


def erase_body(store: ReadStore, data: bytes) -> Digest:
    """Remove the bytes of a body, as retention does."""
    digest = digest_of(data)
    spelled = digest.removeprefix("sha256:")
    value = f"x'{spelled}'" if store.is_sqlite else f"'\\x{spelled}'"
    store.bury("body", digest)
    store.damage(f"UPDATE bodies SET data = NULL WHERE digest = {value}")
    return digest


def recorded(store: ReadStore, **members: bytes) -> Call:
    made = call(SESSION, 1, **members)  # type: ignore[arg-type]
    store.record(*made.entries())
    return made


@pytest.mark.parametrize("name", ["arguments", "output", "canonical", "receipt"])
def test_a_text_that_is_removed_is_erased(new_store: ReadStore, name: str) -> None:
    made = recorded(new_store, receipt=b"what the model saw", stdout=b"out")
    assert made.ended is not None
    assert made.ended.shown is not None
    digests = {
        "arguments": made.started.arguments,
        "output": made.ended.output,
        "canonical": made.ended.shown.canonical,
        "receipt": made.ended.shown.receipt,
    }
    new_store.damage(f"UPDATE surfaces SET {name} = NULL")
    new_store.bury("body", digests[name])
    detail = new_store.reader.invocation(made.started.id)
    assert (detail.damage, detail.erased) == (None, (erasure_of(name),))
    texts = {
        "arguments": detail.arguments or None,
        "output": detail.complete_json,
        "canonical": detail.canonical_json,
        "receipt": detail.receipt,
    }
    assert [key for key, text in texts.items() if text is None] == [name]


def test_what_stands_in_an_erased_receipt_is_erased_too(new_store: ReadStore) -> None:
    made = recorded(new_store, stdout=LONG)  # the ingester renders
    new_store.damage("UPDATE surfaces SET receipt = NULL")
    with new_store.database.read() as connection:
        (shown,) = connection.query("SELECT shown FROM surfaces")[0]
    new_store.bury("body", Digest(f"sha256:{shown.hex()}"))
    detail = new_store.reader.invocation(made.started.id)
    assert (detail.damage, detail.receipt, detail.canonical_json) == (None, None, None)
    assert detail.erased == (erasure_of("receipt"), erasure_of("canonical"))
    stream = detail.streams[0]
    assert stream.erasure == erasure_of("receipt")
    with pytest.raises(NotFoundError, match="receipt was erased on 2026-01-01 by the rule"):
        new_store.reader.open_stream(stream)


def test_a_stream_whose_body_is_removed_is_erased(new_store: ReadStore) -> None:
    made = recorded(new_store, receipt=b"cut", stdout=b"secret", stderr=b"kept")
    erase_body(new_store, b"secret")
    detail = new_store.reader.invocation(made.started.id)
    assert [one.erasure for one in detail.streams] == [erasure_of("stdout"), None]
    assert new_store.reader.stream(made.started.id, "stdout") == detail.streams[0]
    with pytest.raises(NotFoundError, match="stream stdout was erased"):
        new_store.reader.open_stream(detail.streams[0])
    with pytest.raises(NotFoundError, match="was erased"):
        new_store.reader.open_stream(replace(detail.streams[0], erasure=None))


def test_an_artifact_that_is_removed_is_erased(new_store: ReadStore) -> None:
    made = call(SESSION, 1, receipt=b"cut", stdout=LONG * 500)
    assert made.ended is not None
    made.ended = new_store.spooled(made.ended, "stdout", LONG * 500)
    new_store.record(*made.entries())
    digest = digest_of(LONG * 500)
    new_store.bury("artifact", digest)
    stream = new_store.reader.stream(made.started.id, "stdout")
    assert (stream.artifact_path, stream.erasure) == (artifact_path(digest), erasure_of("stdout"))


def test_messages_tools_and_policies_are_erased(new_store: ReadStore) -> None:
    definition = ToolDefinition(name="read").to_json()
    environment = b'{"host":"here"}'
    opened = SessionOpened(session=SESSION, at=at(0), environment=digest_of(environment))
    said = MessageAdded(
        session=SESSION, id=new_id(), at=at(1), role="user", text=digest_of(b"secret")
    )
    offer = ToolsOffered(session=SESSION, id=new_id(), at=at(2), tools=(digest_of(definition),))
    new_store.record(
        Entry(opened, [environment]), Entry(said, [b"secret"]), Entry(offer, [definition])
    )
    made = recorded(new_store, receipt=b"r")
    for data in (definition, environment, b"secret", made.policy):
        erase_body(new_store, data)
    session, messages, _ = new_store.reader.conversation(SESSION)
    assert (session.environment, session.damage) == ("{}", None)
    assert [(one.text, one.damage) for one in messages] == [("", None), ("", None)]
    assert messages[0].erased == (erasure_of("text"),)
    (tool,) = new_store.reader.tools()
    assert (tool.definition, tool.damage) == (ToolDefinition(name="read"), None)
    assert tool.erasure == erasure_of(f"body {digest_of(definition)}")
    with pytest.raises(NotFoundError, match="request 7: a person asked"):
        new_store.reader.policy_json(digest_of(made.policy))


def test_a_tombstone_beside_bytes_that_are_there_says_nothing(new_store: ReadStore) -> None:
    made = recorded(new_store, receipt=b"cut", stdout=b"back again")
    new_store.bury("body", digest_of(b"back again"))
    stream = new_store.reader.invocation(made.started.id).streams[0]
    assert stream.erasure is None
    with new_store.reader.open_stream(stream) as source:
        assert source.read() == b"back again"
