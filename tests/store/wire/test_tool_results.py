"""A result of every provider becomes a complete output, and nothing of it is dropped."""

import base64
import json
from collections.abc import Sequence
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.cases import each_case
from tests.support.wire.spelled_requests import PROVIDERS, spell_request

from tooltrail.records import (
    DEFAULT_POLICY,
    CompleteOutput,
    GenericOutput,
    InvalidRecordError,
    MediaBlock,
    NotFoundError,
    ResultBlock,
    ResultStatus,
    StreamRecord,
    TextBlock,
    complete_output_of_result,
    default_families,
    project,
    render,
)
from tooltrail.wire import FORMAT_MODULES, complete_output_of, read_tool_result

PNG = b"\x89PNG\r\n\x1a\n\0\xff"
BASE64 = base64.b64encode(PNG).decode()
FAMILY = default_families().named("generic")


class Publisher:
    """Gives every stream a path, and keeps nothing."""

    def publish(self, stream: StreamRecord) -> Any:
        from tooltrail.records import ArtifactReference

        return ArtifactReference(path=stream.digest)


def items(output: CompleteOutput) -> list[tuple[str, bytes | None]]:
    """Media type and bytes of each content item."""
    assert isinstance(output.result, GenericOutput)
    return [(item.media_type, item.stream.content) for item in output.result.content]


def structured(output: CompleteOutput) -> Any:
    assert isinstance(output.result, GenericOutput)
    stream = output.result.structured
    return None if stream is None or stream.content is None else json.loads(stream.content)


def receipt(output: CompleteOutput) -> str:
    projection = project(output, FAMILY, DEFAULT_POLICY, Publisher())
    return render(projection.canonical, FAMILY, DEFAULT_POLICY).text


TEXT = ("text/plain", b"two \xc3\xbc")
IMAGE = ("image/png", PNG)
URI = f"data:image/png;base64,{BASE64}"

SAID = {"type": "text", "text": "two ü"}
SHOWN_TO_ANTHROPIC = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": BASE64},
}
SHOWN_TO_BEDROCK = {"image": {"format": "png", "source": {"bytes": BASE64}}}


