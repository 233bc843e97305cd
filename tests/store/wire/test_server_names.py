"""The tool of a server goes by `server___tool` where a format has no field for the server.

Two tools never have one name on the wire, and both come back where the servers are known.
"""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.cases import each_case

from tooltrail.records import (
    CallBlock,
    Conversation,
    Message,
    ResultBlock,
    TextBlock,
    ToolCall,
    ToolDefinition,
)
from tooltrail.wire import (
    FORMAT_MODULES,
    Export,
    ExportPolicy,
    ToolChoice,
    read_stream,
    wire_format,
)

JOINED = ["openai", "anthropic", "bedrock", "gemini", "ollama", "cohere", "mcp"]
Tool = tuple[str | None, str]


def conversation(*tools: Tool) -> Conversation:
    """A batch of one call for each tool, and their results."""
    calls = [
        ToolCall(tool_name=name, namespace=server, call_id=f"call_{number}", position=number)
        for number, (server, name) in enumerate(tools)
    ]
    results = [
        ResultBlock(
            call_id=call.call_id,
            tool_name=call.tool_name,
            namespace=call.namespace,
            content=(TextBlock(text=f"of {number}"),),
        )
        for number, call in enumerate(calls)
    ]
    return Conversation.of(
        [
            Message.of("user", "go"),
            Message(role="assistant", blocks=tuple(CallBlock(call=call) for call in calls)),
            Message(role="tool", blocks=tuple(results)),
        ]
    )


def called(read: Conversation) -> list[Tool]:
    return [(call.namespace, call.tool_name) for one in read.messages for call in one.calls]


def sent(export: Export) -> str:
    return json.dumps(export.request)


@each_case("name", JOINED)
def test_two_servers_tools_of_one_name_stay_two(name: str) -> None:
    known = wire_format(name)
    tools: list[Tool] = [("github", "read"), ("disk", "read"), (None, "read")]
    export = known.write_history(conversation(*tools))
    assert "github___read" in sent(export)
    assert "disk___read" in sent(export)
    notes = [change.detail for change in export.report.of_kind("name_renamed")]
    assert notes == [
        "'read' of 'github' is github___read here",
        "'read' of 'disk' is disk___read here",
    ]
    read = known.read_history(export.request, {"github", "disk"})
    assert called(read) == tools
    # Each result is of the server whose tool gave it.
    again = known.write_history(read)
    assert again.request == export.request


@each_case("name", JOINED)
def test_a_name_stays_as_it_is_for_a_reader_who_does_not_know_the_server(name: str) -> None:
    known = wire_format(name)
    export = known.write_history(conversation(("github", "read")))
    for servers in (set[str](), {"disk"}):
        read = known.read_history(export.request, servers)
        assert called(read) == [(None, "github___read")]


@each_case("name", JOINED)
def test_a_plain_name_that_reads_as_a_server_s_is_told_from_it(name: str) -> None:
    known = wire_format(name)
    tools: list[Tool] = [("a", "b"), (None, "a___b"), (None, "___a___b"), (None, "c___b")]
    export = known.write_history(conversation(*tools))
    assert called(known.read_history(export.request, {"a"})) == tools
    renamed = {"a___b": "___a___b", "___a___b": "______a___b"}
    assert export.names == renamed
    # Where no such server is known, the name is one like any other.
    alone = known.write_history(conversation((None, "a___b")))
    assert not alone.report.of_kind("name_renamed")
    assert called(known.read_history(alone.request)) == [(None, "a___b")]


def test_a_server_s_name_that_no_name_can_begin_with_is_not_split() -> None:
    known = wire_format("openai")
    tools: list[Tool] = [("a_", "b"), ("a", "_b"), ("x___y", "z"), ("x", "y___z"), ("é", "b")]
    export = known.write_history(conversation(*tools))
    read = known.read_history(export.request, {"a", "a_", "x", "x___y", "é"})
    split = called(read)
    assert [split[1], split[3]] == [("a", "_b"), ("x", "y___z")]
    for made in (split[0], split[2], split[4]):
        assert made[0] is None
        assert re.search("_[0-9a-f]{8}$", made[1])
    assert len(export.report.of_kind("name_renamed")) == len(tools)


servers = st.text("ab_", min_size=1, max_size=4)
plain = st.text("ab_", min_size=1, max_size=12)


@pytest.mark.parametrize("name", FORMAT_MODULES)
@given(tools=st.lists(st.tuples(st.none() | servers, plain), unique=True, max_size=8))
def test_tools_that_differ_have_names_that_differ(name: str, tools: list[Tool]) -> None:
    known = wire_format(name)
    export = known.write_history(conversation(*tools))
    read = called(known.read_history(export.request))
    assert len(set(read)) == len(tools)
    offered = [ToolDefinition(name=own, namespace=server) for server, own in tools]
    told = known.write_tools(offered)
    assert told.names == export.names
    names = {(tool.namespace, tool.name) for tool in known.read_tools(told.request)}
    assert len(names) == len(tools)
    if not told.report.of_kind("name_renamed"):
        assert set(read) == set(tools)
    split = known.read_history(export.request, {server for server, _ in tools if server})
    for tool, after in zip(tools, called(split), strict=True):
        assert after == tool or re.search("_[0-9a-f]{8}$", after[1])


