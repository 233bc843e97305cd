"""Seed 4's table for several calls at once: as they are sent with their results, and as they come.

Every cell is exact JSON, by the types of the official client.
"""

import json
import re
from typing import Any

import pytest
from pydantic import TypeAdapter
from tests.support.agents.spelled_answers import Call, Turn, spell_whole
from tests.support.cases import each_case
from tests.support.wire.fake_provider import request_problems
from tests.support.wire.spelled_requests import ASKED, spell_request

from tooltrail.records import CallBlock, Conversation, Message, ResultBlock, TextBlock, ToolCall
from tooltrail.wire import DEFAULT_EXPORT_POLICY, ExportPolicy, wire_format

PARIS, OSLO = {"city": "Paris"}, {"city": "Oslo"}
FORMATS = ("openai", "openai-responses", "anthropic", "ollama", "gemini")


def spelled(name: str, one: str | None, other: str | None) -> dict[str, Any]:
    """The request of two calls with these ids, and of their results."""
    results = [(one, "18 C", False), (other, "5 C", False)]
    return spell_request(name, [(one, PARIS), (other, OSLO)], results)


def batch(one: str | None, other: str | None) -> Conversation:
    """Two calls in one message, and their results in the other order."""
    calls = [
        ToolCall(tool_name="get_weather", arguments_raw=raw, call_id=call_id, position=position)
        for position, (call_id, raw) in enumerate(
            ((one, '{"city":"Paris"}'), (other, '{"city":"Oslo"}'))
        )
    ]
    results = [
        ResultBlock(
            call_id=call_id, tool_name="get_weather", status="ok", content=(TextBlock(text=text),)
        )
        for call_id, text in ((one, "18 C"), (other, "5 C"))
    ]
    if one is not None:
        results.reverse()
    return Conversation.of(
        [
            Message.of("user", "weather?"),
            Message(role="assistant", blocks=tuple(CallBlock(call=call) for call in calls)),
            Message(role="tool", blocks=tuple(results)),
        ]
    )


@each_case("name", FORMATS)
def test_several_results_of_one_batch(name: str) -> None:
    known, expected = wire_format(name), spelled(name, "call_a", "call_b")
    export = known.write_history(batch("call_a", "call_b"), DEFAULT_EXPORT_POLICY)
    assert export.request == expected
    assert [change.kind for change in export.report] == ["order_changed"]
    assert request_problems(name, expected) == []
    _, asked, answered = known.read_history(expected).messages
    assert [(call.call_id, call.arguments) for call in asked.calls] == [
        ("call_a", PARIS),
        ("call_b", OSLO),
    ]
    assert [(one.call_id, one.content) for one in answered.results] == [
        ("call_a", (TextBlock(text="18 C"),)),
        ("call_b", (TextBlock(text="5 C"),)),
    ]


def batch_beside_text(one: str | None, other: str | None) -> Conversation:
    """The batch, with a text in front of its calls, and an answer in the end."""
    question, asked, answered = batch(one, other).messages
    blocks = (TextBlock(text="Let me look."), *asked.blocks)
    asked = asked.model_copy(update={"blocks": blocks})
    return Conversation.of([question, asked, answered, Message.of("assistant", "18 and 5.")])


def test_what_is_said_beside_calls_stays_in_their_message() -> None:
    known = wire_format("openai")
    export = known.write_history(batch_beside_text("call_a", "call_b"), DEFAULT_EXPORT_POLICY)
    question, asked, *answered = spelled("openai", "call_a", "call_b")["messages"]
    assert export.request == {
        "messages": [
            question,
            {**asked, "content": "Let me look."},
            *answered,
            {"role": "assistant", "content": "18 and 5."},
        ]
    }


def test_a_batch_as_text_is_two_messages_of_content_alone() -> None:
    known = wire_format("openai")
    export = known.write_history(batch_beside_text("call_a", None), DEFAULT_EXPORT_POLICY)
    calls = (
        '<tool_call id="call_a" name="get_weather">\n{"city":"Paris"}\n</tool_call>\n\n'
        '<tool_call name="get_weather">\n{"city":"Oslo"}\n</tool_call>'
    )
    results = (
        '<tool_result id="call_a" name="get_weather" status="ok">\n18 C\n</tool_result>\n\n'
        '<tool_result name="get_weather" status="ok">\n5 C\n</tool_result>'
    )
    assert export.request == {
        "messages": [
            ASKED,
            {"role": "assistant", "content": f"Let me look.\n{calls}"},
            {"role": "user", "content": results},
            {"role": "assistant", "content": "18 and 5."},
        ]
    }
    assert request_problems("openai", export.request) == []


