"""Answers of OpenAI Responses that are not streamed."""

import json
from typing import get_args

import pytest
from tests.support.cases import each_case

from tooltrail.records import Origin, ProviderBlock, ReasoningBlock, TextBlock, ToolCall
from tooltrail.wire import JsonObject, Response
from tooltrail.wire.openai_responses import FORMAT

FUNCTION: JsonObject = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "call_a",
    "name": "get_weather",
    "arguments": '{"city": "Paris"}',
    "status": "completed",
}
SAID: JsonObject = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "Let me see.", "annotations": [], "logprobs": []}],
}


def answer(*items: object, **members: object) -> JsonObject:
    whole = {
        "id": "resp_1",
        "object": "response",
        "model": "gpt-5",
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "output": [*items],
    }
    read: JsonObject = json.loads(json.dumps({**whole, **members}))
    return read


def read(*items: object, **members: object) -> Response:
    return FORMAT.read_response(answer(*items, **members))


def test_an_answer_counts_its_calls_and_says_whose_it_is_and_how_it_ended() -> None:
    response = read(FUNCTION, SAID, {**FUNCTION, "call_id": "call_b", "namespace": "weather"})
    assert (response.unread, response.failure) == ((), None)
    assert [(call.namespace, call.position) for call in response.calls] == [
        (None, 0),
        ("weather", 1),
    ]
    assert response.message.is_complete
    assert response.message.origin == Origin(
        wire_format="openai-responses",
        model="gpt-5",
        response_id="resp_1",
        finish_reason="completed",
    )


def test_a_custom_tool_gets_text() -> None:
    item = {"type": "custom_tool_call", "id": "ctc_1", "call_id": "call_c", "name": "sql"}
    (call,) = read({**item, "input": "SELECT 1"}).calls
    assert (call.kind, call.arguments, call.arguments_raw) == ("custom", "SELECT 1", "SELECT 1")
    assert call.is_executable


BUILTIN: list[tuple[JsonObject, str, str, JsonObject]] = [
    (
        {
            "type": "local_shell_call",
            "action": {"type": "exec", "command": ["ls"], "env": {}, "timeout_ms": 10000},
        },
        "local_shell",
        '{"type":"exec","command":["ls"],"env":{},"timeout_ms":10000}',
        {},
    ),
    (
        {
            "type": "shell_call",
            "action": {"commands": ["ls", "pwd"], "max_output_length": 4096},
            "environment": {"type": "local"},
        },
        "shell",
        '{"commands":["ls","pwd"],"max_output_length":4096}',
        {"environment": {"type": "local"}},
    ),
    (
        {
            "type": "apply_patch_call",
            "operation": {"type": "update_file", "path": "ä.py", "diff": "@@"},
        },
        "apply_patch",
        '{"type":"update_file","path":"ä.py","diff":"@@"}',
        {},
    ),
    (
        {
            "type": "computer_call",
            "action": {"type": "click", "y": 2, "x": 1.50, "button": "left"},
            "pending_safety_checks": [{"id": "s"}],
        },
        "computer",
        '{"type":"click","y":2,"x":1.5,"button":"left"}',
        {"pending_safety_checks": [{"id": "s"}]},
    ),
    (
        {"type": "computer_call", "actions": [{"type": "wait"}], "pending_safety_checks": []},
        "computer",
        '{"actions":[{"type":"wait"}]}',
        {"pending_safety_checks": []},
    ),
    (
        {"type": "tool_search_call", "execution": "client", "arguments": {"queries": ["x"]}},
        "tool_search",
        '{"queries":["x"]}',
        {"execution": "client"},
    ),
]


@each_case(("item", "name", "raw", "extras"), BUILTIN)
def test_a_tool_of_the_format_itself_is_the_callers_to_run(
    item: JsonObject, name: str, raw: str, extras: JsonObject
) -> None:
    response = read({"id": "i_1", "call_id": "call_d", "status": "completed", **item})
    assert response.calls == (
        ToolCall(
            tool_name=name,
            arguments_raw=raw,
            call_id="call_d",
            kind="builtin",
            extras={"id": "i_1", **extras},
        ),
    )
    assert response.calls[0].is_executable
    assert response.unread == ()


HOSTED: list[tuple[JsonObject, str, str, str]] = [
    (
        {"type": "mcp_call", "server_label": "deepwiki", "name": "ask", "arguments": '{"q": 1}'},
        *("ask", '{"q": 1}', "id"),
    ),
    (
        {"type": "web_search_call", "action": {"type": "search", "query": "q"}},
        *("web_search", '{"type":"search","query":"q"}', "id"),
    ),
    (
        {"type": "web_search_call", "call_id": "", "name": "find", "arguments": "{}"},
        *("find", "{}", "id"),
    ),
    (
        {"type": "file_search_call", "queries": ["a", "b"], "results": None},
        *("file_search", '{"queries":["a","b"]}', "id"),
    ),
    (
        {"type": "code_interpreter_call", "code": "1", "container_id": "c"},
        *("code_interpreter", '{"code":"1"}', "id"),
    ),
    (
        {"type": "image_generation_call", "result": "aGk=", "status": "completed"},
        *("image_generation", "{}", "id"),
    ),
    (
        {"type": "program", "call_id": "p", "code": "f()", "fingerprint": "x"},
        *("program", '{"code":"f()"}', "p"),
    ),
    (
        {
            "type": "shell_call",
            "call_id": "s",
            "action": {"commands": ["ls"]},
            "environment": {"type": "container_reference", "container_id": "c"},
        },
        *("shell", '{"commands":["ls"]}', "s"),
    ),
    (
        {"type": "tool_search_call", "execution": "server", "arguments": {"paths": []}},
        *("tool_search", '{"paths":[]}', "id"),
    ),
    (
        {"type": "x_search_call", "name": "x_find", "arguments": '{"q":""}'},
        *("x_find", '{"q":""}', "id"),
    ),
]
"""An item, and the name, the arguments and the id of its call."""