@each_case("name", JOINED)
def test_definitions_and_the_choice_have_the_names_of_the_calls(name: str) -> None:
    known = wire_format(name)
    offered = [
        ToolDefinition(name="read", namespace="github", description="g"),
        ToolDefinition(name="read", namespace="disk", description="d"),
    ]
    choice = ToolChoice("tool", ("disk___read",))
    export = known.write_tools(offered, choice)
    assert not export.report.of_kind("tool_repeated")
    read = known.read_tools(export.request, {"github", "disk"})
    assert [(tool.namespace, tool.name, tool.description) for tool in read] == [
        ("github", "read", "g"),
        ("disk", "read", "d"),
    ]
    members = {key: value for key, value in export.request.items() if key != "tools"}
    # Ollama and MCP have no choice, and Cohere's names no tool.
    assert "disk___read" in json.dumps(members) or name in ("ollama", "mcp", "cohere")


def test_responses_has_a_field_for_the_server() -> None:
    known = wire_format("openai-responses")
    beside: list[Tool] = [("disk", "github___read"), ("github", "read"), (None, "github___read")]
    export = known.write_history(conversation(*beside))
    assert called(known.read_history(export.request, {"github", "disk"})) == beside
    tools: list[Tool] = [("github", "read"), ("disk", "read")]
    export = known.write_history(conversation(*tools), ExportPolicy())
    assert not export.report.of_kind("name_renamed")
    assert called(known.read_history(export.request)) == tools
    offered = [ToolDefinition(name=name, namespace=server) for server, name in tools]
    groups: Any = known.write_tools([*offered, ToolDefinition(name="read")]).request["tools"]
    assert [(one["type"], one["name"]) for one in groups] == [
        ("namespace", "github"),
        ("namespace", "disk"),
        ("function", "read"),
    ]
    assert [one["name"] for one in groups[0]["tools"]] == ["read"]
    of_one = [*offered, ToolDefinition(name="list", namespace="github")]
    groups = known.write_tools(of_one).request["tools"]
    assert [[tool["name"] for tool in one["tools"]] for one in groups] == [
        ["read", "list"],
        ["read"],
    ]


def test_a_choice_names_the_group_that_a_tool_stands_in() -> None:
    offered = [
        ToolDefinition(name="read", namespace="github"),
        ToolDefinition(name="read", namespace="disk", kind="custom"),
        ToolDefinition(name="read"),
        ToolDefinition(name="list", namespace="no good"),
    ]

    def chosen(*names: str) -> Any:
        known = wire_format("openai-responses")
        return known.write_tools(offered, ToolChoice("tool", names)).request["tool_choice"]

    assert chosen("github___read") == {"type": "function", "name": "github.read"}
    assert chosen("read") == {"type": "function", "name": "read"}
    assert chosen("disk___read", "read")["tools"] == [
        {"type": "custom", "name": "disk.read"},
        {"type": "function", "name": "read"},
    ]
    # A server whose name no group can have stands in the name of its tool.
    assert re.fullmatch("no_good__list_[0-9a-f]{8}", chosen("no good___list")["name"])


@pytest.mark.parametrize("name", ["openai", "openai-responses", "anthropic", "gemini"])
def test_a_choice_tells_a_plain_name_from_that_of_a_server_s_tool(name: str) -> None:
    known = wire_format(name)
    plain = ToolDefinition(name="disk___read")
    offered = [ToolDefinition(name="read", namespace="disk"), plain]

    def chosen(wanted: str, tools: list[ToolDefinition]) -> str:
        export = known.write_tools(tools, ToolChoice("tool", (wanted,)))
        return json.dumps({key: one for key, one in export.request.items() if key != "tools"})

    for tools in (offered, offered[::-1]):
        of_server = chosen("disk___read", tools)
        assert re.search(r'"disk(___|\.)read"', of_server)
        assert chosen("___disk___read", tools) == re.sub(
            r'"disk(___|\.)read"', '"___disk___read"', of_server
        )
    assert '"disk___read"' in chosen("disk___read", [plain])


def test_the_names_of_an_answer_and_of_a_stream_are_split_alike() -> None:
    answer: Any = {
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "tool_calls": [
                        {
                            "id": "c",
                            "type": "function",
                            "function": {"name": "disk___read", "arguments": "{}"},
                        }
                    ],
                },
                "finish_reason": "tool_calls",
            }
        ]
    }
    known = wire_format("openai")
    (call,) = known.read_response(answer, {"disk"}).calls
    assert (call.namespace, call.tool_name) == ("disk", "read")
    assert read_stream(known, [answer], {"disk"}).calls == (call,)
    assert known.read_response(answer).calls[0].tool_name == "disk___read"
