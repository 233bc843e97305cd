"""Sessions of JSON-RPC messages: rounds, tasks, and what is of the protocol alone."""

import pytest
from pydantic import JsonValue

from tooltrail.records import (
    CallBlock,
    Conversation,
    InvalidRecordError,
    Message,
    Origin,
    ProviderBlock,
    ReasoningBlock,
    ResultBlock,
    TextBlock,
    ToolCall,
)
from tooltrail.wire import Export, ExportPolicy, JsonObject
from tooltrail.wire.mcp import FORMAT
from tooltrail.wire.members import list_in, objects_in

OWN = Origin(wire_format="mcp")
META: JsonObject = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


def request(message_id: JsonValue, method: str = "tools/call", **params: JsonValue) -> JsonObject:
    if method == "tools/call":
        params = {"name": "f", "arguments": {"a": 1}, "_meta": META, **params}
    return {"jsonrpc": "2.0", "id": message_id, "method": method, "params": {**params}}


def response(message_id: JsonValue, result: JsonObject) -> JsonObject:
    return {"jsonrpc": "2.0", "id": message_id, "result": result}


def notification(method: str, **params: JsonValue) -> JsonObject:
    return {"jsonrpc": "2.0", "method": method, "params": {**params}}


def done(text: str) -> JsonObject:
    content: list[JsonValue] = [{"type": "text", "text": text}]
    return {"content": content, "isError": False, "resultType": "complete"}


def read(*messages: JsonValue) -> Conversation:
    return FORMAT.read_history({"messages": [*messages]})


def outline(conversation: Conversation) -> list[str]:
    """Calls by their keys, results by their keys and texts."""
    told: list[str] = []
    for message in conversation.messages:
        for block in message.blocks:
            match block:
                case CallBlock():
                    told.append(f"{block.key} asks")
                case ResultBlock():
                    texts = [one.text for one in block.content if isinstance(one, TextBlock)]
                    told.append(f"{block.key} {block.status} {' '.join(texts)}".rstrip())
                case _:
                    told.append(block.type)
    return told


def written(conversation: Conversation, policy: ExportPolicy | None = None) -> Export:
    return FORMAT.write_history(conversation, policy or ExportPolicy())


def without_rounds(conversation: Conversation) -> list[JsonValue]:
    """The messages of one call as they are written: the request and the response to it."""
    export = written(conversation)
    rounds = [
        block
        for message in conversation.messages
        for block in message.blocks
        if isinstance(block, ProviderBlock)
    ]
    lost = [change.detail for change in export.report.of_kind("provider_data_dropped")]
    assert lost.count("[provider's block]") == len(rounds) > 0
    assert {change.kind for change in export.report} == {"provider_data_dropped", "role_changed"}
    return list_in(export.request["messages"])


def natives(conversation: Conversation) -> list[JsonValue]:
    """What is kept as it came."""
    blocks = [block for message in conversation.messages for block in message.blocks]
    return [block.native for block in blocks if isinstance(block, ProviderBlock)]


def called(conversation: Conversation) -> list[str]:
    """The outline without what is kept as it came."""
    return [told for told in outline(conversation) if told != "provider"]


def again(conversation: Conversation) -> list[JsonValue]:
    export = written(conversation)
    assert list(export.report) == []
    return list_in(export.request["messages"])


def test_a_call_and_its_result_are_messages_joined_by_a_key() -> None:
    messages = (request(1), response(1, done("x")))
    conversation = read(*messages)
    assert conversation.messages == (
        Message(
            role="assistant",
            blocks=(
                CallBlock(
                    call=ToolCall(
                        tool_name="f", arguments_raw='{"a":1}', kind="mcp", extras={"_meta": META}
                    ),
                    key="mcp:0",
                ),
            ),
            origin=OWN,
        ),
        Message(
            role="tool",
            blocks=(ResultBlock(content=(TextBlock(text="x"),), key="mcp:0"),),
            origin=OWN,
        ),
    )
    assert again(conversation) == [*messages]


def test_ids_of_requests_may_be_texts_and_one_is_not_one_as_a_text() -> None:
    conversation = read(
        request(1), request("1"), response("1", done("text")), response(1, done("number"))
    )
    assert outline(conversation) == ["mcp:0 asks", "mcp:1 asks", "mcp:1 ok text", "mcp:0 ok number"]


def test_ids_that_another_connection_used_again_are_told_apart() -> None:
    conversation = read(request(1), response(1, done("one")), request(1), response(1, done("two")))
    assert outline(conversation) == ["mcp:0 asks", "mcp:0 ok one", "mcp:1 asks", "mcp:1 ok two"]
    assert again(conversation) == [
        *(request(1), response(1, done("one"))),
        *(request(2), response(2, done("two"))),
    ]