@each_case(("item", "name", "raw", "call_id"), HOSTED)
def test_what_the_provider_ran_itself_is_kept_verbatim(
    item: JsonObject, name: str, raw: str, call_id: str
) -> None:
    native = {**item, "id": "id"}
    response = read(native)
    (block,) = response.message.blocks
    is_mcp = item["type"] == "mcp_call"
    call = ToolCall(
        tool_name=name,
        arguments_raw=raw,
        call_id=call_id,
        kind="mcp" if is_mcp else "builtin",
        namespace="deepwiki" if is_mcp else None,
        by_provider=True,
    )
    assert block == ProviderBlock(native=native, call=call)
    assert (response.calls, response.unread) == ((), ())
    assert not call.is_executable


def test_a_shell_whose_output_the_provider_gave_is_not_the_callers() -> None:
    ran = {"type": "shell_call", "call_id": "s", "action": {"commands": ["ls"]}}
    output: JsonObject = {"type": "shell_call_output", "call_id": "s", "output": []}
    asked = {**ran, "call_id": "t"}
    response = read(ran, output, asked)
    assert [call.call_id for call in response.calls] == ["t"]
    assert [call.call_id for call in response.message.provider_calls] == ["s"]


@each_case(
    "kind",
    [
        "mcp_list_tools",
        "mcp_approval_request",
        "program_output",
        "tool_search_output",
        "compaction",
    ],
)
def test_what_is_no_call_is_only_kept(kind: str) -> None:
    item: JsonObject = {"type": kind, "id": "x", "arguments": "{}", "name": "n"}
    response = read(item)
    assert response.message.blocks == (ProviderBlock(native=item),)
    assert response.unread == ()


@each_case(
    "item",
    [
        {"type": "quantum_call", "name": "q"},
        {"type": "message", "role": "critic", "content": []},
        {"id": "x"},
        "text",
        None,
    ],
)
def test_an_unknown_item_is_kept(item: object) -> None:
    response = read(item)
    assert response.message.blocks == (ProviderBlock.model_validate({"native": item}),)
    # What is no object may have been anything; an item of a new type is none that was asked for.
    assert response.unread == (() if isinstance(item, dict) else ("output[0] is not an object",))


def test_reasoning_keeps_all_that_proves_it() -> None:
    item: JsonObject = {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "a"}, {"type": "summary_text", "text": "b"}],
        "encrypted_content": "gAAA=",
        "status": None,
    }
    kept = {name: item[name] for name in ("id", "summary", "encrypted_content")}
    assert read(item).message.blocks == (ReasoningBlock(text="a\n\nb", extras=kept),)
    bare: JsonObject = {"type": "reasoning", "id": "rs_2", "summary": [], "encrypted_content": None}
    told: JsonObject = {"id": "rs_2", "summary": [], "encrypted_content": None}
    assert read(bare).message.blocks == (ReasoningBlock(extras=told),)
    content = [{"type": "reasoning_text", "text": "c"}, {"type": "reasoning_text"}]
    (block,) = read({**bare, "content": content}).message.blocks
    assert isinstance(block, ReasoningBlock)
    assert block.text == "c"


def test_the_parts_of_a_message_keep_what_they_say_besides() -> None:
    annotation = {
        "type": "url_citation",
        "url": "u",
        "title": "t",
        "start_index": 0,
        "end_index": 1,
    }
    parts = [
        {"type": "output_text", "text": "a", "annotations": [annotation]},
        {"type": "refusal", "refusal": "no"},
        {"type": "hologram", "x": 1},
    ]
    item = {**SAID, "content": parts, "phase": "final_answer", "status": "incomplete"}
    about: JsonObject = {"id": "msg_1", "phase": "final_answer", "status": "incomplete"}
    assert read(item).message.blocks == (
        TextBlock.model_validate(
            {"text": "a", "extras": {"annotations": [annotation], "item": about}}
        ),
        TextBlock(text="no", is_refusal=True, extras={"item": about}),
        ProviderBlock(native={"type": "hologram", "x": 1}, extras={"item": about}),
    )


def test_a_message_without_content_is_told() -> None:
    assert read({"type": "message", "role": "assistant"}).unread == ("output[0] has no content",)


