"""Every exception that can be reached from one is told, and told once."""

import asyncio
from types import TracebackType
from typing import NoReturn, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.records.failing import details_of, giving, odd

from tooltrail.records import canonical_json, error_of_exception


def fail(depth: int = 0) -> NoReturn:
    if depth:
        fail(depth - 1)
    raise OSError("disk")


def lines_of(frames: list[str]) -> list[str]:
    """Lines and functions, without the files."""
    return [frame.rpartition(":")[2] for frame in frames]


def test_a_chain_of_causes_that_returns_to_its_beginning_ends_there() -> None:
    error, cause = ValueError("a"), ValueError("b")
    error.__cause__, cause.__cause__ = cause, error
    assert details_of(error_of_exception(error)) == {
        "exception": "ValueError",
        "causes": ["ValueError: b", 0],
    }


def test_a_chain_of_causes_that_returns_to_its_middle_ends_there() -> None:
    error, second, third = ValueError("a"), ValueError("b"), ValueError("c")
    error.__cause__, second.__cause__, third.__cause__ = second, third, second
    assert details_of(error_of_exception(error)) == {
        "exception": "ValueError",
        "causes": [1],
        "others": [{"n": 1, "raised": "ValueError: b", "causes": ["ValueError: c", 1]}],
    }


def test_a_chain_that_grows_whenever_a_text_of_it_is_made_ends() -> None:
    made: dict[int, BaseException] = {}

    def lengthen(error: BaseException) -> str:
        if len(made) < 100:  # a walk that does not end must fail and not hang
            error.__cause__ = made.setdefault(id(error), GrowingError())
        return "x"

    GrowingError = odd("GrowingError", __str__=lengthen)  # noqa: N806  it is a class
    first = GrowingError()
    told = error_of_exception(first)
    assert told.message == "odd.GrowingError: x"
    # The first text of the first one was made before its details were asked for.
    assert told.details == {"exception": "odd.GrowingError", "causes": ["odd.GrowingError: x"]}


def test_a_chain_that_grows_whenever_notes_of_it_are_read_ends() -> None:
    made: dict[int, BaseException] = {}

    def lengthen(error: BaseException) -> list[str]:
        if len(made) < 100:
            error.__context__ = made.setdefault(id(error), GrowingError())
        return ["note"]

    GrowingError = odd("GrowingError", __notes__=property(lengthen))  # noqa: N806  it is a class
    assert error_of_exception(GrowingError()).details == {
        "exception": "odd.GrowingError",
        "notes": ["note"],
    }


def test_the_members_of_a_group_and_of_its_groups_are_told() -> None:
    leaves: list[Exception] = [ValueError("a"), KeyError("b"), OSError("c"), OSError("d")]
    inner = ExceptionGroup("inner", leaves[1:])
    inner.add_note("of the inner group")
    group = ExceptionGroup[Exception]("outer", [leaves[0], inner])
    told = error_of_exception(group)
    assert told.message == "ExceptionGroup: outer (2 sub-exceptions)"
    assert told.details == {
        "exception": "ExceptionGroup",
        "members": ["ValueError: a", 1],
        "others": [
            {
                "n": 1,
                "raised": "ExceptionGroup: inner (3 sub-exceptions)",
                "notes": ["of the inner group"],
                "members": ["KeyError: 'b'", "OSError: c", "OSError: d"],
            }
        ],
    }


def test_notes_causes_and_frames_of_what_a_task_raised_are_told() -> None:
    async def child() -> None:
        try:
            fail()
        except OSError as error:
            wrapped = RuntimeError("cannot save")
            wrapped.add_note("while saving a.txt")
            raise wrapped from error

    async def handler() -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(child())

    with pytest.raises(ExceptionGroup) as caught:
        asyncio.run(handler())
    details = details_of(error_of_exception(caught.value))
    start = child.__code__.co_firstlineno
    assert details["members"] == [1]
    assert details["traceback"][-2].endswith(" handler")
    member, cause = details["others"]
    assert lines_of(member.pop("traceback")) == [f"{start + 6} child"]
    assert lines_of(cause.pop("traceback")) == [
        f"{start + 2} child",
        f"{fail.__code__.co_firstlineno + 3} fail",
    ]
    assert member == {
        "n": 1,
        "raised": "RuntimeError: cannot save",
        "notes": ["while saving a.txt"],
        "causes": [2],
    }
    assert cause == {"n": 2, "raised": "OSError: disk"}


def test_the_members_of_a_cause_and_the_cause_of_a_member_are_told() -> None:
    member, error = ValueError("member"), KeyError("key")
    member.__cause__ = OSError("of the member")
    group = ExceptionGroup("group", [member, TypeError("other")])
    group.__context__ = OSError("of the group")
    error.__cause__ = ArithmeticError("bare")
    error.__cause__.__cause__ = group
    assert details_of(error_of_exception(error)) == {
        "exception": "KeyError",
        "causes": ["ArithmeticError: bare", 1],
        "others": [
            {
                "n": 1,
                "raised": "ExceptionGroup: group (2 sub-exceptions)",
                "causes": ["OSError: of the group"],
                "members": [2, "TypeError: other"],
            },
            {"n": 2, "raised": "ValueError: member", "causes": ["OSError: of the member"]},
        ],
    }


