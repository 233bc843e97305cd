"""What is told of an exception, whatever it says and defines."""

from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.records.failing import (
    SECRET,
    EndingError,
    FakeCauseError,
    LoudError,
    LyingError,
    LyingGroup,
    NumberError,
    SilentError,
    UnboundError,
    details_of,
    exceptions,
    giving,
    refusing,
)
from tests.records.support import surfaces

from tooltrail.records import CanonicalResult, CompleteOutput, canonical_json, error_of_exception


def test_an_exception_is_told_with_its_notes_its_causes_and_its_place() -> None:
    def deeper() -> NoReturn:
        raise KeyError("color") from OSError("disk")

    def handler() -> None:
        try:
            deeper()
        except KeyError as error:
            error.add_note("while painting")
            raise

    with pytest.raises(KeyError) as caught:
        handler()
    told = error_of_exception(caught.value)
    frames = details_of(told).pop("traceback")
    assert told.details == {
        "exception": "KeyError",
        "notes": ["while painting"],
        "causes": ["OSError: disk"],
    }
    assert [frame.split(" ")[1] for frame in frames] == [
        "test_an_exception_is_told_with_its_notes_its_causes_and_its_place",
        "handler",
        "deeper",
    ]
    start = deeper.__code__.co_firstlineno
    assert frames[-1].split(" ")[0].endswith(f"test_exception_details.py:{start + 1}")


def test_neither_source_nor_local_values_are_told() -> None:
    def handler(password: str) -> None:
        raise ValueError(len(password))  # marker-of-the-source-line

    with pytest.raises(ValueError) as caught:
        handler(SECRET)
    text = canonical_json.encode_text(error_of_exception(caught.value).model_dump())
    assert SECRET not in text
    assert "marker-of-the-source-line" not in text


def raised_at(depth: int) -> NoReturn:
    if depth:
        raised_at(depth - 1)
    raise ValueError(depth)


@pytest.mark.parametrize(
    ("depth", "repeated"),
    [(1, []), (3, []), (5, ["[2 more times]"]), (900, ["[897 more times]"])],
)
def test_frames_of_a_recursion_are_told_three_times_and_counted(
    depth: int, repeated: list[str]
) -> None:
    with pytest.raises(ValueError) as caught:
        raised_at(depth)
    frames = details_of(error_of_exception(caught.value))["traceback"]
    line = raised_at.__code__.co_firstlineno + 2
    assert [frame.rpartition(":")[2] for frame in frames[1:]] == [
        *[f"{line} raised_at"] * min(depth, 3),
        *repeated,
        f"{line + 1} raised_at",
    ]


def even(depth: int) -> NoReturn:
    odd(depth - 1)


def odd(depth: int) -> NoReturn:
    if depth < 0:
        raise ValueError(depth)
    even(depth - 1)


def test_no_frame_of_a_deep_traceback_is_left_out() -> None:
    with pytest.raises(ValueError) as caught:
        even(400)
    frames = details_of(error_of_exception(caught.value))["traceback"]
    assert [frame.rpartition(" ")[2] for frame in frames[1:]] == ["even", "odd"] * 201


def test_a_recursion_without_an_end_is_told() -> None:
    def recurse() -> None:
        recurse()

    with pytest.raises(RecursionError) as caught:
        recurse()
    told = error_of_exception(caught.value)
    assert told.message == "RecursionError: maximum recursion depth exceeded"
    frames = details_of(told)["traceback"]
    assert all(frame.endswith(" recurse") for frame in frames[1:4])
    assert frames[4].endswith(" more times]")


def test_the_name_of_a_file_and_of_a_type_are_whole() -> None:
    name = "/" + "d" * 200 + "/tool.py"
    with pytest.raises(ZeroDivisionError) as caught:
        exec(compile("1 / 0", name, "exec"), {})
    frame = details_of(error_of_exception(caught.value))["traceback"][-1]
    assert frame == f"{name}:1 <module>"
    long = type("L" * 300, (Exception,), {"__module__": "m" * 300})
    assert details_of(error_of_exception(long()))["exception"] == "m" * 300 + "." + "L" * 300


def test_causes_follow_what_python_would_print() -> None:
    inner, outer = ValueError("inner"), ValueError("outer")
    outer.__context__ = inner
    assert details_of(error_of_exception(outer))["causes"] == ["ValueError: inner"]
    outer.__suppress_context__ = True
    assert "causes" not in details_of(error_of_exception(outer))
    outer.__cause__ = KeyError("cause")
    assert details_of(error_of_exception(outer))["causes"] == ["KeyError: 'cause'"]


def test_all_of_many_causes_are_told() -> None:
    error = first = ValueError("0")
    for n in range(1, 20_001):
        error.__cause__ = ValueError(f"{n}")
        error = error.__cause__
    details = details_of(error_of_exception(first))
    assert details["causes"] == [f"ValueError: {n}" for n in range(1, 20_001)]


def test_all_of_many_members_and_notes_are_told() -> None:
    group = ExceptionGroup("many", [ValueError(n) for n in range(20_000)])
    for n in range(20_000):
        group.add_note(f"note {n}")
    details = details_of(error_of_exception(group))
    assert details["members"] == [f"ValueError: {n}" for n in range(20_000)]
    assert details["notes"] == [f"note {n}" for n in range(20_000)]


