"""Reading: what is counted, listed and opened; at what price; and how damage shows."""

import re
from dataclasses import asdict, replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import zstandard
from tests.support.chance import BEGINNING, insert_facts, random_facts
from tests.support.evidence import check_evidence
from tests.support.recording import (
    content_of,
    fail_tool,
    run_command,
    run_tool,
    statements_of,
    stream_of,
    without_housekeeping,
)

from tooltrail.artifacts import artifact_path
from tooltrail.records import (
    DamageError,
    DigestMismatchError,
    MissingArtifactError,
    NotFoundError,
    PathEscapeError,
    ToolCall,
    digest_of,
)
from tooltrail.store import InvocationFilter, Store, StreamView, create_store, open_store
from tooltrail.store._reading.stretches import BEYOND_ALL, Stretch, by_index
from tooltrail.store.tables.invocations import LARGE_BYTES

BIG = b"".join(b"%08d\n" % n for n in range(100_000))
FACTS = random_facts(400, seed=4)

SINGLE_FILTERS: dict[str, dict[str, Any]] = {
    "none": {},
    "sessions": {"sessions": (FACTS[0].session,)},
    "tools": {"tools": ("Bash",)},
    "families": {"families": ("command",)},
    "states": {"states": ("started", "error")},
    "statuses": {"statuses": ("error",)},
    "success": {"statuses": ("success",), "states": ("success",)},
    "error_kinds": {"error_kinds": ("broken",)},
    "agents": {"agents": ("coder",)},
    "since": {"since": BEGINNING},
    "until": {"until": BEGINNING + timedelta(seconds=500)},
    "exit_statuses": {"exit_statuses": (1,)},
    "success and failure": {"exit_statuses": (0, 1)},
    "min_size": {"min_size": 10},
    "large": {"min_size": LARGE_BYTES},
}
OWN_INDEX = {
    "tools": "ix_invocations_tool_name_started_at",
    "states": "ix_invocations_state",
    "statuses": "ix_invocations_state",
    "error_kinds": "ix_invocations_state_error_kind",
    "exit_statuses": "ix_invocations_exit_status",
    "large": "ix_invocations_output_size",
}
"""Filters for which an index was made, so that a few rows are found without walking past all."""


def big_stream(store: Store) -> StreamView:
    finished = run_command(store.open_session(), BIG)
    return stream_of(store.reader.invocation(finished.invocation_id), "stdout")


def stored_object(store: Store, stream: StreamView) -> Path:
    assert stream.artifact_path is not None
    path = Path(store.archive.sink.url.removeprefix("file://"), stream.artifact_path)
    path.chmod(0o644)
    return path


def test_counts_add_up(store: Store) -> None:
    assert store.reader.counts().invocations == {}
    session = store.open_session()
    session.add_message("user", "hello")
    run_command(session, BIG, b"warning\n")
    run_command(session, BIG)
    run_tool(session, "text")
    fail_tool(session)
    fail_tool(session, "permission_denied")
    session.start(ToolCall(tool_name="Bash"))

    counts = store.reader.counts(with_bodies=True)

    assert counts.sessions == 1
    assert counts.invocations == {"success": 3, "error": 1, "denied": 1, "started": 1}
    assert counts.produced_bytes == 2 * len(BIG) + len(b"warning\n") + len(b"text")
    assert (counts.artifact_count, counts.artifact_bytes) == (1, len(BIG))
    (artifact,) = store.reader.artifacts()
    assert counts.artifact_stored_bytes == artifact.stored_size
    assert artifact.stored_size == store.archive.stat(artifact.path).stored_size
    assert counts.body_stored_bytes
    assert counts.body_bytes
    assert counts.body_stored_bytes <= counts.body_bytes
    assert counts.body_count
    assert store.reader.counts() == replace(
        counts, body_count=None, body_bytes=None, body_stored_bytes=None
    )
    sums = [value for name, value in asdict(counts).items() if name != "invocations"]
    assert {type(value) for value in sums} == {int}


