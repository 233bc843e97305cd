"""Every failure fits into one shape."""

import math
import re
from typing import Any

import pytest
from pydantic import JsonValue, ValidationError

from tooltrail.records import CompleteOutput, ErrorKind, ToolError

KINDS = [value for name, value in vars(ErrorKind).items() if name.isupper()]


@pytest.mark.parametrize("kind", [*KINDS, "a", "patch_failed", "http_404", "k" * 64])
def test_every_listed_kind_and_any_snake_case_word_is_a_kind(kind: str) -> None:
    assert ToolError(kind=kind, message="it failed").kind == kind


def test_the_kinds_of_a_command_that_cannot_run_are_listed() -> None:
    assert {"workdir_not_found", "command_spawn_failed", "tool_execution_failed"} <= set(KINDS)
    assert len(KINDS) == len(set(KINDS))
    assert all(re.fullmatch("[a-z_]+", kind) for kind in KINDS)


@pytest.mark.parametrize(
    "kind", ["", "Not_snake", "with space", "1st", "_x", "k" * 65, "a\n", "a-b"]
)
def test_anything_else_is_no_kind(kind: str) -> None:
    with pytest.raises(ValidationError):
        ToolError(kind=kind, message="it failed")


def test_an_error_needs_a_message_and_nothing_more() -> None:
    error = ToolError(kind="x", message="it failed")
    assert (error.details, error.recovery_hint, error.retryable) == (None, None, False)
    with pytest.raises(ValidationError):
        ToolError.model_validate({"kind": "x", "message": "m", "stack": "no such field"})
    with pytest.raises(ValidationError):
        ToolError.model_validate({"kind": "x", "message": None})


def test_an_exception_that_quotes_an_undecodable_name_can_be_told() -> None:
    name = b"caf\xe9".decode("utf-8", "surrogateescape")
    error = ToolError(kind="x", message=f"no file {name}", recovery_hint=f"look for {name}")
    assert error.message == "no file caf\\udce9"
    assert error.recovery_hint == "look for caf\\udce9"
    assert ToolError(kind="x", message="caf\u00e9").message == "caf\u00e9"


@pytest.mark.parametrize("message", ["", " ", "\n\t", str(ValueError())])
def test_an_exception_without_a_message_can_be_told(message: str) -> None:
    assert ToolError(kind="x", message=message).message == "(no message)"
    output = CompleteOutput.failure("Tool", ToolError(kind="x", message=message))
    assert output.summary_text == "(no message)"


def test_a_refused_error_does_not_repeat_what_it_was_given() -> None:
    with pytest.raises(ValidationError) as caught:
        ToolError(kind="Not_snake and secret", message="m")
    assert "secret" not in str(caught.value)
    assert "kind" in str(caught.value)


def nested(levels: int) -> JsonValue:
    value: JsonValue = []
    for _ in range(levels - 1):
        value = [value]
    return value


def test_details_up_to_250_levels_stay_and_the_complete_output_can_be_written() -> None:
    error = ToolError(kind="x", message="m", details=nested(250))
    assert error.details == nested(250)
    assert CompleteOutput.failure("Tool", error).to_json().count(b"[") == 250


@pytest.mark.parametrize("levels", [251, 300, 100_000])
def test_details_nested_too_deep_are_replaced_by_a_bounded_text_of_them(levels: int) -> None:
    error = ToolError(kind="x", message="m", details=nested(levels))
    shown = "[" * levels + "]" * levels
    assert error.details == {
        "omitted": True,
        "reason": "nested deeper than 250 levels",
        "preview": shown if len(shown) <= 800 else shown[:799] + "\u2026",
    }
    assert CompleteOutput.failure("Tool", error).to_json()
    assert ToolError.model_validate(error.model_dump()) == error


NO_JSON: list[tuple[object, str, str]] = [
    (
        {"n": 1, "raw": [b"a", "\u00e9"]},
        "bytes is not a JSON type",
        '{"n":1,"raw":[<bytes>,"\u00e9"]}',
    ),
    ({1: None, "a": (1.5, {})}, "an object key must be a string", '{1:null,"a":[1.5,{}]}'),
    ([10**5000], "an integer is too long to be written", "[<int>]"),
]


@pytest.mark.parametrize(("details", "reason", "shown"), NO_JSON)
def test_details_that_are_no_json_are_replaced_by_a_text_of_them(
    details: Any, reason: str, shown: str
) -> None:
    replaced = ToolError(kind="x", message="m", details=details).details
    assert isinstance(replaced, dict)
    assert str(replaced["reason"]).startswith(reason)
    assert replaced["preview"] == shown


def test_details_that_contain_themselves_twice_are_replaced() -> None:
    details: list[Any] = []
    details += [details, {"again": details}]
    replaced = ToolError(kind="x", message="m", details=details).details
    assert isinstance(replaced, dict)
    assert replaced["preview"] == "[" * 799 + "\u2026"


def test_details_are_any_json_value() -> None:
    details: JsonValue = {"n": math.inf, "big": 10**60, "text": "\ud800", "list": [None, True]}
    assert ToolError(kind="x", message="m", details=details).details == details
