"""Demands of the contract on the envelope, on errors, on small results and on compaction."""

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue, ValidationError
from tests.records.support import golden, omitted, surfaces, whole
from tests.support.cases import each_case
from tests.support.cli import Cli
from tests.support.family_examples import EXAMPLES
from tests.support.outputs import returned
from tests.support.policies import policy_with
from tests.support.recording import run_command
from tests.support.rewording import reworded

from tooltrail.records import (
    ArtifactReference,
    CanonicalResult,
    CommandOutput,
    CompleteOutput,
    Family,
    FamilyOutput,
    FamilyRegistry,
    FileChange,
    FileMutationOutput,
    NotificationOutput,
    ToolError,
    Transition,
    WorkItem,
    WorkItemOutput,
    Workspace,
    WorkspaceOutput,
    canonical_json,
    compact,
    default_families,
)
from tooltrail.store import create_store

FAMILIES = tuple(default_families())
families = pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)


def projected(output: FamilyOutput, family: str) -> dict[str, JsonValue]:
    canonical = surfaces(CompleteOutput.success("t", output), family)[0].canonical
    assert canonical.result is not None
    return canonical.result


@each_case(
    "more", ["digest", "size", "media_type", "role", "description", "created_at", "tool_name"]
)
def test_an_artifact_reference_has_a_path_and_no_other_field(more: str) -> None:
    assert ArtifactReference(path="a").model_dump() == {"path": "a"}
    assert list(ArtifactReference.model_fields) == ["path"]
    with pytest.raises(ValidationError, match="Extra inputs are not permitted"):
        ArtifactReference.model_validate({"path": "a", more: "b"})


def _references(value: JsonValue) -> list[JsonValue]:
    """Every entry of every list of artifacts in a result."""
    if isinstance(value, list):
        return [found for entry in value for found in _references(entry)]
    if not isinstance(value, dict):
        return []
    own = value.get("artifacts", [])
    assert isinstance(own, list)
    return own + [
        found for name in value.keys() - {"artifacts"} for found in _references(value[name])
    ]


def test_a_reference_in_a_canonical_result_is_a_path_and_nothing_more() -> None:
    found: list[JsonValue] = []
    for example in EXAMPLES.values():
        family = next(f for f in FAMILIES if isinstance(example, f.result_types))
        found += _references(projected(example, family.name))
    assert len(found) >= 10
    for reference in found:
        assert isinstance(reference, dict)
        assert reference.keys() == {"path"}


FAILURE = ToolError(
    kind="execution_root_violation",
    message="requested working directory is outside the current execution root",
    details={"workdir": "../other-repo"},
    recovery_hint="omit workdir or use a relative path inside the active workspace",
    retryable=False,
)


@families
def test_a_canonical_error_keeps_kind_message_details_hint_and_retryable(family: Family) -> None:
    output = CompleteOutput.failure("ExecCommand", FAILURE)
    projection, receipt, _ = surfaces(output, family.name)
    assert canonical_json.decode(projection.canonical.to_json()) == {
        "tool_name": "ExecCommand",
        "status": "error",
        "summary_text": "requested working directory is outside the current execution root",
        "result": None,
        "error": {
            "kind": "execution_root_violation",
            "message": "requested working directory is outside the current execution root",
            "details": {"workdir": "../other-repo"},
            "recovery_hint": "omit workdir or use a relative path inside the active workspace",
            "retryable": False,
        },
    }
    assert receipt.text == (
        "Error (execution_root_violation): "
        "requested working directory is outside the current execution root\n"
        "Hint: omit workdir or use a relative path inside the active workspace\n"
        "Retryable: no\n"
        'Details: {"workdir":"../other-repo"}\n'
    )


@each_case("part", ["kind", "message", "details", "recovery_hint", "retryable"])
def test_each_part_of_an_error_is_its_own(part: str) -> None:
    """An error that differs in one part differs in the canonical result, and there alone."""
    other = {"kind": "cancelled", "message": "m", "details": 1, "recovery_hint": "h"}
    changed = FAILURE.model_copy(update={part: other.get(part, True)})
    first, second = (
        surfaces(CompleteOutput.failure("t", error), "generic")[0].canonical.error
        for error in (FAILURE, changed)
    )
    assert first is not None
    assert second is not None
    ours, theirs = first.model_dump(), second.model_dump()
    assert {name for name in ours if ours[name] != theirs[name]} == {part}


