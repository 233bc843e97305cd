"""What providers send with any one value in it replaced: what is read of it is what is there.

A call that may run is asked for somewhere in the payload, by this name and with these arguments; an
answer with an error, or with a piece that cannot be read, has none.
"""

# JSON of others, looked at as it is.
# pyright: reportUnknownVariableType=false

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, cast

from tests.support.cases import each_case
from tests.support.wire.changed_parts import each_changed
from tests.support.wire.fake_provider import request_problems

from tooltrail.records import Conversation, InvalidRecordError, Message
from tooltrail.wire import ExportPolicy, Response, read_stream, wire_format

ODD: tuple[Any, ...] = (None, True, 1, 1.5, "", "x", [], [[]], [None], {}, {"type": []})

CALL: dict[str, Any] = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
CHAT: dict[str, Any] = {
    "id": "c",
    "model": "m",
    "choices": [
        {
            "index": 0,
            "finish_reason": "tool_calls",
            "message": {
                "role": "assistant",
                "content": [{"type": "text", "text": "a"}],
                "refusal": "b",
                "reasoning_content": "hm",
                "annotations": [{"type": "url_citation"}],
                "tool_calls": [CALL, {"id": "b", "custom": {"name": "g", "input": "x"}}],
                "function_call": {"name": "f", "arguments": "{}"},
            },
        }
    ],
}
RESPONSES: dict[str, Any] = {
    "id": "r",
    "status": "completed",
    "error": None,
    "incomplete_details": {"reason": "x"},
    "output": [
        {"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "hm"}]},
        {
            "type": "message",
            "id": "m",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "a", "annotations": []}],
        },
        {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"},
        {"type": "custom_tool_call", "call_id": "b", "name": "g", "input": "x"},
        {"type": "shell_call", "call_id": "c", "action": {"commands": ["ls"]}, "environment": {}},
        {"type": "shell_call_output", "call_id": "c", "output": [{"stdout": "a", "outcome": {}}]},
        {"type": "local_shell_call", "call_id": "d", "action": {"command": ["ls"]}},
        {"type": "mcp_call", "id": "e", "name": "f", "arguments": "{}", "server_label": "s"},
        {"type": "web_search_call", "id": "f", "action": {"query": "x"}},
    ],
}
ANTHROPIC: dict[str, Any] = {
    "type": "message",
    "id": "m",
    "role": "assistant",
    "model": "m",
    "stop_reason": "tool_use",
    "content": [
        {"type": "thinking", "thinking": "hm", "signature": "x"},
        {"type": "text", "text": "a", "citations": []},
        {"type": "tool_use", "id": "a", "name": "f", "input": {"a": 1}},
        {"type": "mcp_tool_use", "id": "b", "name": "g", "input": {}, "server_name": "s"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
    ],
}
BEDROCK: dict[str, Any] = {
    "output": {
        "message": {
            "role": "assistant",
            "content": [
                {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "x"}}},
                {"text": "a"},
                {"toolUse": {"toolUseId": "a", "name": "f", "input": {"a": 1}}},
                {
                    "toolUse": {
                        "toolUseId": "b",
                        "name": "g",
                        "input": {},
                        "type": "server_tool_use",
                    }
                },
                {"toolResult": {"toolUseId": "b", "content": [{"json": {}}]}},
                {"citationsContent": {"content": [{"text": "b"}], "citations": []}},
                {"image": {"format": "png", "source": {"bytes": "aGk="}}},
            ],
        }
    },
    "stopReason": "tool_use",
}
GEMINI: dict[str, Any] = {
    "candidates": [
        {
            "index": 0,
            "finishReason": "STOP",
            "content": {
                "role": "model",
                "parts": [
                    {"text": "hm", "thought": True},
                    {"functionCall": {"id": "a", "name": "f", "args": {"a": 1}}},
                    {"functionCall": {"partialArgs": [{"jsonPath": "$.a", "stringValue": "x"}]}},
                    {"inlineData": {"mimeType": "image/png", "data": "aGk="}},
                    {"executableCode": {"language": "PYTHON", "code": "1"}},
                    {"functionResponse": {"name": "f", "response": {"output": 1}, "parts": [{}]}},
                ],
            },
        }
    ]
}
OLLAMA: dict[str, Any] = {
    "model": "m",
    "done": True,
    "done_reason": "stop",
    "message": {
        "role": "assistant",
        "content": "a",
        "thinking": "hm",
        "images": ["aGk="],
        "tool_calls": [{"id": "a", "function": {"index": 0, "name": "f", "arguments": {"a": 1}}}],
    },
}
COHERE: dict[str, Any] = {
    "id": "c",
    "finish_reason": "TOOL_CALL",
    "message": {
        "role": "assistant",
        "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "a"}],
        "tool_plan": "hm",
        "tool_calls": [CALL],
        "citations": [{"start": 0, "end": 1}],
    },
}
MCP: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 1,
    "result": {
        "isError": True,
        "content": [
            {"type": "text", "text": "a"},
            {"type": "image", "data": "aGk=", "mimeType": "image/png"},
            {"type": "resource", "resource": {"uri": "file:///a", "text": "b"}},
        ],
        "structuredContent": {"a": 1},
    },
    "error": {"code": -32602, "message": "no"},
}
ANSWERS = [
    ("openai", CHAT),
    ("openai-responses", RESPONSES),
    ("anthropic", ANTHROPIC),
    ("bedrock", BEDROCK),
    ("gemini", GEMINI),
    ("ollama", OLLAMA),
    ("cohere", COHERE),
    ("mcp", MCP),
    ("text-fallback", CHAT),
]

