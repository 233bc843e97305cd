"""A call that has ended is recorded as if it had been started and finished, or not at all."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.disks import small_disk
from tests.support.effort import times
from tests.support.ended import BASH, failed, made, rows_about, shared_rows
from tests.support.evidence import check_evidence
from tests.support.interleaving import before_write
from tests.support.keeping import prune_all
from tests.support.killing import count_moments, run_and_kill
from tests.support.lossy_server import LossyServer
from tests.support.outputs import returned
from tests.support.recording import content_of, stream_of
from tests.support.rows import all_rows
from tests.support.spools import left_in

from tooltrail.records import (
    CompleteOutput,
    DiskFullError,
    GenericOutput,
    InvalidRecordError,
    NotFoundError,
    RecordUncertainError,
    SessionClosedError,
    StreamRecord,
    ToolCall,
    digest_of,
)
from tooltrail.store import (
    Store,
    create_store,
    find_repairable,
    iter_record_checks,
    iter_rerenderings,
    open_store,
    relocate,
    repair,
)

BIG = b"a line of a long output\n" * 50_000
NOISE = b"\n".join(digest_of(b"%d" % n).encode() for n in range(10_000))
"""Not compressible, so that it needs room."""

KILLS = times(8)

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


def assert_clean(store: Store) -> None:
    """What is there is whole and as its ledger says, and nothing is left in the spool."""
    check_evidence(store)
    assert {check.problem for check in iter_record_checks(store.reader)} <= {""}
    assert {r.state for r in iter_rerenderings(store.reader, store.families)} <= {"same"}
    if store.spool.exists():
        assert left_in(store.spool) == []


@pytest.mark.parametrize("which", OUTPUTS)
@pytest.mark.parametrize("record_first", [True, False])
def test_it_leaves_the_rows_that_start_and_finish_leave(
    store: Store, which: str, record_first: bool
) -> None:
    call, output = OUTPUTS[which]
    two, one = store.open_session(), store.open_session()
    if record_first:
        recorded = one.record(call, output)
        shared = shared_rows(store)
        finished = two.start(call).finish(output)
    else:
        finished = two.start(call).finish(output)
        shared = shared_rows(store)
        recorded = one.record(call, output)

    assert shared_rows(store) == shared
    ours, theirs = (rows_about(store, f.invocation_id) for f in (recorded, finished))
    assert ours == theirs
    assert len(ours["ledger_entries"]) == 2
    assert (recorded.state, recorded.canonical, recorded.receipt, recorded.postponed) == (
        finished.state,
        finished.canonical,
        finished.receipt,
        finished.postponed,
    )
    assert_clean(store)


def test_records_stand_among_others_in_their_session(store: Store) -> None:
    with store.open_session() as session:
        session.add_message("user", "make it")
        first = session.record(BASH, made(b"1\n"))
        second = session.start(BASH).finish(made(b"2\n"))
        third = session.record(BASH, made(b"3\n"))
    _, messages, invocations = store.reader.conversation(session.id)
    assert [m.seq for m in messages] == [0]
    assert [i.summary.seq for i in invocations] == [1, 2, 3]
    ids = [one.invocation_id for one in (first, second, third)]
    assert [i.summary.id for i in invocations] == ids
    assert_clean(store)


def test_given_times_are_recorded_with_how_long_it_took(store: Store) -> None:
    started_at = datetime(2025, 3, 4, 5, 6, 7, 89, tzinfo=timezone(timedelta(hours=-7)))
    finished_at = started_at + timedelta(seconds=2.5)
    finished = store.open_session().record(
        BASH, made(), started_at=started_at, finished_at=finished_at
    )
    summary = store.reader.invocation(finished.invocation_id).summary
    assert (summary.started_at, summary.finished_at) == (started_at, finished_at)
    assert summary.duration_ms == 2_500
    assert_clean(store)


@pytest.mark.parametrize("given_name", ["started_at", "finished_at", None])
def test_how_long_it_took_is_not_made_up(store: Store, given_name: str | None) -> None:
    moment = datetime(2025, 3, 4, tzinfo=UTC)
    before = datetime.now(UTC)
    session = store.open_session()
    if given_name == "started_at":
        finished = session.record(BASH, made(), started_at=moment)
    elif given_name == "finished_at":
        finished = session.record(BASH, made(), finished_at=moment)
    else:
        finished = session.record(BASH, made())
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
    ("times", "words"),
    [
        ((datetime(2025, 1, 1), None), "started_at has no time zone"),  # noqa: DTZ001
        ((None, datetime(2025, 1, 1)), "finished_at has no time zone"),  # noqa: DTZ001
        ((NOW, NOW - timedelta(microseconds=1)), "finished_at is before started_at"),
        ((None, NOW + timedelta(days=2)), "finished_at is far off"),
        ((datetime(1969, 12, 31, tzinfo=UTC), None), "started_at is far off"),
        ((datetime.min.replace(tzinfo=timezone(timedelta(hours=14))), NOW), "far off"),
        ((datetime.max.replace(tzinfo=timezone(-timedelta(hours=14))), NOW), "far off"),
    ],
)
def test_times_that_cannot_be_are_refused(
    store: Store, times: tuple[datetime | None, datetime | None], words: str
) -> None:
    session = store.open_session()
    with pytest.raises(InvalidRecordError, match=words):
        session.record(BASH, made(), started_at=times[0], finished_at=times[1])
    assert store.reader.counts().invocations == {}


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
    finished = store.open_session().record(call, returned(tool, output))
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
    with store.database.read() as connection:
        before = all_rows(connection)
    no_content, false_digest = one_stream({"content": None}), one_stream({"digest": digest_of(b"")})
    with pytest.raises(InvalidRecordError, match="its bytes are not at hand"):
        session.record(BASH, no_content, family="generic")
    with pytest.raises(InvalidRecordError, match="another content than its digest"):
        session.record(BASH, false_digest, family="generic")
    with pytest.raises(InvalidRecordError, match="not of 'Bash'"):
        session.record(ToolCall(tool_name="Read"), made())
    with pytest.raises(InvalidRecordError, match="family takes"):
        session.record(BASH, made(), family="generic")
    with pytest.raises(NotFoundError):
        session.record(BASH, made(), family="none")
    with pytest.raises(SessionClosedError, match=str(closed.id)):
        closed.record(BASH, made(BIG))
    with store.database.read() as connection:
        assert all_rows(connection) == before
    assert not list(store.spool.glob("0*"))


def test_while_the_artifacts_are_away_long_output_is_kept_in_the_database(
    store: Store, tmp_path: Path
) -> None:
    (tmp_path / "artifacts").rename(tmp_path / "unmounted")
    finished = store.open_session().record(BASH, made(BIG))
    (tmp_path / "unmounted").rename(tmp_path / "artifacts")
    assert finished.postponed == ()
    assert "kept in the database" in finished.receipt.text
    detail = store.reader.invocation(finished.invocation_id)
    assert content_of(store.reader, stream_of(detail, "stdout")) == BIG
    assert_clean(store)


def test_artifacts_that_go_away_before_the_commit_are_done_without(
    store: Store, database: str, tmp_path: Path
) -> None:
    session = store.open_session()
    root = tmp_path / "artifacts"
    aside = open_store(database, artifacts=str(root))

    def come_in() -> None:
        prune_all(aside)
        root.rename(tmp_path / "unmounted")

    with aside, before_write(store, come_in):
        finished = session.record(BASH, made(BIG))
    (tmp_path / "unmounted").rename(root)
    detail = store.reader.invocation(finished.invocation_id)
    assert content_of(store.reader, stream_of(detail, "stdout")) == BIG
    assert_clean(store)


def test_an_object_that_is_pruned_before_the_commit_is_published_anew(
    sqlite_store: Store, tmp_path: Path
) -> None:
    session = sqlite_store.open_session()
    with open_store(tmp_path / "trail.db") as other:
        with before_write(sqlite_store, lambda: prune_all(other)):
            session.record(BASH, made(BIG))
        assert_clean(sqlite_store)
        with before_write(sqlite_store, lambda: relocate(other, str(tmp_path / "new"))):
            session.record(BASH, made(NOISE))
    assert_clean(sqlite_store)


def test_on_a_full_disk_a_small_call_is_recorded_and_of_a_large_one_nothing(
    tmp_path: Path,
) -> None:
    with (
        small_disk(tmp_path / "disk", 8 << 20) as disk,
        create_store(
            disk.folder / "trail.db",
            artifacts=str(tmp_path / "artifacts"),
            spool=tmp_path / "spool",
            on_unavailable="raise",
        ) as store,
    ):
        session = store.open_session()
        store.close()
        disk.fill()
        noise = [digest_of(b"%d" % n).encode() * 20 for n in range(100)]
        with pytest.raises(DiskFullError):
            session.record(
                ToolCall(tool_name="Read"), returned("Read", *noise), idempotency_key="large"
            )
        assert session.record(BASH, made()).state == "success"
        disk.free()
        store.close()
        large = session.record(
            ToolCall(tool_name="Read"), returned("Read", *noise), idempotency_key="large"
        )
        assert large.state == "success"
        assert store.reader.counts().invocations == {"success": 2}
        assert_clean(store)


@pytest.fixture
def far(lossy: LossyServer, postgres_url: str, tmp_path: Path) -> Iterator[Store]:
    """A store that is reached by way of the lossy server."""
    spool = tmp_path / "spool"
    create_store(postgres_url, artifacts=str(tmp_path / "artifacts"), spool=spool).close()
    with open_store(lossy.url, spool=spool, on_unavailable="raise") as store:
        yield store


@pytest.mark.parametrize("is_committed", [True, False])
def test_a_commit_that_nobody_answers_is_said_and_with_a_key_asked_for_again(
    far: Store, lossy: LossyServer, is_committed: bool
) -> None:
    session = far.open_session()
    lossy.lose_an_answer(b"INSERT INTO invocations", is_committed=is_committed)
    with pytest.raises(RecordUncertainError, match="is recorded is not known") as caught:
        session.record(BASH, made(BIG), idempotency_key="k")
    (name,) = caught.value.invocation_ids
    assert far.reader.counts().invocations == ({"success": 1} if is_committed else {})

    finished = session.record(BASH, made(BIG), idempotency_key="k")

    assert (finished.invocation_id == name) is is_committed
    assert far.reader.counts().invocations == {"success": 1}
    assert_clean(far)


def test_killed_at_any_moment_it_is_recorded_whole_or_not_at_all(
    sqlite_store: Store, tmp_path: Path
) -> None:
    session_id = sqlite_store.open_session().id

    def record() -> None:
        with open_store(tmp_path / "trail.db") as store:
            store.join_session(session_id).record(BASH, made(BIG), idempotency_key="k")

    sqlite_store.join_session(session_id).record(BASH, made(BIG))
    count = count_moments(record)
    seen: set[int] = set()
    for step in range(KILLS):
        run_and_kill(record, max(1, count * (step + 1) // (KILLS + 1)))
        repair(sqlite_store)
        seen.add(sum(sqlite_store.reader.counts().invocations.values()))
        assert not find_repairable(sqlite_store)
        assert_clean(sqlite_store)
    record()
    assert seen <= {1, 2}
    assert sqlite_store.reader.counts().invocations == {"success": 2}
    assert_clean(sqlite_store)
