"""Starting and finishing: what is acknowledged is there, and what is refused has left nothing."""

import copy
import json
from pathlib import Path

import pytest
from sqlalchemy import event
from sqlalchemy.pool import ConnectionPoolEntry
from tests.support.evidence import assert_only_started
from tests.support.outputs import returned
from tests.support.policies import policy_with
from tests.support.processes import run_python
from tests.support.recording import (
    captured,
    command_output,
    content_of,
    in_memory,
    run_command,
    run_tool,
    stream_of,
)
from tests.support.rows import row_counts

from tooltrail.records import (
    DEFAULT_POLICY,
    CommandOutput,
    CompleteOutput,
    ContentItem,
    GenericOutput,
    InvalidRecordError,
    InvocationFinishedError,
    ToolCall,
    ToolError,
    digest_of,
)
from tooltrail.store import Store

BIG = b"a line of a long output\n" * 50_000
"""Long enough to become an artifact."""

BASH = ToolCall(tool_name="Bash")

LOOK = """
from tooltrail.store import open_store
with open_store(sys.argv[1], artifacts=sys.argv[2]) as store:
    detail = store.reader.invocation(sys.argv[3])
    print(detail.summary.state, detail.arguments.decode(), detail.receipt)
"""


def generic_with(stream_change: dict[str, object]) -> CompleteOutput:
    stream = in_memory("content.0", b"short").model_copy(update=stream_change)
    result = GenericOutput(content=(ContentItem(stream=stream),))
    return CompleteOutput(tool_name="Read", status="success", summary_text="read", result=result)


def test_a_start_is_seen_by_another_process_before_the_tool_ends(
    store: Store, database: str, tmp_path: Path
) -> None:
    call = ToolCall.of("Bash", {"command": "make"})
    invocation = store.open_session().start(call)

    seen, _ = run_python(LOOK, database, str(tmp_path / "artifacts"), str(invocation.id))

    assert seen.split() == ["started", '{"command":"make"}', "None"]


def test_a_finish_is_seen_by_another_process_when_it_returns(
    store: Store, database: str, tmp_path: Path
) -> None:
    finished = run_command(store.open_session(), b"hello\n")

    seen, _ = run_python(LOOK, database, str(tmp_path / "artifacts"), str(finished.invocation_id))

    assert seen.startswith("success {} ReceiptView(text='Process exited with code 0")


def test_what_finish_hands_back_is_what_the_store_keeps(store: Store) -> None:
    finished = run_command(store.open_session(), BIG, b"warning\n", exit_status=3)

    detail = store.reader.invocation(finished.invocation_id)

    assert detail.canonical_json is not None
    assert detail.canonical_json == finished.canonical.to_json().decode()
    assert detail.receipt is not None
    assert detail.receipt.text == finished.receipt.text
    assert detail.receipt.policy_digest == DEFAULT_POLICY.digest
    assert (detail.receipt.renderer_name, detail.receipt.renderer_version) == ("command", 1)
    assert detail.summary.state == finished.state == "success"
    assert detail.summary.exit_status == 3
    assert detail.summary.output_size == len(BIG) + len(b"warning\n")
    assert detail.summary.truncated is True
    assert [role for role, _ in detail.artifacts] == ["stdout"]
    assert json.loads(detail.canonical_json)["result"]["artifacts"] == [
        {"path": path} for _, path in detail.artifacts
    ]
    assert {(o.stage, o.field, o.unit) for o in detail.omissions} == {
        ("projection", "stdout", "bytes"),
        ("projection", "stdout", "lines"),
    }
    assert content_of(store.reader, stream_of(detail, "stdout")) == BIG


def test_the_spool_is_there_while_the_tool_runs_and_gone_when_all_is_durable(store: Store) -> None:
    invocation = store.open_session().start(BASH)
    output = command_output(invocation, BIG)
    assert (invocation.spool / "stdout.zst").is_file()

    invocation.finish(output)

    assert not invocation.spool.exists()


def test_a_failure_keeps_its_kind_and_its_own_final_state(store: Store) -> None:
    session = store.open_session()
    states = {
        "permission_denied": "denied",
        "cancelled": "cancelled",
        "interrupted": "interrupted",
        "anything_else": "error",
    }
    for kind, state in states.items():
        error = ToolError(kind=kind, message="no", details={"why": [1, None]})
        finished = session.start(BASH).finish(CompleteOutput.failure("Bash", error))
        summary = store.reader.invocation(finished.invocation_id).summary
        assert (summary.state, summary.error_kind) == (state, kind)