TOOLS: list[tuple[str, dict[str, Any]]] = [
    (
        "openai",
        {
            "tools": [
                {"type": "function", "function": {"name": "f", "parameters": {}, "strict": True}},
                {"type": "custom", "custom": {"name": "g", "format": {"type": "grammar"}}},
            ],
            "tool_choice": {"type": "function", "function": {"name": "f"}},
            "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {}}},
        },
    ),
    (
        "openai-responses",
        {
            "tools": [
                {"type": "function", "name": "f", "parameters": {}, "strict": True},
                {"type": "namespace", "name": "n", "tools": [{"type": "function", "name": "g"}]},
            ],
            "tool_choice": {"type": "allowed_tools", "tools": [{"type": "function", "name": "f"}]},
            "text": {"format": {"type": "json_schema", "name": "x", "schema": {}}},
        },
    ),
    (
        "anthropic",
        {
            "tools": [{"name": "f", "input_schema": {}}, {"type": "bash_20250124", "name": "bash"}],
            "tool_choice": {"type": "tool", "name": "f"},
            "output_config": {"format": {"type": "json_schema", "schema": {}}},
        },
    ),
    (
        "bedrock",
        {
            "toolConfig": {
                "tools": [
                    {"toolSpec": {"name": "f", "inputSchema": {"json": {}}, "strict": True}},
                    {"cachePoint": {"type": "default"}},
                ],
                "toolChoice": {"tool": {"name": "f"}},
            }
        },
    ),
    (
        "gemini",
        {
            "tools": [{"functionDeclarations": [{"name": "f", "parameters": {"type": "OBJECT"}}]}],
            "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["f"]}},
            "generationConfig": {"responseMimeType": "application/json", "responseJsonSchema": {}},
        },
    ),
    (
        "ollama",
        {
            "tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}],
            "format": {"type": "object"},
        },
    ),
    (
        "cohere",
        {
            "tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}],
            "strict_tools": True,
        },
    ),
    ("mcp", {"tools": [{"name": "f", "inputSchema": {}, "outputSchema": {}}]}),
]


def objects(value: object) -> Iterator[dict[str, Any]]:
    for one in each_changed(value, lambda _: ODD):
        if isinstance(one, dict):
            yield cast("dict[str, Any]", one)


