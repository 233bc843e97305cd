"""Values that no record can hold, and events that are damaged: no call of theirs may run.

What is nested too deep, an integer that is longer than Python prints, half a character, and a piece
of a stream that came broken; in every format, as text and as values.
"""

# JSON of others, looked at as it is.
# pyright: reportUnknownVariableType=false

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from tests.store.wire.test_odd_payloads import ANSWERS, runnable
from tests.support.agents.scripted_provider import FORMATS
from tests.support.agents.spelled_answers import (
    Call,
    Turn,
    spell_stream,
    spell_whole,
    stream_events,
)
from tests.support.cases import each_case
from tests.support.wire.changed_parts import each_changed

from tooltrail.records import Conversation, InvalidRecordError, Message
from tooltrail.wire import ExportPolicy, Response, read_stream, wire_format


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def answered(name: str, arguments: str) -> bytes:
    """A whole answer of one call with these arguments, or of a result with them, as JSON."""
    text = json.dumps(arguments, ensure_ascii=False).encode("utf-8", "surrogatepass")
    function = b'{"name":"f","arguments":%s}'
    value = arguments.encode("utf-8", "surrogatepass")
    told = json.dumps(f'<tool_call name="f">{arguments}</tool_call>').encode()
    answers: dict[str, bytes] = {
        "openai": b'{"choices":[{"index":0,"finish_reason":"tool_calls","message":{"tool_calls":'
        b'[{"id":"a","type":"function","function":%s}]}}]}' % (function % text),
        "openai-responses": b'{"id":"r","status":"completed","output":[{"type":"function_call",'
        b'"call_id":"a","name":"f","arguments":%s}]}' % text,
        "anthropic": b'{"type":"message","role":"assistant","stop_reason":"tool_use","content":'
        b'[{"type":"tool_use","id":"a","name":"f","input":%s}]}' % value,
        "bedrock": b'{"stopReason":"tool_use","output":{"message":{"role":"assistant","content":'
        b'[{"toolUse":{"toolUseId":"a","name":"f","input":%s}}]}}}' % value,
        "gemini": b'{"candidates":[{"finishReason":"STOP","content":{"role":"model","parts":'
        b'[{"functionCall":{"name":"f","args":%s}}]}}]}' % value,
        "ollama": b'{"done":true,"done_reason":"stop","message":{"role":"assistant","tool_calls":'
        b'[{"function":%s}]}}' % (function % value),
        "cohere": b'{"id":"c","finish_reason":"TOOL_CALL","message":{"tool_calls":'
        b'[{"id":"a","type":"function","function":%s}]}}' % (function % text),
        "mcp": b'{"jsonrpc":"2.0","id":1,"result":{"content":[],"structuredContent":%s}}' % value,
        "text-fallback": b'{"content":%s}' % told,
    }
    return answers[name]


NAMES = [name for name, _ in ANSWERS]
HUGE = "9" * 5_000
TOO_MUCH = {
    "260 levels": f'{{"a":{"[" * 260}{"]" * 260}}}',
    "3,000 levels": f'{{"a":{"[" * 3_000}{"]" * 3_000}}}',
    "5,000 digits": f'{{"a":{HUGE}}}',
    "5,000 digits of several": f'{{"a":[1,{{"b":-{HUGE}}}]}}',
}


@each_case("name", NAMES)
@each_case("arguments", TOO_MUCH.values(), ids=TOO_MUCH)
def test_what_is_too_deep_or_too_long_makes_no_call_that_may_run(name: str, arguments: str) -> None:
    response = read_stream(wire_format(name), [answered(name, arguments)])
    assert runnable(response) == []
    calls = [call for message in response.messages for call in message.calls]
    # Either the answer says it, or the call whose arguments are text does.
    assert response.unread or [call.parse_error is None for call in calls] == [False]


VALUES: dict[str, Any] = {
    "260 levels": nested(260),
    "3,000 levels": nested(3_000),
    "5,000 digits": 10**5_000,
}


@each_case("name", NAMES)
@each_case("value", VALUES.values(), ids=VALUES)
def test_the_same_as_values_makes_none_either(name: str, value: Any) -> None:
    known = wire_format(name)
    payload = json.loads(answered(name, '{"a":"here"}'))
    wheres = {"arguments", "input", "args", "structuredContent"}
    for where in wheres if name != "text-fallback" else {"content"}:
        for odd in each_changed(payload, put(where, {"a": value})):
            for response in (known.read_response(odd), read_stream(known, [odd])):
                assert runnable(response) == []
                assert response.unread or [call.parse_error is None for call in response.calls] == [
                    False
                ]
            with suppress(InvalidRecordError):
                known.read_history({"messages": [odd]})


def put(where: str, new: Any) -> Callable[[Any], list[Any]]:
    """A change of an object with a member of this name, which gets another value."""
    return lambda part: [{**part, where: new}] if isinstance(part, dict) and where in part else []


@each_case("name", [name for name in NAMES if name != "mcp"])
def test_half_a_character_is_kept_as_it_came(name: str) -> None:
    response = read_stream(wire_format(name), [answered(name, '{"a":"\\ud800"}')])
    (call,) = response.calls
    assert call.arguments == {"a": "\ud800"}
    export = wire_format(name).write_history(
        Conversation.of([Message.of("user", "a"), response.message]), ExportPolicy()
    )
    assert "\\ud8" not in json.dumps(export.request)


