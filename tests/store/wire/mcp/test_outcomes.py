"""Results of tools over MCP, and what is none, both ways."""

import pytest
from pydantic import JsonValue
from tests.support.cases import each_case
from tests.support.wire.schemas import problems

from tooltrail.records import (
    ContentBlock,
    InvalidRecordError,
    MediaBlock,
    ProviderBlock,
    ResourceBlock,
    ResultBlock,
    ResultStatus,
    TextBlock,
)
from tooltrail.wire import JsonObject
from tooltrail.wire.mcp import read_result, write_result
from tooltrail.wire.mcp.results import Pending, read_outcome

PNG = "iVBORw0KGgoAAAANSUhEUg=="
NOTED: JsonObject = {"annotations": {"audience": ["user"], "priority": 0.5}, "_meta": {"a": 1}}

BLOCKS: list[tuple[JsonObject, ContentBlock]] = [
    ({"type": "text", "text": "18 C"}, TextBlock(text="18 C")),
    ({"type": "text", "text": "", **NOTED}, TextBlock(text="", extras=NOTED)),
    (
        {"type": "image", "data": PNG, "mimeType": "image/png", **NOTED},
        MediaBlock(kind="image", media_type="image/png", data=PNG, extras=NOTED),
    ),
    (
        {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"},
        MediaBlock(kind="audio", media_type="audio/wav", data="UklGRg=="),
    ),
    (
        {
            "type": "resource_link",
            "uri": "file:///log.txt",
            "name": "log",
            "mimeType": "text/plain",
            "size": 12345,
            "title": "The log",
        },
        ResourceBlock(
            uri="file:///log.txt",
            name="log",
            media_type="text/plain",
            extras={"size": 12345, "title": "The log"},
        ),
    ),
    (
        {
            "type": "resource",
            "resource": {"uri": "file:///a", "mimeType": "text/plain", "text": "", "_meta": {}},
            **NOTED,
        },
        ResourceBlock(
            uri="file:///a",
            media_type="text/plain",
            text="",
            extras={**NOTED, "resource": {"_meta": {}}},
        ),
    ),
    (
        {"type": "resource", "resource": {"uri": "file:///b", "blob": "AAEC"}},
        ResourceBlock(uri="file:///b", data="AAEC"),
    ),
]


def response(result: JsonValue) -> JsonObject:
    return {"jsonrpc": "2.0", "id": 7, "result": result}


@each_case(("native", "block"), BLOCKS)
def test_the_mapping_table_results_keep_every_block(
    native: JsonObject, block: ContentBlock
) -> None:
    assert read_result({"content": [native]}).content == (block,)
    export = write_result(ResultBlock(content=(block,)), is_own=True)
    assert export.request["content"] == [native]
    assert not export.report
    assert problems("mcp-2026.result", export.request) == []


@each_case(
    ("result", "status"),
    [
        ({"content": []}, "ok"),
        ({"content": [], "isError": False}, "ok"),
        ({"content": [], "isError": None}, "ok"),
        ({"content": [], "isError": True}, "error"),
        ({"content": [], "isError": "yes"}, "unknown"),
    ],
)
def test_the_mapping_table_errors_have_a_flag(result: JsonObject, status: ResultStatus) -> None:
    assert read_result(response(result)).status == status


@each_case("structured", [None, 0, "x", [1, {"a": None}], {"a": 1}])
def test_a_structured_value_may_be_any_json_and_null_is_not_absent(structured: JsonValue) -> None:
    result = read_result({"content": [], "structuredContent": structured})
    assert (result.structured, result.has_structured) == (structured, True)
    assert write_result(result).request["structuredContent"] == structured
    assert read_result({"content": []}).has_structured is False
    assert "structuredContent" not in write_result(ResultBlock()).request


@pytest.mark.parametrize(
    ("code", "status"),
    [(-32602, "denied"), (-32601, "denied"), (-32603, "interrupted"), (-32001, "interrupted")],
)
def test_an_error_of_the_protocol_is_no_error_of_the_tool(code: int, status: ResultStatus) -> None:
    error: JsonObject = {"code": code, "message": "Unknown tool: nope", "data": [1]}
    native: JsonObject = {"jsonrpc": "2.0", "id": 7, "error": error}
    result = read_result(native)
    assert result.status == status
    assert result.is_error
    assert result.content == (TextBlock(text="Unknown tool: nope"),)
    assert result.extras == {"jsonrpc": {"error": error}}
    assert write_result(result, 7, is_own=True).request == native
    as_result = write_result(result, is_own=True)
    assert as_result.request["isError"] is True
    assert [change.kind for change in as_result.report] == ["status_flattened"]


def test_a_request_for_input_is_no_result() -> None:
    native: JsonObject = {
        "resultType": "input_required",
        "inputRequests": {"k1": {"method": "elicitation/create", "params": {}}},
        "requestState": "opaque",
    }
    assert read_outcome(response(native)) == Pending(state="opaque")
    with pytest.raises(InvalidRecordError, match="no result yet"):
        read_result(response(native))


def test_a_completed_task_brings_the_result() -> None:
    result = read_result(
        response(
            {
                "resultType": "complete",
                "taskId": "t1",
                "status": "completed",
                "result": {"content": [{"type": "text", "text": "x"}], "isError": True},
            }
        )
    )
    assert (result.status, result.content) == ("error", (TextBlock(text="x"),))
    assert result.extras == {
        "jsonrpc": {"task": {"resultType": "complete", "taskId": "t1", "status": "completed"}}
    }
    assert [one.kind for one in write_result(result).report] == ["provider_data_dropped"]


@pytest.mark.parametrize(
    "native",
    [
        {"tools": []},
        {"resultType": "partial", "content": []},
        {"action": "accept", "content": {"name": "x"}},
        "x",
    ],
)
def test_what_is_no_answer_to_a_call_is_nothing(native: JsonValue) -> None:
    assert read_outcome(response(native)) is None
    with pytest.raises(InvalidRecordError, match="no result"):
        read_result(response(native))


@each_case(
    "native",
    [
        {"type": "video", "data": "AA=="},
        {"type": "text"},
        {"type": "image", "url": "x"},
        {"type": "resource", "resource": {"uri": "a"}},
        {"type": "resource", "resource": {"uri": "a", "text": "x", "blob": "AA=="}},
        {"type": "resource", "resource": "a"},
        "text",
        7,
    ],
)
def test_blocks_that_are_not_known_are_kept_and_go_back(native: JsonValue) -> None:
    result = read_result({"content": [native]})
    assert result.content == (ProviderBlock(native=native),)
    if isinstance(native, dict):
        assert write_result(result, is_own=True).request["content"] == [native]
    told = write_result(result)
    assert [change.kind for change in told.report] == ["block_described"]


@each_case(
    ("block", "kind"),
    [
        (MediaBlock(kind="image", uri="https://example.com/a.png"), "block_described"),
        (MediaBlock(kind="image", data=PNG), "block_described"),
        (MediaBlock(kind="image", media_type="image/png", data="no!"), "block_described"),
        (MediaBlock(kind="document", media_type="a/b", data="AAEC"), "block_described"),
        (ResourceBlock(uri="a", data="no!"), "block_described"),
        (ResourceBlock(uri="a"), "text_replaced"),
        (ResourceBlock(uri="a", text="x", name="n"), "provider_data_dropped"),
        (ResourceBlock(uri="a", text="x", data="AAEC"), "provider_data_dropped"),
        (ResourceBlock(uri="a", data="AAEC", name="n"), "provider_data_dropped"),
        (MediaBlock(kind="image", media_type="image/png", data=PNG, name="n"), "block_described"),
        (TextBlock(text="No.", is_refusal=True), "block_described"),
        (TextBlock(text="\0"), "text_replaced"),
    ],
)
def test_what_a_block_cannot_say_here_is_told(block: ContentBlock, kind: str) -> None:
    export = write_result(ResultBlock(content=(block,)), is_own=True)
    assert [change.kind for change in export.report] == [kind]
    assert problems("mcp-2026.result", export.request) == []


def test_what_another_provider_said_of_a_result_is_not_sent_to_a_client() -> None:
    text = TextBlock(text="x", extras={"citations": []})
    result = ResultBlock(content=(text,), extras={"cache_control": {"type": "ephemeral"}})
    told: JsonObject = {
        "content": [{"type": "text", "text": "x"}],
        "isError": False,
        "resultType": "complete",
    }
    for export, native in (
        (write_result(result), told),
        (write_result(result, 7), {"jsonrpc": "2.0", "id": 7, "result": told}),
    ):
        assert export.request == native
        assert [(one.kind, one.detail) for one in export.report] == [
            ("provider_data_dropped", "citations"),
            ("provider_data_dropped", "cache_control"),
        ]
    own = write_result(result, is_own=True)
    assert own.request["cache_control"] == {"type": "ephemeral"}
    assert not own.report
