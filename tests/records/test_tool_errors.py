"""Every failure fits into one shape."""

import collections
import datetime as dt
from http import HTTPStatus
from pathlib import PurePosixPath
from typing import Any, cast

import pytest
from hypothesis import given
from pydantic import JsonValue, ValidationError
from tests.records.odd_values import Half, Loud, Silent, StrKind, anything
from tests.support.cases import each_case

from tooltrail.records import CompleteOutput, ErrorKind, ToolError, canonical_json
from tooltrail.records._error_text import type_name

KINDS = [value for name, value in vars(ErrorKind).items() if name.isupper()]


def test_every_listed_kind_and_any_snake_case_word_is_a_kind() -> None:
    for kind in (*KINDS, "a", "patch_failed", "http_404", "k" * 64):
        assert ToolError(kind=kind, message="it failed").kind == kind


SPECIFIED = """
invalid_tool_input unknown_tool tool_not_exposed truncated_tool_call
workdir_not_found command_spawn_failed command_timed_out execution_root_violation
patch_failed context_not_found path_escape missing_file existing_file
network_denied invalid_url response_too_large rate_limited
task_not_found task_not_running
tool_execution_failed tool_timed_out permission_denied cancelled interrupted
output_persistence_failed low_disk_space
result_not_submitted result_invalid
"""


def test_all_kinds_of_the_specification_are_listed_in_its_order() -> None:
    assert SPECIFIED.split() == KINDS
    names = [name for name in vars(ErrorKind) if name.isupper()]
    assert [name.lower() for name in names] == KINDS


@each_case("kind", ["", "Not_snake", "with space", "1st", "_x", "k" * 65, "a\n", "a-b"])
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


def recorded(details: Any) -> Any:
    """The details of an error, which are the same when they are recorded once more."""
    error = ToolError(kind="x", message="m", details=details)
    assert ToolError.model_validate(error.model_dump()) == error
    assert CompleteOutput.failure("Tool", error).to_json()
    return error.details


NO_JSON: dict[str, tuple[Any, JsonValue]] = {
    "bytes": (
        {"n": 1, "raw": [b"a\n\xff\\", bytearray(b"caf\xc3\xa9"), memoryview(b"m")]},
        {"n": 1, "raw": ["<bytes: a\n\\xff\\>", "<bytearray: caf\u00e9>", "<memoryview: m>"]},
    ),
    "many bytes": ({"raw": b"x" * 100_000}, {"raw": "<bytes: " + "x" * 100_000 + ">"}),
    "tuples": ({"a": (1.5, {}, ())}, {"a": [1.5, {}, []]}),
    "sets": (
        [{"b", "a", 3, None}, frozenset({(2, 1)}), {frozenset({"d", "c"})}],
        [["a", "b", 3, None], [[2, 1]], [["c", "d"]]],
    ),
    "keys": (
        {None: 1, True: 2, 3: 4, 1.5: 5, b"\xff": 6, ("a", 1): 7},
        [[None, 1], [True, 2], [3, 4], [1.5, 5], ["<bytes: \\xff>", 6], [["a", 1], 7]],
    ),
    "long integers": (
        [10**600, -(2**16_000), 2**16_000],
        [10**600, "<int: -0x1" + "0" * 4000 + ">", "<int: 0x1" + "0" * 4000 + ">"],
    ),
    "objects": (
        [dt.date(2026, 1, 2), PurePosixPath("/tmp/a"), len, ...],
        [
            "<datetime.date: 2026-01-02>",
            f"<{PurePosixPath.__module__}.PurePosixPath: /tmp/a>",
            "<builtin_function_or_method: <built-in function len>>",
            "<ellipsis: Ellipsis>",
        ],
    ),
}


@each_case(("details", "kept"), NO_JSON.values(), ids=NO_JSON)
def test_only_what_json_cannot_hold_is_replaced_by_a_text(details: Any, kept: JsonValue) -> None:
    assert recorded({"before": "whole", "here": details, "after": [1, None]}) == {
        "before": "whole",
        "here": kept,
        "after": [1, None],
    }