def test_sessions_are_listed_newest_first_with_what_is_open_in_them(store: Store) -> None:
    sessions = [store.open_session(title=f"number {number}") for number in range(3)]
    run_tool(sessions[1], "done")
    sessions[1].start(ToolCall(tool_name="Bash"))
    sessions[0].close()

    views = store.reader.sessions()

    assert [view.id for view in views] == [session.id for session in reversed(sessions)]
    assert [view.closed_at is None for view in views] == [True, True, False]
    assert [(view.invocation_count, view.open_count) for view in views] == [(0, 0), (2, 1), (0, 0)]
    assert store.reader.sessions(limit=2) == views[:2]
    assert store.reader.sessions(limit=2, cursor=views[0].id) == views[1:]
    assert store.reader.sessions(cursor=views[-1].id) == []
    with pytest.raises(NotFoundError):
        store.reader.sessions(cursor=uuid4())
    assert [store.reader.session(view.id) for view in views] == views


def test_artifacts_are_listed_for_all_for_a_session_and_for_an_invocation(store: Store) -> None:
    first, second = store.open_session(), store.open_session()
    one = run_command(first, BIG).invocation_id
    two = run_command(first, BIG + b"more").invocation_id
    three = run_command(second, BIG).invocation_id
    run_tool(second, "short")
    reader = store.reader

    both = [artifact.path for artifact in reader.artifacts()]

    assert len(both) == 2
    assert both == sorted(both)
    assert [a.path for a in reader.artifacts(session=first.id)] == both
    assert [a.path for a in reader.artifacts(limit=1)] == both[:1]
    assert [a.path for a in reader.artifacts(limit=5, cursor=both[0])] == both[1:]
    (shared,) = reader.artifacts(invocation=one)
    assert (shared.size, shared.digest) == (len(BIG), digest_of(BIG))
    assert shared.line_count == 100_000
    assert reader.artifacts(session=second.id) == reader.artifacts(invocation=three) == [shared]
    assert reader.artifacts(invocation=one, session=second.id) == []
    assert reader.artifacts(invocation=uuid4()) == []
    assert reader.artifact_owners(shared.path) == [one, three]
    assert reader.artifact_owners(reader.artifacts(invocation=two)[-1].path) != []
    assert reader.artifact_owners(artifact_path(digest_of(b"unknown"))) == []


def test_a_conversation_of_nobody_is_not_found(store: Store) -> None:
    nobody = uuid4()
    with pytest.raises(NotFoundError, match=str(nobody)):
        store.reader.conversation(nobody)
    with pytest.raises(NotFoundError, match=str(nobody)):
        store.reader.session_key(nobody)


def test_an_invocation_that_runs_has_its_start_and_nothing_else(store: Store) -> None:
    session = store.open_session()
    session.start(ToolCall.of("Bash", {"command": "make  all\n"}, call_id="toolu_1"))
    detail = store.reader.invocation("@last")
    assert detail.summary.arguments_preview == '{"command":"make all\\n"}'
    assert detail.summary.call_id == "toolu_1"
    assert (detail.summary.duration_ms, detail.summary.truncated) == (None, None)
    assert detail.stream("stdout") is None


def test_a_conversation_takes_the_same_few_statements_whatever_its_length(
    store: Store, tmp_path: Path
) -> None:
    short = store.open_session()
    for number in range(5):
        short.add_message("user", f"message {number}")
        run_tool(short, f"text {number}", b"\0")
    with create_store(tmp_path / "other" / "trail.db") as other:
        long = random_facts(200, seed=9, sessions=1)
        insert_facts(other, long)
        for number, at, session_id in ((5, store, short.id), (200, other, long[0].session)):
            with statements_of(at.database.engine) as statements:
                _, messages, details = at.reader.conversation(session_id)
            assert len(details) == number
            assert len(without_housekeeping(statements)) == 9
            assert len(messages) == (5 if at is store else 0)


