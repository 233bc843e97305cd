"""Loops over a streamed answer that are left before its end."""

import gc
from collections.abc import AsyncIterator, Iterator, Sequence
from uuid import UUID

import pytest
from tests.support.processes import run_python
from tests.support.spools import captured_in

from tooltrail.journal.answers import record_stream
from tooltrail.journal.log import Entry
from tooltrail.journal.session import Session
from tooltrail.records import InvalidRecordError, Message, UnavailableError
from tooltrail.store import Store

CHUNKS = [
    b'data: {"choices":[{"index":0,"delta":{"content":"Hel"}}]}\n\n',
    b'data: {"choices":[{"index":0,"delta":{"content":"lo "}}]}\n\n',
    b'data: {"choices":[{"index":0,"delta":{"content":"you"}}]}\n\n',
    b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n',
]


def recorded(store: Store, session: Session) -> list[tuple[str, bool, bytes]]:
    views = store.reader.conversation(session.id, payloads=True)[1]
    return [
        (view.text, Message.from_json(view.document or "").is_complete, view.payload or b"")
        for view in views
    ]


def test_another_loop_in_the_block_goes_on_where_the_first_was_left(store: Store) -> None:
    with store.open_session() as session:
        with record_stream(session, "openai", iter(CHUNKS)) as stream:
            first = next(iter(stream))
            gc.collect()
            rest = list(stream)
        assert [first, *rest] == CHUNKS
        assert stream.answer.response.message.text == "Hello you"
    assert recorded(store, session) == [("Hello you", True, b"".join(CHUNKS))]


def test_a_block_that_is_left_records_what_had_come(store: Store) -> None:
    with store.open_session() as session, record_stream(session, "openai", iter(CHUNKS)) as stream:
        for _ in stream:
            break
    assert recorded(store, session) == [("Hel", False, CHUNKS[0])]


def test_without_a_block_nothing_is_handed_on_that_is_not_recorded(store: Store) -> None:
    with store.open_session() as session:
        stream = record_stream(session, "openai", iter(CHUNKS))
        assert next(iter(stream)) == CHUNKS[0]
        gc.collect()
        with pytest.raises(InvalidRecordError, match="into one `with` block"):
            list(stream)
    assert recorded(store, session) == [("Hel", False, CHUNKS[0])]


LEAVE = """
import sys
from tests.store.journal.test_left_answers import CHUNKS
from tooltrail.journal.answers import record_stream
from tooltrail.store import open_store

store = open_store(sys.argv[1], spool=sys.argv[2])
session = store.open_session()
print(session.id)
chunks = iter(record_stream(session, "openai", iter(CHUNKS)))
next(chunks)
"""


def test_a_program_that_ends_amid_a_loop_is_silent_and_the_ingester_records_what_had_come(
    sqlite_store: Store,
) -> None:
    said, complaints = run_python(LEAVE, str(sqlite_store.database.target), str(sqlite_store.spool))
    assert not complaints
    session = sqlite_store.join_session(UUID(said.strip()))
    assert recorded(sqlite_store, session) == [("Hel", False, CHUNKS[0])]


def test_a_list_of_chunks_is_gone_through_once(store: Store) -> None:
    with store.open_session() as session:
        with record_stream(session, "openai", CHUNKS) as stream:
            for _ in stream:
                break
            assert list(stream) == CHUNKS[1:]
        assert stream.answer.response.message.text == "Hello you"


async def _later() -> AsyncIterator[bytes]:
    for chunk in CHUNKS:
        yield chunk


@pytest.mark.anyio
async def test_the_same_of_an_asynchronous_stream(store: Store) -> None:
    with store.open_session() as session:
        async with record_stream(session, "openai", _later()) as stream:
            taken = [await anext(aiter(stream))]
            taken += [chunk async for chunk in stream]
        assert taken == CHUNKS
    assert recorded(store, session) == [("Hello you", True, b"".join(CHUNKS))]


def test_what_the_consumer_raises_ends_the_answer_there(store: Store) -> None:
    def broken() -> Iterator[bytes]:
        yield CHUNKS[0]
        raise ConnectionError("reset")

    with store.open_session() as session:
        with pytest.raises(ConnectionError):
            list(record_stream(session, "openai", broken()))
        assert recorded(store, session) == [("Hel", False, CHUNKS[0])]


def test_an_answer_of_several_choices_can_be_recorded_again_where_it_was_left(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    two = [
        b'data: {"choices":[{"index":0,"delta":{"content":"a"}},',
        b'{"index":1,"delta":{"content":"b"}}]}\n\n',
        b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"},',
        b'{"index":1,"delta":{},"finish_reason":"stop"}]}\n\n',
    ]
    times: list[int] = []
    really = Session.append

    def fails_at_the_end(session: Session, entries: Sequence[Entry]) -> None:
        times.append(1)
        if len(times) == 2:
            raise UnavailableError("away")
        really(session, entries)

    monkeypatch.setattr(Session, "append", fails_at_the_end)
    with store.open_session() as session:
        stream = record_stream(session, "openai", iter(two))
        with pytest.raises(UnavailableError):
            list(stream)
        assert captured_in(store.spool) == [str(stream.message_id)]
        stream.close()
        assert len(stream.answer.message_ids) == 2
    assert [text for text, _, _ in recorded(store, session)] == ["a", "b"]
    assert [payload for _, _, payload in recorded(store, session)] == [b"".join(two), b""]
