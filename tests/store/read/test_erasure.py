"""What retention removed is shown as erased, with reason and rule, and not as damage."""

import pytest
from tests.support.call_facts import message, moment, offered, opened
from tests.support.recorded_calls import Call, call
from tests.support.store_parts import StoreParts

from tooltrail.artifacts import artifact_path
from tooltrail.journal.clock import new_id
from tooltrail.records import NotFoundError, ToolDefinition, digest_of
from tooltrail.records.digests import Digest
from tooltrail.store.views import Erasure

pytestmark = pytest.mark.both_engines

SESSION = new_id()
LONG = b"a line that is long enough to stand in the receipt alone, and nowhere else at all\n" * 2


def erasure_of(name: str) -> Erasure:
    """The erasure that `StoreParts.bury` leaves."""
    return Erasure(name, "a person asked", "request 7", moment(60))


def recorded(store: StoreParts, **members: bytes) -> Call:
    made = call(SESSION, 1, **members)  # type: ignore[arg-type]
    store.ingest(*made.entries())
    return made


@pytest.mark.parametrize("name", ["arguments", "output", "canonical", "receipt"])
def test_a_text_that_is_removed_is_erased(parts: StoreParts, name: str) -> None:
    made = recorded(parts, receipt=b"what the model saw", stdout=b"out")
    digests = {
        "arguments": made.started.arguments,
        "output": digest_of(made.document),
        "canonical": made.shown.canonical,
        "receipt": made.shown.receipt,
    }
    parts.alter(f"UPDATE surfaces SET {name} = NULL")
    parts.bury("body", digests[name])
    detail = parts.reader.invocation(made.started.id)
    assert (detail.damage, detail.erased) == (None, (erasure_of(name),))
    texts = {
        "arguments": detail.arguments or None,
        "output": detail.complete_json,
        "canonical": detail.canonical_json,
        "receipt": detail.receipt,
    }
    assert [key for key, text in texts.items() if text is None] == [name]


def test_what_stands_in_an_erased_receipt_is_erased_too(parts: StoreParts) -> None:
    made = recorded(parts, stdout=LONG)  # the ingester renders
    parts.alter("UPDATE surfaces SET receipt = NULL")
    with parts.database.read() as connection:
        (shown,) = connection.query("SELECT shown FROM surfaces")[0]
    parts.bury("body", Digest(f"sha256:{shown.hex()}"))
    detail = parts.reader.invocation(made.started.id)
    assert (detail.damage, detail.receipt, detail.canonical_json) == (None, None, None)
    assert detail.erased == (erasure_of("receipt"), erasure_of("canonical"))
    stream = detail.streams[0]
    assert stream.erasure == erasure_of("receipt")
    with pytest.raises(NotFoundError, match="receipt was erased on 2026-01-01 by the rule"):
        parts.reader.open_stream(stream)


def test_a_stream_whose_body_is_removed_is_erased(parts: StoreParts) -> None:
    made = recorded(parts, receipt=b"cut", stdout=b"secret", stderr=b"kept")
    parts.erase_body(b"secret")
    detail = parts.reader.invocation(made.started.id)
    assert [one.erasure for one in detail.streams] == [erasure_of("stdout"), None]
    with pytest.raises(NotFoundError, match="stream stdout was erased"):
        parts.reader.open_stream(detail.streams[0])
    with pytest.raises(NotFoundError, match="was erased"):
        parts.reader.open_stream(detail.streams[0].replaced(erasure=None))


def test_an_artifact_that_is_removed_is_erased(parts: StoreParts) -> None:
    made = call(SESSION, 1, receipt=b"cut", stdout=LONG * 500)
    made.capture(parts, LONG * 500)
    parts.ingest(*made.entries())
    digest = digest_of(LONG * 500)
    parts.bury("artifact", digest)
    stream = parts.reader.invocation(made.started.id).streams[0]
    assert (stream.artifact_path, stream.erasure) == (artifact_path(digest), erasure_of("stdout"))


def test_messages_tools_and_policies_are_erased(parts: StoreParts) -> None:
    definition = ToolDefinition(name="read").to_json()
    environment = b'{"host":"here"}'
    parts.ingest(
        opened(SESSION, environment=environment),
        message(SESSION, b"secret", at=1),
        offered(SESSION, definition, at=2),
    )
    made = recorded(parts, receipt=b"r")
    for data in (definition, environment, b"secret", made.policy):
        parts.erase_body(data)
    session, messages, _ = parts.reader.conversation(SESSION)
    assert (session.environment, session.damage) == ("{}", None)
    assert [(one.text, one.damage) for one in messages] == [("", None), ("", None)]
    assert messages[0].erased == (erasure_of("text"),)
    (tool,) = parts.reader.tools()
    assert (tool.definition, tool.damage) == (ToolDefinition(name="read"), None)
    assert tool.erasure == erasure_of(f"body {digest_of(definition)}")
    with pytest.raises(NotFoundError, match="request 7: a person asked"):
        parts.reader.policy_json(digest_of(made.policy))


def test_a_tombstone_beside_bytes_that_are_there_says_nothing(parts: StoreParts) -> None:
    made = recorded(parts, receipt=b"cut", stdout=b"back again")
    parts.bury("body", digest_of(b"back again"))
    stream = parts.reader.invocation(made.started.id).streams[0]
    assert stream.erasure is None
    with parts.reader.open_stream(stream) as source:
        assert source.read() == b"back again"
