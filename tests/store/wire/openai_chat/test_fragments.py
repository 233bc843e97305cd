"""Which call each fragment of a stream is of, where servers leave out what would tell it."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.cases import each_case
from tests.support.wire.streams import read_events, told

from tooltrail.wire import Response, read_stream, wire_format
from tooltrail.wire._chat.fragments import Calls

FINISH: dict[str, Any] = {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
ODD_NAME = "a name may be a piece of the one before it, or may begin another call"
REPEATED = "a name that is repeated may begin another call"
PIECES = "two pieces in one list may be of one call"
EITHER = "a piece of arguments may be of either of two calls"
UNNAMED = "a call has no name"


def entry(name: str | None = None, arguments: str | None = None, **members: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {**members, "function": {key: one for key, one in function.items() if one is not None}}


def chunk(*entries: dict[str, Any]) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"tool_calls": [*entries]}}]}


def finished(*chunks: dict[str, Any]) -> Response:
    return read_events("openai", *chunks, FINISH)


def runnable(response: Response) -> list[tuple[str, str | None, str]]:
    return [told(call) for call in response.calls if call.is_executable]


def test_two_calls_of_one_list_are_never_one() -> None:
    response = finished(chunk(entry("f", ""), entry("g", "{}")))
    assert list(map(told, response.calls)) == [("f", None, ""), ("g", None, "{}")]
    assert [call.flags for call in response.calls] == [("index_missing",)] * 2
    assert (response.unread, len(runnable(response))) == ((), 2)


def test_many_calls_of_one_list_take_time_by_their_number() -> None:
    # Where each call is compared with all before it this does not end before its time is over.
    entries = [entry("f", "{}") for _ in range(150_000)]
    calls = Calls()
    calls.take(entries)
    assert (len(calls.calls), list(calls.unread())) == (150_000, [])


def test_a_call_without_arguments_between_two_others_is_not_lost() -> None:
    three = [("f", '{"a":1}'), ("g", ""), ("h", "{}")]
    expected = [("f", None, '{"a":1}'), ("g", None, ""), ("h", None, "{}")]
    listed = finished(chunk(*(entry(*one) for one in three)))
    assert runnable(listed) == expected
    one_by_one = finished(*(chunk(entry(*one)) for one in three))
    assert runnable(one_by_one) == expected


def test_a_name_behind_a_call_without_arguments_begins_another() -> None:
    response = finished(
        chunk(entry("f", "{}")), chunk(entry("g", "")), chunk(entry(None, '{"a":1}'))
    )
    assert runnable(response) == [("f", None, "{}"), ("g", None, '{"a":1}')]


def test_two_calls_of_one_list_at_one_index_are_two() -> None:
    response = finished(chunk(entry("g", "", index=0), entry("f", "{}", index=0)))
    assert runnable(response) == [("g", None, ""), ("f", None, "{}")]


def test_two_calls_of_one_list_with_one_id_are_two() -> None:
    response = finished(chunk(entry("g", "", index=0, id="x"), entry("f", "{}", index=0, id="x")))
    assert runnable(response) == [("g", "x", ""), ("f", "x", "{}")]
    assert response.calls[1].flags == ("id_repeated",)


@pytest.mark.parametrize("twins", [{}, {"index": 0}])
def test_arguments_that_may_be_of_either_of_two_calls_let_none_run(twins: dict[str, Any]) -> None:
    response = finished(
        chunk(entry("f", "", **twins), entry("g", "", **twins)),
        chunk(entry(None, '{"a":1}', **twins)),
    )
    assert (response.unread, runnable(response)) == ((EITHER,), [])


def test_a_piece_beside_its_own_beginning_is_told() -> None:
    response = finished(chunk(entry("f", '{"a":', index=0, id="x"), entry(None, "1}", index=0)))
    assert list(map(told, response.calls)) == [("f", "x", '{"a":1}')]
    assert (response.unread, runnable(response)) == ((PIECES,), [])


@pytest.mark.parametrize("second", ["g", "weather"])
def test_a_second_name_at_the_only_index_without_ids_may_be_either(second: str) -> None:
    response = finished(chunk(entry("f", "", index=0)), chunk(entry(second, "{}", index=0)))
    assert (response.unread, runnable(response)) == ((ODD_NAME,), [])


def test_a_name_in_pieces_is_one_where_an_id_or_the_indexes_say_so() -> None:
    by_id = finished(
        chunk(entry("get_", "", index=0, id="x")), chunk(entry("weather", "{}", index=0))
    )
    assert runnable(by_id) == [("get_weather", "x", "{}")]
    by_index = finished(
        chunk(entry("get_", "", index=0)),
        chunk(entry("weather", "{}", index=0)),
        chunk(entry("now", "{}", index=1)),
    )
    assert runnable(by_index) == [("get_weather", None, "{}"), ("now", None, "{}")]


@pytest.mark.parametrize("place", [{}, {"index": 0}])
def test_a_name_in_pieces_that_all_have_one_id_is_one(place: dict[str, Any]) -> None:
    response = finished(
        chunk(entry("get_", id="a", **place)),
        chunk(entry("weather", "{", id="a", **place)),
        chunk(entry(None, "}", id="a", **place)),
    )
    assert (response.unread, runnable(response)) == ((), [("get_weather", "a", "{}")])


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (entry("f", "", id="x"), entry("g", "{}")),
        (entry("f", "", index=0), entry("g", "{}", index=0, id="x")),
    ],
)
def test_a_second_name_that_an_id_does_not_settle_lets_none_run(
    first: dict[str, Any], second: dict[str, Any]
) -> None:
    response = finished(chunk(first), chunk(second))
    assert (response.unread, runnable(response)) == ((ODD_NAME,), [])


def test_an_id_that_repeats_at_a_whole_call_is_of_another() -> None:
    one = {"index": 0, "id": "REDACTED"}
    response = finished(chunk(entry("f", '{"a":1}', **one)), chunk(entry("g", "{}", **one)))
    assert runnable(response) == [("f", "REDACTED", '{"a":1}'), ("g", "REDACTED", "{}")]
    assert response.calls[1].flags == ("id_repeated",)


@pytest.mark.parametrize("index", [{}, {"index": 0}])
@pytest.mark.parametrize("pieces", [("", "{}"), ("{}", "")])
def test_a_name_that_repeats_without_ids_may_be_another_call(
    index: dict[str, Any], pieces: tuple[str, str]
) -> None:
    response = finished(*(chunk(entry("f", piece, **index)) for piece in pieces))
    assert (response.unread, runnable(response)) == ((REPEATED,), [])


def test_a_name_in_every_fragment_is_one_where_there_is_an_id() -> None:
    pieces = ("", '{"a":', "1}", "")
    response = finished(*(chunk(entry("f", piece, index=0, id="x")) for piece in pieces))
    assert runnable(response) == [("f", "x", '{"a":1}')]


def test_a_name_amid_the_arguments_of_another_call_lets_none_run() -> None:
    response = finished(chunk(entry("f", '{"a":')), chunk(entry("g", "{}")))
    assert response.unread == ("a name stands amid the arguments of a call",)
    assert runnable(response) == []


def test_a_call_that_is_never_named_lets_none_run() -> None:
    response = finished(chunk(entry("f", "")), chunk(entry(None, "{}", id="x")))
    assert (response.unread, runnable(response)) == ((UNNAMED,), [])


def test_an_id_that_is_no_text_is_told_and_kept() -> None:
    response = finished(chunk(entry("f", "{}", index=0, id=5)))
    assert (response.unread, runnable(response)) == (("a call is not valid",), [])


@pytest.mark.parametrize(("zero", "one"), [("0", "1"), (0.0, 1.0), ("0", 1)])
def test_an_index_that_is_spelled_otherwise_is_that_index(zero: Any, one: Any) -> None:
    response = finished(
        chunk(entry("rm", "", index=zero, id="a")),
        chunk(entry("ls", "", index=one, id="b")),
        chunk(entry(None, '{"x":1}', index=zero)),
    )
    assert runnable(response) == [("rm", "a", '{"x":1}'), ("ls", "b", "")]
    assert [call.flags for call in response.calls] == [(), ()]


@each_case("index", ["a", "", "-1", "9" * 5000, 0.5, True, [0], {"a": 0}])
def test_an_index_that_is_no_number_is_told(index: Any) -> None:
    response = finished(
        chunk(entry("f", "", index=0, id="a")),
        chunk(entry("g", "", index=1, id="b")),
        chunk(entry(None, "{}", index=index)),
    )
    assert response.unread == ("a call is not valid",)
    assert (len(response.calls), runnable(response)) == (2, [])


@each_case(
    ("middle", "unread"),
    [
        ({"function": "/tmp"}, "a call is not valid"),
        ({"function": ["/tmp"]}, "a call is not valid"),
        ({"custom": "/tmp"}, "a call is not valid"),
        ({"arguments": "/tmp"}, "a call is not valid"),
        ({"function": {"input": "/tmp"}}, "a call is not valid"),
        ({"function": {"name": 5}}, "a call is not valid"),
    ],
)
def test_a_piece_that_is_not_as_it_is_to_be_lets_no_call_run(
    middle: dict[str, Any], unread: str
) -> None:
    response = finished(
        chunk(entry("rm", '{"path":"/home/me', index=0, id="a")),
        chunk({"index": 0, **middle}),
        chunk(entry(None, '"}', index=0)),
    )
    assert (response.unread, runnable(response)) == ((unread,), [])


def test_a_piece_of_a_function_and_of_a_custom_tool_lets_no_call_run() -> None:
    both: dict[str, Any] = entry("f", "{}", index=0, custom={"name": "g", "input": "x"})
    response = finished(chunk(both))
    assert response.unread == ("a call is not valid",)
    assert runnable(response) == []


@pytest.mark.parametrize("nothing", [None, "", {}])
def test_a_member_with_nothing_in_it_is_no_piece(nothing: Any) -> None:
    response = finished(
        chunk(entry("f", "{", index=0, id="a", custom=nothing)),
        chunk({"index": 0, "function": nothing, "arguments": nothing}),
        chunk(entry(None, "}", index=0)),
    )
    assert (response.unread, runnable(response)) == ((), [("f", "a", "{}")])


@pytest.mark.parametrize("is_custom", [False, True])
def test_names_of_custom_calls_begin_them_too(is_custom: bool) -> None:
    one = {"custom": {"name": "sql", "input": "SELECT 1"}}
    other: dict[str, Any] = {"custom": {"name": "grep", "input": ""}}
    first = one if is_custom else entry("f", "{}")
    response = finished(chunk(first), chunk(other), chunk(entry("g", "{}")))
    assert [call.tool_name for call in response.calls] == ["sql" if is_custom else "f", "grep", "g"]
    assert response.unread == ()


Spelling = tuple[str, str]
calls = st.lists(
    st.tuples(
        st.sampled_from(["f", "g", "get_", "weather"]),
        st.sampled_from(["", "{}", '{"a":1}', '{"a":{"b":[]}}']),
    ),
    min_size=1,
    max_size=4,
)


@st.composite
def streams(draw: st.DrawFn, asked: Sequence[Spelling]) -> list[dict[str, Any]]:
    """The calls as some server might send them: with or without places and ids, whole or cut."""
    indexes = draw(st.sampled_from(["own", "same", "none"]))
    ids = draw(st.sampled_from(["own", "same", "none", "first"]))
    names, arguments_before = {name for name, _ in asked}, [one for _, one in asked[:-1]]
    if ids == "same" and (len(names) < len(asked) or not all(arguments_before)):
        # One id in every fragment is that of one call, whose name repeats or is in pieces.
        ids = "own"
    repeats_name, is_listed = draw(st.booleans()), draw(st.booleans())
    chunks: list[list[dict[str, Any]]] = []
    for number, (name, arguments) in enumerate(asked):
        cut = draw(st.integers(0, len(arguments)))
        pieces = [arguments[:cut], arguments[cut:]] if 0 < cut < len(arguments) else [arguments]
        if draw(st.booleans()):
            pieces.insert(0, "")
        fragments: list[dict[str, Any]] = []
        for place, piece in enumerate(pieces):
            one = entry(name if place == 0 or repeats_name else None, piece)
            if indexes != "none":
                one["index"] = number if indexes == "own" else 0
            if ids != "none" and (place == 0 or ids != "first"):
                one["id"] = "x" if ids == "same" else f"call_{number}"
            fragments.append(one)
        chunks.extend([one] for one in fragments)
    if is_listed and all(len(pieces) == 1 for pieces in chunks) and len(chunks) == len(asked):
        chunks = [[one for pieces in chunks for one in pieces]]
    return [chunk(*pieces) for pieces in chunks]


@given(data=st.data(), asked=calls)
def test_nothing_runs_that_was_not_asked_for_and_nothing_is_lost(
    data: st.DataObject, asked: list[Spelling]
) -> None:
    events = [*data.draw(streams(asked)), FINISH]
    response = read_stream(wire_format("openai"), events)
    ran = [(call.tool_name, call.arguments_raw) for call in response.calls if call.is_executable]
    assert ran in ([], asked)
    # Nothing runs where something is in doubt or broken, and that is told.
    assert ran or response.unread or any(call.parse_error for call in response.calls)


@given(data=st.data(), asked=calls)
def test_what_is_spelled_as_the_format_says_runs(
    data: st.DataObject, asked: list[Spelling]
) -> None:
    cut = data.draw(st.lists(st.integers(0, 5), min_size=len(asked), max_size=len(asked)))
    events = [
        chunk(entry(*piece, index=number, **({"id": f"c{number}"} if piece[0] else {})))
        for number, ((name, arguments), at) in enumerate(zip(asked, cut, strict=True))
        for piece in ((name, ""), (None, arguments[:at]), (None, arguments[at:]))
    ]
    response = finished(*events)
    assert response.unread == ()
    assert [(one[0], one[2]) for one in runnable(response)] == asked
