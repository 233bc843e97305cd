"""Faults that a runtime ran into, one to seven: a test bears the number of its fault."""

from pathlib import Path

import pytest
from tests.records.support import lossy, omitted
from tests.support.cases import each_case
from tests.support.contract import (
    BASH,
    LINES,
    canonical_of,
    printed,
    receipt_of,
    record,
    row_count,
)
from tests.support.disks import small_disk
from tests.support.evidence import check_evidence
from tests.support.processes import run_python
from tests.support.recording import (
    command_output,
    content_of,
    in_memory,
    run_command,
    run_tool,
    stream_of,
)
from tests.support.rewording import reworded

from tooltrail.records import (
    DEFAULT_POLICY,
    CompleteOutput,
    Family,
    FileReadOutput,
    InvalidRecordError,
    InvocationFinishedError,
    MissingArtifactError,
    ToolCall,
    ToolError,
    default_families,
    digest_of,
    load_policy,
)
from tooltrail.store import Store, create_store, read_condition


@pytest.mark.parametrize(
    ("kept", "lost", "stages"),
    [
        (b"short\n", 0, set[str]()),
        (b"short\n", 9, {"capture"}),
        (LINES, 0, {"projection"}),
        (LINES, 9, {"capture", "projection"}),
    ],
    ids=["no-cut", "first-cut", "second-cut", "both-cuts"],
)
def test_fault_01_two_cuts_in_a_row_still_set_the_flag(
    sqlite_store: Store, kept: bytes, lost: int, stages: set[str]
) -> None:
    stream = lossy(kept, lost) if lost else in_memory("stdout", kept)
    detail = record(sqlite_store, printed(stream))
    result = canonical_of(detail)["result"]
    assert {o.stage for o in detail.omissions} == stages
    flags = [result["stdout_truncated"], result["truncated"], detail.summary.truncated]
    assert flags == [bool(stages)] * 3
    assert ("[output truncated: " in receipt_of(detail)) is ("projection" in stages)
    assert ("[output incomplete: " in receipt_of(detail)) is ("capture" in stages)


def test_fault_01_a_cut_of_the_receipt_alone_sets_the_flag_of_the_invocation(
    tmp_path: Path,
) -> None:
    wordy = reworded("command", "word " * 10_000)
    with create_store(tmp_path / "trail.db", families=wordy) as store:
        detail = record(store, printed(in_memory("stdout", b"short\n")))
    assert detail.summary.truncated is True
    assert {o.stage for o in detail.omissions} == {"rendering"}
    assert "[output truncated: " in receipt_of(detail)


def test_fault_02_a_full_artifact_has_the_first_byte_and_the_last(sqlite_store: Store) -> None:
    finished = run_command(sqlite_store.open_session(), LINES)
    detail = sqlite_store.reader.invocation(finished.invocation_id)
    ((role, path),) = detail.artifacts
    assert f"full output: {path}]" in receipt_of(detail)
    assert (role, sqlite_store.archive.verify(path, size=len(LINES))) == ("stdout", len(LINES))
    assert content_of(sqlite_store.reader, stream_of(detail, "stdout")) == LINES


def test_fault_02_a_text_in_memory_becomes_a_whole_artifact_too(
    sqlite_store: Store,
) -> None:
    finished = run_tool(sqlite_store.open_session(), LINES.decode())
    detail = sqlite_store.reader.invocation(finished.invocation_id)
    assert content_of(sqlite_store.reader, stream_of(detail, "content.0")) == LINES


@each_case("family", [*default_families()])
def test_fault_03_a_receipt_has_room_for_the_preview_whatever_a_policy_says(
    family: Family,
) -> None:
    narrow = {"preview_chars": 5000, "receipt_chars": 5001}
    with pytest.raises(InvalidRecordError, match="receipt_chars must be at least preview_chars"):
        load_policy({"families": {family.name: narrow}}, default_families())
    budget = family.budget.overridden({"preview_chars": 256_000, "receipt_chars": 0})
    assert budget.receipt_chars >= 256_000 + 2000


