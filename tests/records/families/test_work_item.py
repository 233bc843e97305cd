"""Work items: one with what changed, or a list with one line each."""

from typing import Any

import pytest
from pydantic import ValidationError
from tests.records.hidden import hidden_of
from tests.records.support import check_golden, omitted, result_of, run, run_result, surfaces
from tests.support.policies import policy_with

from tooltrail.records import CompleteOutput, Transition, WorkItem, WorkItemOutput

SMALL = policy_with(
    work_item={"preview_chars": 1000, "receipt_chars": 3000 + 2 * 820, "max_items": 2}
)
PARSER = WorkItem(
    work_item_id="wi_1",
    title="Fix the parser",
    status="open",
    description="It drops the last line.\nSee issue 12.",
)
STARTED = PARSER.model_copy(update={"status": "in_progress"})
DONE = WorkItem(work_item_id="wi_1", title="Fix the parser", status="completed")
TESTS = WorkItem(work_item_id="wi_2", title="Write the tests", status="open")


def steps(count: int) -> tuple[WorkItem, ...]:
    return tuple(
        WorkItem(work_item_id=f"wi_{n}", title=f"Step {n}", status="open") for n in range(count)
    )


CREATED = WorkItemOutput(action="created", item=PARSER)
UPDATED = WorkItemOutput(
    action="updated",
    item=STARTED,
    transition=Transition(from_="open", to="in_progress"),
    warnings=("two items are in progress",),
)
PICKED = WorkItemOutput(action="picked", item=PARSER)
LISTED = WorkItemOutput(action="listed", items=(DONE, TESTS))
NONE = WorkItemOutput(action="listed", items=())
CUT = WorkItemOutput(
    action="listed", items=steps(3), warnings=("late", "later", "latest", "too late")
)


def test_the_receipt_is_worded_as_in_the_golden_file() -> None:
    check_golden(
        ("work_item", 1),
        work_item_created=CREATED,
        work_item_updated=UPDATED,
        work_item_picked=PICKED,
        work_item_listed=LISTED,
        work_item_none=NONE,
        work_item_cut=(CUT, SMALL),
    )


def test_the_canonical_result_of_one_item_is_its_snapshot_and_its_transition() -> None:
    assert run_result(UPDATED) == {
        "action": "updated",
        "item": {
            "work_item_id": "wi_1",
            "title": "Fix the parser",
            "status": "in_progress",
            "description": "It drops the last line.\nSee issue 12.",
        },
        "transition": {"from": "open", "to": "in_progress"},
        "warnings": ["two items are in progress"],
        "warning_count": 1,
    }


def test_the_canonical_result_of_a_list_counts_its_items() -> None:
    assert run_result(LISTED) == {
        "action": "listed",
        "items": [
            {"work_item_id": "wi_1", "title": "Fix the parser", "status": "completed"},
            {"work_item_id": "wi_2", "title": "Write the tests", "status": "open"},
        ],
        "item_count": 2,
    }
    assert run_result(NONE) == {"action": "listed", "items": [], "item_count": 0}


def test_what_is_beyond_the_budget_is_counted_and_listed() -> None:
    complete = CompleteOutput.success("ListWorkItems", CUT)
    projection, _, publisher = surfaces(complete, "work_item", SMALL)
    result = result_of(projection)
    assert hidden_of(result, publisher) == [
        {
            "field": "items",
            "n": 2,
            "value": {"work_item_id": "wi_2", "title": "Step 2", "status": "open"},
        },
        {"field": "warnings", "n": 2, "value": "latest"},
        {"field": "warnings", "n": 3, "value": "too late"},
    ]
    assert [item["work_item_id"] for item in result["items"]] == ["wi_0", "wi_1"]
    assert (result["item_count"], result["warning_count"], result["truncated"]) == (3, 4, True)
    assert omitted(projection.omissions, "items", "items") == 1
    assert omitted(projection.omissions, "warnings", "items") == 2


@pytest.mark.parametrize(
    ("output", "summary"),
    [
        (CREATED, "work item created: Fix the parser"),
        (LISTED, "2 work items listed"),
        (WorkItemOutput(action="updated", items=(DONE,)), "1 work item updated"),
        (NONE, "0 work items listed"),
    ],
)
def test_the_summary_says_what_was_done(output: WorkItemOutput, summary: str) -> None:
    assert run(output)[0].canonical.summary_text == summary


@pytest.mark.parametrize("both", [{}, {"item": DONE, "items": (DONE,)}])
def test_a_result_has_one_item_or_a_list(both: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="one item or a list"):
        WorkItemOutput(action="got", **both)


def test_a_transition_is_read_from_its_json() -> None:
    spelled = Transition.model_validate({"from": "open", "to": "done"})
    assert spelled == Transition(from_="open", to="done")
    output = CompleteOutput.success(
        "UpdateWorkItem", WorkItemOutput(action="updated", item=DONE, transition=spelled)
    )
    assert b'"transition":{"from":"open","to":"done"}' in output.to_json()


@pytest.mark.parametrize("action", ["picked", "got"])
def test_a_description_is_told_to_who_asks_for_the_item(action: Any) -> None:
    _, receipt = run(WorkItemOutput(action=action, item=PARSER))
    assert receipt.text.endswith("\nDescription: It drops the last line. See issue 12.\n")


@pytest.mark.parametrize("action", ["created", "updated", "completed"])
def test_a_description_is_not_repeated_to_who_wrote_it(action: Any) -> None:
    _, receipt = run(WorkItemOutput(action=action, item=PARSER))
    assert receipt.text == f"Work item {action}: [open] wi_1 Fix the parser\n"


def test_every_long_text_is_cut_and_counted_under_its_own_name() -> None:
    item = WorkItem(work_item_id="i" * 256, title="t" * 241, status="s" * 65, description="d" * 701)
    output = WorkItemOutput(
        action="updated",
        item=item,
        transition=Transition(from_="a" * 65, to="b" * 65),
        warnings=("w" * 240, "x" * 241),
    )
    projection, _ = run(output)
    assert result_of(projection) == {
        "action": "updated",
        "item": {
            "work_item_id": "i" * 256,
            "title": "t" * 239 + "\u2026",
            "status": "s" * 63 + "\u2026",
            "description": "d" * 699 + "\u2026",
        },
        "transition": {"from": "a" * 63 + "\u2026", "to": "b" * 63 + "\u2026"},
        "warnings": ["w" * 240, "x" * 239 + "\u2026"],
        "warning_count": 2,
        "truncated": True,
    }
    assert [(o.field, o.before - o.after) for o in projection.omissions] == [
        ("item.title", 2),
        ("item.status", 2),
        ("item.description", 2),
        ("transition.from", 2),
        ("transition.to", 2),
        ("warnings[1]", 2),
    ]


def test_a_text_in_a_list_is_counted_under_the_number_of_its_item() -> None:
    items = (TESTS, TESTS.model_copy(update={"title": "t" * 250}))
    projection, _ = run(WorkItemOutput(action="listed", items=items))
    assert omitted(projection.omissions, "items[1].title", "chars") == 11
