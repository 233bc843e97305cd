"""A program may be killed at any moment of an answer: what had come is recorded, and once."""

import json
import random
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import select
from tests.support.cut_off_answers import CHUNKS, cut_off_answer
from tests.support.effort import times
from tests.support.evidence import check_evidence
from tests.support.killing import Said, count_moments, run_and_kill
from tests.support.spools import left_in
from tests.support.template_stores import make_store

from tooltrail.records import InvalidRecordError, Message, UnavailableError
from tooltrail.store import (
    CutOffAnswer,
    MessageView,
    Store,
    find_repairable,
    open_store,
    recorder,
    repair,
)
from tooltrail.store._recording.answer_journal import AnswerBeginning, iter_answers
from tooltrail.store.tables import MaintenanceRunRow
from tooltrail.store.traffic import RecordedStream

KILLS = times(12)
"""Kills of a program."""

BODY = b"".join(CHUNKS)

LONG = (*CHUNKS[:1] * 30, *CHUNKS[1:])


def messages_in(store: Store, session: UUID) -> list[MessageView]:
    return list(store.reader.conversation(session, payloads=True)[1])


def a_session(store: Store) -> UUID:
    return store.open_session().id


@pytest.mark.parametrize("count", [1, 2, 4])
def test_what_had_come_when_the_program_was_killed_is_recorded(
    store: Store, database: str, count: int
) -> None:
    session = a_session(store)
    cut_off_answer(database, session, count, store.spool)
    assert messages_in(store, session) == []
    (name,) = find_repairable(store).answers
    told = CutOffAnswer(name, len(b"".join(CHUNKS[:count])))
    assert repair(store, dry_run=True).answers == (told,)
    assert messages_in(store, session) == []
    assert repair(store).answers == (told,)
    (view,) = messages_in(store, session)
    assert (view.id, view.payload) == (name, b"".join(CHUNKS[:count]))
    message = Message.from_json(view.document or b"")
    assert (message.text, message.is_complete) == ("Let me add.", count == 4)
    assert [call.arguments_raw for call in message.calls] == {
        1: [],
        2: ['{"a":'],
        4: ['{"a":1}'],
    }[count]
    assert left_in(store.spool) == []
    assert not find_repairable(store)
    assert repair(store).answers == ()
    check_evidence(store)


def test_what_no_record_can_hold_keeps_no_answer_from_being_recorded(
    store: Store, database: str
) -> None:
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
    cut_off_answer(database, session, 3, store.spool, chunks=chunks, wire_format="anthropic")
    (told,) = repair(store).answers
    assert told.problem == ""
    (view,) = messages_in(store, session)
    assert view.payload == b"".join(chunks)
    assert Message.from_json(view.document or b"").text == "so"
    assert left_in(store.spool) == []


def test_no_call_runs_of_what_a_client_gave_and_no_record_can_hold(
    store: Store, database: str
) -> None:
    session = a_session(store)
    deep: Any = []
    for _ in range(400):
        deep = [deep]
    call = {"function": {"name": "f", "arguments": {"deep": deep, "long": 10**5_000}}}
    event: Any = {"message": {"role": "assistant", "tool_calls": [call]}, "done": True}
    cut_off_answer(database, session, 1, store.spool, chunks=[event], wire_format="ollama")
    repair(store)
    (view,) = messages_in(store, session)
    (recorded,) = Message.from_json(view.document or b"").calls
    assert (recorded.tool_name, recorded.is_executable) == ("f", False)


def test_an_account_is_left_of_it(store: Store, database: str) -> None:
    cut_off_answer(database, a_session(store), 1, store.spool)
    (name,) = find_repairable(store).answers
    repair(store)
    with store.database.read() as connection:
        (report,) = connection.execute(select(MaintenanceRunRow.report)).scalars()
    assert json.loads(report or "")["answers"] == [
        {"message_id": str(name), "byte_count": len(CHUNKS[0])}
    ]


