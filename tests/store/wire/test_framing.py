"""Bytes of a connection become JSON objects, wherever the chunks begin and end."""

import json
import random
from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.cases import each_case
from tests.support.conversations import json_objects
from tests.support.wire.recorded import exchanges

from tooltrail.wire import JsonObject
from tooltrail.wire.framing import EventFraming, LineEnds

BOM = b"\xef\xbb\xbf"


def framed(chunks: Iterable[bytes]) -> tuple[list[JsonObject], bool, list[str]]:
    framing = EventFraming()
    events = [event for chunk in chunks for event in framing.feed(chunk)]
    events.extend(framing.finish())
    return events, framing.is_done, framing.unread


def cut(data: bytes, places: Iterable[int]) -> list[bytes]:
    edges = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[begin:end] for begin, end in pairwise(edges)]


@pytest.mark.parametrize("line_end", [b"\n", b"\r", b"\r\n"])
@given(st.lists(json_objects, max_size=4), st.lists(st.integers(0, 10**6), max_size=8))
def test_server_sent_events_are_their_data_with_every_end_of_line(
    line_end: bytes, events: list[JsonObject], places: list[int]
) -> None:
    lines: list[bytes] = []
    for event in events:
        lines += [b"event: x", b"data: " + json.dumps(event).encode(), b""]
    data = line_end.join([*lines, b"data: [DONE]", b"", b""])
    assert framed(cut(data, places)) == (events, True, [])
    assert framed([data[n : n + 1] for n in range(len(data))]) == (events, True, [])


@given(st.lists(json_objects, min_size=1, max_size=4), st.lists(st.integers(0, 10**6), max_size=8))
def test_lines_of_json_are_an_object_each(events: list[JsonObject], places: list[int]) -> None:
    data = b"\n".join(json.dumps(event, ensure_ascii=False).encode() for event in events)
    assert framed(cut(data, places)) == (events, False, [])


@given(json_objects, st.lists(st.integers(0, 10**6), max_size=8))
def test_a_document_of_many_lines_is_one_object(event: JsonObject, places: list[int]) -> None:
    data = json.dumps({"a": event}, indent=1).encode()
    assert framed(cut(data, places)) == ([{"a": event}], False, [])


@given(
    st.lists(
        st.sampled_from(
            [
                BOM, b"\xef", b"\xbb", b" ", b"\n", b"\r", b"\r\n", b"data:", b"data: ", b"{}",
                b'{"a":', b"1}", b"[", b"]", b",", b": ping", b"event: x", b"[DONE]", b"x", b"\xff",
            ]
        ),
        max_size=14,
    )
)  # fmt: skip
def test_chunks_make_no_difference_even_to_nonsense(pieces: list[bytes]) -> None:
    data = b"".join(pieces)
    whole = framed([data])
    assert framed(pieces) == whole
    assert framed([data[n : n + 1] for n in range(len(data))]) == whole


UNDERSTOOD: list[tuple[bytes, list[JsonObject]]] = [
    (b"", []),
    (b" \n\n", []),
    (b"data:{}\n\n", [{}]),
    (b"data: {}\n\n", [{}]),
    (b'data: {"a":\ndata: 1}\n\n', [{"a": 1}]),
    (b": ping\n\ndata: {}\nid: 7\nretry: 5\n\n: ping\n\n", [{}]),
    (b"event: end\n\ndata: {}\n\n", [{}]),
    (b"data:\n\ndata: {}\n\n", [{}]),
    (BOM + b"data: {}\n\n", [{}]),
    (BOM + b"{}", [{}]),
    (b"\n\n{}", [{}]),
    (b'[{"a":1},{"b":2}]', [{"a": 1}, {"b": 2}]),
    (b'{"a":1}\n\n{"b":2}\n', [{"a": 1}, {"b": 2}]),
    (b'data: {"a":1}', [{"a": 1}]),
    (b'data: [{"a":1}]\n\n', [{"a": 1}]),
    ('data: {"a":"\u2028 \u00e9"}\n\n'.encode(), [{"a": "\u2028 \u00e9"}]),
]


@each_case(("data", "events"), UNDERSTOOD)
def test_what_connections_send_is_understood(data: bytes, events: list[JsonObject]) -> None:
    assert framed([data]) == (events, False, [])


NOT_UNDERSTOOD: list[tuple[bytes, list[JsonObject], list[str]]] = [
    (b'data: {"a":\n\ndata: {}\n\n', [{}], ["event 1 is not JSON"]),
    (b"data: 7\n\ndata: {}\n\n", [{}], ["event 1 is not a JSON object"]),
    (b'data: [{},"x",{"a":1}]\n\n', [{}, {"a": 1}], ["event 1 is not a JSON object"]),
    (b'{"a":1}\n{"b":\n{"c":3}\n', [{"a": 1}, {"c": 3}], ["event 2 is not JSON"]),
    (b'{"a":', [], ["event 1 is not JSON"]),
    (b"data: \xff\n\n", [], ["event 1 is not JSON"]),
    (b"data: " + b"[" * 100_000 + b"\n\n", [], ["event 1 is not JSON: nested too deep"]),
    (b"<html>\n<p>Bad gateway</p>\n", [], ["a line is neither JSON nor a field of an event"]),
]