def test_rounds_in_which_input_is_asked_for_are_one_call() -> None:
    asks: JsonObject = {
        "resultType": "input_required",
        "inputRequests": {"k": {"method": "elicitation/create", "params": {}}},
        "requestState": "s1",
    }
    messages = (
        request(1),
        response(1, asks),
        request(2, inputResponses={"k": {"action": "accept"}}, requestState="s1"),
        response(2, {"resultType": "input_required", "inputRequests": {}}),
        request(3, inputResponses={}),
        response(3, done("x")),
    )
    conversation = read(*messages)
    assert called(conversation) == ["mcp:0 asks", "mcp:0 ok x"]
    assert natives(conversation) == [*messages[1:-1]]
    assert without_rounds(conversation) == [messages[0], response(1, done("x"))]


def test_a_call_that_still_waits_for_input_has_no_result() -> None:
    conversation = read(request(1), response(1, {"resultType": "input_required"}))
    assert outline(conversation) == ["mcp:0 asks", "provider"]
    export = written(conversation)
    assert [one["id"] for one in objects_in(export.request["messages"])] == [1, 1]
    assert [change.kind for change in export.report] == [
        "result_missing",
        "status_flattened",
        "role_changed",
        "provider_data_dropped",
    ]


def test_a_task_of_the_older_revision_ends_with_the_result_that_is_fetched() -> None:
    task: JsonObject = {"taskId": "t1", "status": "working", "ttl": None}
    messages = (
        request(1, task={"ttl": 60000}),
        response(1, {"task": task}),
        request(2, "tasks/get", taskId="t1"),
        response(2, {**task, "status": "completed"}),
        request(3, "tasks/result", taskId="t1"),
        response(3, done("x")),
    )
    conversation = read(*messages)
    assert called(conversation) == ["mcp:0 asks", "mcp:0 ok x"]
    assert without_rounds(conversation) == [messages[0], response(1, done("x"))]


@pytest.mark.parametrize(
    ("ended", "told"),
    [
        ({"status": "cancelled", "statusMessage": "by user"}, "mcp:0 cancelled by user"),
        (
            {"status": "failed", "error": {"code": -32603, "message": "lost"}},
            "mcp:0 interrupted lost",
        ),
    ],
)
def test_a_task_may_end_without_a_result(ended: JsonObject, told: str) -> None:
    messages = (
        request(1),
        response(1, {"resultType": "task", "taskId": "t1", "status": "working"}),
        request(2, "tasks/get", taskId="t1"),
        response(2, {"resultType": "complete", "taskId": "t1", **ended}),
    )
    conversation = read(*messages)
    assert called(conversation) == ["mcp:0 asks", told]


SAMPLED: JsonObject = {
    "role": "assistant",
    "model": "m",
    "content": [{"type": "text", "text": "the client's"}],
}
ANSWERED: list[tuple[str, JsonObject]] = [
    ("sampling/createMessage", SAMPLED),
    ("elicitation/create", {"action": "decline"}),
    ("roots/list", {"roots": []}),
    ("ping", {}),
]


@pytest.mark.parametrize(("method", "answer"), ANSWERED)
def test_ids_of_both_sides_are_told_apart_by_what_is_answered(
    method: str, answer: JsonObject
) -> None:
    result = response(1, done("the tool's"))
    for messages in (
        [request(1, method), response(1, answer), result],
        [request(1, method), result, response(1, answer)],
    ):
        conversation = read(request(1), *messages)
        assert outline(conversation) == ["mcp:0 asks", "mcp:0 ok the tool's"]
    never_answered = read(request(1), request(1, method), result)
    assert outline(never_answered) == ["mcp:0 asks", "mcp:0 ok the tool's"]


def failed(message_id: int, message: str) -> JsonObject:
    return {"jsonrpc": "2.0", "id": message_id, "error": {"code": -1, "message": message}}


def test_a_ping_is_not_answered_by_an_error() -> None:
    conversation = read(request(1), request(1, "ping"), failed(1, "lost"))
    assert outline(conversation) == ["mcp:0 asks", "mcp:0 interrupted lost"]
    then_answered = read(request(1), request(1, "ping"), failed(1, "lost"), response(1, {}))
    assert then_answered == conversation


@pytest.mark.parametrize("method", ["sampling/createMessage", "elicitation/create", "roots/list"])
def test_an_error_on_an_id_that_is_open_on_both_sides_is_kept_by_itself(method: str) -> None:
    begun = (request(1), request(1, method), failed(1, "no"))
    refused = read(*begun, response(1, done("x")))
    assert outline(refused) == ["mcp:0 asks", "provider", "mcp:0 ok x"]
    assert refused.messages[1].blocks == (ProviderBlock(native=failed(1, "no")),)
    both = read(*begun, failed(1, "lost"))
    assert outline(both) == ["mcp:0 asks", "provider", "mcp:0 interrupted lost"]