@pytest.mark.parametrize("name", ["openai", "openai-responses", "anthropic"])
def test_ids_that_are_missing_are_made_where_the_format_needs_them(name: str) -> None:
    known = wire_format(name)
    export = known.write_history(batch(None, None), ExportPolicy(ids="synthesise"))
    asked = known.read_history(export.request).messages[1]
    one, other = [call.call_id or "" for call in asked.calls]
    assert one != other
    assert re.fullmatch("call_[0-9a-f]{24}", one)
    assert re.fullmatch("call_[0-9a-f]{24}", other)
    assert export.request == spelled(name, one, other)
    assert request_problems(name, export.request) == []
    assert [(change.kind, change.where) for change in export.report] == [
        ("id_synthesised", "messages[1].calls[0]"),
        ("id_synthesised", "messages[1].calls[1]"),
    ]
    # The next export of the same record has the same ones.
    again = known.write_history(batch(None, None), ExportPolicy(ids="synthesise"))
    assert again.request == export.request


@pytest.mark.parametrize("name", ["ollama", "gemini"])
@pytest.mark.parametrize("policy", [DEFAULT_EXPORT_POLICY, ExportPolicy(ids="synthesise")])
def test_no_ids_are_made_where_the_format_can_do_without(name: str, policy: ExportPolicy) -> None:
    known, expected = wire_format(name), spelled(name, None, None)
    export = known.write_history(batch(None, None), policy)
    assert export.request == expected
    assert export.report.changes == ()
    assert request_problems(name, expected) == []
    _, asked, answered = known.read_history(expected).messages
    assert [(call.call_id, call.arguments) for call in asked.calls] == [(None, PARIS), (None, OSLO)]
    assert [one.content for one in answered.results] == [
        (TextBlock(text="18 C"),),
        (TextBlock(text="5 C"),),
    ]


CALLS = tuple(
    Call("get_weather", given, f"call_{n}") for n, given in zip("ab", (PARIS, OSLO), strict=True)
)
# The client of OpenAI wants the kinds of tokens with the tokens, that of Anthropic wants tokens.
ANSWERS = {
    name: json.loads(
        spell_whole(
            name, Turn("Let me look.", CALLS, usage=(1, 1) if name == "anthropic" else None)
        )
    )
    for name in FORMATS
}
TYPES: dict[str, tuple[str, str]] = {
    "openai": ("openai.types.chat", "ChatCompletion"),
    "openai-responses": ("openai.types.responses", "Response"),
    "anthropic": ("anthropic.types", "Message"),
    "ollama": ("ollama", "ChatResponse"),
    "gemini": ("google.genai.types", "GenerateContentResponse"),
}


@each_case("name", FORMATS)
def test_an_answer_with_several_calls(name: str) -> None:
    response = wire_format(name).read_response(ANSWERS[name])
    assert (response.failure, response.unread) == (None, ())
    message, ids = response.message, (None, None) if name == "ollama" else ("call_a", "call_b")
    assert message.is_complete
    assert [(call.call_id, call.tool_name, call.arguments) for call in message.calls] == [
        (ids[0], "get_weather", PARIS),
        (ids[1], "get_weather", OSLO),
    ]
    # A text stays as it came; a value is compact.
    separators = None if name.startswith("openai") else (",", ":")
    assert [call.arguments_raw for call in message.calls] == [
        json.dumps(given, separators=separators) for given in (PARIS, OSLO)
    ]
    assert [call.position for call in message.calls] == [0, 1]
    assert all(call.is_executable and not call.flags for call in message.calls)
    assert message.text == "Let me look."
    assert message.origin is not None
    assert (message.origin.wire_format, message.origin.model) == (name, "m")
    assert message.origin.response_id == ANSWERS[name].get("id")


@each_case("name", FORMATS)
def test_the_answers_here_are_such_as_the_clients_take(name: str) -> None:
    module, model = TYPES[name]
    adapter: TypeAdapter[Any] = TypeAdapter(getattr(pytest.importorskip(module), model))
    adapter.validate_python(ANSWERS[name], strict=False)
