"""The work item family: one item of a work queue after a change, or a list of them."""

from typing import ClassVar, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from tooltrail.records._model import Record, Sentence
from tooltrail.records.budgets import Budget, ItemCount, PreviewChars, ReceiptChars
from tooltrail.records.cutting import Cutter
from tooltrail.records.envelope import CanonicalResult, FamilyOutput
from tooltrail.records.families._shared import (
    NAME_CHARS,
    SENTENCE_CHARS,
    Identifier,
    Json,
    SparseRecord,
    bound_texts,
    confirming,
    hidden_lines,
    json_of,
    one_line,
)
from tooltrail.records.family import Family

STATUS_CHARS = 64
"""Longest status that a result includes; common ones are one or two words."""

_ITEM_LIMITS = {"title": NAME_CHARS, "status": STATUS_CHARS, "description": SENTENCE_CHARS}

Action = Literal["created", "updated", "completed", "picked", "got", "listed"]

_DESCRIBING: frozenset[Action] = frozenset({"picked", "got"})
"""Actions after which the receipt has the description, since the caller does not know it yet."""


class WorkItemBudget(Budget):
    """Bounds of the work item family: `max_items` items in a list, and as many warnings."""

    item_chars: ClassVar[int] = 820
    """Room for a line with status, identifier and title, and a line with a warning."""

    preview_chars: PreviewChars = 1_000
    receipt_chars: ReceiptChars = 56_000
    max_items: ItemCount = 64


class WorkItem(SparseRecord):
    """A snapshot of one item, complete or bounded.

    `status` is in the queue's own terms: `open`, `in_progress`, …
    """

    work_item_id: Identifier
    title: Sentence
    status: Sentence
    description: Sentence | None = None


class Transition(Record):
    """A change of status; in JSON the fields are `from` and `to`."""

    model_config = ConfigDict(
        validate_by_name=True, validate_by_alias=True, serialize_by_alias=True
    )

    from_: Sentence = Field(validation_alias="from", serialization_alias="from")
    to: Sentence


class WorkItemOutput(FamilyOutput):
    """The complete result: either one item after the action, or a list that may be empty."""

    action: Action
    item: WorkItem | None = None
    items: tuple[WorkItem, ...] | None = None
    transition: Transition | None = None
    warnings: tuple[Sentence, ...] = ()

    @model_validator(mode="after")
    def _check_either(self) -> Self:
        if (self.item is None) == (self.items is None):
            raise ValueError("a result has one item or a list of items, and not both")
        return self

    def summary(self) -> str:
        """The action, with the item or the number of items."""
        if self.item is not None:
            return f"work item {self.action}: {self.item.title}"
        count = len(self.items or ())
        return f"{count} work {'item' if count == 1 else 'items'} {self.action}"


def project_work_item(result: WorkItemOutput, budget: WorkItemBudget, cutter: Cutter) -> Json:
    """Bound the lists and every text in them; `item_count` and `warning_count` count all."""
    fields: Json = {}
    if result.item is not None:
        fields["item"] = bound_texts(result.item, "item", _ITEM_LIMITS, cutter)
    if result.items is not None:
        shown = cutter.items("items", result.items, budget.max_items)
        fields["item_count"] = len(result.items)
        fields["items"] = [
            bound_texts(each, f"items[{n}]", _ITEM_LIMITS, cutter) for n, each in enumerate(shown)
        ]
    if result.transition is not None:
        fields["transition"] = {
            "from": cutter.text("transition.from", result.transition.from_, STATUS_CHARS),
            "to": cutter.text("transition.to", result.transition.to, STATUS_CHARS),
        }
    listed = cutter.items("warnings", result.warnings, budget.max_items)
    warnings = [cutter.text(f"warnings[{n}]", text, NAME_CHARS) for n, text in enumerate(listed)]
    count = len(result.warnings) or None
    return confirming(result, cutter, warnings=warnings or None, warning_count=count, **fields)


def render_work_item(canonical: CanonicalResult, _budget: WorkItemBudget) -> str:
    """Render a line for each item, and a line for each warning."""
    result = json_of(canonical)
    warnings = result.get("warnings", [])
    lines = _item_lines(result) if "item" in result else _list_lines(result)
    lines += [f"Warning: {one_line(warning)}" for warning in warnings]
    lines += hidden_lines(result, result.get("warning_count", 0) - len(warnings), "warning")
    return "\n".join(lines) + "\n"


def _item_lines(result: Json) -> list[str]:
    action, item, change = result["action"], result["item"], ""
    if "transition" in result:
        old, new = result["transition"]["from"], result["transition"]["to"]
        change = f" ({one_line(old)} -> {one_line(new)})"
    lines = [f"Work item {action}: {_label(item)}{change}"]
    if item.get("description") and action in _DESCRIBING:
        lines.append(f"Description: {one_line(item['description'])}")
    return lines


def _list_lines(result: Json) -> list[str]:
    items, count = result["items"], result["item_count"]
    outcome = f"Work items {result['action']}: {count:,}"
    return [outcome, *map(_label, items), *hidden_lines(result, count - len(items), "item")]


def _label(item: Json) -> str:
    return " ".join(
        (f"[{one_line(item['status'])}]", one_line(item["work_item_id"]), one_line(item["title"]))
    )


FAMILY = Family(
    name="work_item",
    result_types=(WorkItemOutput,),
    projector=project_work_item,
    render=render_work_item,
    budget=WorkItemBudget(),
    tool_names=frozenset(
        {
            "CompleteWorkItem",
            "CreateWorkItem",
            "GetWorkItem",
            "ListWorkItems",
            "PickWorkItem",
            "TaskCreate",
            "TaskGet",
            "TaskList",
            "TaskUpdate",
            "TodoRead",
            "todowrite",
            "TodoWrite",
            "update_plan",
            "UpdateWorkItem",
        }
    ),
)