@each_case(("data", "events", "unread"), NOT_UNDERSTOOD)
def test_what_is_no_object_is_told_and_the_rest_is_read(
    data: bytes, events: list[JsonObject], unread: list[str]
) -> None:
    found, is_done, told = framed([data])
    assert (found, is_done) == (events, False)
    assert len(told) == len(unread)
    assert all(one.startswith(begin) for one, begin in zip(told, unread, strict=True))


@each_case(
    ("first", "second", "is_bare"),
    [
        (b'data: {"a":1}', b'data: {"a":2}', True),
        (b'data: {"a":1}', b"event: x", True),
        (b"event: x", b'data: {"a":1}', True),
        (b'{"a":1}', b'{"a":2}', True),
        (b'data: {"a":1}\n', b'data: {"a":2}', False),
        (b'data: {"a":1}\r', b'data: {"a":2}', False),
        (b'data: {"a":1}', b'\ndata: {"a":2}', False),
        (b'data: {"a":"the ', b'data: 1"}', False),
        (b'data: {"a":{}', b'data: 1"}', False),
        (b'event: x\ndata: {"a":"the ', b'data: 1"}', False),
        (b'event: x\rdata: {"a":"the ', b'data: 1"}', False),
        (b"event: x", b"event: y", False),
        (BOM + b'data: {"a":1}', b'data: {"a":2}', True),
        (BOM + b"event: x", b'data: {"a":1}', True),
        (b'[{"a":1},', b'{"a":2}]', False),
        (b": ping", b"data: {}", False),
        (b"", b"data: {}", False),
    ],
)
def test_lines_without_their_ends_are_known_if_that_is_certain(
    first: bytes, second: bytes, is_bare: bool
) -> None:
    ends = LineEnds()
    assert ends.add_to(first) == first
    assert (ends.add_to(second) != second) is is_bare


@each_case(
    "lines",
    [
        [b'data: {"a":1}', b"", b'data: {"a":2}', b""],
        [b'data: {"a":1}', b'data: {"a":2}'],
        [BOM + b'data: {"a":1}', b'data: {"a":2}'],
        [b"event: x", b'data: {"a":1}', b"", b"event: x", b'data: {"a":2}', b"", b"data: [DONE]"],
        [b"event: x", b'data: {"a":1}', b"event: x", b"id: 7", b'data: {"a":2}'],
        [b'{"a":1}', b'{"a":2}'],
    ],
)
def test_added_line_ends_make_lines_a_stream_again(lines: list[bytes]) -> None:
    ends, again, framing = LineEnds(), LineEnds(), EventFraming()
    complete = [ends.add_to(line) for line in lines]
    assert [again.add_to(chunk) for chunk in complete] == complete
    found = [*framing.feed(b"".join(complete)), *framing.finish()]
    assert (found, framing.unread) == ([{"a": 1}, {"a": 2}], [])


def test_a_line_of_megabytes_is_not_copied_with_every_chunk() -> None:
    # 4 MB in pieces of 16 bytes: copying what came before would move half a terabyte.
    data = b'data: {"a":"' + b"x" * 4_000_000 + b'"}\n\n'
    events, _, unread = framed(data[begin : begin + 16] for begin in range(0, len(data), 16))
    assert events == [{"a": "x" * 4_000_000}]
    assert unread == []


def is_damaged(line: bytes) -> bool:
    """Whether a line of events has data that is neither JSON nor the end."""
    data = line.removeprefix(b"data:").strip()
    if data == line.strip() or data == b"[DONE]":
        return False
    try:
        json.loads(data)
    except ValueError:
        return True
    return False


RECORDED = [one for one in exchanges() if one.response and one.wire_format is not None]


@pytest.mark.skipif(not RECORDED, reason="the recorded traffic is not here")
def test_every_recorded_answer_is_framed_wherever_it_is_cut() -> None:
    chance = random.Random(7)
    for exchange in RECORDED:
        places = [chance.randrange(len(exchange.response) + 1) for _ in range(30)]
        events, is_done, unread = framed(cut(exchange.response, places))
        assert (events, is_done, unread) == framed([exchange.response])
        # A whole answer may be an array of objects.
        (whole,) = exchange.events() if len(exchange.events()) == 1 else (None,)
        assert events == (whole if isinstance(whole, list) else exchange.events())
        # One recording has two lines that are damaged.
        assert len(unread) == sum(map(is_damaged, exchange.response.split(b"\n")))
    assert len(RECORDED) > 100


@each_case("newline", ["\n", "\r\n", "\r"])
@each_case("size", [1, 2, 3, 7, 1000])
def test_comments_keep_a_connection_alive_whatever_is_sent_over_it(newline: str, size: int) -> None:
    lines = [": ka", ": ka", '{"n":1}', ": ka", '{"n":2}', ":"]
    events = [": ka", "", 'data: {"n":1}', "", ": ka", 'data: {"n":2}', ": ka", "", ": ka"]
    for told in (lines, events):
        body = (newline.join(told) + newline).encode()
        framing = EventFraming()
        chunks = [body[at : at + size] for at in range(0, len(body), size)]
        found = [event for chunk in chunks for event in framing.feed(chunk)]
        assert [*found, *framing.finish()] == [{"n": 1}, {"n": 2}]
        assert framing.unread == []
