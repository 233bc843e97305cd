"""A program may be killed at any moment of an answer: what had come is recorded, and once."""

import json
import random
import shutil
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from tests.support.cut_off_answers import CHUNKS, cut_off_answer, new_recorder
from tests.support.effort import times
from tests.support.killing import Said, count_moments, run_and_kill
from tests.support.spools import captured_in
from tests.support.waiting import until

from tooltrail.journal import Entry
from tooltrail.journal.answers import RecordedStream, record_stream
from tooltrail.journal.clock import new_id
from tooltrail.journal.session import Session
from tooltrail.records import InvalidRecordError, Message, ToolDefinition, UnavailableError
from tooltrail.records.facts import AnswerStarted
from tooltrail.store import Store, open_store
from tooltrail.store.verify.verifying import verify
from tooltrail.store.views import MessageView

KILLS = times(12)
"""Kills of a program."""

BODY = b"".join(CHUNKS)

LONG = (*CHUNKS[:1] * 30, *CHUNKS[1:])


def a_session(store: Store) -> UUID:
    """A session that is ingested, with no thread at work that a fork could cut off."""
    session = store.open_session().id
    store.close()
    return session


def messages_in(store: Store, session: UUID) -> list[MessageView]:
    return list(store.reader.conversation(session, payloads=True)[1])


def check_evidence(store: Store) -> None:
    assert [one.message for one in verify(store.database, store.archive)] == []
    with store.database.read() as connection:
        assert connection.query("SELECT reason FROM rejected_facts") == []
        assert connection.query("SELECT * FROM open_answers") == []


@pytest.mark.parametrize("count", [1, 2, 4])
def test_what_had_come_when_the_program_was_killed_is_recorded(store: Store, count: int) -> None:
    session = a_session(store)
    cut_off_answer(store.spool, session, count)
    (name,) = captured_in(store.spool)
    store.ingest()
    (view,) = messages_in(store, session)
    assert str(view.id) == name  # as the whole answer would have had
    assert view.payload == b"".join(CHUNKS[:count])
    message = Message.from_json(view.document or b"")
    assert (message.text, message.is_complete) == ("Let me add.", count == 4)
    assert [call.arguments_raw for call in message.calls] == {1: [], 2: ['{"a":'], 4: ['{"a":1}']}[
        count
    ]
    until(lambda: captured_in(store.spool) == [])
    assert store.ingest().recovered_count == 0
    assert len(messages_in(store, session)) == 1
    check_evidence(store)


def test_a_cut_off_answer_names_the_server_of_a_tool_as_a_whole_one_does(store: Store) -> None:
    chunks = [one.replace(b'"name":"add"', b'"name":"disk___add"') for one in CHUNKS]
    tools = [ToolDefinition(name="add", namespace=one) for one in ("net", "disk")]
    session = a_session(store)
    cut_off_answer(store.spool, session, 4, chunks=chunks, tools=tools)
    assert store.ingest().recovered_count == 1
    with store.open_session() as alive:
        alive.offer_tools(tools)
        list(record_stream(alive, "openai", chunks))
    for one in (session, alive.id):
        (call,) = Message.from_json(messages_in(store, one)[-1].document or b"").calls
        assert (call.namespace, call.tool_name) == ("disk", "add")
    check_evidence(store)


def test_an_answer_that_was_never_asked_for_leaves_nothing(store: Store) -> None:
    session = a_session(store)
    cut_off_answer(store.spool, session, 0)
    assert store.ingest().recovered_count == 0
    assert messages_in(store, session) == []


def test_what_no_record_can_hold_keeps_no_answer_from_being_recorded(store: Store) -> None:
    session = a_session(store)
    nested = "[" * 400 + "]" * 400
    chunks = [
        f"data: {event}\n\n".encode()
        for event in (
            '{"type":"message_start","message":{"type":"message","role":"assistant","content":[]}}',
            f'{{"type":"content_block_start","index":0,"content_block":{{"type":"x","a":{nested}}}}}',
            '{"type":"content_block_start","index":1,"content_block":{"type":"text","text":"so"}}',
        )
    ]
    cut_off_answer(store.spool, session, 3, chunks=chunks, wire_format="anthropic")
    store.ingest()
    (view,) = messages_in(store, session)
    assert view.payload == b"".join(chunks)
    assert Message.from_json(view.document or b"").text == "so"


