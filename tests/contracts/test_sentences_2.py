"""Demands of the contract on every family: what a receipt says, and what a projector bounds."""

from contextlib import suppress
from typing import Any, NamedTuple, cast

import pytest
from pydantic import BaseModel, ValidationError
from tests.records.support import surfaces, whole
from tests.support.cases import each_case
from tests.support.family_examples import EXAMPLES
from tests.support.family_outputs import OUTPUTS

from tooltrail.records import (
    DEFAULT_POLICY,
    CanonicalResult,
    CompleteOutput,
    FamilyOutput,
    InvalidRecordError,
    StreamRecord,
    canonical_json,
    default_families,
    render,
)

FAMILIES = tuple(default_families())
FAMILY_OF = {kind: family for family in FAMILIES for kind in family.result_types}
Words = str | dict[bool, str]


class Fact(NamedTuple):
    """A value of a canonical result, and the words in which the receipt says it.

    Attributes:
        path: where it stands in the result, with points between names and positions.
        words: with a place for the value; of a flag, the words of either value.
        other: a value that it might have had instead.
    """

    path: str
    words: Words
    other: str | int

    def said(self, value: Any) -> str:
        return self.words.format(value) if isinstance(self.words, str) else self.words[value]


FACTS: dict[str, tuple[Fact, ...]] = {
    "agent agent-7 running": (
        Fact("agent_id", "Agent {} ", "agent-5"),
        Fact("child_session_id", "Session: {}\n", "ses-5"),
        Fact("task_handle.task_id", "Task: {}\n", "task-5"),
        Fact("status", "Agent agent-7 {}\n", "failed"),
        Fact("token_usage.input_tokens", "Tokens: {:,} in", 1201),
        Fact("token_usage.output_tokens", ", {:,} out", 35),
        Fact("report_preview", "Report:\n{}", "something else\n"),
        Fact("artifacts.0.path", "\n{} (report)\n", "sha256/5"),
    ),
    "command exited with status 3": (
        Fact("exit_status", "exited with code {}\n", 4),
        Fact("stdout_preview", "stdout:\n{}", "something else\n"),
        Fact("stderr_preview", "stderr:\n{}", "something else\n"),
        Fact("artifacts.0.path", "\n{} (stdout)\n", "sha256/5"),
    ),
    "1 of 2 commands completed": (
        Fact("completed_count", "completed {}/", 0),
        Fact("item_count", "/{} items\n", 5),
        Fact("items.0.cmd", "[1] {} ", "cc"),
        Fact("items.0.result.exit_status", "    exit={} ", 4),
        Fact("items.0.result.stdout_preview", "stdout:\n{}", "something else\n"),
        Fact("items.0.result.artifacts.0.path", "\n{} (1.stdout)\n", "sha256/5"),
        Fact("items.1.error_kind", "rejected ({}): ", "cancelled"),
        Fact("items.1.error_message", "): {}\n", "never"),
    ),
    "2 files were changed": (
        Fact("changed_files.0.path", "\nM {}\n", "src/z.py"),
        Fact("changed_files.1.path", " -> {}\n", "z.py"),
        Fact("changed_files.1.from_path", "\nR {} -> ", "z.py"),
        Fact("diagnostics.0", "Diagnostics:\n{}\n", "none"),
        Fact("artifacts.0.path", "\n{} (diff of src/a.py)\n", "sha256/5"),
    ),
    "read 225,000 bytes of a.py": (
        Fact("path", " of {}\n", "z.py"),
        Fact("line_range.start", "Lines {}-", 2),
        Fact("line_range.end", "-{} of ", 8),
        Fact("content_preview", "{}", "something else\n"),
        Fact("artifacts.0.path", "\n{} (content)\n", "sha256/5"),
    ),
    "tool returned 2 content items": (
        Fact("content.0.text_preview", "{}", "something else\n"),
        Fact("content.1.media_type", "[{}, ", "image/gif"),
        Fact("content.1.size", ", {:,} bytes: ", 6000),
        Fact("artifacts.1.path", " bytes: {}]", "sha256/5"),
        Fact("structured.rows", '"rows": {}\n', 3),
    ),
    "notification delivered: #on-call": (
        Fact("delivered", {True: "ation delivered", False: "ation not delivered"}, other=False),
        Fact("channel", "delivered: {} (", "#lunch"),
        Fact("notification_id", "({})\n", "ntf-5"),
    ),
    "command promoted to managed task": (
        Fact("task_handle.task_id", "Task: {}\n", "task-5"),
        Fact("initial_output_preview", "Initial output:\n{}", "something else\n"),
        Fact("artifacts.0.path", "\n{} (initial_output)\n", "sha256/5"),
    ),
    "command is already running as a background task": (
        Fact("task_handle.task_id", "Task: {}\n", "task-5"),
        Fact("task_handle.status", "Status: {}\n", "queued"),
        Fact("command.preview", "Command: {}\n", "make"),
        Fact("summary", "Summary: {}\n", "waits"),
    ),
    "found 1,200 matches, 40 returned": (
        Fact("match_count", "Found {:,} matches", 1300),
        Fact("returned", ", {} returned\n", 50),
        Fact("matches_preview", "{}", "something else\n"),
        Fact("artifacts.0.path", "\n{} (matches)\n", "sha256/5"),
    ),
    "result rejected with 1 error": (
        Fact("attempt", "(attempt {})", 3),
        Fact("valid", {True: "Result accepted", False: "Result rejected"}, other=True),
        Fact("errors.0.path", "\n- {}: ", "/z"),
        Fact("errors.0.message", ": {}\n", "is missing"),
        Fact("artifacts.0.path", "\n{} (value)\n", "sha256/5"),
    ),
    "input accepted; task is running": (
        Fact("task.task_id", "by task {}: ", "task-5"),
        Fact("task.status", "Status: {}\n", "queued"),
        Fact("accepted_input", {True: "Input accepted", False: "Input refused"}, other=False),
        Fact("bytes_written", ": {:,} bytes written", 1300),
    ),
    "12 active tasks, 2 returned": (
        Fact("total_active", "{} active tasks", 13),
        Fact("returned", ", {} returned", 4),
        Fact("limit", "(limit {})", 6),
        Fact("tasks.0.task_id", "\n{}    running", "task-5"),
        Fact("tasks.0.status", "\ntask-9    {}    ", "queued"),
        Fact("tasks.0.summary", "    {}\n", "waits"),
        Fact("tasks.1.exit_status", "    exit={}\n", 4),
    ),
    "task output retrieved; task is failed": (
        Fact("task.task_id", "Task: {}\n", "task-5"),
        Fact("task.status", "Status: {}\n", "completed"),
        Fact("task.exit_status", "Exit status: {}\n", 4),
        Fact("task.result_summary", "Result: {}\n", "it works"),
        Fact("task.output_preview", "Output:\n{}", "something else\n"),
        Fact("task.artifacts.0.path", "\n{} (output)\n", "sha256/5"),
    ),
    "task is failed": (
        Fact("task.task_id", "Task {}: ", "t-5"),
        Fact("task.status", ": {}\n", "completed"),
        Fact("task.exit_status", "Exit status: {}\n", 4),
        Fact("task.summary", "Summary: {}\n", "waits"),
    ),
    "stop requested; task is running": (
        Fact("task.task_id", "for task {}\n", "task-5"),
        Fact("task.status", "Status: {}\n", "cancelling"),
        Fact("stop_requested", {True: "Stop requested", False: "No stop requested"}, other=False),
        Fact("force_stop_requested", {True: "Forced stop", False: "Stop req"}, other=True),
    ),
    "status 404 from https://a.example/": (
        Fact("url", "Fetched {} (", "https://z.example/"),
        Fact("final_url", "Redirected to: {}\n", "https://z.example/"),
        Fact("status", "({}, ", 410),
        Fact("content_type", ", {}, ", "text/plain"),
        Fact("bytes_read", ", {:,} bytes)", 1300),
        Fact("text_preview", "{}", "something else\n"),
        Fact("artifacts.0.path", "\n{} (text)\n", "sha256/5"),
    ),
    'Found 2 results for "bread"': (
        Fact("query", 'for "{}"\n', "cake"),
        Fact("result_count", "Found {} results", 5),
        Fact("results.0.title", "\n1. {}\n", "Bun"),
        Fact("results.0.url", "\n   {}\n   dark", "https://z.example/"),
        Fact("results.0.snippet", "\n   {}\n", "sweet"),
    ),
    "work item updated: Fix the parser": (
        Fact("action", "Work item {}: ", "completed"),
        Fact("item.work_item_id", "] {} ", "wi-5"),
        Fact("item.status", ": [{}] ", "done"),
        Fact("item.title", " {} (", "Test it"),
        Fact("transition.from", "({} -> ", "old"),
        Fact("transition.to", " -> {})\n", "done"),
        Fact("warnings.0", "Warning: {}\n", "it is early"),
    ),
    "1 work item listed": (
        Fact("item_count", "listed: {}\n", 4),
        Fact("items.0.work_item_id", "\n[open] {} ", "wi-5"),
        Fact("items.0.status", "\n[{}] ", "done"),
        Fact("items.0.title", "wi-1 {}\n", "Test"),
    ),
    "workspace switched: /srv/app": (
        Fact("disposition", "Workspace {}: ", "created"),
        Fact("workspace.path", ": {} (", "/srv/z"),
        Fact("workspace.workspace_id", "Workspace id: {}, ", "ws-5"),
        Fact("workspace.kind", "({}, ", "clone"),
        Fact("workspace.branch", ", branch {}, ", "next"),
        Fact("workspace.head", ", head {})", "0000000"),
        Fact("projection", "Projection: {}\n", "canonical"),
    ),
}
"""What the receipt of each example says of its canonical result."""

