"""What holds for any batch of commands: its bounds, and the account of what is left out."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.records.batches import MAX_MS, failed, rejected, result_of, run, skipped
from tests.records.support import MARKER, artifact_path, lossy, number, omitted, whole
from tests.support.effort import times
from tests.support.policies import policy_with

from tooltrail.records import (
    BatchItem,
    CanonicalResult,
    CommandBatchBudget,
    CommandBatchOutput,
    CommandOutput,
    Policy,
    Projection,
    StreamRecord,
)

texts = st.text(st.characters(), max_size=40) | st.sampled_from(["x" * 900, "\u6f22\n" * 500])
printed = st.one_of(
    st.binary(max_size=100),
    st.tuples(
        st.sampled_from([b"line\n", b"[1,", b"x", b'{"a":1}', b"\0", "\u6f22".encode()]),
        st.integers(1, 1500),
    ).map(lambda run: run[0] * run[1]),
)
losses = st.sampled_from([0, 0, 5])


def stream_of(data: bytes, lost: int) -> StreamRecord:
    return lossy(data, lost, "role", "\udce9" * 300) if lost else whole(data, "role")


any_stream = st.builds(stream_of, printed, losses)
endings: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [
        {"exit_status": 0},
        {"exit_status": 255},
        {"signal": 9},
        {"signal": 15, "timed_out": True, "timeout_ms": MAX_MS},
    ]
)


def completed_item(cmd: str, printed_by: list[StreamRecord], ending: dict[str, Any]) -> BatchItem:
    names = ("combined",) if len(printed_by) == 1 else ("stdout", "stderr")
    fields = {**ending, "command": cmd, **dict(zip(names, printed_by, strict=True))}
    result = CommandOutput.model_validate(fields)
    return BatchItem(cmd=cmd, status="completed", result=result, duration_ms=MAX_MS)


any_item = st.one_of(
    st.builds(completed_item, texts, st.lists(any_stream, min_size=1, max_size=2), endings),
    st.builds(failed, texts, texts),
    st.builds(rejected, texts, texts),
    st.builds(skipped, texts),
)


def numbered(items: list[BatchItem]) -> CommandBatchOutput:
    """The same items with a role of its own for each stream."""
    return CommandBatchOutput(items=tuple(number_item(n, i) for n, i in enumerate(items, 1)))


def number_item(index: int, item: BatchItem) -> BatchItem:
    if item.result is None:
        return item
    roles = {
        name: stream.model_copy(update={"role": f"{index}.{name}"})
        for name, stream in named_streams(item)
    }
    return item.model_copy(update={"result": item.result.model_copy(update=roles)})


def named_streams(item: BatchItem) -> list[tuple[str, StreamRecord]]:
    if item.result is None:
        return []
    streams = (item.result.stdout, item.result.stderr, item.result.combined)
    pairs = zip(("stdout", "stderr", "combined"), streams, strict=True)
    return [(name, stream) for name, stream in pairs if stream is not None]


def policy_of(preview: int, more: int, most: int) -> Policy:
    frame = 2000 + most * CommandBatchBudget.item_chars
    budget = {
        "preview_chars": preview,
        "receipt_chars": preview + frame + more,
        "max_items": most,
    }
    return policy_with(command_batch=budget)


policies = st.builds(
    policy_of,
    st.integers(1000, 4000),
    st.integers(0, 2000),
    st.sampled_from([1, 2, 4, 64]),
)


def check_item(projection: Projection, item: BatchItem, shown: dict[str, Any]) -> int:
    """Check what is said of one item, and return the characters of its previews."""
    assert (shown["status"], "result" in shown) == (item.status, item.result is not None)
    chars = 0
    for name, stream in named_streams(item):
        field = "combined_output" if name == "combined" else name
        result = shown["result"]
        missing = omitted(projection.omissions, stream.role, "bytes")
        lost = stream.produced_size - stream.size
        preview = result[f"{field}_preview"] or ""
        chars += len(preview)
        match = MARKER.search(preview)
        if match is not None:
            assert missing == lost + number(match["bytes"])
        assert lost <= missing <= stream.produced_size
        assert result[f"{field}_truncated"] is (missing > 0)
        index = result.get(f"{field}_artifact")
        assert (index is not None) or missing == lost
        if index is not None:
            assert result["artifacts"][index]["path"] == artifact_path(stream)
    return chars


@settings(max_examples=times(37))
@given(st.lists(any_item, max_size=5), st.sampled_from([1, 1, 5]), policies)
def test_any_batch_has_a_bounded_repeatable_accounted_receipt(
    items: list[BatchItem], times: int, policy: Policy
) -> None:
    output = numbered(items * times)
    projection, receipt = run(output, policy)
    again, receipt_again = run(output.model_copy(deep=True), policy)
    assert projection.canonical.to_json() == again.canonical.to_json()
    assert CanonicalResult.from_json(projection.canonical.to_json()) == projection.canonical
    assert receipt == receipt_again
    budget = policy.families["command_batch"]
    assert receipt.omissions == ()
    assert len(receipt.text) <= budget.receipt_chars
    receipt.to_bytes()

    result = result_of(projection)
    assert result["truncated"] is bool(projection.omissions)
    most = len(result["items"])
    assert [item["index"] for item in result["items"]] == [*range(1, most + 1)]
    few = budget.preview_chars // (500 * 2)
    every = min(len(output.items), budget.max_items)
    assert min(every, few) <= most <= every
    counts = [result[f"{name}_count"] for name in ("completed", "failed", "rejected", "skipped")]
    assert sum(counts) == result["item_count"] == len(output.items)
    pairs = zip(output.items, result["items"], strict=False)
    chars = sum(check_item(projection, item, shown) for item, shown in pairs)
    assert chars <= budget.preview_chars
    hidden = [stream for item in output.items[most:] for _, stream in named_streams(item)]
    assert omitted(projection.omissions, "items", "bytes") == sum(s.size for s in hidden)


def test_the_widest_frames_of_the_most_items_fit_into_the_smallest_receipt() -> None:
    policy = policy_of(16_000, 0, 64)
    wide = "\u6f22" * 900
    rows = whole(b'{"a": "' + b"x" * 5000, "role")
    ending: dict[str, Any] = {"signal": 15, "timed_out": True, "timeout_ms": MAX_MS}
    widest = completed_item(wide, [rows, rows], ending)
    for item in (widest, rejected(wide, wide)):
        _, receipt = run(numbered([item] * 70), policy)
        assert receipt.omissions == ()
        assert len(receipt.text) <= policy.families["command_batch"].receipt_chars