@pytest.mark.parametrize(
    ("item", "flags"),
    [
        ({**FUNCTION, "status": "incomplete"}, ("incomplete",)),
        ({**FUNCTION, "status": "in_progress"}, ("incomplete",)),
        ({**FUNCTION, "arguments": {"b": 1, "a": 2.0}}, ("arguments_were_object",)),
        ({"type": "shell_call", "call_id": "s"}, ("incomplete",)),
    ],
)
def test_an_odd_call_is_flagged(item: JsonObject, flags: tuple[str, ...]) -> None:
    (call,) = read(item).calls
    assert call.flags == flags
    assert call.is_executable == ("incomplete" not in flags)


def test_a_call_of_a_program_waits_in_progress_for_its_answer() -> None:
    caller = {"type": "program", "caller_id": "call_p"}
    (call,) = read({**FUNCTION, "status": "in_progress", "caller": caller}).calls
    assert call.is_executable
    assert call.extras == {"id": "fc_1", "status": "in_progress", "caller": caller}


@pytest.mark.parametrize("raw", ['{"a":', '{"a":1}{"a":2}', '{"a":NaN}', '{"a":1,"a":2}'])
def test_arguments_that_are_no_json_are_kept_and_flagged(raw: str) -> None:
    (call,) = read({**FUNCTION, "arguments": raw}).calls
    assert call.arguments_raw == raw
    assert call.parse_error
    assert not call.is_executable


@pytest.mark.parametrize("raw", ["", None])
def test_no_arguments_are_an_empty_object(raw: str | None) -> None:
    (call,) = read({**FUNCTION, "arguments": raw}).calls
    assert (call.arguments_raw, call.arguments, call.is_executable) == ("", {}, True)


def test_an_id_that_repeats_is_flagged_and_one_that_is_missing_is_none() -> None:
    response = read(FUNCTION, {**FUNCTION, "id": "fc_2"}, {**FUNCTION, "call_id": ""})
    assert [call.flags for call in response.calls] == [(), ("id_repeated",), ()]
    assert response.calls[2].call_id is None
    assert response.unread == ()


def test_an_id_that_is_no_text_is_told() -> None:
    response = read(FUNCTION, {**FUNCTION, "call_id": 5})
    assert response.unread == ("the call_id of output[1] is not a string",)
    assert [call.is_executable for call in response.calls] == [False, False]


@pytest.mark.parametrize("reason", ["max_output_tokens", "content_filter", "steered"])
def test_of_an_answer_that_was_cut_short_the_last_item_must_say_that_it_is_whole(
    reason: str,
) -> None:
    open_call = {**FUNCTION, "call_id": "call_b", "status": None}
    members = {"status": "incomplete", "incomplete_details": {"reason": reason}}
    response = read(FUNCTION, open_call, **members)
    assert [call.is_executable for call in response.calls] == [True, False]
    assert not response.message.is_complete
    assert response.message.origin is not None
    assert response.message.origin.finish_reason == reason
    assert [call.is_executable for call in read(open_call, FUNCTION, **members).calls] == [
        True,
        True,
    ]


@each_case("status", ["failed", "cancelled", "queued", "in_progress", "gone"])
def test_nothing_of_an_answer_that_did_not_end_may_be_run(status: str) -> None:
    response = read(FUNCTION, status=status)
    assert [call.flags for call in response.calls] == [("incomplete",)]
    assert not response.message.is_complete
    told = ("the status 'gone' is not known",) if status == "gone" else ()
    assert response.unread == told
    assert (response.failure is not None) == (status == "failed")


@each_case(
    ("payload", "message", "kind"),
    [
        (
            answer(status="failed", error={"code": "server_error", "message": "oh"}),
            "oh",
            "server_error",
        ),
        (
            {"error": {"type": "invalid_request_error", "code": "x", "message": "bad"}},
            "bad",
            "invalid_request_error",
        ),
        (
            {"type": "error", "code": "rate_limit", "message": "slow", "param": None},
            "slow",
            "rate_limit",
        ),
        ({"error": "plain"}, "plain", None),
        (answer(status="failed"), "", None),
    ],
)
def test_an_error_is_a_failure(payload: JsonObject, message: str, kind: str | None) -> None:
    response = FORMAT.read_response(payload)
    assert response.failure is not None
    assert (response.failure.message, response.failure.kind) == (message, kind)
    assert response.messages == ()
    assert response.unread == ()


def test_an_answer_of_nothing_is_told() -> None:
    response = FORMAT.read_response({"object": "response"})
    assert response.messages == ()
    assert response.unread == ("the answer has neither output nor an error",)
    assert read().message.blocks == ()


def test_every_item_that_the_client_knows_is_known_here() -> None:
    responses = pytest.importorskip("openai.types.responses")
    union = get_args(get_args(responses.ResponseOutputItem)[0])
    kinds = {get_args(model.model_fields["type"].annotation)[0] for model in union}
    assert {"function_call", "reasoning", "mcp_call"} <= kinds
    for kind in sorted(kinds):
        response = read(
            {"type": kind, "id": "x", "role": "assistant", "content": [], "call_id": "c"}
        )
        assert response.unread == (), kind
