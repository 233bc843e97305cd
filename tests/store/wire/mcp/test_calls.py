"""Requests of `tools/call`, both ways."""

import pytest
from tests.support.wire.schemas import problems

from tooltrail.records import CallKind, InvalidRecordError, ToolCall
from tooltrail.wire import JsonObject
from tooltrail.wire.mcp import read_call, write_call
from tooltrail.wire.members import object_in

META: JsonObject = {
    "progressToken": "p1",
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
REQUEST: JsonObject = {
    "jsonrpc": "2.0",
    "id": 7,
    "method": "tools/call",
    "params": {"name": "get_weather", "arguments": {"city": "Zürich", "a": 1.5}, "_meta": META},
}
CALL = ToolCall(
    tool_name="get_weather",
    arguments_raw='{"city":"Zürich","a":1.5}',
    kind="mcp",
    extras={"_meta": META},
)


def test_the_mapping_table_call_arguments_are_an_object() -> None:
    assert read_call(REQUEST) == CALL
    export = write_call(CALL, 7, is_own=True)
    assert export.request == REQUEST
    assert not export.report
    assert problems("mcp-2026.request", export.request) == []


def test_arguments_that_are_absent_stay_absent() -> None:
    call = read_call({"method": "tools/call", "params": {"name": "f"}})
    assert (call.arguments_raw, call.arguments) == ("", {})
    assert "arguments" not in str(write_call(call, 1).request)


def test_a_call_has_what_the_newer_revision_needs_and_the_older_one_takes_it() -> None:
    call = ToolCall(tool_name="f", arguments_raw='{"a":1}', kind="mcp")
    request = write_call(call, 1).request
    assert request["params"] == {
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        },
        "name": "f",
        "arguments": {"a": 1},
    }
    for revision in ("2025", "2026"):
        assert problems(f"mcp-{revision}.request", request) == []


def test_input_that_was_asked_for_goes_along() -> None:
    params: JsonObject = {
        "name": "f",
        "inputResponses": {"k1": {"action": "accept", "content": {}}},
        "requestState": "opaque",
        "_meta": META,
    }
    request: JsonObject = {"jsonrpc": "2.0", "id": 8, "method": "tools/call", "params": params}
    assert write_call(read_call(request), 8, is_own=True).request == request


def test_what_the_format_has_no_place_for_is_told() -> None:
    call = ToolCall(
        tool_name="my tool\0", call_id="call_1", namespace="disk", extras={"signature": "s"}
    )
    export = write_call(call, 1)
    assert [change.kind for change in export.report] == [
        "id_dropped",
        "provider_data_dropped",
        "provider_data_dropped",
    ]
    # A client must call the tool by the name that the server gave it, also an unusual one.
    assert '"my tool' in str(export.request).replace("'", '"')


@pytest.mark.parametrize(
    ("raw", "kind", "arguments"),
    [
        ("[1]", "mcp", {"arguments": [1]}),
        ("{", "mcp", {"invalid_json": "{"}),
        ("echo", "custom", {"arguments": "echo"}),
        ("", "custom", {"arguments": ""}),
    ],
)
def test_arguments_that_are_no_object_are_wrapped_and_told(
    raw: str, kind: CallKind, arguments: JsonObject
) -> None:
    export = write_call(ToolCall(tool_name="f", arguments_raw=raw, kind=kind), 1)
    params = export.request["params"]
    assert isinstance(params, dict)
    assert params["arguments"] == arguments
    assert [change.kind for change in export.report] == ["arguments_wrapped"]


@pytest.mark.parametrize(
    "request_body",
    [
        {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}},
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call"},
        {"jsonrpc": "2.0", "id": 1, "result": {}},
    ],
)
def test_what_is_no_call_is_refused(request_body: JsonObject) -> None:
    with pytest.raises(InvalidRecordError):
        read_call(request_body)


def test_what_another_provider_said_of_a_call_is_not_sent_to_a_server() -> None:
    signed = ToolCall(
        tool_name="f", arguments_raw="{}", kind="mcp", extras={"thoughtSignature": "c2ln"}
    )
    export = write_call(signed, 1)
    params = object_in(export.request["params"])
    assert params.keys() == {"name", "arguments", "_meta"}
    assert [(one.kind, one.detail) for one in export.report] == [
        ("provider_data_dropped", "thoughtSignature")
    ]
    own = write_call(signed, 1, is_own=True).request["params"]
    assert own == {**params, "thoughtSignature": "c2ln"}
