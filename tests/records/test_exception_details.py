"""What is told of an exception, whatever it says and defines."""

from types import TracebackType
from typing import Any, NoReturn, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.records.failing import SECRET, SilentError, details_of, exceptions
from tests.records.odd_values import anything
from tests.records.support import surfaces

from tooltrail.records import CanonicalResult, CompleteOutput, canonical_json, error_of_exception
from tooltrail.records._exception_details import MAX_EXCEPTIONS, MAX_FRAMES


def test_an_exception_is_recorded_with_its_notes_its_causes_and_its_place() -> None:
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
        "related": [{"raised": "OSError: disk", "cause_of": [0]}],
    }
    assert [frame.split(" ")[1] for frame in frames] == [
        "test_an_exception_is_recorded_with_its_notes_its_causes_and_its_place",
        "handler",
        "deeper",
    ]
    start = deeper.__code__.co_firstlineno
    assert frames[-1].split(" ")[0].endswith(f"test_exception_details.py:{start + 1}")


def test_neither_source_nor_local_values_are_recorded() -> None:
    def handler(password: str) -> None:
        raise ValueError(len(password))  # marker-of-the-source-line

    with pytest.raises(ValueError) as caught:
        handler(SECRET)
    text = canonical_json.encode_text(error_of_exception(caught.value).model_dump())
    assert SECRET not in text
    assert "marker-of-the-source-line" not in text


def even(depth: int) -> NoReturn:
    uneven(depth - 1)


def uneven(depth: int) -> NoReturn:
    if depth < 0:
        raise ValueError(depth)
    even(depth - 1)


def test_no_frame_of_an_ordinary_traceback_is_left_out() -> None:
    with pytest.raises(ValueError) as caught:
        even(400)
    frames = details_of(error_of_exception(caught.value))["traceback"]
    assert [frame.rpartition(" ")[2] for frame in frames[1:]] == ["even", "uneven"] * 201