def test_no_call_runs_of_what_a_client_gave_and_no_record_can_hold(store: Store) -> None:
    session = a_session(store)
    deep: Any = []
    for _ in range(400):
        deep = [deep]
    call = {"function": {"name": "f", "arguments": {"deep": deep, "long": 10**5_000}}}
    event: Any = {"message": {"role": "assistant", "tool_calls": [call]}, "done": True}
    cut_off_answer(store.spool, session, 1, chunks=[event], wire_format="ollama")
    store.ingest()
    (view,) = messages_in(store, session)
    (recorded,) = Message.from_json(view.document or b"").calls
    assert (recorded.tool_name, recorded.is_executable) == ("f", False)


@pytest.mark.both_engines
def test_an_answer_of_several_choices_is_recovered_with_all_of_them(store: Store) -> None:
    session = a_session(store)
    chunk = (
        b'data: {"choices":[{"index":0,"delta":{"content":"a"}},'
        b'{"index":1,"delta":{"content":"b"}}]}\n\n'
    )
    cut_off_answer(store.spool, session, 1, chunks=[chunk])
    store.ingest()
    views = messages_in(store, session)
    assert [(view.text, view.payload) for view in views] == [("a", chunk), ("b", None)]
    check_evidence(store)


def test_a_recovery_that_was_cut_off_between_two_choices_goes_on(store: Store) -> None:
    session = a_session(store)
    chunk = (
        b'data: {"choices":[{"index":0,"delta":{"content":"a"}},'
        b'{"index":1,"delta":{"content":"b"}}]}\n\n'
    )
    stream = record_stream(store.join_session(session), "openai", iter([chunk]))
    stream.__enter__()
    written: list[Entry] = []
    with pytest.MonkeyPatch.context() as patched:

        def killed(_: Session, entries: list[Entry]) -> None:
            written.extend(entries)

        next(iter(stream))
        patched.setattr(Session, "append", killed)
        stream.close()
    store.recorder.log.record(written[:1])
    store.ingest()
    assert [view.text for view in messages_in(store, session)] == ["a"]
    store.recorder.owner.release()
    store.ingest()
    assert [view.text for view in messages_in(store, session)] == ["a", "b"]
    check_evidence(store)


def test_a_program_that_lives_is_left_alone(store: Store) -> None:
    with store.open_session() as session, RecordedStream(session, "openai", CHUNKS) as stream:
        chunks = iter(stream)
        next(chunks)
        assert store.ingest().recovered_count == 0
        assert captured_in(store.spool) == [str(stream.message_id)]
        assert [*verify(store.database, store.archive)] == []
        assert (*CHUNKS[:1], *chunks) == CHUNKS
    assert len(messages_in(store, session.id)) == 1
    until(lambda: captured_in(store.spool) == [])
    check_evidence(store)


def test_a_session_that_nobody_opened_may_hold_an_answer_alone(store: Store) -> None:
    joined = store.join_session("nightly")
    with RecordedStream(joined, "openai", CHUNKS) as stream:
        next(iter(stream))
        store.ingest()
        assert [*verify(store.database, store.archive)] == []
        assert store.reader.sessions() == []
    assert len(messages_in(store, joined.id)) == 1
    check_evidence(store)


def test_what_was_recorded_before_the_kill_stays_the_only_record(
    store: Store, database: str
) -> None:
    session = a_session(store)
    cut_off_answer(store.spool, session, 2)
    (name,) = captured_in(store.spool)
    kept = store.spool.parent / "kept"
    shutil.copytree(store.spool / name, kept)
    store.ingest()
    # As if the ingester had been killed before the folder went.
    shutil.copytree(kept, store.spool / name)
    with open_store(database, spool=store.spool) as opened:
        assert opened.ingest().recovered_count == 0
    assert len(messages_in(store, session)) == 1
    until(lambda: captured_in(store.spool) == [])


def test_an_answer_in_a_format_that_this_program_does_not_know_is_kept_as_bytes(
    store: Store,
) -> None:
    session, owner = store.open_session().id, new_recorder(store.spool).owner
    fact = AnswerStarted(
        session=session,
        id=new_id(),
        at=store.reader.session(session).opened_at,
        wire_format="telepathy",
        provider="local",
        owner=owner.name(),
    )
    store.recorder.log.record([Entry(fact)])
    owner.release()
    store.ingest()
    (view,) = messages_in(store, session)
    assert (view.id, view.wire_format, view.payload) == (fact.id, "telepathy", b"")
    assert not Message.from_json(view.document or b"").is_complete