def test_the_order_of_a_set_does_not_depend_on_how_it_was_made() -> None:
    rows = [(n, "row") for n in range(9)]
    assert recorded(set(rows)) == recorded({*rows[::-1]}) == [[n, "row"] for n in range(9)]
    groups = frozenset(frozenset({text, text * 2}) for text in "abc")
    assert recorded(groups) == [["a", "aa"], ["b", "bb"], ["c", "cc"]]


def test_an_object_is_described_in_a_bounded_text_without_its_address() -> None:
    module = type_name(Loud(""))[: -len("Loud")]
    assert recorded(Loud("a\nb\x1b")) == f"<{module}Loud: a b\\x1b>"
    assert recorded(Loud("x" * 10**7)) == f"<{module}Loud: {'x' * 999}\u2026>"
    assert recorded(object()) == "<object: <object object>>"
    released = memoryview(b"a")
    released.release()
    assert recorded(released) == "<memoryview: it cannot be read>"


def test_an_object_that_cannot_be_read_is_named_and_the_rest_stays() -> None:
    module = type_name(Loud(""))[: -len("Loud")]
    assert recorded([Silent(), 1]) == [f"<{module}Silent: it cannot be read>", 1]


def test_values_of_subclasses_become_plain_values() -> None:
    values = recorded([HTTPStatus.OK, StrKind.A, Half(0.5), collections.OrderedDict(a=1)])
    assert values == [200, "a", 0.5, {"a": 1}]
    assert [type(value) for value in values] == [int, str, float, dict]


def test_a_part_that_contains_itself_is_noted_and_its_other_members_stay() -> None:
    details: list[Any] = ["first"]
    details += [details, {"again": (details, "last")}]
    note = "<list: contains itself>"
    assert recorded(details) == ["first", note, {"again": [note, "last"]}]


def test_a_part_that_stands_in_two_places_is_kept_in_both() -> None:
    part, text = {"n": [1]}, "x" * 10_000
    assert recorded([part, part, text, text]) == [{"n": [1]}, {"n": [1]}, text, text]
    rows = [(1, 2)] * 5_000
    assert recorded(rows) == [[1, 2]] * 5_000


def test_parts_that_double_without_an_end_are_bounded() -> None:
    details: list[Any] = ["the innermost"]
    for _ in range(200):
        details = [details, details]
    text = str(ToolError.model_validate({"kind": "x", "message": "m", "details": details}).details)
    assert "the innermost" in text
    assert "[... 2 items omitted ...]" in text
    assert len(text) < 20_000_000


def test_lists_behind_the_most_members_are_counted() -> None:
    details = {"n": list(range(300_000)), "rows": [1, 2], "last": 1}
    assert recorded(details) == {**details, "rows": "[... 2 items omitted ...]"}


def test_long_texts_beyond_the_bound_are_counted() -> None:
    made = recorded(["x" * 1_000_000] * 100)
    assert made[0] == "x" * 1_000_000
    assert made[-1] == "[... 1,000,000 characters omitted ...]"
    assert len(str(made)) < 20_000_000


def is_json(value: object) -> bool:
    if type(value) is dict:
        members = cast("dict[object, object]", value)
        return all(type(k) is str and is_json(member) for k, member in members.items())
    if type(value) is list:
        return all(map(is_json, cast("list[object]", value)))
    return value is None or type(value) in (str, bool, int, float)


@given(anything)
def test_an_error_with_details_of_any_kind_is_recorded(details: Any) -> None:
    fields = {"kind": "x", "message": "m", "details": details}
    error = ToolError.model_validate(fields)
    assert is_json(error.details)
    data = CompleteOutput.failure("Tool", error).to_json()
    assert CompleteOutput.failure("Tool", ToolError.model_validate(fields)).to_json() == data
    again = ToolError.model_validate(error.model_dump())
    assert CompleteOutput.failure("Tool", again).to_json() == data
    assert CompleteOutput.model_validate(canonical_json.decode(data)).to_json() == data