def test_a_policy_for_one_invocation_is_stored_with_it_alone(store: Store) -> None:
    small = policy_with(inline_bytes=4)
    session = store.open_session()
    other = session.start(BASH, policy=small)
    other.finish(command_output(other, b"12345"))
    mine = run_command(session, b"12345")

    detail = store.reader.invocation(other.id)

    assert detail.policy_digest == small.digest
    assert stream_of(detail, "stdout").artifact_path is not None
    mine_detail = store.reader.invocation(mine.invocation_id)
    assert mine_detail.policy_digest == DEFAULT_POLICY.digest
    assert stream_of(mine_detail, "stdout").artifact_path is None


def test_finishing_twice_is_refused_and_changes_nothing(store: Store) -> None:
    invocation = store.open_session().start(BASH)
    output = command_output(invocation, BIG)
    invocation.finish(output)
    before, counts = store.reader.invocation(invocation.id), row_counts(store)

    with pytest.raises(InvocationFinishedError, match=str(invocation.id)):
        invocation.finish(output)
    with pytest.raises(InvocationFinishedError):
        invocation.finish(CompleteOutput.failure("Bash", ToolError(kind="late", message="late")))

    assert store.reader.invocation(invocation.id) == before
    assert row_counts(store) == counts


def test_two_holders_of_one_invocation_cannot_both_finish_it(store: Store) -> None:
    invocation = store.open_session().start(BASH)
    other = copy.copy(invocation)
    invocation.finish(generic_failure("first"))
    before, counts = store.reader.invocation(invocation.id), row_counts(store)

    with pytest.raises(InvocationFinishedError):
        other.finish(generic_failure("second"))

    assert store.reader.invocation(invocation.id) == before
    assert row_counts(store) == counts


def generic_failure(message: str) -> CompleteOutput:
    return CompleteOutput.failure("Bash", ToolError(kind="broken", message=message))


def test_output_of_another_family_is_refused(store: Store) -> None:
    session = store.open_session()
    command_run = CompleteOutput.success(
        "Read",
        CommandOutput(exit_status=0, stdout=in_memory("stdout"), stderr=in_memory("stderr")),
    )
    invocation = session.start(ToolCall(tool_name="Read"))
    with pytest.raises(InvalidRecordError, match="file_read family"):
        invocation.finish(command_run)
    assert_only_started(store, invocation.id)
    invocation.finish(returned("Read", "right"))


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"content": None}, id="bytes that were never captured"),
        pytest.param({"digest": digest_of(b"something else")}, id="the digest of other bytes"),
        pytest.param(
            {"produced_size": 10**60, "loss_reason": "lost"}, id="a size that no column holds"
        ),
    ],
)
def test_a_stream_that_could_not_be_read_back_is_refused(
    store: Store, change: dict[str, object]
) -> None:
    session = store.open_session()
    for policy in (DEFAULT_POLICY, policy_with(inline_bytes=0)):
        invocation = session.start(ToolCall(tool_name="Read"), policy=policy)
        counts = row_counts(store)
        with pytest.raises(InvalidRecordError):
            invocation.finish(generic_with(change))
        assert row_counts(store) == counts
        assert_only_started(store, invocation.id)


def test_a_stream_is_found_again_when_it_was_captured_under_another_policy(store: Store) -> None:
    invocation = store.open_session().start(
        ToolCall(tool_name="Read"), policy=policy_with(inline_bytes=0)
    )
    stream = captured(invocation, "content.0", b"short")
    assert stream.content is None
    result = GenericOutput(content=(ContentItem(stream=stream),))
    invocation.finish(
        CompleteOutput(tool_name="Read", status="success", summary_text="read", result=result)
    )
    detail = store.reader.invocation(invocation.id)
    assert content_of(store.reader, detail.streams[0]) == b"short"


def test_two_streams_with_the_same_bytes_are_stored_once(store: Store) -> None:
    finished = run_command(store.open_session(), BIG, BIG)
    detail = store.reader.invocation(finished.invocation_id)
    assert [content_of(store.reader, stream) for stream in detail.streams] == [BIG, BIG]
    assert len(store.reader.artifacts()) == 1


@pytest.mark.parametrize("role", ["../stdout", "/etc/stdout", "a/../../b", "a\\b", "x" * 300])
def test_a_capture_cannot_leave_the_spool(sqlite_store: Store, role: str) -> None:
    invocation = sqlite_store.open_session().start(BASH)
    with pytest.raises(InvalidRecordError):
        invocation.capture(role)
    assert not invocation.spool.exists()


def test_a_connection_does_not_outlive_its_store(sqlite_store: Store) -> None:
    closed: list[ConnectionPoolEntry] = []
    event.listen(sqlite_store.database.engine, "close", lambda *a: closed.append(a[1]))
    run_tool(sqlite_store.open_session(), "content")
    sqlite_store.close()
    assert closed