def of_openai(content: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": "c", "content": content}


def of_responses(*parts: Any) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": "c", "output": [*parts]}


def of_anthropic(**content: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": "c", **content}


def of_bedrock(*content: Any) -> dict[str, Any]:
    return {"toolResult": {"toolUseId": "c", "status": "success", "content": [*content]}}


def of_gemini(response: Any) -> dict[str, Any]:
    return {"functionResponse": {"name": "f", "response": response}}


SUCCESSES: list[tuple[str, dict[str, Any], list[tuple[str, bytes]], Any]] = [
    ("openai", of_openai("two ü"), [TEXT], None),
    ("openai", of_openai([SAID, SAID]), [TEXT, TEXT], None),
    (
        "openai-responses",
        of_responses(
            {"type": "input_text", "text": "two ü"}, {"type": "input_image", "image_url": URI}
        ),
        [TEXT, IMAGE],
        None,
    ),
    ("anthropic", of_anthropic(content=[SAID, SHOWN_TO_ANTHROPIC]), [TEXT, IMAGE], None),
    ("anthropic", of_anthropic(), [], None),
    ("bedrock", of_bedrock({"text": "two ü"}, SHOWN_TO_BEDROCK), [TEXT, IMAGE], None),
    ("bedrock", of_bedrock({"json": {"a": [1]}}), [], {"a": [1]}),
    ("gemini", of_gemini({"output": "two ü"}), [TEXT], None),
    ("gemini", of_gemini({"a": [1]}), [], {"a": [1]}),
    ("ollama", {"role": "tool", "tool_name": "f", "content": "two ü"}, [TEXT], None),
    (
        "cohere",
        of_openai([{"type": "document", "document": {"data": "two ü", "id": "d"}}]),
        [TEXT],
        None,
    ),
    (
        "mcp",
        {
            "content": [
                SAID,
                {"type": "image", "data": BASE64, "mimeType": "image/png"},
                {"type": "audio", "data": BASE64, "mimeType": "audio/wav"},
            ],
            "structuredContent": {"a": [1, None]},
        },
        [TEXT, IMAGE, ("audio/wav", PNG)],
        {"a": [1, None]},
    ),
    ("mcp", {"jsonrpc": "2.0", "id": 1, "result": {"content": [SAID]}}, [TEXT], None),
]


@each_case(("name", "native", "expected", "value"), SUCCESSES)
def test_a_success_has_every_text_and_every_byte(
    name: str, native: dict[str, Any], expected: list[tuple[str, bytes]], value: Any
) -> None:
    output = complete_output_of(name, "Tool", native)
    assert (output.tool_name, output.status) == ("Tool", "success")
    assert items(output) == expected
    assert structured(output) == value
    assert not expected or expected[0] != TEXT or "two ü" in receipt(output)


def failed_result(name: str) -> Any:
    """A result that failed, as the provider has it among its messages."""
    (items,) = spell_request(name, [("c", {})], [("c", "no such file", True)]).values()
    inner: Any = items[-1].get("content", items[-1].get("parts"))
    return cast("Sequence[Any]", inner)[0] if isinstance(inner, list) else items[-1]


@each_case("name", [*PROVIDERS, "mcp"])
def test_a_failure_has_the_text_as_its_message(name: str) -> None:
    of_mcp: dict[str, Any] = {
        "isError": True,
        "content": [{"type": "text", "text": "no such file"}],
    }
    output = complete_output_of(name, "Tool", of_mcp if name == "mcp" else failed_result(name))
    assert output.error is not None
    assert output.error.kind == "tool_execution_failed"
    assert output.error.message.removeprefix("ERROR: ") == "no such file"
    assert output.error.details is None


def test_whoever_knows_that_a_tool_failed_says_so_where_the_format_cannot() -> None:
    native: dict[str, Any] = {"role": "tool", "tool_call_id": "c", "content": "no such file"}
    assert complete_output_of("openai", "Tool", native).status == "success"
    failed = complete_output_of("openai", "Tool", native, is_error=True)
    assert failed.error is not None
    assert failed.error.message == "no such file"
    denied: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": "m"}}
    assert complete_output_of("mcp", "Tool", denied, is_error=True).final_state == "denied"
    assert complete_output_of("mcp", "Tool", denied, is_error=False).status == "success"


def test_a_failure_keeps_its_images_its_links_and_its_structured_value() -> None:
    native: dict[str, Any] = {
        "isError": True,
        "content": [
            {"type": "text", "text": "line 1\nline 2"},
            {"type": "text", "text": "more"},
            {"type": "image", "data": BASE64, "mimeType": "image/png"},
            {"type": "resource_link", "uri": "file:///log", "name": "log"},
        ],
        "structuredContent": {"code": 7},
    }
    output = complete_output_of("mcp", "Tool", native)
    error = output.error
    assert error is not None
    assert error.message == "line 1\nline 2\nmore"
    *texts, image, link = [one.content for one in output.streams]
    assert texts == [b"line 1\nline 2", b"more"]
    assert image == base64.b64decode(BASE64)
    assert link is not None
    assert b'"uri":"file:///log"' in link
    assert error.details == {
        "content": [
            {"role": "content.0", "media_type": "text/plain"},
            {"role": "content.1", "media_type": "text/plain"},
            {"role": "content.2", "media_type": "image/png"},
            {"role": "content.3", "media_type": "application/json"},
        ],
        "structured": {"code": 7},
    }


@each_case(
    ("status", "kind", "state"),
    [
        ("error", "tool_execution_failed", "error"),
        ("timeout", "tool_timed_out", "error"),
        ("cancelled", "cancelled", "cancelled"),
        ("interrupted", "interrupted", "interrupted"),
        ("denied", "permission_denied", "denied"),
    ],
)
def test_a_failure_has_the_kind_and_the_state_of_its_status(
    status: Any, kind: str, state: str
) -> None:
    output = complete_output_of_result("Tool", ResultBlock(status=status))
    assert output.error is not None
    assert (output.error.kind, output.final_state) == (kind, state)
    assert output.error.message == "the tool gave no message"
    assert output.error.details is None


def test_an_error_of_json_rpc_keeps_its_code() -> None:
    native: dict[str, Any] = {
        "jsonrpc": "2.0",
        "id": 1,
        "error": {"code": -32602, "message": "Unknown tool", "data": {"a": 1}},
    }
    output = complete_output_of("mcp", "Tool", native)
    assert output.error is not None
    assert (output.error.kind, output.error.message) == ("permission_denied", "Unknown tool")
    assert json.dumps(native["error"]) in json.dumps(output.error.details)


def test_resources_and_links_keep_their_names() -> None:
    native: dict[str, Any] = {
        "content": [
            {"type": "resource", "resource": {"uri": "file:///a", "text": "x", "mimeType": "t/x"}},
            {"type": "resource", "resource": {"uri": "file:///b", "blob": BASE64}},
            {"type": "resource_link", "uri": "file:///c", "name": "c"},
            {"type": "hologram", "depth": 3},
            {"type": "image", "data": "not base64", "mimeType": "image/png"},
        ]
    }
    output = complete_output_of("mcp", "Tool", native)
    found = items(output)
    assert found[1] == ("t/x", b"x")
    assert found[3] == ("application/octet-stream", PNG)
    described = [json.loads(data or b"") for kind, data in found if kind == "application/json"]
    assert described == [
        {"type": "resource", "uri": "file:///a", "media_type": "t/x"},
        {"type": "resource", "uri": "file:///b"},
        {"type": "resource", "uri": "file:///c", "name": "c"},
        {"type": "hologram", "depth": 3},
        {"type": "media", "kind": "image", "media_type": "image/png", "data": "not base64"},
    ]


def test_a_structured_value_that_canonical_json_does_not_have_is_an_item() -> None:
    value: Any = 1
    for _ in range(300):
        value = [value]
    output = complete_output_of_result(
        "Tool", ResultBlock.model_construct(structured=value, has_structured=True)
    )
    assert structured(output) is None
    assert items(output) == [("application/json", b"[" * 300 + b"1" + b"]" * 300)]


@each_case("name", FORMAT_MODULES)
def test_what_is_no_result_is_refused(name: str) -> None:
    with pytest.raises(InvalidRecordError):
        read_tool_result(name, {"role": "user", "type": "text", "text": "hi"})


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(NotFoundError):
        complete_output_of("telegraph", "Tool", {})


@given(
    st.lists(
        st.one_of(
            st.builds(TextBlock, text=st.text(st.characters())),
            st.builds(
                MediaBlock,
                kind=st.just("image"),
                media_type=st.none() | st.text(max_size=300),
                data=st.binary().map(lambda data: base64.b64encode(data).decode()),
            ),
        )
    ),
    st.booleans(),
)
def test_any_blocks_have_an_output_that_can_be_shown(
    blocks: list[TextBlock | MediaBlock], is_error: bool
) -> None:
    status: ResultStatus = "error" if is_error else "ok"
    output = complete_output_of_result("Tool", ResultBlock(status=status, content=tuple(blocks)))
    assert (output.status == "error") == is_error
    assert receipt(output)
    if not is_error:
        assert [data for _, data in items(output)] == [
            block.text.encode("utf-8", "surrogatepass")
            if isinstance(block, TextBlock)
            else base64.b64decode(block.data or "")
            for block in blocks
        ]
