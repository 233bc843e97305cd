"""A policy is known by its digest, and its stages agree."""

import itertools
import re
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from tooltrail.records import (
    DEFAULT_POLICY,
    CommandBudget,
    ErrorBudget,
    GenericBudget,
    Policy,
    canonical_json,
    digest_of,
)
from tooltrail.records.policy import (
    FRAME_CHARS,
    ITEM_FRAME_CHARS,
    MAX_PREVIEW_CHARS,
    MAX_RECEIPT_CHARS,
    MIN_PREVIEW_CHARS,
)

CHANGED = {
    "inline_bytes": Policy(inline_bytes=16 * 1024 + 1),
    "command.preview_chars": Policy(command=CommandBudget(preview_chars=31_999)),
    "command.receipt_chars": Policy(command=CommandBudget(receipt_chars=34_001)),
    "command.command_chars": Policy(command=CommandBudget(command_chars=239)),
    "generic.preview_chars": Policy(generic=GenericBudget(preview_chars=19_999)),
    "generic.receipt_chars": Policy(generic=GenericBudget(receipt_chars=28_001)),
    "generic.max_items": Policy(generic=GenericBudget(max_items=31)),
    "error.message_chars": Policy(error=ErrorBudget(message_chars=701)),
    "error.details_chars": Policy(error=ErrorBudget(details_chars=1_001)),
}


def leaves(model: BaseModel, prefix: str = "") -> Iterator[str]:
    for name in type(model).model_fields:
        value = getattr(model, name)
        if isinstance(value, BaseModel):
            yield from leaves(value, f"{prefix}{name}.")
        else:
            yield prefix + name


def test_the_defaults_are_the_published_ones() -> None:
    assert Policy() == DEFAULT_POLICY
    assert DEFAULT_POLICY.inline_bytes == 16 * 1024
    assert DEFAULT_POLICY.command.preview_chars == 32_000
    assert DEFAULT_POLICY.command.command_chars == 240
    assert DEFAULT_POLICY.generic.preview_chars == 20_000
    assert DEFAULT_POLICY.error.message_chars == 700
    assert DEFAULT_POLICY.error.details_chars == 1_000
    assert MAX_PREVIEW_CHARS == 256_000


def test_the_digest_is_the_one_of_the_canonical_json() -> None:
    assert DEFAULT_POLICY.to_json() == canonical_json.encode(DEFAULT_POLICY.model_dump())
    assert DEFAULT_POLICY.digest == digest_of(DEFAULT_POLICY.to_json())
    assert Policy.model_validate(canonical_json.decode(DEFAULT_POLICY.to_json())) == Policy()
    assert Policy().digest == Policy(command=CommandBudget(preview_chars=32_000)).digest


def test_every_field_changes_the_digest() -> None:
    assert set(leaves(Policy())) == {*CHANGED, "version"}
    digests = [Policy().digest, *(policy.digest for policy in CHANGED.values())]
    assert len(set(digests)) == len(digests)


def test_a_changed_copy_does_not_keep_the_digest_of_its_original() -> None:
    original = Policy()
    before = original.digest
    copy = original.model_copy(update={"inline_bytes": 1})
    assert copy.digest == Policy(inline_bytes=1).digest != before
    assert original.digest == before


@pytest.mark.parametrize(
    ("kind", "preview", "receipt"),
    [
        (CommandBudget, 1_000, 1_000 + FRAME_CHARS - 1),
        (CommandBudget, 32_001, 34_000),
        (CommandBudget, 256_000, 257_999),
        (GenericBudget, 1_000, 1_000 + FRAME_CHARS + 32 * ITEM_FRAME_CHARS - 1),
        (GenericBudget, 20_881, 28_000),
    ],
)
def test_a_receipt_that_could_not_hold_its_previews_is_refused(
    kind: type[CommandBudget] | type[GenericBudget], preview: int, receipt: int
) -> None:
    with pytest.raises(ValidationError, match=r"preview_chars \+ \d+, or a second cut would"):
        kind(preview_chars=preview, receipt_chars=receipt)
    assert kind(preview_chars=preview, receipt_chars=receipt + 1).receipt_chars == receipt + 1


def test_the_largest_budgets_agree() -> None:
    largest = GenericBudget(
        preview_chars=MAX_PREVIEW_CHARS, receipt_chars=MAX_RECEIPT_CHARS, max_items=64
    )
    assert largest.frame_chars == FRAME_CHARS + 64 * ITEM_FRAME_CHARS
    assert CommandBudget(preview_chars=MAX_PREVIEW_CHARS, receipt_chars=MAX_RECEIPT_CHARS)


@pytest.mark.parametrize(
    "fields",
    [
        {"command": {"preview_chars": MIN_PREVIEW_CHARS - 1}},
        {"command": {"preview_chars": MAX_PREVIEW_CHARS + 1, "receipt_chars": 260_000}},
        {"command": {"receipt_chars": MAX_RECEIPT_CHARS + 1}},
        {"command": {"command_chars": 15}},
        {"command": {"command_chars": 241}},
        {"generic": {"preview_chars": 999}},
        {"generic": {"receipt_chars": MAX_RECEIPT_CHARS + 1}},
        {"generic": {"max_items": 0}},
        {"generic": {"max_items": 65}},
        {"error": {"message_chars": 99}},
        {"error": {"message_chars": 10_001}},
        {"error": {"details_chars": 99}},
        {"error": {"details_chars": 100_001}},
        {"inline_bytes": -1},
        {"inline_bytes": (1 << 20) + 1},
        {"version": 2},
        {"surplus": 1},
        {"command": {"surplus": 1}},
    ],
)
def test_a_budget_out_of_its_range_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Policy.model_validate(fields)


@given(st.integers(1_000, 256_000), st.integers(1_000, 256_000))
def test_a_capture_keeps_four_bytes_for_each_character_of_the_largest_preview(
    command: int, generic: int
) -> None:
    policy = Policy(
        command=CommandBudget(preview_chars=command, receipt_chars=MAX_RECEIPT_CHARS),
        generic=GenericBudget(preview_chars=generic, receipt_chars=MAX_RECEIPT_CHARS),
    )
    assert policy.edge_bytes == 4 * max(command, generic)


def test_a_policy_cannot_be_changed_in_place() -> None:
    for policy, name in itertools.product([Policy()], ["inline_bytes", "command"]):
        with pytest.raises(ValidationError, match=re.escape("frozen")):
            setattr(policy, name, 1)