def test_fault_03_a_receipt_limit_for_one_tool_cannot_swallow_the_preview(
    sqlite_store: Store,
) -> None:
    policy = DEFAULT_POLICY.for_tool("Bash", preview_chars=200_000, receipt_chars=1)
    invocation = sqlite_store.open_session().start(BASH, policy=policy)
    finished = invocation.finish(command_output(invocation, LINES))
    assert finished.canonical.result is not None
    preview = finished.canonical.result["stdout_preview"]
    assert isinstance(preview, str)
    assert 190_000 < len(preview) <= 200_000
    assert preview in finished.receipt.text


def test_fault_04_a_log_that_fills_the_disk_leaves_the_database_and_a_count(
    tmp_path: Path,
) -> None:
    noise = b"".join(digest_of(b"%d" % n).encode() + b"\n" for n in range(100_000))
    with (
        small_disk(tmp_path / "disk", 1 << 20) as disk,
        create_store(tmp_path / "trail.db", spool=disk.folder / "spool") as store,
    ):
        invocation = store.open_session().start(BASH)
        output = command_output(invocation, noise)
        (stdout, _) = output.streams
        lost = stdout.produced_size - stdout.size
        assert stdout.produced_size == len(noise)
        assert 0 < stdout.size < len(noise)
        invocation.finish(output)
        detail = store.reader.invocation(invocation.id)
        kept = content_of(store.reader, stream_of(detail, "stdout"))
        check_evidence(store)
    assert kept == noise[: stdout.size]
    (loss,) = (o for o in detail.omissions if (o.stage, o.unit) == ("capture", "bytes"))
    assert (loss.before, loss.after) == (len(noise), len(kept))
    assert f"the last {lost:,} bytes were not kept" in receipt_of(detail)
    assert detail.summary.output_size == len(noise)
    assert canonical_of(detail)["result"]["stdout_truncated"] is True


def test_fault_04_what_a_cap_lost_is_counted_in_every_surface(sqlite_store: Store) -> None:
    detail = record(sqlite_store, printed(lossy(b"kept\n", 123_456, reason="the cap is reached")))
    assert omitted(detail.omissions, "stdout", "bytes") == 123_456
    assert detail.summary.output_size == 123_461
    stream = stream_of(detail, "stdout")
    assert (stream.produced_size, stream.loss_reason) == (123_461, "the cap is reached")
    assert (
        "[output incomplete: the last 123,456 bytes were not kept: the cap is reached]"
        in receipt_of(detail)
    )


PATCH = "-caf\u00e9 \u6f22\u5b57 \U0001f600\n+na\u00efve \u00df\u20ac\n" * 20


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_fault_05_characters_that_straddle_a_chunk_stay_whole(
    sqlite_store: Store, size: int
) -> None:
    data = PATCH.encode()
    invocation = sqlite_store.open_session().start(ToolCall(tool_name="Read"))
    capture = invocation.capture("content")
    for start in range(0, len(data), size):
        capture.write(data[start : start + size])
        capture.flush()
    content = invocation.captured(capture.close())
    result = FileReadOutput(path="a.patch", content=content)
    finished = invocation.finish(CompleteOutput.success("Read", result))
    assert finished.receipt.text == PATCH
    assert finished.canonical.result is not None
    assert finished.canonical.result["content_preview"] == PATCH
    detail = sqlite_store.reader.invocation(invocation.id)
    assert content_of(sqlite_store.reader, stream_of(detail, "content")) == data


@pytest.mark.parametrize("shift", range(4))
def test_fault_05_characters_that_straddle_an_edge_of_a_capture_stay_whole(
    sqlite_store: Store, shift: int
) -> None:
    data = b"x" * shift + "\u6f22\U0001f600".encode() * 160_000 + b"y" * shift
    invocation = sqlite_store.open_session().start(BASH)
    output = command_output(invocation, data)
    assert output.streams[0].content is None
    finished = invocation.finish(output)
    assert finished.canonical.result is not None
    assert "stdout_encoding" not in finished.canonical.result
    assert not {"\ufffd", "\\"} & set(finished.receipt.text)


def test_fault_06_an_invocation_has_one_result_however_often_it_is_finished(
    sqlite_store: Store,
) -> None:
    invocation = sqlite_store.open_session().start(ToolCall(tool_name="Bash", call_id="call_1"))
    invocation.finish(command_output(invocation, b"first\n"))
    late = CompleteOutput.failure("Bash", ToolError(kind="cancelled", message="too late"))
    with pytest.raises(InvocationFinishedError):
        invocation.finish(late)
    detail = sqlite_store.reader.invocation(invocation.id)
    assert (detail.summary.state, "first" in receipt_of(detail)) == ("success", True)
    assert row_count(sqlite_store, "surfaces") == 1