def asked(value: object) -> Iterator[tuple[str, str]]:
    """All that could be a call in a payload: a name, and arguments in the same object."""
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        for told in (members.get(member) for member in ("arguments", "args", "input")):
            yield str(members.get("name")), json.dumps(told)
            # What was to be text, and is a value, has its spelling for a text.
            yield str(members.get("name")), json.dumps(json.dumps(told, separators=(",", ":")))
            if told in (None, ""):
                yield str(members.get("name")), "{}"
                yield str(members.get("name")), '""'
            elif isinstance(told, str):
                with suppress(ValueError):
                    yield str(members.get("name")), json.dumps(json.loads(told))
        for inner in members.values():
            yield from asked(inner)
    elif isinstance(value, list):
        for inner in cast("list[object]", value):
            yield from asked(inner)


def runnable(response: Response) -> list[tuple[str, str]]:
    return [
        (call.tool_name, json.dumps(call.arguments))
        for message in response.messages
        for call in message.calls
        if call.is_executable and call.kind != "builtin"
    ]


@each_case(("name", "answer"), ANSWERS, ids=[name for name, _ in ANSWERS])
def test_an_answer_with_any_value_in_it_is_read_as_what_it_is(
    name: str, answer: dict[str, Any]
) -> None:
    known = wire_format(name)
    whole = known.read_response(answer)
    assert set(runnable(whole)) <= set(asked(answer))
    call_count = sum(len(message.calls) for message in whole.messages)
    for odd in objects(answer):
        told = known.read_response(odd)
        assert set(runnable(told)) <= set(asked(odd)), odd
        if told.failure or told.unread:
            assert runnable(told) == [], odd
        assert len(runnable(told)) <= call_count, odd
        # Nothing of the answer is gone without a word.
        assert told.messages or told.failure or told.unread, odd
        again = read_stream(known, [odd, odd])
        assert set(runnable(again)) <= set(asked(odd)), odd
        failed = known.read_response({**odd, "error": {"message": "m"}})
        if name in ("openai", "text-fallback", "ollama", "gemini", "cohere", "bedrock"):
            assert failed.failure is not None
            assert runnable(failed) == [], odd


@each_case(("name", "request_"), TOOLS, ids=[name for name, _ in TOOLS])
def test_a_request_with_any_value_in_it_is_read(name: str, request_: dict[str, Any]) -> None:
    known = wire_format(name)
    sound = known.read_tools(request_)
    assert [tool.name for tool in sound] == TOOL_NAMES[name]
    for odd in objects(request_):
        tools = known.read_tools(odd)
        # What is none is left out or has no name; none comes of another's value.
        assert {tool.name for tool in tools} <= {*TOOL_NAMES[name], *names_in(odd), ""}, odd
        assert len(tools) <= len(sound)


TOOL_NAMES = {
    "openai": ["f", "g"],
    "openai-responses": ["f", "g"],
    "anthropic": ["f", "bash"],
    "bedrock": ["f"],
    "gemini": ["f"],
    "ollama": ["f"],
    "cohere": ["f"],
    "mcp": ["f"],
}


def names_in(value: object) -> set[str]:
    """All texts in a payload, and its types, which are the names of some tools."""
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        types = {*members, str(members), str(members.get("type"))}
        return types | {one for inner in members.values() for one in names_in(inner)}
    if isinstance(value, list):
        items = cast("list[object]", value)
        return {str(items)} | {one for inner in items for one in names_in(inner)}
    return {str(value)}


