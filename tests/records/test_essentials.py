"""The widest result of every family: what a compaction never drops, and a receipt that holds it."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import JsonValue
from tests.records.support import surfaces, whole
from tests.support.cases import each_case
from tests.support.generated import mapped

from tooltrail.records import (
    DEFAULT_POLICY,
    BatchItem,
    ChildAgentOutput,
    CommandBatchOutput,
    CommandOutput,
    CompleteOutput,
    ContentItem,
    FamilyOutput,
    FileChange,
    FileMutationOutput,
    FileReadOutput,
    GenericOutput,
    NotificationOutput,
    ObservedTask,
    Policy,
    PromotedCommand,
    RunningCommand,
    SchemaViolation,
    SearchOutput,
    StreamRecord,
    StructuredOutput,
    Task,
    TaskHandle,
    TaskInputOutput,
    TaskListOutput,
    TaskOutput,
    TaskStatusOutput,
    TaskStopOutput,
    TokenUsage,
    Transition,
    WebFetchOutput,
    WebSearchHit,
    WebSearchOutput,
    WorkItem,
    WorkItemOutput,
    Workspace,
    WorkspaceOutput,
    canonical_json,
    compact,
    default_families,
    digest_of,
)

MOST = 256
"""Entries of a list that the widest policy shows."""

ID = '"\\' * 128
"""The longest identifier, of characters that take two of JSON each."""

LARGEST = (1 << 63) - 1
WIDE = "\x01" * 999
"""A text whose characters take six of JSON each."""

NOON = datetime(2026, 4, 23, 12, tzinfo=UTC)
FACTS: dict[str, Any] = {"task_id": ID, "kind": "\x01" * 64}
ENDED: dict[str, Any] = {**FACTS, "status": "interrupted", "exit_status": 255, "summary": WIDE}
HANDLE = TaskHandle(**FACTS, status="interrupted")


def log(role: str) -> StreamRecord:
    """An artifact of its own: no two have the same path."""
    return whole(f"\0{role}".encode(), role)


def command(prefix: str = "") -> CommandOutput:
    streams: dict[str, Any] = {n: log(f"{prefix}{n}") for n in ("stdout", "stderr", "order")}
    ending = {"exit_status": 255, "timed_out": True, "timeout_ms": LARGEST}
    return CommandOutput.model_validate({"command": WIDE, "cwd": WIDE, **ending, **streams})


def json_value(role: str) -> StreamRecord:
    return whole(canonical_json.encode(["v" * 300_000]), role)


WIDEST: dict[str, FamilyOutput] = {
    "child_agent": ChildAgentOutput(
        agent_id=ID,
        child_session_id=ID,
        task_handle=HANDLE,
        status="interrupted",
        report=log("report"),
        token_usage=TokenUsage(
            input_tokens=LARGEST,
            output_tokens=LARGEST,
            cache_read_tokens=LARGEST,
            cache_write_tokens=LARGEST,
        ),
    ),
    "command": command(),
    "command promoted": PromotedCommand(
        command=WIDE, cwd=WIDE, task_handle=HANDLE, initial_output=log("initial_output")
    ),
    "command running": RunningCommand(
        command=WIDE, cwd=WIDE, task_handle=HANDLE, task_summary=WIDE
    ),
    "command_batch": CommandBatchOutput(
        items=tuple(
            BatchItem(cmd=WIDE, status="completed", result=command(f"{n}."), duration_ms=LARGEST)
            for n in range(1, MOST + 2)
        )
    ),
    "command_batch rejected": CommandBatchOutput(
        items=(BatchItem(cmd=WIDE, status="rejected", error_kind="k" * 64, error_message=WIDE),)
        * (MOST + 1)
    ),
    "file_mutation": FileMutationOutput(
        changed_files=tuple(
            FileChange(
                action="move", path=f"{n}{WIDE}", from_path=f"{n}{WIDE}", diff=log(f"diff.{n}")
            )
            for n in range(MOST + 1)
        ),
        diagnostics=(WIDE,) * (MOST + 1),
    ),
    "file_read": FileReadOutput(path=WIDE, content=log("content")),
    "generic": GenericOutput(
        content=tuple(
            ContentItem(media_type="text/plain", stream=log(f"content.{n}"))
            for n in range(MOST + 1)
        ),
        structured=json_value("structured"),
    ),
    "notification": NotificationOutput(delivered=True, channel=WIDE, notification_id=ID),
    "search": SearchOutput(match_count=LARGEST, returned=LARGEST - 1, matches=log("matches")),
    "structured_output": StructuredOutput(
        agent=ID,
        schema_digest=digest_of(b"schema"),
        value=json_value("value"),
        errors=(SchemaViolation(path=WIDE, message=WIDE),) * (MOST + 1),
        attempt=(1 << 31) - 1,
    ),
    "task_control input": TaskInputOutput(
        task=Task(**ENDED), accepted_input=True, bytes_written=LARGEST
    ),
    "task_control list": TaskListOutput(
        total_active=LARGEST, limit=LARGEST, tasks=tuple(Task(**ENDED) for _ in range(MOST + 1))
    ),
    "task_control status": TaskStatusOutput(task=Task(**ENDED)),
    "task_control stop": TaskStopOutput(
        task=Task(**ENDED), stop_requested=True, force_stop_requested=True
    ),
    "task_output": TaskOutput(
        retrieval_status="not_ready",
        task=ObservedTask(
            **ENDED, output=log("output"), result_summary=WIDE, failure=log("failure")
        ),
    ),
    "web_fetch": WebFetchOutput(
        url=WIDE,
        final_url=WIDE,
        status=599,
        content_type=WIDE,
        bytes_read=LARGEST,
        sha256=digest_of(b"page"),
        fetched_at=NOON,
        text=log("text"),
    ),
    "web_search": WebSearchOutput(
        query=WIDE,
        provider=WIDE,
        results=(WebSearchHit(title=WIDE, url=WIDE, snippet=WIDE),) * (MOST + 1),
        fetched_at=NOON,
    ),
    "work_item": WorkItemOutput(
        action="listed",
        items=(WorkItem(work_item_id=ID, title=WIDE, status=WIDE, description=WIDE),) * (MOST + 1),
        transition=Transition.model_validate({"from": WIDE, "to": WIDE}),
        warnings=(WIDE,) * (MOST + 1),
    ),
    "workspace": WorkspaceOutput(
        disposition="d" * 64,
        workspace=Workspace(workspace_id=ID, path=WIDE, branch=WIDE, kind=WIDE, head=WIDE),
        projection=WIDE,
    ),
}
"""By the family, and what of it."""


def widest_policy(family: str) -> Policy:
    """As many entries as the family can show, and previews of all of them."""
    return DEFAULT_POLICY.for_tool("tool", max_items=10**9, preview_chars=10**9)


def essentials(value: JsonValue, name: str = "") -> Iterator[tuple[str, JsonValue]]:
    """Everything of the must-keep class, with its name, in the order of the result."""
    if name == "artifacts":
        yield name, value
    elif isinstance(value, list):
        for item in value:
            yield from essentials(item)
    elif isinstance(value, dict):
        for member in sorted(value):
            yield from essentials(value[member], member)
    elif name in OUTCOMES or name.endswith(("_id", "_truncated", "artifact")):
        yield name, None if isinstance(value, bool) else value


OUTCOMES = {"disposition", "exit_status", "index", "retrieval_status", "status"}


def test_each_family_has_a_widest_result() -> None:
    families = {family.name for family in default_families()}
    assert {name.split()[0] for name in WIDEST} == families


@each_case("name", WIDEST)
def test_the_widest_result_of_a_family_loses_nothing_that_must_stay(name: str) -> None:
    family = name.split(maxsplit=1)[0]
    output = CompleteOutput.success("tool", WIDEST[name], "done")
    canonical = surfaces(output, family, widest_policy(family))[0].canonical
    kept = list(essentials(compact(canonical, 0).result))
    assert kept == list(essentials(canonical.result))
    assert kept or family == "web_search"


def _in_characters(part: Any) -> Any:
    """What takes the most characters of a receipt, where `WIDEST` has the most bytes of JSON.

    Control characters are spaces in a receipt, and an address loses those that it begins with.
    """
    if isinstance(part, StreamRecord) and part.role not in ("structured", "value"):
        return whole(b'["' + b"x" * 5000 + part.role.encode(), part.role)
    if isinstance(part, str) and not part.strip("\x01"):
        return "w" * (len(part) or 999)
    return part


# The last one is the least that has room for something of each entry.
@pytest.mark.parametrize(("most", "preview"), [(1, 0), (MOST, 0), (MOST, 500 * MOST)])
@pytest.mark.parametrize("name", WIDEST)
def test_the_widest_result_of_a_family_fits_into_the_smallest_receipt(
    name: str, most: int, preview: int
) -> None:
    family = default_families().named(name.split(maxsplit=1)[0])
    policy = DEFAULT_POLICY.for_tool("tool", preview_chars=preview, receipt_chars=0, max_items=most)
    widest = mapped(WIDEST[name], _in_characters)
    _, receipt, _ = surfaces(CompleteOutput.success("tool", widest, "done"), family.name, policy)
    assert receipt.omissions == ()
    assert len(receipt.text) <= policy.budget_of(family, "tool").receipt_chars


FORGED = "a\nForged\r\nForged\u2028Forged\x85Forged\x1b[2K \ud800"
WITHOUT_LABELS = {
    *("child_agent", "command", "command promoted", "file_read", "generic", "search"),
    *("task_control input", "task_control stop"),
}
"""Of `WIDEST`, those whose receipt has no label but identifiers."""


def _forging(part: Any) -> Any:
    """A label that would be several lines, in the place of each of `WIDEST`."""
    return FORGED if isinstance(part, str) and part and not part.strip("\x01") else part


@each_case("name", WIDEST)
def test_no_label_of_a_result_begins_a_line_of_its_receipt(name: str) -> None:
    family = name.split(maxsplit=1)[0]
    output = CompleteOutput.success("tool", mapped(WIDEST[name], _forging), "done")
    _, receipt, _ = surfaces(output, family, widest_policy(family))
    assert [line for line in receipt.text.splitlines() if line.startswith("Forged")] == []
    assert not {*receipt.text} & {*"\r\u2028\x85\x1b\ud800"}
    assert ("Forged" in receipt.text) is (name not in WITHOUT_LABELS)