def test_the_summary_of_a_failure_is_its_message() -> None:
    for message, summary in (("it broke", "it broke"), ("m" * 300, "m" * 199 + "…")):
        output = CompleteOutput.failure("t", ToolError(kind="broken", message=message, details="d"))
        assert surfaces(output, "command")[0].canonical.summary_text == summary


@pytest.mark.parametrize("blank", ["", "  \n"])
def test_a_summary_is_never_empty(blank: str) -> None:
    given = CompleteOutput.success("t", NotificationOutput(delivered=True, channel="#a"), blank)
    assert given.summary_text == "notification delivered: #a"
    failed = CompleteOutput.failure("t", ToolError(kind="broken", message=blank))
    assert failed.summary_text == "(no message)"
    fields = {"tool_name": "t", "status": "error", "result": None, "error": FAILURE}
    assert CompleteOutput.model_validate({**fields, "summary_text": blank}).summary_text.strip()
    with pytest.raises(ValidationError, match="summary_text"):
        CanonicalResult.model_validate({**fields, "summary_text": ""})
    for envelope in (CompleteOutput, CanonicalResult):
        with pytest.raises(ValidationError, match="summary_text"):
            envelope.model_validate(fields)


SMALL: dict[str, tuple[str, FamilyOutput, dict[str, JsonValue], str]] = {
    "notification": (
        "notification",
        NotificationOutput(delivered=True, channel="#on-call", notification_id="ntf_7"),
        {"delivered": True, "channel": "#on-call", "notification_id": "ntf_7"},
        "Notification delivered: #on-call (ntf_7)\n",
    ),
    "workspace": (
        "workspace",
        WorkspaceOutput(
            disposition="created",
            workspace=Workspace(workspace_id="ws_2", path="/srv/app", branch="fix"),
        ),
        {
            "disposition": "created",
            "workspace": {"workspace_id": "ws_2", "path": "/srv/app", "branch": "fix"},
        },
        "Workspace created: /srv/app (branch fix)\nWorkspace id: ws_2\n",
    ),
    "work_item": (
        "work_item",
        WorkItemOutput(
            action="completed",
            item=WorkItem(work_item_id="wi_1", title="Fix the parser", status="done"),
            transition=Transition.model_validate({"from": "open", "to": "done"}),
        ),
        {
            "action": "completed",
            "item": {"work_item_id": "wi_1", "title": "Fix the parser", "status": "done"},
            "transition": {"from": "open", "to": "done"},
        },
        "Work item completed: [done] wi_1 Fix the parser (open -> done)\n",
    ),
}


@pytest.mark.parametrize(("family", "output", "result", "receipt"), SMALL.values(), ids=SMALL)
def test_a_small_confirmation_is_a_line_or_two(
    family: str, output: FamilyOutput, result: dict[str, JsonValue], receipt: str
) -> None:
    projection, shown, _ = surfaces(CompleteOutput.success("t", output), family)
    assert projection.canonical.result == result
    assert shown.text == receipt


def test_one_changed_file_is_confirmed_in_two_lines() -> None:
    change = FileChange(action="modify", path="src/a.py", diff=whole(b"-a\n+b\n", "diff.0"))
    output = FileMutationOutput(changed_files=(change,))
    _, receipt, _ = surfaces(CompleteOutput.success("Edit", output), "file_mutation")
    assert receipt.text == "Success. Updated the following files:\nM src/a.py\n"


BROKEN = "first\nsecond\r\x0bthird"
"""A name that would be three lines."""


@pytest.mark.parametrize(
    ("family", "output"),
    [
        ("notification", NotificationOutput(delivered=False, channel=BROKEN)),
        (
            "workspace",
            WorkspaceOutput(
                disposition="created",
                workspace=Workspace(path=BROKEN, branch=BROKEN, head=BROKEN),
                projection=BROKEN,
            ),
        ),
        (
            "work_item",
            WorkItemOutput(
                action="created",
                item=WorkItem(work_item_id="wi_1", title=BROKEN, status=BROKEN),
            ),
        ),
        (
            "file_mutation",
            FileMutationOutput(changed_files=(FileChange(action="add", path=BROKEN),)),
        ),
    ],
)
def test_no_name_makes_a_small_confirmation_longer_than_two_lines(
    family: str, output: FamilyOutput
) -> None:
    _, receipt, _ = surfaces(CompleteOutput.success("t", output), family)
    assert 1 <= len(receipt.text.splitlines()) <= 2