EVENTS: list[tuple[str, list[dict[str, Any]]]] = [
    (
        "openai",
        [
            {"choices": [{"index": 0, "delta": {"content": "a", "tool_calls": [CALL]}}]},
            {"choices": [{"index": 0, "delta": {"function_call": {"name": "f"}}}]},
            {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        ],
    ),
    (
        "openai-responses",
        [
            {"type": "response.created", "response": {"id": "r", "status": "in_progress"}},
            *(
                {"type": f"response.output_item.{kind}", "output_index": 0, "item": item}
                for kind, item in (
                    ("added", {"type": "function_call", "id": "a", "call_id": "b", "name": "f"}),
                    ("done", {"type": "function_call", "id": "a", "call_id": "b", "name": "f"}),
                )
            ),
            {
                "type": "response.function_call_arguments.delta",
                "output_index": 0,
                "item_id": "a",
                "delta": "{}",
            },
            {"type": "response.completed", "response": RESPONSES},
        ],
    ),
    (
        "anthropic",
        [
            {"type": "message_start", "message": ANTHROPIC},
            {
                "type": "content_block_start",
                "index": 0,
                "content_block": {"type": "tool_use", "id": "a", "name": "f", "input": {}},
            },
            {
                "type": "content_block_delta",
                "index": 0,
                "delta": {"type": "input_json_delta", "partial_json": "{}"},
            },
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
            {"type": "error", "error": {"type": "x", "message": "y"}},
        ],
    ),
    (
        "bedrock",
        [
            {"messageStart": {"role": "assistant"}},
            {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "a"}}},
            {
                "contentBlockStart": {
                    "contentBlockIndex": 1,
                    "start": {"toolUse": {"toolUseId": "a", "name": "f"}},
                }
            },
            {"contentBlockDelta": {"contentBlockIndex": 1, "delta": {"toolUse": {"input": "{}"}}}},
            {"contentBlockStop": {"contentBlockIndex": 1}},
            {"messageStop": {"stopReason": "tool_use"}},
            {"throttlingException": {"message": "y"}},
        ],
    ),
    ("gemini", [GEMINI, GEMINI]),
    ("ollama", [OLLAMA | {"done": False}, OLLAMA]),
    (
        "cohere",
        [
            {"type": "message-start", "id": "c", "delta": {"message": {"role": "assistant"}}},
            *(
                {"type": kind, "index": 0, "delta": {"message": message}}
                for kind, message in (
                    ("content-delta", {"content": {"text": "a"}}),
                    ("tool-plan-delta", {"tool_plan": "hm"}),
                    ("tool-call-start", {"tool_calls": CALL}),
                    ("tool-call-delta", {"tool_calls": {"function": {"arguments": ""}}}),
                    ("citation-start", {"citations": {"start": 0}}),
                )
            ),
            {"type": "message-end", "delta": {"finish_reason": "TOOL_CALL"}},
        ],
    ),
    ("mcp", [MCP, MCP]),
]


@each_case(("name", "events"), EVENTS, ids=[name for name, _ in EVENTS])
def test_a_stream_with_any_value_in_it_is_read(name: str, events: list[dict[str, Any]]) -> None:
    known = wire_format(name)
    for number, event in enumerate(events):
        for odd in objects(event):
            stream = [*events[:number], odd, *events[number + 1 :]]
            told = read_stream(known, stream)
            if told.failure or told.unread:
                assert runnable(told) == [], odd
            # The pieces of the sound stream say nothing but `{}`, and stand in no call by a name.
            said = {arguments for part in stream for _, arguments in asked(part)} | {"{}"}
            for tool_name, arguments in runnable(told):
                assert tool_name in names_in(stream), odd
                assert arguments in said, odd


TARGETS = ("openai", "openai-responses", "anthropic", "bedrock", "gemini", "ollama", "cohere")


@each_case(("name", "answer"), ANSWERS, ids=[name for name, _ in ANSWERS])
def test_what_was_read_of_it_can_be_told_to_every_provider(
    name: str, answer: dict[str, Any]
) -> None:
    known = wire_format(name)
    answers = [odd for number, odd in enumerate(objects(answer)) if number % 7 == 0]
    for odd in answers:
        with suppress(InvalidRecordError):
            messages = known.read_response(odd).messages
            asked = Conversation.of([Message.of("user", "a"), *messages])
            for target in TARGETS:
                policy = ExportPolicy(replay_provider_data=False)
                export = wire_format(target).write_history(asked, policy)
                assert request_problems(target, export.request) == [], (target, odd)


@each_case(("name", "answer"), ANSWERS, ids=[name for name, _ in ANSWERS])
def test_what_was_read_of_it_can_go_back_to_its_provider(name: str, answer: dict[str, Any]) -> None:
    known = wire_format(name)
    for odd in objects(answer):
        with suppress(InvalidRecordError):
            messages = known.read_response(odd).messages
            export = known.write_history(Conversation.of([Message.of("user", "a"), *messages]))
            assert json.loads(json.dumps(export.request)) == export.request