examples = pytest.mark.parametrize(("summary", "example"), EXAMPLES.items(), ids=EXAMPLES)


def canonical_of(example: FamilyOutput) -> CanonicalResult:
    output = CompleteOutput.success("t", example)
    return surfaces(output, FAMILY_OF[type(example)].name)[0].canonical


def receipt_of(canonical: CanonicalResult, kind: type[FamilyOutput]) -> str:
    return render(canonical, FAMILY_OF[kind], DEFAULT_POLICY).text


def _holder(result: Any, path: str) -> tuple[Any, str | int]:
    """The object or list that holds a member, and its name or position there."""
    *outer, last = (int(part) if part.isdigit() else part for part in path.split("."))
    for part in outer:
        result = result[part]
    return result, last


def test_every_type_of_result_has_an_example_with_facts() -> None:
    assert {type(example) for example in EXAMPLES.values()} == FAMILY_OF.keys() == OUTPUTS.keys()
    assert FACTS.keys() == EXAMPLES.keys()
    assert all(FACTS.values())


@examples
def test_the_receipt_says_the_key_facts_of_the_canonical_result(
    summary: str, example: FamilyOutput
) -> None:
    canonical, kind = canonical_of(example), type(example)
    said = receipt_of(canonical, kind)
    for fact in FACTS[summary]:
        changed = canonical.model_copy(deep=True)
        holder, name = _holder(changed.result, fact.path)
        value, holder[name] = holder[name], fact.other
        assert fact.said(value) in said, fact.path
        assert fact.said(fact.other) not in said, fact.path
        assert fact.said(fact.other) in receipt_of(changed, kind), fact.path