def test_what_several_exceptions_hold_is_told_once() -> None:
    shared = OSError("shared")
    members = [ValueError("a"), ValueError("b")]
    for member in members:
        member.__cause__ = shared
    group = ExceptionGroup[Exception]("group", [*members, shared])
    assert details_of(error_of_exception(group)) == {
        "exception": "ExceptionGroup",
        "members": [1, 2, 3],
        "others": [
            {"n": 1, "raised": "ValueError: a", "causes": [3]},
            {"n": 2, "raised": "ValueError: b", "causes": [3]},
            {"n": 3, "raised": "OSError: shared"},
        ],
    }


def test_groups_nested_a_thousand_deep_are_told() -> None:
    error: Exception = ValueError("leaf")
    for level in range(1000):
        error = ExceptionGroup[Exception](f"level {level}", [error])
    details = details_of(error_of_exception(error))
    assert details["members"] == [1]
    others = details["others"]
    texts = [f"ExceptionGroup: level {level} (1 sub-exception)" for level in range(998, -1, -1)]
    assert [other["raised"] for other in others] == texts
    assert [other["members"] for other in others] == [
        *([n] for n in range(2, 1000)),
        ["ValueError: leaf"],
    ]


def test_a_group_that_holds_the_same_groups_again_and_again_is_told() -> None:
    error: Exception = ValueError("leaf")
    for _ in range(100):
        error = ExceptionGroup[Exception]("level", [error, error])
    details = details_of(error_of_exception(error))
    assert details["members"] == [1, 1]
    assert [other.get("members") for other in details["others"]] == [
        *([n, n] for n in range(2, 101)),
        None,
    ]
    assert details["others"][-1] == {"n": 100, "raised": "ValueError: leaf"}


def test_frames_that_exceptions_share_are_told_once() -> None:
    def inner() -> NoReturn:
        raise OSError("first")

    def outer() -> NoReturn:
        try:
            inner()
        except OSError as error:
            own, joined = ValueError("own"), error.__traceback__
            assert joined is not None
            own.__traceback__ = joined.tb_next
            raise KeyError("second").with_traceback(joined) from own

    with pytest.raises(KeyError) as caught:
        outer()
    details = details_of(error_of_exception(caught.value))
    frames = details["traceback"]
    assert [frame.rpartition(" ")[2] for frame in frames[1:]] == ["outer", "outer", "inner"]
    assert details["causes"] == [1]
    shared = [f"[from {frames[-1]} on as in 0]"]
    assert details["others"] == [{"n": 1, "raised": "ValueError: own", "traceback": shared}]


def test_a_traceback_goes_on_as_that_of_another_exception() -> None:
    with pytest.raises(OSError) as caught:
        fail()
    cause = caught.value
    shared = cause.__traceback__
    assert shared is not None
    errors = [ValueError(n) for n in range(3)]
    for error in errors:
        error.__traceback__ = TracebackType(shared, shared.tb_frame, 0, 1)
    told = error_of_exception(ExceptionGroup("group", [cause, *errors]))
    first, *rest = details_of(told)["others"]
    name = "test_a_traceback_goes_on_as_that_of_another_exception"
    assert len(first["traceback"]) == 2
    for other in rest:
        own, joined = other["traceback"]
        assert own.endswith(f":1 {name}")
        assert joined == f"[from {first['traceback'][0]} on as in 1]"


def test_what_python_keeps_is_told_and_not_what_a_class_says_instead() -> None:
    lies = {
        "__traceback__": property(giving(None)),
        "__context__": property(giving(None)),
        "__suppress_context__": property(giving(True)),
    }
    for lie in ({}, *({name: value} for name, value in lies.items()), lies):
        kind = odd("LyingError", **lie)

        def handler(kind: type[Exception] = kind) -> NoReturn:
            try:
                fail()
            except OSError:
                raise kind from None

        with pytest.raises(kind) as caught:
            handler()
        vars(BaseException)["__suppress_context__"].__set__(caught.value, False)
        details = details_of(error_of_exception(caught.value))
        assert details["traceback"][-1].endswith(" handler")
        assert details["causes"] == [1]
        assert details["others"][0]["raised"] == "OSError: disk"
        vars(BaseException)["__suppress_context__"].__set__(caught.value, True)
        assert "causes" not in details_of(error_of_exception(caught.value))


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
def test_every_exception_that_can_be_reached_is_told_once(every: list[BaseException]) -> None:
    told = error_of_exception(every[0])
    details = details_of(told)
    text = told.message + canonical_json.encode_text(details)
    reached = printed(every[0])
    for n, error in enumerate(reversed(every)):
        assert text.count(f"<text {n}>") == (error in reached)
        noted = error in reached and hasattr(error, "__notes__")
        assert text.count(f"<note {n}>") == noted
    others = details.get("others", [])
    assert [other["n"] for other in others] == [*range(1, len(others) + 1)]
    frames = [len(one.get("traceback", [])) for one in (details, *others)]
    raised = [error for error in reached if error.__traceback__ is not None]
    assert sum(count > 0 for count in frames) == len(raised)
    links = [one.get(name, []) for one in (details, *others) for name in ("causes", "members")]
    numbers = {n for entries in links for n in entries if isinstance(n, int)}
    assert numbers - {0} == {*range(1, len(others) + 1)}