def test_notes_causes_and_members_are_whole() -> None:
    long = "a\n" * 100_000 + "THE CAUSE"
    error = ExceptionGroup("group", [KeyError("b"), ValueError(long)])
    error.add_note(long)
    error.__cause__ = OSError(long)
    details = details_of(error_of_exception(error))
    assert details["notes"] == [long]
    assert details["causes"] == [f"OSError: {long}"]
    assert details["members"] == ["KeyError: 'b'", f"ValueError: {long}"]


def test_the_white_space_around_a_text_is_no_part_of_it() -> None:
    told = error_of_exception(ValueError(" \n" * 5_000_000 + "the end\n"))
    assert told.message == "ValueError: the end"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("a\n  b\tc", "a\n  b\tc"),
        ("a\r\nb\rc", "a\nb\\x0dc"),
        ("\x1b[2J\x00\x0b\x0c\x7f\x85", "\\x1b[2J\\x00\\x0b\\x0c\\x7f\\x85"),
        ("a\u2028b\u2029c\udc80", "a\\u2028b\\u2029c\\udc80"),
    ],
)
def test_a_text_keeps_its_lines_and_nothing_else_moves_the_cursor(text: str, kept: str) -> None:
    error = ValueError(f"<{text}>")
    error.add_note(f"<{text}>")
    told = error_of_exception(error)
    assert told.message == f"ValueError: <{kept}>"
    assert details_of(told)["notes"] == [f"<{kept}>"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (SilentError, "odd.SilentError: (its text cannot be made)"),
        (EndingError, "odd.EndingError: (its text cannot be made)"),
        (NumberError, "odd.NumberError: (its text cannot be made)"),
        (LoudError, "odd.LoudError: loud"),
        (partial(UnboundError, "a"), "UnboundError: a"),
        (partial(LyingError, "b"), "odd.LyingError: b"),
        (partial(LyingGroup, "c", [ValueError()]), "odd.LyingGroup: c (1 sub-exception)"),
        (partial(FakeCauseError, "d"), "odd.FakeCauseError: d"),
    ],
)
def test_an_exception_may_define_anything(make: Callable[[], Exception], message: str) -> None:
    told = error_of_exception(make())
    assert told.message == message
    assert details_of(told)["exception"] == message.partition(":")[0]
    assert CompleteOutput.failure("Tool", told).to_json()


def test_a_cause_that_a_class_invents_is_not_told_and_a_kept_one_is() -> None:
    error = LyingError()
    assert details_of(error_of_exception(error)) == {"exception": "odd.LyingError"}
    BaseException.__setattr__(error, "__context__", KeyError("kept"))
    assert details_of(error_of_exception(error))["causes"] == ["KeyError: 'kept'"]
    group = LyingGroup("c", [ValueError("kept")])
    assert details_of(error_of_exception(group))["members"] == ["ValueError: kept"]


def test_no_name_of_a_file_or_of_a_function_can_pass_for_another_frame() -> None:
    code = compile("def f(): 1 / 0", "a.py\nforged.py:1 forged", "exec")
    names: dict[str, Any] = {}
    exec(code, names)
    function = names["f"]
    function.__code__ = function.__code__.replace(co_name="f\nforged.py:2 forged\x1b[2K")
    with pytest.raises(ZeroDivisionError) as caught:
        function()
    frame = details_of(error_of_exception(caught.value))["traceback"][-1]
    assert frame == "a.py forged.py:1 forged:1 f forged.py:2 forged\\x1b[2K"


def test_notes_that_are_no_text_are_left_out() -> None:
    error = ValueError()
    vars(error)["__notes__"] = ["a", 7, LyingError(), "b"]
    assert details_of(error_of_exception(error))["notes"] == ["a", "b"]
    vars(error)["__notes__"] = 7
    assert "notes" not in details_of(error_of_exception(error))


def test_an_exception_that_cannot_be_described_is_a_failure_all_the_same() -> None:
    number = type("OddNumber", (), {"__eq__": refusing(RuntimeError("no number"))})()
    odd_error = type("OddError", (OSError,), {"errno": property(giving(number))})
    told = error_of_exception(odd_error())
    assert told.kind == "tool_execution_failed"
    assert told.message == "the tool raised an exception that cannot be described"


@given(exceptions, st.text(min_size=1))
def test_any_exception_is_a_recordable_failure_and_small_where_it_is_projected(
    error: BaseException, tool: str
) -> None:
    told = error_of_exception(error)
    assert told.message.splitlines() == told.message.split("\n")
    output = CompleteOutput.failure(tool, told)
    assert output.status == "error"
    assert CompleteOutput.model_validate(output.model_dump()) == output
    assert error_of_exception(error) == told

    projection, receipt, _ = surfaces(output, "generic")
    assert len(projection.canonical.to_json().decode()) <= 5_000
    assert CanonicalResult.from_json(projection.canonical.to_json()) == projection.canonical
    assert len(receipt.text) <= 4_000
