"""Conversations written as the input of a Responses request, whoever had them."""

import json
from typing import Literal

import pytest
from pydantic import JsonValue
from tests.support.cases import each_case
from tests.support.wire.responses_messages import (
    FOREIGN,
    OWN,
    PNG,
    TEXT,
    answered,
    asked,
    call,
    items_of,
    kinds,
    output_of,
    result,
    written,
)

from tooltrail.records import (
    CallBlock,
    MediaBlock,
    Message,
    ProviderBlock,
    ReasoningBlock,
    ResultBlock,
    TextBlock,
    ToolCall,
)
from tooltrail.wire import ExportPolicy, JsonObject
from tooltrail.wire.openai_responses import FORMAT


def test_the_items_of_a_turn_keep_their_order_and_all_outputs_follow() -> None:
    said = Message(
        role="assistant",
        blocks=(TEXT, CallBlock(call=call(1)), TextBlock(text="then"), CallBlock(call=call(2))),
    )
    late_first = answered(result(TextBlock(text="2"), number=2), result(TextBlock(text="1")))
    export = written(Message.of("user", "go"), said, late_first)
    assert items_of(export) == [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": "ok"},
        {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"},
        {"role": "assistant", "content": "then"},
        {"type": "function_call", "call_id": "call_2", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call_1", "output": "1"},
        {"type": "function_call_output", "call_id": "call_2", "output": "2"},
    ]
    assert kinds(export) == ["order_changed"]


def test_what_another_provider_said_for_itself_stays_behind() -> None:
    said = Message(
        role="assistant",
        blocks=(
            ReasoningBlock(text="hm", extras={"signature": "x"}),
            ProviderBlock(native={"type": "server_tool_use"}),
            TextBlock(text="a", extras={"citations": []}),
            CallBlock(call=call(extras={"caller": "x"})),
        ),
        origin=FOREIGN,
    )
    export = written(said, answered(result(TEXT, extras={"cache": 1})))
    assert items_of(export) == [
        {"role": "assistant", "content": "a"},
        {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call_1", "output": "ok"},
    ]
    assert sorted(kinds(export)) == ["block_dropped", *["provider_data_dropped"] * 4]


OWN_SAID = Message(
    role="assistant",
    blocks=(
        ReasoningBlock(extras={"id": "rs_1", "summary": []}),
        TextBlock(text="a", extras={"item": {"id": "msg_1"}}),
        CallBlock(call=call(extras={"id": "fc_1"})),
    ),
    origin=OWN,
)


@pytest.mark.parametrize(
    ("policy", "is_replayed"),
    [
        (ExportPolicy(), True),
        (ExportPolicy(provider="openai"), True),
        (ExportPolicy(provider="azure"), False),
        (ExportPolicy(replay_provider_data=False), False),
    ],
)
def test_ids_of_items_go_to_the_provider_that_gave_them_alone(
    policy: ExportPolicy, is_replayed: bool
) -> None:
    export = written(OWN_SAID, answered(result(TEXT)), policy=policy)
    ids = [one["id"] for one in items_of(export) if "id" in one]
    assert ids == (["rs_1", "msg_1", "fc_1"] if is_replayed else [])
    assert bool(export.report) is not is_replayed


def test_reasoning_without_its_id_cannot_go_back() -> None:
    said = Message(role="assistant", blocks=(ReasoningBlock(text="a"), TEXT), origin=OWN)
    export = written(said)
    assert items_of(export) == [{"role": "assistant", "content": "ok"}]
    assert kinds(export) == ["block_dropped"]


BUILTIN = [
    call(tool_name="shell", kind="builtin", arguments_raw='{"commands":["ls"]}'),
    call(tool_name="web_search", kind="builtin", arguments_raw="{}"),
    call(tool_name="ask", kind="mcp", namespace="deepwiki"),
]


@pytest.mark.parametrize("one", BUILTIN, ids=lambda one: one.tool_name)
def test_tools_that_a_provider_made_become_functions_elsewhere(one: ToolCall) -> None:
    export = written(asked(one, origin=FOREIGN), answered(result(TEXT)))
    assert [item["type"] for item in items_of(export)] == ["function_call", "function_call_output"]
    assert items_of(export)[0]["arguments"] == one.arguments_raw
    of_server = {"name_renamed"} if one.namespace else set[str]()
    assert set(kinds(export)) == {"provider_data_dropped"} | of_server


def own(name: str, arguments: JsonObject, **extras: object) -> Message:
    one = call(
        tool_name=name, kind="builtin", arguments_raw=json.dumps(arguments), extras=dict(extras)
    )
    return asked(one, origin=OWN)


SHELL = own("shell", {"commands": ["ls"], "max_output_length": 9}, environment={"type": "local"})


@each_case(
    ("status", "outcome", "changes"),
    [
        ("ok", {"type": "exit", "exit_code": 0}, []),
        ("unknown", {"type": "exit", "exit_code": 0}, []),
        ("error", {"type": "exit", "exit_code": 1}, []),
        ("timeout", {"type": "timeout"}, []),
        ("denied", {"type": "exit", "exit_code": 1}, ["status_flattened"]),
    ],
)
def test_a_result_of_the_shell_says_how_it_ended(
    status: str, outcome: JsonObject, changes: list[str]
) -> None:
    export = written(SHELL, answered(result(TEXT, status=status)))
    assert items_of(export) == [
        {
            "type": "shell_call",
            "call_id": "call_1",
            "status": "completed",
            "environment": {"type": "local"},
            "action": {"commands": ["ls"], "max_output_length": 9},
        },
        {
            "type": "shell_call_output",
            "call_id": "call_1",
            "max_output_length": 9,
            "output": [{"stdout": "ok", "stderr": "", "outcome": outcome}],
        },
    ]
    assert kinds(export) == changes


@pytest.mark.parametrize("structured", [[{"stdout": "x"}], {"a": 1}, "x", None])
def test_a_structured_value_that_no_shell_gave_is_not_its_output(structured: object) -> None:
    one = result(TEXT, structured=structured, has_structured=True)
    export = written(SHELL, answered(one))
    told = items_of(export)[1]["output"]
    assert told == [{"stdout": "ok", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]
    assert kinds(export) == ["structured_dropped"]


def test_an_empty_result_of_the_shell_is_empty() -> None:
    export = written(SHELL, answered(result()))
    told = items_of(export)[1]["output"]
    assert told == [{"stdout": "", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]
    assert not export.report


@pytest.mark.parametrize(
    ("status", "native", "changes"),
    [("ok", "completed", []), ("error", "failed", []), ("timeout", "failed", ["status_flattened"])],
)
def test_a_result_of_a_patch_says_whether_it_failed(
    status: str, native: str, changes: list[str]
) -> None:
    patch = own("apply_patch", {"type": "delete_file", "path": "a"}, id="apc_1")
    export = written(patch, answered(result(TEXT, status=status)))
    assert items_of(export)[0]["operation"] == {"type": "delete_file", "path": "a"}
    assert items_of(export)[1] == {
        "type": "apply_patch_call_output",
        "call_id": "call_1",
        "status": native,
        "output": "ok",
    }
    assert kinds(export) == changes


def test_the_local_shell_gets_json() -> None:
    action: JsonObject = {"type": "exec", "command": ["ls"], "env": {}}
    export = written(own("local_shell", action, id="lsh_1"), answered(result(TEXT, status="error")))
    assert items_of(export)[1] == {
        "type": "local_shell_call_output",
        "id": "call_1",
        "output": '{"stdout":"ERROR: ok"}',
    }


CLICK: JsonObject = {"type": "click", "x": 1, "y": 2, "button": "left"}


@each_case(
    "answer",
    [
        result(TEXT),
        result(PNG, status="error"),
        result(PNG, TEXT),
        result(MediaBlock(kind="image", media_type="image/bmp", data="aGk=")),
        result(PNG, structured=1, has_structured=True),
    ],
)
def test_a_computer_that_has_no_picture_is_a_function(answer: ResultBlock) -> None:
    computer = own("computer", CLICK, id="cu_1", pending_safety_checks=[])
    export = written(computer, answered(answer))
    assert [one["type"] for one in items_of(export)] == ["function_call", "function_call_output"]
    assert "provider_data_dropped" in kinds(export)
    native = written(computer, answered(result(PNG)))
    assert [one["type"] for one in items_of(native)] == ["computer_call", "computer_call_output"]


@pytest.mark.parametrize(
    "answer",
    [
        result(TEXT),
        result(structured=[1], has_structured=True),
        result(structured=[], has_structured=True, status="error"),
    ],
)
def test_a_search_for_tools_that_found_no_tools_is_a_function(answer: ResultBlock) -> None:
    export = written(own("tool_search", {"queries": []}, execution="client"), answered(answer))
    assert items_of(export)[0]["type"] == "function_call"


@pytest.mark.parametrize("raw", ["{", "[]", "1"])
def test_a_builtin_call_without_an_action_is_a_function(raw: str) -> None:
    one = call(tool_name="shell", kind="builtin", arguments_raw=raw)
    export = written(asked(one, origin=OWN), answered(result(TEXT)))
    assert items_of(export)[0]["arguments"] == raw


def test_what_the_provider_does_not_take_back_is_told() -> None:
    custom = call(kind="custom", extras={"status": "incomplete", "created_by": "x", "id": "ctc_1"})
    export = written(asked(custom, origin=OWN), answered(result(TEXT)))
    assert items_of(export)[0] == {
        "type": "custom_tool_call",
        "id": "ctc_1",
        "call_id": "call_1",
        "name": "f",
        "input": "{}",
    }
    assert [change.detail for change in export.report] == ["created_by, status"]
    shell = own("shell", {"commands": []}, created_by="x")
    assert [one.detail for one in written(shell, answered(result(TEXT))).report] == ["created_by"]


@pytest.mark.parametrize("status", ["incomplete", "in_progress"])
def test_a_call_that_was_cut_off_can_be_sent(status: str) -> None:
    cut = call(extras={"status": status}, flags=("incomplete",))
    export = written(asked(cut, origin=OWN), answered(result(TEXT)))
    assert items_of(export) == [
        {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call_1", "output": "ok"},
    ]
    assert kinds(export) == ["incomplete_unsaid", "provider_data_dropped"]
    shell = written(own("shell", {"commands": ["ls"]}, status=status), answered(result(TEXT)))
    assert items_of(shell)[0]["status"] == "completed"
    assert kinds(shell) == ["provider_data_dropped"]


@each_case(("kind", "own_id"), [("function", "fc_1"), ("custom", "ctc_1")])
@each_case("item_id", ["fc_1", "ctc_1", "", "item_1", "msg_1"])
def test_an_id_goes_back_with_an_item_of_the_type_that_it_names(
    kind: Literal["function", "custom"], own_id: str, item_id: str
) -> None:
    one = call(kind=kind, extras={"id": item_id})
    export = written(asked(one, origin=OWN), answered(result(TEXT)))
    is_own = item_id == own_id
    assert items_of(export)[0].get("id") == (own_id if is_own else None)
    assert [change.detail for change in export.report] == ([] if is_own else ["id"])


@pytest.mark.parametrize("role", ["system", "developer"])
def test_media_is_for_users_alone(role: str) -> None:
    export = written(Message.model_validate({"role": role, "blocks": (PNG, TEXT)}))
    assert kinds(export) == ["block_described"]


def test_what_no_speaker_but_the_model_says_stays_behind() -> None:
    blocks = (
        ReasoningBlock(text="a"),
        ProviderBlock(native={"type": "x"}),
        TextBlock(text="no", is_refusal=True, extras={"item": {"id": "x"}}),
    )
    export = written(Message(role="user", blocks=blocks))
    assert items_of(export) == [{"role": "user", "content": "no"}]
    assert sorted(kinds(export)) == [
        "block_described",
        "block_dropped",
        "provider_data_dropped",
        "provider_data_dropped",
    ]


def test_a_refusal_is_one_for_its_provider_and_a_text_for_others() -> None:
    block = TextBlock(text="no", is_refusal=True, extras={"item": {"id": "msg_1"}})
    own_export = written(Message(role="assistant", blocks=(block,), origin=OWN))
    assert items_of(own_export)[0]["content"] == [{"type": "refusal", "refusal": "no"}]
    export = written(Message(role="assistant", blocks=(block,)))
    assert items_of(export) == [{"role": "assistant", "content": "no"}]
    assert sorted(kinds(export)) == ["block_described", "provider_data_dropped"]
    assert output_of(block.model_copy(update={"extras": {}}), TEXT)[1] == ["block_described"]


@pytest.mark.parametrize(
    "message",
    [
        Message(role="user"),
        Message(role="assistant"),
        Message(role="assistant", blocks=(ProviderBlock(native=None),), origin=OWN),
        Message(role="assistant", blocks=(ReasoningBlock(),)),
    ],
)
def test_a_message_that_says_nothing_is_left_out(message: Message) -> None:
    export = written(message)
    assert items_of(export) == []
    assert kinds(export)[-1] == "message_empty"


@pytest.mark.parametrize(
    ("namespace", "is_sent"), [("crm", True), ("no good", False), ("x" * 65, False)]
)
def test_a_namespace_is_sent_if_it_is_legal(namespace: str, is_sent: bool) -> None:
    export = written(asked(call(namespace=namespace)), answered(result(TEXT)))
    assert items_of(export)[0].get("namespace") == (namespace if is_sent else None)
    assert bool(export.report) is not is_sent


def test_reasoning_without_an_id_goes_back_as_it_came() -> None:
    items: list[JsonValue] = [
        {"role": "user", "content": "go"},
        {"type": "reasoning", "summary": [], "encrypted_content": "gAAAAA=="},
        {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call_1", "output": "ok"},
    ]
    export = written(*FORMAT.read_history({"input": items}).messages)
    assert export.request["input"] == items
    assert not export.report


def test_texts_that_cannot_be_sent_are_replaced_everywhere() -> None:
    bad = "a\ud800\0"
    said = Message(
        role="assistant",
        blocks=(
            ReasoningBlock(extras={"id": "rs", "summary": [{"type": "summary_text", "text": bad}]}),
            TextBlock(text=bad, extras={"item": {"id": "msg_1"}, "annotations": []}),
            ProviderBlock(native={"type": "compaction", "encrypted_content": bad}),
            CallBlock(call=call(arguments_raw='{"a":"\\ud800"}')),
        ),
        origin=OWN,
    )
    export = written(Message.of("user", bad), said, answered(result(TextBlock(text=bad), PNG)))
    assert "text_replaced" in kinds(export)
    assert json.dumps(export.request, ensure_ascii=False).encode()


def test_a_call_that_the_provider_ran_is_left_out_without_its_id() -> None:
    search: JsonObject = {"type": "web_search_call", "status": "completed"}
    search["action"] = {"type": "search", "query": "x"}
    whole = {**search, "id": "ws_1"}
    said = Message(
        role="assistant",
        origin=OWN,
        blocks=tuple(ProviderBlock(native=one) for one in (search, whole)),
    )
    export = written(said)
    assert items_of(export) == [whole]
    assert kinds(export) == ["provider_data_dropped"]