def test_of_more_frames_both_ends_are_listed_and_the_others_counted() -> None:
    with pytest.raises(ValueError) as caught:
        even(200)
    error = caught.value
    for line in range(1, 2_001):
        error.__traceback__ = TracebackType(error.__traceback__, SHORT.tb_frame, 0, line)
    frames = details_of(error_of_exception(error))["traceback"]
    assert len(frames) == MAX_FRAMES + 1
    assert ":2000 " in frames[0]
    assert frames[MAX_FRAMES // 2] == "[1,203 more frames]"
    assert frames[-1].endswith(" uneven")


def test_a_recursion_without_an_end_is_recorded() -> None:
    def recurse() -> None:
        recurse()

    with pytest.raises(RecursionError) as caught:
        recurse()
    told = error_of_exception(caught.value)
    assert told.message == "RecursionError: maximum recursion depth exceeded"
    assert all(frame.endswith(" recurse") for frame in details_of(told)["traceback"][1:])


def test_the_name_of_a_file_and_of_a_type_are_whole() -> None:
    name = "/" + "d" * 200 + "/tool.py"
    with pytest.raises(ZeroDivisionError) as caught:
        exec(compile("1 / 0", name, "exec"), {})
    frame = details_of(error_of_exception(caught.value))["traceback"][-1]
    assert frame == f"{name}:1 <module>"
    long = type("L" * 300, (Exception,), {"__module__": "m" * 300})
    assert details_of(error_of_exception(long()))["exception"] == "m" * 300 + "." + "L" * 300


def related_to(error: BaseException) -> list[Any]:
    """The exceptions that are described beside one."""
    related: list[Any] = details_of(error_of_exception(error)).get("related", [])
    return related


def test_causes_follow_what_python_would_print() -> None:
    inner, outer = ValueError("inner"), ValueError("outer")
    outer.__context__ = inner
    assert related_to(outer) == [{"raised": "ValueError: inner", "cause_of": [0]}]
    outer.__suppress_context__ = True
    assert related_to(outer) == []
    outer.__cause__ = KeyError("cause")
    assert related_to(outer) == [{"raised": "KeyError: 'cause'", "cause_of": [0]}]


def test_of_more_causes_the_nearest_are_listed_and_the_others_counted() -> None:
    error = first = ValueError("0")
    for n in range(1, 5_001):
        error.__cause__ = ValueError(f"{n}")
        error = error.__cause__
    assert related_to(first) == [
        *({"raised": f"ValueError: {n + 1}", "cause_of": [n]} for n in range(MAX_EXCEPTIONS)),
        f"[{5_000 - MAX_EXCEPTIONS:,} more exceptions]",
    ]


def test_of_more_members_the_first_are_listed_and_the_others_counted() -> None:
    group = ExceptionGroup("many", [ValueError(n) for n in range(5_000)])
    assert related_to(group) == [
        *({"raised": f"ValueError: {n}", "member_of": [0]} for n in range(MAX_EXCEPTIONS)),
        f"[{5_000 - MAX_EXCEPTIONS:,} more exceptions]",
    ]


def test_notes_causes_and_members_are_whole() -> None:
    long = "a\n" * 100_000 + "THE CAUSE"
    error = ExceptionGroup("group", [KeyError("b"), ValueError(long)])
    error.add_note(long)
    error.__cause__ = OSError(long)
    assert details_of(error_of_exception(error))["notes"] == [long]
    texts = [other["raised"] for other in related_to(error)]
    assert texts == [f"OSError: {long}", "KeyError: 'b'", f"ValueError: {long}"]


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


def test_an_exception_without_a_text_of_its_own_is_a_failure() -> None:
    error = error_of_exception(SilentError())
    assert error.message == "odd.SilentError: (its text cannot be made)"
    assert error.details == {"exception": "odd.SilentError"}


@given(st.lists(anything, max_size=3))
def test_an_exception_may_have_any_arguments(arguments: list[Any]) -> None:
    error = error_of_exception(ValueError(*arguments))
    assert error.message.startswith("ValueError")
    assert CompleteOutput.failure("Tool", error).to_json()


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


class UnreadableError(Exception):
    @property
    def __notes__(self) -> list[str]:  # type: ignore[override]
        raise RuntimeError


def test_an_exception_whose_fields_cannot_be_read_is_recorded_by_its_type_and_text() -> None:
    error = error_of_exception(UnreadableError("x"))
    assert isinstance(error.details, dict)
    assert error.details.keys() == {"exception"}
    assert "x" in error.message


@given(exceptions, st.text(min_size=1))
def test_any_exception_is_a_recordable_failure_and_small_where_it_is_projected(
    error: BaseException, tool: str
) -> None:
    told = error_of_exception(error)
    assert told.message.splitlines() == told.message.split("\n")
    output = CompleteOutput.failure(tool, told)
    assert output.status == "error"
    members = {**output.model_dump(), "partial_output": output.partial_output}
    assert CompleteOutput.model_validate(members) == output
    assert error_of_exception(error) == told

    projection, receipt, _ = surfaces(output, "generic")
    assert len(projection.canonical.to_json().decode()) <= 5_000
    assert CanonicalResult.from_json(projection.canonical.to_json()) == projection.canonical
    assert len(receipt.text) <= 4_000


def test_the_members_of_a_cause_and_the_cause_of_a_member_are_recorded_once() -> None:
    member, error, shared = ValueError("member"), KeyError("key"), OSError("shared")
    shared.add_note("told once")
    group = ExceptionGroup[Exception]("group", [member, TypeError("other"), shared])
    member.__cause__ = group.__context__ = shared
    error.__cause__ = group
    assert details_of(error_of_exception(error)) == {
        "exception": "KeyError",
        "related": [
            {"raised": "ExceptionGroup: group (3 sub-exceptions)", "cause_of": [0]},
            {
                "raised": "OSError: shared",
                "cause_of": [1, 3],
                "member_of": [1],
                "notes": ["told once"],
            },
            {"raised": "ValueError: member", "member_of": [1]},
            {"raised": "TypeError: other", "member_of": [1]},
        ],
    }


def test_a_group_that_holds_the_same_groups_again_and_again_is_recorded() -> None:
    error: Exception = ValueError("leaf")
    for _ in range(100):
        error = ExceptionGroup[Exception]("level", [error, error])
    *groups, leaf = related_to(error)
    assert {group["raised"] for group in groups} == {"ExceptionGroup: level (2 sub-exceptions)"}
    assert leaf == {"raised": "ValueError: leaf", "member_of": [99, 99]}


@st.composite
def linked(draw: st.DrawFn) -> list[BaseException]:
    """Exceptions with texts and notes of their own, linked at random, with cycles and all."""
    count = draw(st.integers(1, 8))
    every: list[BaseException] = []
    for n in range(count):
        members = draw(st.lists(st.sampled_from(every), max_size=4)) if every else []
        text = f"<text {n}>"
        every.append(BaseExceptionGroup(text, members) if members else ValueError(text))
    for n, error in enumerate(every):
        if draw(st.booleans()):
            error.add_note(f"<note {n}>")
        error.__cause__ = draw(st.none() | st.sampled_from(every))
        error.__context__ = draw(st.none() | st.sampled_from(every))
        error.__suppress_context__ = draw(st.booleans())
        if draw(st.booleans()):
            error.__traceback__ = draw(st.sampled_from(TRACEBACKS))
    return every[::-1]


def fail(depth: int = 0) -> NoReturn:
    if depth:
        fail(depth - 1)
    raise OSError("disk")


def traceback_of(depth: int) -> TracebackType:
    with pytest.raises(OSError) as caught:
        fail(depth)
    assert caught.value.__traceback__ is not None
    return caught.value.__traceback__


SHORT, LONG = traceback_of(2), traceback_of(7)
TRACEBACKS = [SHORT, SHORT.tb_next, LONG]


def printed(error: BaseException) -> list[BaseException]:
    """All that Python would print of it, found in the plainest way."""
    found = [error]
    for one in found:
        cause = one.__cause__
        if cause is None and not one.__suppress_context__:
            cause = one.__context__
        inner: tuple[BaseException, ...] = ()
        if isinstance(one, BaseExceptionGroup):
            inner = cast("BaseExceptionGroup[BaseException]", one).exceptions
        for other in (cause, *inner):
            if other is not None and other not in found:
                found.append(other)
    return found


@given(linked())
def test_every_exception_that_can_be_reached_is_described_once(every: list[BaseException]) -> None:
    told = error_of_exception(every[0])
    text = told.message + canonical_json.encode_text(details_of(told))
    reached = printed(every[0])
    for n, error in enumerate(reversed(every)):
        assert (f"<text {n}>" in text) == (error in reached)
        noted = error in reached and hasattr(error, "__notes__")
        assert text.count(f"<note {n}>") == noted
    assert text.count('"traceback":') == sum(one.__traceback__ is not None for one in reached)


def test_a_deeply_nested_group_is_recorded() -> None:
    error: BaseException = SystemExit(1)
    for _ in range(3_000):
        error = cast("BaseException", BaseExceptionGroup[Any]("g", [error]))
    assert details_of(error_of_exception(error))["exception"] == "BaseExceptionGroup"


def test_an_exception_in_many_groups_names_only_those_that_are_listed() -> None:
    shared = ValueError("shared")
    groups = [ExceptionGroup(f"g{n}", [shared]) for n in range(1_200)]
    related = related_to(ExceptionGroup("all", groups))
    numbers = [n for one in related[:-1] for n in one["member_of"]]
    assert max(numbers) <= MAX_EXCEPTIONS


@pytest.mark.parametrize("notes", [None, "text", ["kept", 5]])
def test_odd_notes_cost_only_themselves(notes: object) -> None:
    error: Any = ValueError("x")
    error.__notes__ = notes
    error.__cause__ = KeyError("y")
    details = details_of(error_of_exception(error))
    assert details.get("notes", []) == (["kept"] if isinstance(notes, list) else [])
    assert details["related"] == [{"raised": "KeyError: 'y'", "cause_of": [0]}]
