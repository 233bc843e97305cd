"""Odd values come to the same rows whichever way they are recorded, and on whichever engine."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

import pytest
from pydantic import JsonValue
from tests.support.away import away, without_pause
from tests.support.ended import rows_about
from tests.support.evidence import check_evidence
from tests.support.outputs import returned
from tests.support.recording import content_of
from tests.support.template_stores import make_store

from tooltrail.records import (
    CommandOutput,
    CompleteOutput,
    IdempotencyConflictError,
    StreamRecord,
    ToolCall,
    ToolError,
)
from tooltrail.store import EndedCall, Session, Store
from tooltrail.store._engines.copying_in import MANY

TEXTS = ["\0", "\ud800", "a\0\udcff b", "\\0 \\ud800", "\U0001f600\u202e", "x" * 9_000 + "\0\udfff"]
ARGUMENTS = [
    '{"a": NaN, "b": -Infinity, "c": 1e400, "d": -0.0}',
    '{"n": ' + "9" * 60 + ', "m": -9223372036854775809}',
    '{"a": "\\u0000", "b": "\\ud800", "a": "twice"}',
    '{"cut off',
    "\udcff\udc80 bytes that were no UTF-8",
    "\0",
]
BYTES = bytes(range(256)) + b"\xed\xa0\x80\xc0\x80\r\n\0" * 7
VALUES: JsonValue = {
    "\0\ud800": [float("nan"), float("-inf"), 10**60, -(2**63) - 1, "\udfff", 1e300, None]
}


Rows = dict[str, list[dict[str, object]]]


def odd_calls(key: str = "") -> list[EndedCall]:
    """One of each kind for each text, with a key for each where one is given."""
    return [
        EndedCall(one.call, one.output, idempotency_key=f"{key}\0\ud800{n}" if key else None)
        for n, one in enumerate(_odd_calls())
    ]


def _odd_calls() -> Iterator[EndedCall]:
    for text, arguments in zip(TEXTS, ARGUMENTS, strict=True):
        call = ToolCall(tool_name=f"t{text}", arguments_raw=arguments, call_id=text, title=text)
        yield EndedCall(call, returned(call.tool_name, text, BYTES, structured={text: [VALUES]}))
        error = ToolError(kind="odd", message=text, details={text: [VALUES]}, recovery_hint=text)
        yield EndedCall(call, CompleteOutput.failure(call.tool_name, error))
        lossy = StreamRecord.from_bytes("stdout", BYTES).model_copy(
            update={"produced_size": 2**62, "loss_reason": text}
        )
        result = CommandOutput(
            command=text,
            exit_status=1,
            stdout=lossy,
            stderr=StreamRecord.from_bytes("stderr", b"\xff"),
        )
        bash = ToolCall(tool_name="Bash", arguments_raw=arguments, call_id=text)
        yield EndedCall(bash, CompleteOutput.success("Bash", result))


class Place(NamedTuple):
    store: Store
    database: str


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> list[Rows]:
    """The rows of all calls, each recorded by its start and its end, in an SQLite file."""
    path = tmp_path_factory.mktemp("expected") / "trail.db"
    with make_store(path) as store:
        ids = one_by_one(store.open_session(), odd_calls())
        return [rows_about(store, name) for name in ids]


@pytest.fixture
def place(database: str, tmp_path: Path) -> Iterator[Place]:
    with make_store(
        database,
        artifacts=str(tmp_path / "artifacts"),
        spool=tmp_path / "spool",
        on_unavailable="outbox",
    ) as store:
        yield Place(store, database)


def one_by_one(session: Session, calls: Sequence[EndedCall]) -> list[UUID]:
    started = [(session.start(one.call), one.output) for one in calls]
    return [invocation.finish(output).invocation_id for invocation, output in started]


def whole(session: Session, calls: Sequence[EndedCall]) -> list[UUID]:
    return [
        session.record(one.call, one.output, idempotency_key=one.idempotency_key).invocation_id
        for one in calls
    ]


def from_tasks(session: Session, calls: Sequence[EndedCall]) -> list[UUID]:
    async def record() -> list[UUID]:
        return [(await session.arecord(one.call, one.output)).invocation_id for one in calls]

    return asyncio.run(record())


def many(session: Session, calls: Sequence[EndedCall]) -> list[UUID]:
    ids: list[UUID] = []
    session.record_many(calls, on_durable=lambda finished: ids.append(finished.invocation_id))
    return ids


Way = Callable[[Session, Sequence[EndedCall]], list[UUID]]
WAYS: list[Way] = [one_by_one, whole, from_tasks, many]


def without_order(rows: Rows) -> Rows:
    """Rows without the place in the conversation, which differs where all were started first."""
    (invocation,) = rows["invocations"]
    invocation = {name: value for name, value in invocation.items() if name != "seq"}
    entries = [
        {name: value for name, value in entry.items() if name not in ("n", "payload")}
        for entry in rows["ledger_entries"]
    ]
    return {**rows, "invocations": [invocation], "ledger_entries": entries}


def check_exact(store: Store, ids: Sequence[UUID]) -> None:
    """What the tool and the model said is there to the byte."""
    for name, one in zip(ids, odd_calls(), strict=True):
        detail = store.reader.invocation(name)
        assert detail.arguments == one.call.arguments_raw.encode("utf-8", "surrogatepass")
        assert detail.complete_json == one.output.to_json().decode()
        assert [content_of(store.reader, stream) for stream in detail.streams] == [
            stream.content for stream in one.output.streams
        ]
    check_evidence(store)


@pytest.mark.parametrize("way", WAYS)
def test_each_way_leaves_the_same_rows(place: Place, way: Way, expected: list[Rows]) -> None:
    assert len(expected) >= MANY  # or nothing is copied to a server

    ids = way(place.store.open_session(), odd_calls())

    check_exact(place.store, ids)
    for name, rows in zip(ids, expected, strict=True):
        assert without_order(rows_about(place.store, name)) == without_order(rows)


@pytest.mark.parametrize("way", [whole, from_tasks, many])
def test_what_waited_is_the_same_but_for_what_the_artifacts_could_not_be_asked(
    place: Place, way: Way, expected: list[Rows]
) -> None:
    session = place.store.open_session()
    with away(place.store, place.database):
        ids = way(session, odd_calls())
    without_pause(place.store).open_session()

    check_exact(place.store, ids)
    for name, rows in zip(ids, expected, strict=True):
        found = without_order(rows_about(place.store, name))
        for table in ("invocations", "complete_outputs", "ledger_entries"):
            assert found[table] == without_order(rows)[table]


@pytest.mark.parametrize("way", [whole, many])
def test_odd_keys_name_what_was_recorded_under_them(place: Place, way: Way) -> None:
    session = place.store.open_session()
    calls = odd_calls(key="key")

    first = way(session, calls)

    assert way(session, calls) == first
    assert len(set(first)) == len(calls)
    other = EndedCall(calls[0].call, returned(calls[0].call.tool_name, "other"))
    with ExitStack() as stack:
        caught = stack.enter_context(pytest.raises(IdempotencyConflictError))
        session.record(other.call, other.output, idempotency_key=calls[0].idempotency_key)
    assert str(first[0]) in str(caught.value)