def test_a_list_takes_one_statement(store: Store) -> None:
    insert_facts(store, FACTS)
    with statements_of(store.database.engine) as statements:
        store.reader.invocations(limit=20)
    assert len(without_housekeeping(statements)) == 1


@pytest.mark.parametrize("name", SINGLE_FILTERS)
@pytest.mark.parametrize("oldest_first", [False, True])
def test_a_page_uses_a_key_or_an_index_and_never_the_bodies(
    sqlite_store: Store, name: str, oldest_first: bool
) -> None:
    insert_facts(sqlite_store, FACTS)
    where = InvocationFilter(**SINGLE_FILTERS[name])
    engine = sqlite_store.database.engine
    with statements_of(engine) as statements:
        sqlite_store.reader.invocations(where, limit=len(FACTS), oldest_first=oldest_first)
        sqlite_store.reader.count_invocations(where)
    asked = [(sql, values) for sql, values in statements if sql.startswith("SELECT")]
    # Among the nearest, where it is mostly found; of ranges there are none; among all; the number.
    assert 2 <= len(asked) <= (2 if name == "none" else 5)
    steps = [accesses_of(sqlite_store, sql, values) for sql, values in asked]
    assert_found_by_index(steps, OWN_INDEX.get(name, ""))


@pytest.mark.parametrize("name", SINGLE_FILTERS)
@pytest.mark.parametrize("oldest_first", [False, True])
def test_a_page_of_very_many_without_ranges_is_looked_up_in_an_index(
    sqlite_store: Store, name: str, oldest_first: bool
) -> None:
    insert_facts(sqlite_store, FACTS)
    where = InvocationFilter(**SINGLE_FILTERS[name])
    stretch = Stretch(1, BEYOND_ALL, oldest_first)
    with (
        statements_of(sqlite_store.database.engine) as statements,
        sqlite_store.database.read() as connection,
    ):
        rows = by_index(connection, where, 1_000, stretch)
    whole = sqlite_store.reader.invocations(where, oldest_first=oldest_first)
    assert [row.id for row in rows] == [view.id for view in whole.items]
    ((sql, values),) = [one for one in statements if one[0].startswith("SELECT")]
    steps = [accesses_of(sqlite_store, sql, values)]
    assert_found_by_index(steps, OWN_INDEX.get(name, ""))


def assert_found_by_index(steps: list[list[str]], index: str) -> None:
    for access in [step for plan in steps for step in plan]:
        assert access.startswith(("SEARCH", "SCAN near", "SCAN anon")) or "COVERING" in access
    found = [step for plan in steps[-2:] for step in plan if "invocations" in step]
    assert any(index in step for step in found)