def test_a_program_that_lives_is_left_alone(store: Store) -> None:
    with store.open_session() as session, RecordedStream(session, "openai", CHUNKS) as stream:
        chunks = iter(stream)
        next(chunks)
        (answer,) = iter_answers(store.spool)
        assert answer.is_running
        assert not find_repairable(store)
        assert repair(store).answers == ()
        assert (*CHUNKS[:1], *chunks) == CHUNKS
    assert left_in(store.spool) == []
    assert len(messages_in(store, session.id)) == 1


def test_what_was_recorded_before_the_kill_is_not_recorded_again(
    store: Store, database: str
) -> None:
    session = a_session(store)
    cut_off_answer(database, session, 2, store.spool)
    (answer,) = iter_answers(store.spool)
    read = answer.read()
    assert read is not None
    kept = answer.path.read_bytes()
    repair(store)
    # As if it had been killed before the file went.
    answer.path.write_bytes(kept)
    assert len(repair(store).answers) == 1
    assert len(messages_in(store, session)) == 1
    assert left_in(store.spool) == []


def test_answers_of_other_stores_in_the_spool_are_left(store: Store, tmp_path: Path) -> None:
    artifacts = str(tmp_path / "others")
    with make_store(tmp_path / "other.db", artifacts=artifacts, spool=store.spool) as other:
        cut_off_answer(str(tmp_path / "other.db"), a_session(other), 1, store.spool)
        assert not find_repairable(store)
        assert repair(store).answers == ()
        assert len(repair(other).answers) == 1


def test_answers_in_another_spool_are_taken_in_when_it_is_named(
    store: Store, database: str, tmp_path: Path
) -> None:
    session, other = a_session(store), tmp_path / "other"
    cut_off_answer(database, session, 1, other)
    assert not find_repairable(store)
    assert len(find_repairable(store, also=[other]).answers) == 1
    assert len(repair(store, also=[other]).answers) == 1
    assert len(messages_in(store, session)) == 1
    assert left_in(other) == []


@pytest.mark.parametrize(
    ("written", "altered", "problem"),
    [
        (b"{", b"{{", "not canonical JSON"),
        (b'"v":1', b'"v":9', "none that this program knows"),
        (b'"openai"', b'"telepathy"', "no wire format 'telepathy'"),
        (b'"at":"', b'"at":"x', "not as it was written"),
    ],
)
def test_what_cannot_be_read_is_said_and_left(
    store: Store, database: str, written: bytes, altered: bytes, problem: str
) -> None:
    session = a_session(store)
    cut_off_answer(database, session, 1, store.spool)
    (answer,) = iter_answers(store.spool)
    line, newline, rest = answer.path.read_bytes().partition(b"\n")
    answer.path.write_bytes(line.replace(written, altered, 1) + newline + rest)
    assert find_repairable(store).answers == (answer.id,)
    (told,) = repair(store).answers
    assert told.message_id == answer.id
    assert problem in told.problem
    assert messages_in(store, session) == []
    answer.path.write_bytes(line + newline + rest)
    assert repair(store).answers == (CutOffAnswer(answer.id, len(CHUNKS[0])),)
    assert len(messages_in(store, session)) == 1


def test_a_beginning_is_read_as_it_was_written(store: Store) -> None:
    session = a_session(store)
    beginning = store.join_session(session).begin_answer("openai", "local")
    assert AnswerBeginning.from_line(beginning.to_line()) == beginning
    without = replace(beginning, provider=None)
    assert AnswerBeginning.from_line(without.to_line()) == without
    with pytest.raises(InvalidRecordError):
        AnswerBeginning.from_line(b"[]")