CRASH = """
import os, signal
from tooltrail.records import ToolCall
from tooltrail.store import open_store
with open_store(sys.argv[1]) as store:
    invocation = store.open_session().start(ToolCall(tool_name="Bash", call_id="call_1"))
    capture = invocation.capture("stdout")
    capture.write(b"a part\\n")
    capture.flush()
    print(invocation.id, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_fault_06_an_invocation_whose_program_was_killed_is_there_and_says_so(
    tmp_path: Path,
) -> None:
    with create_store(tmp_path / "trail.db") as store:
        printed_id, _ = run_python(CRASH, str(tmp_path / "trail.db"), expected=-9)
        detail = store.reader.invocation(printed_id.strip())
        assert (detail.summary.state, detail.summary.call_id) == ("interrupted", "call_1")
        assert content_of(store.reader, stream_of(detail, "stdout")) == b"a part\n"
        assert "interrupted" in receipt_of(detail)
        assert store.reader.counts().invocations == {"interrupted": 1}


def test_fault_06_two_calls_with_one_call_id_are_two_invocations(
    sqlite_store: Store,
) -> None:
    session = sqlite_store.open_session()
    call = ToolCall(tool_name="Bash", call_id="call_1")
    finished = [run_command(session, text, call=call) for text in (b"one\n", b"two\n")]
    details = [sqlite_store.reader.invocation(done.invocation_id) for done in finished]
    assert [detail.summary.call_id for detail in details] == ["call_1", "call_1"]
    assert ["one" in receipt_of(details[0]), "two" in receipt_of(details[1])] == [True, True]
    assert row_count(sqlite_store, "surfaces") == 2


def test_fault_07_every_reference_of_a_result_and_of_a_receipt_resolves(
    sqlite_store: Store,
) -> None:
    finished = run_command(sqlite_store.open_session(), LINES, LINES[::-1])
    detail = sqlite_store.reader.invocation(finished.invocation_id)
    result = canonical_of(detail)["result"]
    for role, data in (("stdout", LINES), ("stderr", LINES[::-1])):
        path = result["artifacts"][result[f"{role}_artifact"]]["path"]
        assert sqlite_store.archive.verify(path, size=len(data)) == len(data)
        assert f"full output: {path}]" in result[f"{role}_preview"]
        assert f"\n{path} ({role})\n" in receipt_of(detail)
        assert content_of(sqlite_store.reader, stream_of(detail, role)) == data


def test_fault_07_a_reference_whose_bytes_wait_for_the_root_is_listed_and_resolves(
    tmp_path: Path,
) -> None:
    with create_store(tmp_path / "trail.db") as store:
        invocation = store.open_session().start(BASH)
        output = command_output(invocation, LINES)
        (tmp_path / "trail.db-artifacts").rename(tmp_path / "unmounted")
        invocation.finish(output)
        detail = store.reader.invocation(invocation.id)
        ((_, path),) = detail.artifacts
        assert f"full output: {path}]" in receipt_of(detail)
        (waiting,) = read_condition(store).pending
        assert (waiting.role, waiting.spool) == ("stdout", str(store.spool))
        assert (invocation.spool / "stdout.zst").is_file()
        assert content_of(store.reader, stream_of(detail, "stdout")) == LINES
        (tmp_path / "unmounted").rename(tmp_path / "trail.db-artifacts")
        store.ingest()
        assert store.archive.verify(path, size=len(LINES)) == len(LINES)


def test_fault_07_a_blob_that_went_away_is_named_and_not_read_as_empty(tmp_path: Path) -> None:
    with create_store(tmp_path / "trail.db") as store:
        finished = run_command(store.open_session(), LINES)
        detail = store.reader.invocation(finished.invocation_id)
        ((_, path),) = detail.artifacts
        (tmp_path / "trail.db-artifacts" / path).unlink()
        with pytest.raises(MissingArtifactError) as caught:
            content_of(store.reader, stream_of(detail, "stdout"))
    assert caught.value.path == path