def test_an_answer_to_nobody_but_the_server_is_passed_over() -> None:
    for answer in (failed(1, "no"), response(1, {"odd": 1}), response(1, {})):
        assert read(request(1, "elicitation/create"), answer).messages == ()


@pytest.mark.parametrize("state", ["s", None])
def test_a_round_that_is_sent_again_is_the_same_call(state: str | None) -> None:
    given: JsonObject = {"inputResponses": {"k": {"action": "accept"}}}
    asks: JsonObject = {"resultType": "input_required", "inputRequests": {}}
    if state is not None:
        given["requestState"] = asks["requestState"] = state
    messages = (
        request(1),
        response(1, asks),
        request(2, "tools/call", **given),
        request(3, "tools/call", **given),
        response(3, done("x")),
    )
    conversation = read(*messages)
    assert called(conversation) == ["mcp:0 asks", "mcp:0 ok x"]
    # What is sent when there is a result is another execution.
    after = read(*messages, request(4, "tools/call", **given), response(4, done("y")))
    assert called(after)[2:] == ["mcp:1 asks", "mcp:1 ok y"]


def test_equal_calls_that_wait_for_input_each_go_on_once() -> None:
    asks: JsonObject = {"resultType": "input_required", "inputRequests": {}}
    conversation = read(
        request(1),
        request(2),
        response(1, asks),
        response(2, asks),
        request(3, inputResponses={}),
        request(4, inputResponses={}),
        response(3, done("x")),
        response(4, done("y")),
    )
    assert called(conversation) == ["mcp:0 asks", "mcp:1 asks", "mcp:0 ok x", "mcp:1 ok y"]


def test_the_protocol_is_passed_over_and_tools_are_found() -> None:
    listed: JsonObject = {"tools": [{"name": "f", "inputSchema": {"type": "object"}}]}
    conversation = read(
        request(0, "initialize"),
        response(0, {"protocolVersion": "2025-11-25"}),
        notification("notifications/initialized"),
        request(1, "tools/list"),
        response(1, listed),
        request(2, "tasks/get", taskId="nobody's"),
        response(2, {"taskId": "nobody's", "status": "working"}),
        notification("notifications/progress", progress=1),
    )
    assert conversation.messages == ()
    assert [tool.name for tool in conversation.tools] == ["f"]


def test_what_cannot_be_placed_is_kept_whole() -> None:
    stray = response(9, done("whose?"))
    conversation = read(stray, "x", {"jsonrpc": "2.0"}, response(None, {"odd": 1}))
    blocks = [block for message in conversation.messages for block in message.blocks]
    [orphan] = conversation.messages[0].results
    assert orphan.content == (TextBlock(text="whose?"),)
    assert blocks[1:] == [
        ProviderBlock(native="x"),
        ProviderBlock(native={"jsonrpc": "2.0"}),
        ProviderBlock(native=response(None, {"odd": 1})),
    ]
    export = written(conversation)
    [again] = objects_in(export.request["messages"])
    assert (again["id"], read(again)) == (1, read(stray))
    assert len(export.report.of_kind("result_orphaned")) == 1
    assert len(export.report.of_kind("provider_data_dropped")) == 3


def test_no_messages_are_refused() -> None:
    with pytest.raises(InvalidRecordError):
        FORMAT.read_history({"calls": []})


def test_an_error_of_the_protocol_goes_back_as_one() -> None:
    messages: tuple[JsonObject, ...] = (
        request(1),
        {"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": "no"}},
    )
    conversation = read(*messages)
    assert outline(conversation) == ["mcp:0 asks", "mcp:0 denied no"]
    assert again(conversation) == [*messages]
    told = written(conversation, ExportPolicy(replay_provider_data=False))
    assert objects_in(told.request["messages"])[1]["result"] == {
        "content": [{"type": "text", "text": "no"}],
        "isError": True,
        "resultType": "complete",
    }


def test_what_is_spoken_around_calls_has_no_place_and_is_told() -> None:
    calls = [CallBlock(call=ToolCall(tool_name="f", call_id=f"call_{n}")) for n in range(2)]
    said = (ReasoningBlock(text="hm"), TextBlock(text="I look."), *calls)
    origin = Origin(wire_format="openai", extras={"tone": "x"})
    export = written(
        Conversation.of(
            [
                Message.of("user", "Weather?"),
                Message(role="user"),
                Message(role="assistant", blocks=said, origin=origin),
                Message(
                    role="tool",
                    blocks=(ResultBlock(call_id="call_1"), ResultBlock(call_id="call_0")),
                ),
            ]
        )
    )
    assert [one.get("id") for one in objects_in(export.request["messages"])] == [1, 1, 2, 2]
    assert [change.kind for change in export.report] == [
        *("order_changed", "block_dropped", "message_empty", "block_dropped", "block_dropped"),
        *("provider_data_dropped", "order_changed", "id_dropped", "id_dropped"),
    ]