def accesses_of(store: Store, sql: str, values: Any) -> list[str]:
    """How SQLite gets at invocations and what belongs to them; sessions are few."""
    # The rows of streams by their key, and only of invocations that left something out.
    assert tables_of(sql) <= {"invocations", "sessions", "output_streams", "range_traits"}
    with store.database.read() as connection:
        plan = [row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {sql}", values)]
    streams = [step for step in plan if re.match(r"\w+ output_streams\b", step)]
    assert all(step.startswith("SEARCH output_streams USING PRIMARY KEY") for step in streams)
    return [step for step in plan if re.match(r"(SEARCH|SCAN) (?!sessions\b)", step)]


def test_a_page_that_the_nearest_invocations_fill_is_looked_for_no_further(store: Store) -> None:
    insert_facts(store, FACTS)
    where = InvocationFilter(tools=("Bash", "Read"), families=("command", "generic"))
    with statements_of(store.database.engine) as statements:
        near = store.reader.invocations(where, limit=20)
    assert len(without_housekeeping(statements)) == 1
    every = store.reader.invocations(where).items
    assert near.items == every[:20]
    assert store.reader.invocations(where, limit=20, cursor=near.next_cursor).items == every[20:40]


def tables_of(sql: str) -> set[str]:
    return set(re.findall(r"(?:FROM|JOIN)\s+(\w+)", sql))


def test_the_newest_page_is_read_without_sorting(sqlite_store: Store) -> None:
    insert_facts(sqlite_store, FACTS)
    with statements_of(sqlite_store.database.engine) as statements:
        sqlite_store.reader.invocations(limit=20)
    ((sql, values),) = [s for s in statements if s[0].startswith("SELECT")]
    with sqlite_store.database.read() as connection:
        plan = [row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {sql}", values)]
    assert not any("TEMP B-TREE" in step for step in plan)


def test_a_missing_artifact_is_said_to_be_missing(store: Store) -> None:
    stream = big_stream(store)
    stored_object(store, stream).unlink()
    with pytest.raises(MissingArtifactError) as caught:
        content_of(store.reader, stream)
    assert caught.value.path == stream.artifact_path


def test_an_artifact_whose_content_is_cut_anywhere_is_damage(store: Store) -> None:
    stream = big_stream(store)
    path = stored_object(store, stream)
    data = path.read_bytes()
    for length in (0, 1, len(data) // 2):
        path.write_bytes(data[:length])
        with pytest.raises(DamageError):
            content_of(store.reader, stream)
    path.write_bytes(data)
    assert content_of(store.reader, stream) == BIG


def test_an_index_that_is_cut_keeps_the_content_readable_and_is_found_by_verifying(
    store: Store,
) -> None:
    stream = big_stream(store)
    path = stored_object(store, stream)
    path.write_bytes(path.read_bytes()[:-1])
    assert content_of(store.reader, stream) == BIG
    assert stream.artifact_path is not None
    with pytest.raises(DamageError):
        store.archive.verify(stream.artifact_path)


def test_an_altered_artifact_is_damage(store: Store) -> None:
    stream = big_stream(store)
    path = stored_object(store, stream)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(DamageError):
        content_of(store.reader, stream)


def test_an_artifact_of_other_bytes_is_damage_although_it_decodes(store: Store) -> None:
    stream = big_stream(store)
    other = b"X" + BIG[1:]
    path = stored_object(store, stream)
    path.write_bytes(zstandard.ZstdCompressor().compress(other))
    with pytest.raises(DigestMismatchError):
        content_of(store.reader, stream)
    path.write_bytes(zstandard.ZstdCompressor().compress(BIG + b"more"))
    with pytest.raises(DigestMismatchError):
        content_of(store.reader, stream)


def test_a_file_outside_of_the_root_is_never_opened(store: Store, tmp_path: Path) -> None:
    stream = big_stream(store)
    secret = tmp_path / "secret"
    secret.write_text("secret")
    path = stored_object(store, stream)
    path.unlink()
    path.symlink_to(secret)
    with pytest.raises(PathEscapeError, match="artifact root"):
        content_of(store.reader, stream)


def test_a_body_that_is_not_in_the_store_is_damage(store: Store) -> None:
    stream = StreamView("stdout", digest_of(b"lost"), 4, 1, 4, 1, None, None)
    with pytest.raises(DamageError, match="is missing"):
        store.reader.open_stream(stream)


def test_what_one_store_wrote_another_reads(store: Store, database: str) -> None:
    finished = run_command(store.open_session(), BIG, b"short\n")
    with open_store(database) as other:
        detail = other.reader.invocation(finished.invocation_id)
        assert content_of(other.reader, stream_of(detail, "stdout")) == BIG
        assert content_of(other.reader, stream_of(detail, "stderr")) == b"short\n"
        check_evidence(other)


def test_a_joined_session_goes_on_where_the_other_stopped(store: Store) -> None:
    session = store.open_session()
    run_tool(session, "one")
    joined = store.join_session(session.id)
    run_tool(joined, "two")
    _, _, details = store.reader.conversation(session.id)
    assert [detail.summary.seq for detail in details] == [0, 1]
    check_evidence(store)
