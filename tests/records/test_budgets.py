"""Budgets of different stages agree, and what overrides them is clamped."""

from typing import Any

import pytest
from pydantic import ValidationError
from tests.support.cases import each_case

from tooltrail.records import Budget, GenericBudget, InvalidRecordError
from tooltrail.records.budgets import (
    FRAME_CHARS,
    MAX_ITEMS,
    MAX_PREVIEW_CHARS,
    MAX_RECEIPT_CHARS,
    MIN_PREVIEW_CHARS,
)


@each_case(
    ("kind", "preview", "receipt"),
    [
        (Budget, 1_000, 1_000 + FRAME_CHARS - 1),
        (Budget, 20_001, 22_000),
        (Budget, 256_000, 257_999),
        (GenericBudget, 1_000, 1_000 + FRAME_CHARS + 32 * 160 - 1),
        (GenericBudget, 20_881, 28_000),
    ],
)
def test_a_receipt_that_could_not_hold_its_previews_is_refused(
    kind: type[Budget], preview: int, receipt: int
) -> None:
    with pytest.raises(
        ValidationError, match=r"preview_chars \+ \d+, so that the receipt has room"
    ):
        kind(preview_chars=preview, receipt_chars=receipt)
    assert kind(preview_chars=preview, receipt_chars=receipt + 1).receipt_chars == receipt + 1


def test_the_largest_budgets_agree() -> None:
    largest = {"preview_chars": MAX_PREVIEW_CHARS, "receipt_chars": MAX_RECEIPT_CHARS}
    assert GenericBudget(**largest, max_items=MAX_ITEMS).spare_chars >= MAX_PREVIEW_CHARS
    assert Budget(**largest).frame_chars == FRAME_CHARS


@each_case(
    "fields",
    [
        {"preview_chars": MIN_PREVIEW_CHARS - 1},
        {"preview_chars": MAX_PREVIEW_CHARS + 1, "receipt_chars": MAX_RECEIPT_CHARS},
        {"receipt_chars": MAX_RECEIPT_CHARS + 1},
        {"max_items": 0},
        {"max_items": MAX_ITEMS + 1},
        {"surplus": 1},
    ],
)
def test_a_number_out_of_its_range_is_refused(fields: dict[str, int]) -> None:
    with pytest.raises(ValidationError):
        Budget.model_validate(fields)


def test_an_override_is_clamped_to_what_the_field_allows() -> None:
    budget = Budget()
    assert budget.overridden({"preview_chars": 10**12}).preview_chars == MAX_PREVIEW_CHARS
    assert budget.overridden({"preview_chars": -5}).preview_chars == MIN_PREVIEW_CHARS
    assert budget.overridden({"max_items": 100_000}).max_items == MAX_ITEMS
    assert budget.overridden({}) == budget


def test_an_override_that_needs_a_longer_receipt_gets_it() -> None:
    assert Budget().overridden({"preview_chars": 50_000}).receipt_chars == 52_000
    assert Budget().overridden({"receipt_chars": 5}).receipt_chars == 22_000
    assert GenericBudget().overridden({"max_items": 256}).receipt_chars == 22_000 + 256 * 160


@each_case(
    ("name", "value", "sentence"),
    [
        (
            "chars",
            5,
            "chars: unknown key `chars`; known keys: preview_chars, receipt_chars, max_items",
        ),
        (
            "preview_char",
            5,
            "preview_char: unknown key `preview_char`, did you mean `preview_chars`",
        ),
        ("preview_chars", "5", "preview_chars must be an integer, not str"),
        ("preview_chars", True, "preview_chars must be an integer, not bool"),
        ("preview_chars", 5.0, "preview_chars must be an integer, not float"),
        ("preview_chars", None, "preview_chars must be an integer, not NoneType"),
    ],
)
def test_an_override_that_is_no_number_of_the_budget_is_refused(
    name: str, value: Any, sentence: str
) -> None:
    with pytest.raises(InvalidRecordError, match=sentence):
        Budget().overridden({name: value})
    with pytest.raises(InvalidRecordError, match=f"^tools.x.{sentence}"):
        Budget().overridden({name: value}, "tools.x.")
