"""Structured outputs: a verdict, every error on its line, and the value as it is."""

from typing import Any

import pytest
from pydantic import JsonValue, ValidationError
from tests.records.hidden import hidden_of
from tests.records.support import check_golden, result_of, run, run_result, surfaces, whole
from tests.support.cases import each_case
from tests.support.policies import policy_with

from tooltrail.records import (
    CanonicalResult,
    CompleteOutput,
    InvalidRecordError,
    SchemaViolation,
    StructuredOutput,
    digest_of,
)
from tooltrail.records.families.structured_output import NOT_LISTED

SCHEMA = digest_of(b'{"type":"object"}')
SMALL = policy_with(
    structured_output={"preview_chars": 1000, "receipt_chars": 3000 + 960, "max_items": 1}
)


def submitted(value: JsonValue, *errors: SchemaViolation, attempt: int = 1) -> StructuredOutput:
    return StructuredOutput.of(
        value, agent="reviewer", schema_digest=SCHEMA, attempt=attempt, errors=errors
    )


def wrong(count: int) -> list[SchemaViolation]:
    return [SchemaViolation(path=f"/{n}", message=f"wrong {n}") for n in range(count)]


PRICE = SchemaViolation(path="/items/0/price", message="must be a number")
NAMELESS = SchemaViolation(path="", message='"name" is missing')


def test_the_receipt_is_worded_as_in_the_golden_file() -> None:
    check_golden(
        ("structured_output", 1),
        structured_output_accepted=submitted({"ok": True}),
        structured_output_rejected=submitted({}, PRICE, NAMELESS, attempt=2),
        structured_output_hidden=(submitted({}, *wrong(3)), SMALL),
        structured_output_one_hidden=(submitted({}, *wrong(2), attempt=1000), SMALL),
        structured_output_artifact=submitted("x" * 30_000),
    )


def test_the_canonical_result_of_a_valid_value_has_no_errors() -> None:
    assert run_result(submitted({"ok": True})) == {
        "agent": "reviewer",
        "schema_digest": SCHEMA,
        "valid": True,
        "value": {"ok": True},
        "attempt": 1,
        "truncated": False,
    }


def test_the_canonical_result_of_an_invalid_value_lists_and_counts_the_errors() -> None:
    assert run_result(submitted([], PRICE, NAMELESS, attempt=2)) == {
        "agent": "reviewer",
        "schema_digest": SCHEMA,
        "valid": False,
        "value": [],
        "errors": [
            {"path": "/items/0/price", "message": "must be a number"},
            {"path": "", "message": '"name" is missing'},
        ],
        "error_count": 2,
        "attempt": 2,
        "truncated": False,
    }


@pytest.mark.parametrize(
    ("output", "summary"),
    [
        (submitted({}), "result accepted"),
        (submitted({}, PRICE), "result rejected with 1 error"),
        (submitted({}, PRICE, NAMELESS), "result rejected with 2 errors"),
        (submitted({}, *wrong(1_000)), "result rejected with 1,000 errors"),
        (
            submitted({}, *wrong(1_000), NOT_LISTED),
            "result rejected with more than 1,000 errors",
        ),
        (submitted({}, *wrong(1_500)), "result rejected with 1,500 errors"),
    ],
)
def test_the_summary_is_the_verdict(output: StructuredOutput, summary: str) -> None:
    assert run(output)[0].canonical.summary_text == summary


@pytest.mark.parametrize(
    "fields", [{"attempt": 0}, {"attempt": 2**31}, {"schema_digest": "sha256:short"}, {"agent": ""}]
)
def test_a_submission_that_cannot_be_is_refused(fields: dict[str, Any]) -> None:
    possible = {
        "agent": "reviewer",
        "schema_digest": SCHEMA,
        "value": whole(b"{}", "value"),
        "attempt": 1,
    }
    assert StructuredOutput.model_validate(possible).valid
    with pytest.raises(ValidationError):
        StructuredOutput.model_validate({**possible, **fields})


def test_a_value_that_is_no_json_is_refused() -> None:
    with pytest.raises(InvalidRecordError, match="bytes is not a JSON type"):
        submitted(b"x")  # type: ignore[arg-type]  # the border is checked


@each_case("value", [0, False, "", [], {}, "text", 10**60, {"deep": [None, 1.5]}])
def test_a_value_stands_in_the_result_as_it_is(value: JsonValue) -> None:
    projection, _ = run(submitted(value))
    result = result_of(projection)
    assert result["value"] == value
    assert "value_preview" not in result
    assert CanonicalResult.from_json(projection.canonical.to_json()) == projection.canonical


def test_null_is_told_from_no_value() -> None:
    result = run_result(submitted(None))
    assert "value" not in result
    assert (result["value_preview"], result["value_truncated"]) == ("null", False)
    assert result["truncated"] is False


def test_errors_beyond_the_budget_and_long_ones_are_counted() -> None:
    long = SchemaViolation(path="/" + "p" * 240, message="m" * 701)
    projection, _ = run(submitted({}, long, *wrong(4)), SMALL)
    result = result_of(projection)
    assert result["errors"] == [
        {"path": "/" + "p" * 238 + "\u2026", "message": "m" * 699 + "\u2026"}
    ]
    assert (result["error_count"], result["truncated"]) == (5, True)
    assert "value_truncated" not in result
    assert [(o.field, o.unit, o.before - o.after) for o in projection.omissions] == [
        ("errors", "items", 4),
        ("errors[0].path", "chars", 2),
        ("errors[0].message", "chars", 2),
    ]


def test_errors_beyond_the_budget_are_listed_beside_the_value() -> None:
    complete = CompleteOutput.success("submit_result", submitted("x" * 17_000, *wrong(2)))
    projection, receipt, publisher = surfaces(complete, "structured_output", SMALL)
    result = result_of(projection)
    assert (result["value_artifact"], result["hidden_artifact"]) == (0, 1)
    assert hidden_of(result, publisher) == [
        {"field": "errors", "n": 1, "value": {"path": "/1", "message": "wrong 1"}}
    ]
    assert receipt.text.endswith(f"{result['artifacts'][1]['path']} (hidden)\n")