def test_a_spool_that_cannot_take_the_bytes_costs_nobody_the_answer(store: Store) -> None:
    with store.open_session() as session:
        stream = RecordedStream(session, "openai", CHUNKS)
        # A file where the folder should be.
        (store.spool / str(stream.message_id)).write_bytes(b"")
        assert tuple(stream) == CHUNKS
    (view,) = messages_in(store, session.id)
    assert view.payload == BODY


def test_a_spool_that_cannot_be_written_is_an_error_before_the_first_chunk(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: Any) -> None:
        raise UnavailableError("away")

    chunks = iter(CHUNKS)
    with store.open_session() as session:
        stream = RecordedStream(session, "openai", chunks)
        with monkeypatch.context() as patched:
            patched.setattr(Session, "append", away)
            with pytest.raises(UnavailableError):
                next(iter(stream))
        assert (*stream,) == CHUNKS


def test_an_answer_that_could_not_be_recorded_is_recorded_later(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with store.open_session() as session:
        stream = RecordedStream(session, "openai", CHUNKS)
        chunks = iter(stream)
        next(chunks)

        def away(*_: Any) -> None:
            raise UnavailableError("away")

        with monkeypatch.context() as patched:
            patched.setattr(Session, "append", away)
            with pytest.raises(UnavailableError):
                tuple(chunks)
            with pytest.raises(InvalidRecordError, match="has not ended"):
                _ = stream.answer
        assert captured_in(store.spool) == [str(stream.message_id)]
        stream.close()
        assert stream.answer.calls[0].arguments == {"a": 1}
    (view,) = messages_in(store, session.id)
    assert view.payload == BODY
    until(lambda: captured_in(store.spool) == [])


def test_a_damaged_file_is_kept_as_evidence(store: Store) -> None:
    session = a_session(store)
    cut_off_answer(store.spool, session, 4)
    (name,) = captured_in(store.spool)
    file = store.spool / name / "payload.zst"
    data = bytearray(file.read_bytes())
    data[2] ^= 0xFF
    file.write_bytes(data)
    store.ingest()
    (view,) = messages_in(store, session)
    assert BODY.startswith(view.payload or b"")
    assert not Message.from_json(view.document or b"").is_complete
    assert (store.spool / "damaged" / f"{name}-payload.zst").read_bytes() == data


def hear(spool: Path, session: UUID, said: Said) -> None:
    """Record an answer, and say what was handed on of it."""
    recorder = new_recorder(spool)
    stream = RecordedStream(Session.join(recorder, session), "openai", LONG)
    for number, _ in enumerate(stream):
        said(f"passed {number + 1}")
    said(f"recorded {stream.answer.message_ids[0]}")
    recorder.close()


def recover(store: Store) -> None:
    with open_store(str(store.database.target), spool=store.spool) as opened:
        opened.ingest()


@pytest.mark.timeout(600)
def test_a_kill_at_any_moment_of_an_answer_or_of_its_recovery_loses_nothing(
    store: Store, tmp_path: Path
) -> None:
    session, said = a_session(store), Said(tmp_path / "said")
    moments = count_moments(partial(hear, store.spool, session, said))
    store.ingest()
    cut_off, killed_recoveries, body = 0, 0, b"".join(LONG)
    for part in range(KILLS):
        session, said = a_session(store), Said(tmp_path / "said")
        moment = int(moments * (part + random.random()) / KILLS) + 1
        run_and_kill(partial(hear, store.spool, session, said), moment)
        killed_recoveries += not run_and_kill(partial(recover, store), random.randrange(1, moments))
        store.ingest()
        until(lambda: captured_in(store.spool) == [])
        passed = max(map(int, said.of("passed")), default=0)
        views = messages_in(store, session)
        if said.of("recorded"):
            assert [str(view.id) for view in views] == said.of("recorded")
        assert len(views) in ((1,) if passed else (0, 1))
        for view in views:
            assert body.startswith(view.payload or b"")
            assert len(view.payload or b"") >= len(b"".join(LONG[:passed]))
            is_whole = view.payload == body
            assert json.loads(view.document or b"").get("is_complete", True) == is_whole
            cut_off += not is_whole
    assert cut_off >= KILLS // 10
    assert killed_recoveries >= KILLS // 10
    check_evidence(store)