def test_a_value_is_shortened_by_its_structure_and_fields_are_cut_as_fields() -> None:
    policy = policy_with(generic={"preview_chars": 1000, "receipt_chars": 9000})
    rows: list[JsonValue] = ["a row of the table"] * 900
    value: JsonValue = {"name": "table", "rows": rows}
    projection, receipt, _ = surfaces(returned("t", "note", structured=value), "generic", policy)
    result: Any = projection.canonical.result
    assert "structured" not in result
    assert result["structured_truncated"] is True
    preview = result["structured_preview"]
    left = len(preview["rows"]) - 1
    assert (preview["name"], left > 20) == ("table", True)
    assert Counter(preview["rows"]) == Counter(
        ["a row of the table"] * left + [f"[... {900 - left} items omitted ...]"]
    )
    assert preview["rows"][0] == preview["rows"][-1] == "a row of the table"
    assert receipt.text.startswith('note\n\n{\n  "name": "table",\n  "rows": [')
    assert result["content"] == [
        {
            "type": "text",
            "text_preview": "note",
            "truncated": False,
            "media_type": "text/plain",
            "size": 4,
        }
    ]
    item = WorkItem(work_item_id="wi_1", title="t" * 900, status="open", description="short")
    output = CompleteOutput.success("t", WorkItemOutput(action="got", item=item))
    projection, _, _ = surfaces(output, "work_item")
    assert projection.canonical.result == {
        "action": "got",
        "item": {
            "work_item_id": "wi_1",
            "title": "t" * 239 + "…",
            "status": "open",
            "description": "short",
        },
        "truncated": True,
    }
    assert omitted(projection.omissions, "item.title", "chars") == 900 - 239


NOISE = "as another renderer of another time worded it, at length\n" * 40


def reworded_at_length() -> FamilyRegistry:
    return reworded("command", NOISE, version=7)


@pytest.mark.parametrize("chars", [1_000, 0])
def test_a_receipt_inside_of_a_result_is_text_like_any_other(chars: int) -> None:
    """What stands in a preview decides nothing: neither an exit status nor an artifact."""
    receipt = golden("command_failure") + golden("file_mutation_cut") + '{"task_id": "task_1"}\n'
    compacted: list[dict[str, JsonValue]] = []
    for text in (receipt, "x" * len(receipt)):
        output = CommandOutput(
            exit_status=0, stdout=whole(text.encode()), stderr=whole(b"", "stderr")
        )
        canonical = surfaces(CompleteOutput.success("t", output), "command")[0].canonical
        result = compact(canonical, chars).result
        assert result is not None
        result.pop("stdout_preview", None)
        compacted.append(result)
    assert compacted[0] == compacted[1]
    assert compacted[0]["exit_status"] == 0
    assert "artifacts" not in compacted[0]


@pytest.mark.parametrize("tokens", ["1", "600"])
def test_two_records_with_other_receipts_of_equal_results_are_compacted_alike(
    tmp_path: Path, tokens: str
) -> None:
    log = b"".join(b"line %04d of a long log\n" % n for n in range(400))
    calls: list[dict[str, Any]] = []
    for name, registry in (("today", default_families()), ("other", reworded_at_length())):
        database = tmp_path / name / "trail.db"
        database.parent.mkdir()
        with create_store(database, families=registry) as store, store.open_session() as session:
            run_command(session, log, b"warning\n", exit_status=3)
        shown = Cli(str(database)).ok("transcript", "--json").text
        assert (NOISE in json.loads(shown)["entries"][0]["receipt"]) is (name == "other")
        text = Cli(str(database)).run("transcript", "--json", "--compact", tokens).text
        assert "another renderer" not in text
        calls += json.loads(text)["entries"]
    for first, second in pairwise(calls):
        assert first["compacted"] == second["compacted"] is not None
        assert "\nexit_status: 3\n" in first["compacted"]
        assert first["receipt"] is second["receipt"] is None