@examples
def test_the_summary_of_a_success_is_the_sentence_of_its_family_and_holds_no_output(
    summary: str, example: FamilyOutput
) -> None:
    canonical = canonical_of(example)
    assert canonical.summary_text == summary
    assert 1 <= len(canonical.summary_text) <= 200
    assert "long log" not in canonical.summary_text
    assert "vvv" not in canonical.summary_text


@examples
def test_a_result_of_a_type_that_is_not_the_family_s_is_refused(
    summary: str, example: FamilyOutput
) -> None:
    output = CompleteOutput.success("t", example)
    for family in FAMILIES:
        if isinstance(example, family.result_types):
            assert surfaces(output, family.name)[0].canonical.summary_text == summary
        else:
            taken = " or ".join(kind.__name__ for kind in family.result_types)
            refusal = f"the {family.name} family takes {taken}, not {type(example).__name__}"
            with pytest.raises(InvalidRecordError, match=refusal):
                surfaces(output, family.name)


@each_case("result", [{"exit_status": 0}, "text", b"bytes", ["list"], 7])
def test_a_result_without_a_type_is_no_complete_output(result: object) -> None:
    fields = {"tool_name": "t", "status": "success", "summary_text": "s", "result": result}
    with pytest.raises(ValidationError):
        CompleteOutput.model_validate(fields)


MOST = 300_000
"""No family needs more for a canonical result of its default budget, in bytes of JSON."""

LONG = "long text " * 40_000
"""A text that no family may repeat, in a single field or altogether."""


def swollen(value: Any, place: str = "") -> Any:
    """A complete result with a long text in every place that takes one."""
    if isinstance(value, tuple):
        entries = enumerate(cast("tuple[object, ...]", value))
        return tuple(swollen(entry, f"{place}.{n}") for n, entry in entries)
    if isinstance(value, StreamRecord):
        is_json = value.role in ("structured", "value")
        text = canonical_json.encode(LONG) if is_json else LONG.encode()
        return whole(text, value.role)
    if isinstance(value, BaseModel):
        for name in type(value).model_fields:
            value = _with_longest(value, name, f"{place}.{name}")
    return value


def _with_longest(record: BaseModel, name: str, place: str) -> BaseModel:
    """A copy of a record, swollen in one field if that is possible."""
    old = getattr(record, name)
    if old is not None and not isinstance(old, str):
        return record.model_copy(update={name: swollen(old, place)})
    fields = {field: getattr(record, field) for field in type(record).model_fields}
    for longest in (LONG, whole(LONG.encode(), place)):
        with suppress(ValidationError):
            return type(record).model_validate(fields | {name: longest})
    return record


def _length(value: Any) -> int:
    """Characters and bytes of a complete result."""
    if isinstance(value, tuple):
        return sum(map(_length, cast("tuple[object, ...]", value)))
    if isinstance(value, StreamRecord):
        return value.size
    if isinstance(value, BaseModel):
        return sum(_length(getattr(value, name)) for name in type(value).model_fields)
    return len(value) if isinstance(value, str) else 0


@examples
def test_the_projector_of_every_family_bounds_whatever_it_is_given(
    summary: str, example: FamilyOutput
) -> None:
    output = swollen(example)
    assert _length(output) > MOST
    family = FAMILY_OF[type(example)]
    projection, _, _ = surfaces(CompleteOutput.success("t", output, "s"), family.name)
    assert len(projection.canonical.to_json()) <= MOST
    assert projection.omissions
