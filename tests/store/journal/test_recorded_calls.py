"""A call that ended already is recorded as if it had been started and finished."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any, Self

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.effort import times
from tests.support.ended import BASH, failed, made
from tests.support.evidence import check_evidence
from tests.support.outputs import returned
from tests.support.processes import run_python
from tests.support.recording import content_of, stream_of

from tooltrail.journal.ended_calls import ended_facts
from tooltrail.records import (
    CompleteOutput,
    GenericOutput,
    InvalidRecordError,
    Message,
    NotFoundError,
    SessionClosedError,
    StreamRecord,
    ToolCall,
    ToolError,
    digest_of,
)
from tooltrail.store import EndedCall, InvocationDetail, InvocationFilter, Store
from tooltrail.store.keep.condition import read_condition

BIG = b"a line of a long output\n" * 50_000
OUTPUTS = {
    "short": (BASH, made()),
    "long": (BASH, made(BIG, b"warning\n", 3)),
    "not text": (BASH, made(b"\xff\xfe\0\r\n", b"\0")),
    "empty": (BASH, made(b"")),
    "failed": (BASH, failed()),
    "denied": (BASH, failed("permission_denied")),
    "generic": (
        ToolCall(
            tool_name="mcp__a__b", arguments_raw='{"n": 1e400, "x": "\ud800\0"', call_id="\0/"
        ),
        returned("mcp__a__b", "nul \0", b"\x89PNG", structured={"a": [1, None, "\udc80"]}),
    ),
}


def surfaces_of(detail: InvocationDetail) -> tuple[object, ...]:
    """What is recorded of a call besides its id, its place and its times."""
    summary = detail.summary
    return (
        (summary.call_id, summary.tool_name, summary.family, summary.state, summary.error_kind),
        (summary.exit_status, summary.output_size, summary.truncated, summary.damage),
        (detail.arguments, detail.complete_json, detail.canonical_json, detail.artifacts),
        (detail.receipt.text if detail.receipt else None, detail.omissions),
        [(one.role, one.digest, one.size, one.line_count) for one in detail.streams],
    )


@pytest.mark.parametrize("which", OUTPUTS)
def test_a_recorded_call_has_the_surfaces_of_one_that_was_started_and_finished(
    store: Store, which: str
) -> None:
    call, output = OUTPUTS[which]
    with store.open_session() as session:
        both = (session.record(EndedCall(call, output)), session.start(call).finish(output))
    reader = store.reader
    recorded, finished = (reader.invocation(one.invocation_id) for one in both)
    assert surfaces_of(recorded) == surfaces_of(finished)
    assert (both[0].canonical, both[0].receipt) == (both[1].canonical, both[1].receipt)
    check_evidence(store)


@pytest.mark.parametrize("given_name", ["started_at", "finished_at", None])
def test_how_long_it_took_is_not_made_up(store: Store, given_name: str | None) -> None:
    moment = datetime(2025, 3, 4, tzinfo=UTC)
    before = datetime.now(UTC)
    ended = EndedCall(
        BASH,
        made(),
        started_at=moment if given_name == "started_at" else None,
        finished_at=moment if given_name == "finished_at" else None,
    )
    finished = store.open_session().record(ended)
    summary = store.reader.invocation(finished.invocation_id).summary
    assert summary.duration_ms is None
    assert summary.finished_at is not None
    if given_name is None:
        assert before <= summary.started_at <= summary.finished_at
    else:
        assert summary.started_at == moment
        assert (summary.finished_at == moment) is (given_name == "finished_at")


NOW = datetime.now(UTC)


@pytest.mark.parametrize(
    ("times_given", "words"),
    [
        ((datetime(2025, 1, 1), None), "started_at cannot be recorded: .* must have a zone"),  # noqa: DTZ001
        ((None, datetime(2025, 1, 1)), "finished_at cannot be recorded: .* must have a zone"),  # noqa: DTZ001
        ((NOW, NOW - timedelta(microseconds=1)), "before"),
        ((None, NOW + timedelta(days=2)), "finished_at .* too far in the future"),
        ((datetime(1969, 12, 31, tzinfo=UTC), None), "started_at .* is before 1970"),
        (
            (datetime.min.replace(tzinfo=timezone(timedelta(hours=14))), NOW),
            "started_at cannot be recorded: .* out of range",
        ),
        (
            (datetime.max.replace(tzinfo=timezone(-timedelta(hours=14))), NOW),
            "started_at cannot be recorded: .* out of range",
        ),
    ],
)
def test_times_that_cannot_be_are_refused(
    store: Store, times_given: tuple[datetime | None, datetime | None], words: str
) -> None:
    session = store.open_session()
    started_at, finished_at = times_given
    with pytest.raises(InvalidRecordError, match=words):
        session.record(EndedCall(BASH, made(), started_at=started_at, finished_at=finished_at))
    assert store.reader.counts().invocations == {}


class OtherTime(datetime):
    """A time whose methods are others than those of `datetime`, as in libraries for times."""

    def __new__(cls, *_: object, **__: object) -> Self:
        return datetime.__new__(cls, 2025, 1, 2, 3, tzinfo=timezone(timedelta(hours=2)))

    def isoformat(self, *_: object, **__: object) -> str:
        return "odd"

    def __sub__(self, _: object) -> Any:
        return "odd"

    __rsub__ = __sub__


def test_a_time_may_be_of_any_subclass(store: Store) -> None:
    moment, plain = OtherTime(), datetime(2025, 1, 2, 1, tzinfo=UTC)
    session = store.open_session(at=moment)
    session.message(Message.of("user", "hello"), at=moment)
    done = session.record(EndedCall(BASH, made(), started_at=moment, finished_at=moment))
    [one] = store.reader.invocations(InvocationFilter(since=moment)).items
    assert (one.id, one.started_at, one.finished_at) == (done.invocation_id, plain, plain)
    assert store.reader.session(session.id).opened_at == plain


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=times(10))
@given(
    output=st.binary(max_size=200),
    arguments=st.text(st.characters(codec=None)),
    call_id=st.none() | st.text(st.characters(codec=None)),
    tool=st.text(st.characters(codec=None)),
)
def test_odd_values_come_back_as_they_were(
    store: Store, output: bytes, arguments: str, call_id: str | None, tool: str
) -> None:
    call = ToolCall(tool_name=tool, arguments_raw=arguments, call_id=call_id)
    finished = store.open_session().record(EndedCall(call, returned(tool, output)))
    detail = store.reader.invocation(finished.invocation_id)
    assert detail.arguments == call.arguments_bytes
    assert content_of(store.reader, detail.streams[0]) == output


def one_stream(change: dict[str, object]) -> CompleteOutput:
    stream = StreamRecord.from_bytes("content.0", b"short").model_copy(update=change)
    result = GenericOutput.of("x")
    (item,) = result.content
    changed = item.model_copy(update={"stream": stream})
    return CompleteOutput.success("Bash", result.model_copy(update={"content": (changed,)}))


def test_what_cannot_be_recorded_leaves_nothing(store: Store) -> None:
    session, closed = store.open_session(), store.open_session()
    closed.close()
    no_content, false_digest = one_stream({"content": None}), one_stream({"digest": digest_of(b"")})
    refused = [
        (EndedCall(BASH, no_content, family="generic"), InvalidRecordError),
        (EndedCall(BASH, false_digest, family="generic"), InvalidRecordError),
        (EndedCall(ToolCall(tool_name="Read"), made()), InvalidRecordError),
        (EndedCall(BASH, made(), family="none"), NotFoundError),
    ]
    for call, kind in refused:
        with pytest.raises(kind):
            session.record(call)
    with pytest.raises(SessionClosedError, match=str(closed.id)):
        closed.record(EndedCall(BASH, made(BIG)))
    assert store.reader.counts().invocations == {}
    assert not list(store.spool.glob("0*"))
    check_evidence(store)


def test_many_long_calls_are_appended_a_few_at_a_time(store: Store) -> None:
    made_count = 0

    def calls() -> Iterator[EndedCall]:
        nonlocal made_count
        for made_count in range(1, 33):
            yield EndedCall(BASH, made(b"%d" % made_count + BIG[: 1 << 20]))

    with store.open_session() as session:
        recorded = session.record_many(calls())
        next(recorded)
        assert made_count == 8
        assert sum(1 for _ in recorded) == 31


@pytest.mark.both_engines
def test_a_long_output_that_is_recorded_again_changes_nothing(store: Store) -> None:
    session = store.open_session()
    again = [EndedCall(BASH, made(BIG), idempotency_key="k")] * 2
    for _ in range(2):
        assert sum(1 for _ in session.record_many(again)) == 2
        store.ingest()
    assert store.reader.counts().invocations == {"ok": 1}
    assert read_condition(store).rejected_count == 0
    assert not list(store.spool.glob("?*-*"))
    check_evidence(store)


def test_an_ingester_keeps_the_output_of_a_call_that_is_being_recorded_again(
    sqlite_store: Store,
) -> None:
    session = sqlite_store.open_session()
    ended = EndedCall(BASH, made(BIG), idempotency_key="k")
    session.record(ended)
    again, _ = ended_facts(sqlite_store.recorder, session.id, ended)
    sqlite_store.ingest()
    session.append(again)
    assert sqlite_store.ingest().rejected_count == 0
    assert not list(sqlite_store.spool.glob("?*-*"))


@pytest.mark.parametrize("role", ["../x", "a/../../x", "a\\b", "\N{GRINNING FACE}" * 50])
def test_a_long_output_may_have_a_role_that_is_no_name_of_a_file(
    sqlite_store: Store, role: str
) -> None:
    session = sqlite_store.open_session()
    output = CompleteOutput.failure(
        "Bash", ToolError(kind="internal", message="no"), [StreamRecord.from_bytes(role, BIG)]
    )
    for finished in (session.record(EndedCall(BASH, output)), session.start(BASH).finish(output)):
        # Unlike `rglob`, `walk` ignores that the ingester removes a folder meanwhile.
        names = [name for *_, names in os.walk(sqlite_store.spool) for name in names]
        assert not [name for name in names if name.startswith("x.zst")]
        detail = sqlite_store.reader.invocation(finished.invocation_id)
        assert content_of(sqlite_store.reader, stream_of(detail, role)) == BIG
    check_evidence(sqlite_store)


def test_calls_before_an_error_of_their_source_are_recorded(store: Store) -> None:
    def calls() -> Iterator[EndedCall]:
        yield from (EndedCall(BASH, made(b"%d" % n)) for n in range(3))
        raise ConnectionError("the source is gone")

    with store.open_session() as session, pytest.raises(ConnectionError, match="gone"):
        list(session.record_many(calls()))
    assert store.reader.counts().invocations == {"ok": 3}


def test_a_record_while_python_is_exiting_is_refused_in_words(tmp_path: Path) -> None:
    code = (
        "from tests.support.ended import BASH, made\n"
        "from tooltrail.records import TooltrailError\n"
        "from tooltrail.store import EndedCall, open_store\n"
        "session = open_store(sys.argv[1]).join_session('x')\n"
        "class Late:\n"
        "    call, known, write = EndedCall(BASH, made()), TooltrailError, sys.stdout.write\n"
        "    def __del__(self):\n"
        "        try:\n"
        "            self.write(session.record(self.call).state)\n"
        "        except self.known as error:\n"
        "            self.write(str(error))\n"
        "late = Late()\n"
    )
    # Whether pydantic still works then depends on its version and on that of Python.
    said = "nothing can be recorded while Python is exiting; record before that"
    assert run_python(code, str(tmp_path / "trail.db"))[0] in {said, "success"}