def test_an_answer_of_which_nothing_came_leaves_nothing(store: Store, database: str) -> None:
    session = a_session(store)
    cut_off_answer(database, session, 0, store.spool)
    assert left_in(store.spool) == []
    cut_off_answer(database, session, 1, store.spool)
    (answer,) = iter_answers(store.spool)
    # Killed between the link and the file, or in the middle of the first line.
    answer.path.write_bytes(answer.path.read_bytes()[:20])
    assert not find_repairable(store)
    assert repair(store).answers == ()
    assert left_in(store.spool) == []
    assert messages_in(store, session) == []


def test_a_spool_that_cannot_be_written_costs_nobody_the_answer(store: Store) -> None:
    with store.open_session() as session:
        stream = RecordedStream(session, "openai", CHUNKS)
        store.spool.mkdir(parents=True, exist_ok=True)
        path = store.spool / f"answer-{stream.message_id}"
        path.mkdir()
        assert tuple(stream) == CHUNKS
        path.rmdir()
    (view,) = messages_in(store, session.id)
    assert view.payload == BODY


@pytest.mark.parametrize("on_unavailable", ["raise"])
def test_an_answer_that_could_not_be_recorded_is_recorded_later(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: Any, **__: Any) -> None:
        raise UnavailableError("away")

    with store.open_session() as session:
        stream = RecordedStream(session, "openai", CHUNKS)
        with monkeypatch.context() as patched:
            patched.setattr(recorder, "write_message", away)
            with pytest.raises(UnavailableError):
                tuple(stream)
            with pytest.raises(InvalidRecordError, match="has not ended"):
                _ = stream.answer
        assert len([*iter_answers(store.spool)]) == 1
        stream.close()
        assert stream.answer.calls[0].arguments == {"a": 1}
    (view,) = messages_in(store, session.id)
    assert view.payload == BODY
    assert left_in(store.spool) == []


def hear(database: str, session: UUID, said: Said) -> None:
    """Record an answer, and say what was handed on of it."""
    with open_store(database) as store:
        stream = RecordedStream(store.join_session(session), "openai", LONG)
        for number, _ in enumerate(stream):
            said(f"passed {number + 1}")
        said(f"recorded {stream.answer.message_ids[0]}")


def come(database: str, session: UUID) -> None:
    """What a program does before its answer begins."""
    with open_store(database) as store:
        store.join_session(session)


def mend(database: str) -> None:
    with open_store(database) as store:
        repair(store)


@pytest.mark.timeout(600)
def test_a_kill_at_any_moment_of_an_answer_or_of_its_repair_loses_nothing(
    sqlite_store: Store, tmp_path: Path
) -> None:
    database = str(sqlite_store.database.target)
    session, said = a_session(sqlite_store), Said(tmp_path / "said")
    moments = count_moments(partial(hear, database, session, said))
    before = count_moments(partial(come, database, session))
    cut_off, killed_repairs, body = 0, 0, b"".join(LONG)
    for part in range(KILLS):
        session, said = a_session(sqlite_store), Said(tmp_path / "said")
        moment = before + int((moments - before) * (part + random.random()) / KILLS)
        run_and_kill(partial(hear, database, session, said), moment)
        if find_repairable(sqlite_store):
            killed_repairs += not run_and_kill(
                partial(mend, database), random.randrange(1, moments // 2)
            )
        repair(sqlite_store)
        assert left_in(sqlite_store.spool) == []
        passed = max(map(int, said.of("passed")), default=0)
        views = messages_in(sqlite_store, session)
        if said.of("recorded"):
            assert [str(view.id) for view in views] == said.of("recorded")
        assert len(views) in ((1,) if passed else (0, 1))
        for view in views:
            assert body.startswith(view.payload or b"?")
            assert len(view.payload or b"") >= len(b"".join(LONG[:passed]))
            is_whole = view.payload == body
            assert json.loads(view.document or b"").get("is_complete", True) == is_whole
            cut_off += not is_whole
    assert cut_off >= KILLS // 10
    assert killed_repairs >= KILLS // 10
    check_evidence(sqlite_store)
