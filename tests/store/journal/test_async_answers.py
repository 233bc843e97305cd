"""Answers that an asynchronous client streams are recorded as those of any other."""

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from typing import Any

import openai
import pytest
from tests.support.cut_off_answers import CHUNKS
from tests.support.spools import captured_in
from tests.support.waiting import until
from tests.support.wire.fake_provider import fake_provider

from tooltrail.journal.answers import RecordedStream, record_stream
from tooltrail.journal.log import Entry
from tooltrail.journal.session import Session
from tooltrail.records import InvalidRecordError, Message
from tooltrail.store import Store
from tooltrail.store.views import MessageView

BODY = b"".join(CHUNKS)


async def coming(chunks: tuple[bytes, ...] = CHUNKS) -> AsyncIterator[bytes]:
    for chunk in chunks:
        await asyncio.sleep(0)
        yield chunk


async def breaking() -> AsyncIterator[bytes]:
    async for chunk in coming(CHUNKS[:2]):
        yield chunk
    raise ConnectionError("the line is dead")


async def standing_still() -> AsyncIterator[bytes]:
    yield CHUNKS[0]
    await asyncio.sleep(3600)


def the_message(store: Store, session: Session) -> MessageView:
    (view,) = store.reader.conversation(session.id, payloads=True)[1]
    until(lambda: captured_in(store.spool) == [])
    return view


def test_chunks_pass_through_and_are_recorded_at_their_end(store: Store) -> None:
    async def hear(session: Session) -> RecordedStream[bytes]:
        stream = record_stream(session, "openai", coming())
        assert tuple([chunk async for chunk in stream]) == CHUNKS
        return stream

    with store.open_session() as session:
        stream = asyncio.run(hear(session))
        (call,) = stream.answer.calls
        assert (call.arguments, call.message_id) == ({"a": 1}, stream.message_id)
    assert the_message(store, session).payload == BODY


def test_the_official_client_s_stream_is_recorded(store: Store) -> None:
    async def hear(url: str, session: Session) -> list[str]:
        client = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="x", max_retries=0)
        async with client:
            asked = await client.chat.completions.create(
                model="m", messages=[{"role": "user", "content": "add"}], stream=True
            )
            stream = record_stream(session, "openai", asked)
            return [
                choice.delta.content or "" async for chunk in stream for choice in chunk.choices
            ]

    with fake_provider() as provider, store.open_session() as session:
        provider.will_stream(CHUNKS)
        said = asyncio.run(hear(provider.url, session))
    assert "".join(said) == "Let me add."
    message = Message.from_json(the_message(store, session).document or b"")
    assert message.text == "Let me add."
    assert [call.arguments_raw for call in message.calls] == ['{"a":1}']


def test_what_breaks_is_recorded_as_far_as_it_came(store: Store) -> None:
    async def hear(session: Session) -> None:
        async for _ in RecordedStream(session, "openai", breaking()):
            pass

    with store.open_session() as session, pytest.raises(ConnectionError, match="dead"):
        asyncio.run(hear(session))
    view = the_message(store, session)
    assert view.payload == b"".join(CHUNKS[:2])
    assert not Message.from_json(view.document or b"").is_complete


def test_what_is_cancelled_is_recorded_as_far_as_it_came(store: Store) -> None:
    async def hear(session: Session, came: asyncio.Event) -> None:
        async for _ in RecordedStream(session, "openai", standing_still()):
            came.set()

    async def cancel(session: Session) -> None:
        came = asyncio.Event()
        task = asyncio.create_task(hear(session, came))
        await came.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with store.open_session() as session:
        asyncio.run(cancel(session))
    assert the_message(store, session).payload == CHUNKS[0]


@pytest.mark.parametrize("chunks", [None, 5, object()])
def test_what_is_no_stream_is_refused_at_once(store: Store, chunks: Any) -> None:
    with (
        store.open_session() as session,
        pytest.raises(
            InvalidRecordError, match=r"^chunks must be of type Iterable or AsyncIterable"
        ),
    ):
        record_stream(session, "openai", chunks)


def test_the_wrong_loop_is_refused(store: Store) -> None:
    async def hear(session: Session) -> None:
        async for _ in RecordedStream(session, "openai", CHUNKS):
            pass

    with store.open_session() as session:
        with pytest.raises(TypeError, match="use `async for`"):
            tuple(RecordedStream(session, "openai", coming()))
        with pytest.raises(TypeError, match="use `for`"):
            asyncio.run(hear(session))
    assert store.reader.conversation(session.id)[1] == []


@pytest.mark.parametrize(
    ("chunks", "reason"),
    [
        (coming(), "the stream is asynchronous: use `async for`"),
        ([1, 2], "int is no answer and no part of a stream"),
        (b"data: {}", "int is no answer and no part of a stream"),
        ({"choices": []}, "the chunks are one answer, not a stream: use record_response"),
    ],
)
def test_a_wrong_argument_records_nothing(store: Store, chunks: Any, reason: str) -> None:
    with store.open_session() as session:
        with (
            pytest.raises(InvalidRecordError, match=f"^{reason}$"),
            record_stream(session, "openai", chunks) as stream,
        ):
            list(stream)
        with record_stream(session, "openai", CHUNKS):
            pass  # no chunk is requested
    assert store.reader.conversation(session.id)[1] == []
    assert captured_in(store.spool) == []


def test_two_who_close_it_record_it_once(store: Store) -> None:
    async def hear(session: Session) -> None:
        stream = RecordedStream(session, "openai", coming())
        chunks = stream.__aiter__()
        await anext(chunks)
        await asyncio.gather(*(stream.aclose() for _ in range(8)))

    with store.open_session() as session:
        asyncio.run(hear(session))
    assert the_message(store, session).payload == CHUNKS[0]


def test_a_disk_that_stands_still_does_not_block_the_event_loop(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on, really = threading.Event(), Session.append

    def waits(session: Session, entries: Sequence[Entry]) -> None:
        assert goes_on.wait(30)
        really(session, entries)

    async def hear(session: Session) -> None:
        stream = record_stream(session, "openai", coming())
        assert await anext(aiter(stream)) == CHUNKS[0]
        monkeypatch.setattr(Session, "append", waits)
        closing = asyncio.create_task(stream.aclose())
        await asyncio.sleep(0.01)
        assert not closing.done()
        goes_on.set()
        await closing

    with store.open_session() as session:
        asyncio.run(hear(session))
    assert the_message(store, session).payload == CHUNKS[0]
