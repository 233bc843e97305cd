"""Every failure fits into one shape."""

import math
import re

import pytest
from pydantic import JsonValue, ValidationError

from tooltrail.records import ErrorKind, ToolError

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
        ToolError(kind="x", message="")
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


def test_details_are_any_json_value() -> None:
    details: JsonValue = {"n": math.inf, "big": 10**60, "text": "\ud800", "list": [None, True]}
    assert ToolError(kind="x", message="m", details=details).details == details