PIECES: dict[str, Sequence[dict[str, Any]]] = {
    **{name: stream_events(name, Turn("a", (Call("f", {}),), usage=None)) for name in FORMATS},
    "bedrock": (
        {"messageStart": {"role": "assistant"}},
        {
            "contentBlockStart": {
                "contentBlockIndex": 0,
                "start": {"toolUse": {"toolUseId": "a", "name": "f"}},
            }
        },
        {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"toolUse": {"input": "{}"}}}},
        {"contentBlockStop": {"contentBlockIndex": 0}},
        {"messageStop": {"stopReason": "tool_use"}},
    ),
    "cohere": (
        {"type": "message-start", "id": "c", "delta": {"message": {"role": "assistant"}}},
        {
            "type": "tool-call-start",
            "index": 0,
            "delta": {"message": {"tool_calls": {"id": "a", "function": {"name": "f"}}}},
        },
        {
            "type": "tool-call-delta",
            "index": 0,
            "delta": {"message": {"tool_calls": {"function": {"arguments": "{}"}}}},
        },
        {"type": "message-end", "delta": {"finish_reason": "TOOL_CALL"}},
    ),
    "text-fallback": (
        {"choices": [{"delta": {"content": '<tool_call name="f">'}}]},
        {"choices": [{"delta": {"content": "{}</tool_call>"}}]},
        {"choices": [{"delta": {}, "finish_reason": "stop"}]},
    ),
}
"""A stream with one call in each format."""

WHOLE = {name: json.loads(spell_whole(name, Turn("a", (Call("f", {}),)))) for name in FORMATS}
"""The answer in one piece."""


@each_case("name", PIECES)
@each_case(
    "damaged",
    [b'data: {"choices": [{"ind', b"data: \xff\xfe", b"data: 7", b'data: "{}"', b"data: [1]"],
)
def test_no_call_of_a_stream_with_a_damaged_event_may_run(name: str, damaged: bytes) -> None:
    known = wire_format(name)
    events = [b"data: " + json.dumps(piece).encode() for piece in PIECES[name]]
    whole = read_stream(known, [b"\n\n".join(events) + b"\n\n"])
    assert runnable(whole) == [("f", "{}")]
    assert whole.unread == ()
    for place in range(1, len(events)):
        for stream in (
            [*events[:place], damaged, *events[place:]],
            [*events[:place], damaged, *events[place + 1 :]],
        ):
            response = read_stream(known, [b"\n\n".join(stream) + b"\n\n"])
            assert runnable(response) == [], (place, stream)
            assert response.unread
            assert all("incomplete" in call.flags for call in response.calls)


@each_case("name", PIECES)
def test_no_call_of_a_stream_that_is_cut_off_may_run(name: str) -> None:
    known, events = wire_format(name), PIECES[name]
    # The end of a turn of Anthropic is followed by that of its message.
    last = len(events) - (2 if name == "anthropic" else 1)
    for end in range(last + 1):
        response = read_stream(known, events[:end])
        assert runnable(response) == []
        assert all("incomplete" in call.flags for call in response.calls)
        assert not any(message.is_complete for message in response.messages)


@each_case("name", PIECES)
@each_case("error", [{"message": "boom"}, "boom"])
def test_no_call_beside_an_error_may_run(name: str, error: Any) -> None:
    known, events, failed = wire_format(name), [*PIECES[name]], {"error": error}
    streams = [[*events[:place], failed, *events[place:]] for place in range(len(events) + 1)]
    if name in FORMATS:
        streams += [[WHOLE[name], failed], [failed, WHOLE[name]]]
    for stream in streams:
        response = read_stream(known, stream)
        assert response.failure is not None
        assert response.failure.message == "boom"
        assert runnable(response) == [], stream
        assert not any(message.is_complete for message in response.messages)


@each_case("name", FORMATS)
def test_a_whole_answer_in_place_of_a_stream_is_that_answer(name: str) -> None:
    known, laid_out = wire_format(name), json.dumps(WHOLE[name], indent=2).encode()
    answer = known.read_response(WHOLE[name])
    assert runnable(answer) == [("f", "{}")]
    for stream in ([WHOLE[name]], [laid_out[:50], laid_out[50:]]):
        assert read_stream(known, stream) == answer


@each_case("name", PIECES)
@each_case("nothing", [[], [b""], [b"\n\n"]])
def test_a_stream_of_nothing_is_told(name: str, nothing: list[bytes]) -> None:
    told = "there is neither a message nor an error"
    if name == "openai-responses":
        told = "the stream has no answer"
    assert read_stream(wire_format(name), nothing) == Response(unread=(told,))


@each_case("name", FORMATS)
def test_no_call_that_a_limit_may_have_cut_off_may_run(name: str) -> None:
    calls = (Call("f", {"a": 1}, "x"), Call("g", '{"b": "not to be cut', "y"))
    known, turn = wire_format(name), Turn(calls=calls, is_cut=True)
    answer = known.read_response(json.loads(spell_whole(name, turn)))
    for response in (answer, read_stream(known, [spell_stream(name, turn)])):
        flags = [call.flags for call in response.calls]
        assert flags == [("incomplete",) if name == "gemini" else (), ("incomplete",)]
        assert [call.is_executable for call in response.calls] == [name != "gemini", False]
        assert response.calls[0].arguments == {"a": 1}
        assert (response.unread, response.message.is_complete) == ((), False)
