"""The input of Responses requests."""

from typing import cast

import pytest
from tests.support.cases import each_case

from tooltrail.records import (
    Conversation,
    InvalidRecordError,
    MediaBlock,
    Message,
    Origin,
    ProviderBlock,
    ReasoningBlock,
    ResultBlock,
    TextBlock,
    ToolDefinition,
)
from tooltrail.wire import DEFAULT_EXPORT_POLICY, ExportPolicy, JsonObject
from tooltrail.wire.members import LAYOUT
from tooltrail.wire.openai_responses import FORMAT

OWN = Origin(wire_format="openai-responses")


def call(number: int, **members: object) -> JsonObject:
    whole = {"type": "function_call", "call_id": f"call_{number}", "name": "f", "arguments": "{}"}
    return JsonObjects.of({**whole, **members})


def output(number: int, text: object = "ok", **members: object) -> JsonObject:
    whole = {"type": "function_call_output", "call_id": f"call_{number}", "output": text}
    return JsonObjects.of({**whole, **members})


class JsonObjects:
    """Objects of any members as JSON."""

    @staticmethod
    def of(members: dict[str, object]) -> JsonObject:
        return cast("JsonObject", members)


def read(*items: object, **members: object) -> tuple[Message, ...]:
    return FORMAT.read_history(JsonObjects.of({"input": [*items], **members})).messages


def only_result(*items: object) -> ResultBlock:
    (result,) = read(*items)[-1].results
    return result


def rewritten(*items: object) -> object:
    conversation = FORMAT.read_history(JsonObjects.of({"input": [*items]}))
    export = FORMAT.write_history(conversation, DEFAULT_EXPORT_POLICY)
    assert not export.report
    return export.request["input"]


def test_a_text_is_what_the_user_says_and_instructions_stand_in_front() -> None:
    conversation = FORMAT.read_history(
        {
            "input": "Hello.",
            "instructions": "Be kind.",
            "tools": [{"type": "function", "name": "f", "parameters": None, "strict": None}],
        }
    )
    origin = Origin(wire_format="openai-responses", extras={LAYOUT: "instructions"})
    instructions = Message.of("system", "Be kind.").model_copy(update={"origin": origin})
    assert conversation.messages == (instructions, Message.of("user", "Hello."))
    assert conversation.tools == (ToolDefinition(name="f"),)


@pytest.mark.parametrize(
    "request_",
    [
        {"instructions": "Be kind.", "input": [{"role": "user", "content": "Hello."}]},
        {"input": [{"role": "system", "content": "Be kind."}]},
        {
            "instructions": "Be kind.",
            "input": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "a"}],
        },
    ],
)
def test_instructions_stay_instructions_and_a_system_message_stays_in_the_input(
    request_: JsonObject,
) -> None:
    export = FORMAT.write_history(FORMAT.read_history(request_), ExportPolicy(strict=True))
    assert export.request == request_


def test_instructions_that_are_not_in_front_are_a_system_message() -> None:
    conversation = FORMAT.read_history({"instructions": "Be kind.", "input": "Hello."})
    export = FORMAT.write_history(Conversation.of(conversation.messages * 2))
    assert export.request == {
        "instructions": "Be kind.",
        "input": [
            {"role": "user", "content": "Hello."},
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": "Hello."},
        ],
    }


@pytest.mark.parametrize("request_", [{}, {"input": None}, {"input": {}}, {"messages": []}])
def test_a_request_without_input_is_refused(request_: JsonObject) -> None:
    with pytest.raises(InvalidRecordError):
        FORMAT.read_history(request_)


def test_items_up_to_the_next_output_are_one_turn() -> None:
    messages = read(
        {"role": "developer", "content": "d"},
        {"role": "user", "content": [{"type": "input_text", "text": "u"}]},
        {"role": "assistant", "content": "thinking"},
        call(1),
        {"role": "assistant", "content": "and"},
        call(2),
        output(1),
        output(2, "ERROR: no"),
        call(3),
        output(3),
        {"type": "message", "role": "assistant", "content": "done"},
    )
    roles = ["developer", "user", "assistant", "tool", "assistant", "tool", "assistant"]
    assert [message.role for message in messages] == roles
    assert [block.type for block in messages[2].blocks] == ["text", "tool_call"] * 2
    assert [one.position for one in messages[2].calls] == [0, 1]
    assert [(one.call_id, one.status) for one in messages[3].results] == [
        ("call_1", "unknown"),
        ("call_2", "error"),
    ]
    assert all(message.origin is None for message in messages)


def test_a_turn_with_ids_and_reasoning_has_an_origin_and_goes_back_as_it_came() -> None:
    items: list[JsonObject] = [
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"},
        call(1, id="fc_1", caller={"type": "program", "caller_id": "p"}),
        output(1, caller={"type": "program", "caller_id": "p"}, id="fco_1"),
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "phase": "commentary",
            "content": [
                {"type": "output_text", "text": "a", "annotations": []},
                {"type": "refusal", "refusal": "no"},
            ],
        },
        {
            "type": "message",
            "id": "msg_2",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "b", "annotations": []}],
        },
    ]
    messages = read(*items)
    assert [message.origin for message in messages] == [OWN, OWN, OWN]
    assert isinstance(messages[0].blocks[0], ReasoningBlock)
    assert rewritten(*items) == items


def test_what_an_output_says_for_its_provider_goes_back_where_the_call_has_nothing_to_say() -> None:
    items = [call(1), output(1, status="incomplete"), call(2), output(2)]
    assert [message.origin for message in read(*items)] == [None, OWN, None, None]
    assert rewritten(*items) == items


def test_items_that_only_the_provider_understands_keep_their_place() -> None:
    items: list[JsonObject] = [
        {"role": "user", "content": "u"},
        {"type": "mcp_list_tools", "id": "m", "server_label": "s", "tools": []},
        {"type": "mcp_approval_request", "id": "r", "arguments": "{}", "name": "n"},
        {"type": "mcp_approval_response", "approval_request_id": "r", "approve": True},
        {"id": "msg_9"},
        call(1),
        {"type": "additional_tools", "role": "developer", "tools": []},
        output(1),
        {"type": "brand_new", "x": 1},
        {"type": "compaction", "encrypted_content": "z"},
    ]
    messages = read(*items)
    assert [message.role for message in messages] == ["user", "assistant", "tool", "assistant"]
    assert messages[3].blocks == tuple(ProviderBlock(native=one) for one in items[-2:])
    # All outputs stand behind the last item of the turn.
    assert rewritten(*items) == items


def test_images_and_files_of_messages_and_outputs() -> None:
    image = {"type": "input_image", "image_url": "data:image/png;base64,aGk=", "detail": "auto"}
    parts = [
        {"type": "input_text", "text": "see"},
        image,
        {"type": "input_image", "image_url": "https://x/y.png", "detail": "high"},
        {"type": "input_image", "file_id": "file-1", "detail": "auto"},
        {
            "type": "input_file",
            "filename": "a.pdf",
            "file_data": "data:application/pdf;base64,aGk=",
        },
        {"type": "input_file", "filename": "b", "file_data": "aGk="},
        {"type": "input_file", "file_url": "https://x/y.pdf"},
        {"type": "input_file", "file_id": "file-2"},
        {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}},
        {"type": "input_image", "detail": "auto"},
        {"type": "input_file"},
    ]
    blocks = (
        TextBlock(text="see"),
        MediaBlock(kind="image", media_type="image/png", data="aGk="),
        MediaBlock(kind="image", uri="https://x/y.png", extras={"detail": "high"}),
        MediaBlock(kind="image", uri="file:file-1"),
        MediaBlock(kind="document", media_type="application/pdf", data="aGk=", name="a.pdf"),
        MediaBlock(kind="document", data="aGk=", name="b"),
        MediaBlock(kind="document", uri="https://x/y.pdf"),
        MediaBlock(kind="document", uri="file:file-2"),
        *(ProviderBlock.model_validate({"native": part}) for part in parts[-3:]),
    )
    (message,) = read({"role": "user", "content": parts})
    assert message == Message(role="user", blocks=blocks, origin=OWN)
    assert only_result(call(1), output(1, parts)).content == blocks
    items = [{"role": "user", "content": parts}, call(1), output(1, parts)]
    assert rewritten(*items) == items


def test_an_output_without_a_call_is_a_result_of_its_own() -> None:
    result = only_result({"type": "function_call_output", "name": "f", "output": "x"})
    assert (result.call_id, result.tool_name) == (None, "f")
    export = FORMAT.write_history(
        FORMAT.read_history({"input": [output(7)]}), DEFAULT_EXPORT_POLICY
    )
    assert export.report.of_kind("result_orphaned")
    items = export.request["input"]
    assert isinstance(items, list)
    assert [one.get("role") for one in items if isinstance(one, dict)] == ["user"]


def shell(code: int | None, out: str = "", err: str = "") -> JsonObject:
    exited = {"type": "exit", "exit_code": code}
    outcome = {"type": "timeout"} if code is None else exited
    return JsonObjects.of({"stdout": out, "stderr": err, "outcome": outcome})


@pytest.mark.parametrize(
    ("entries", "status", "text"),
    [
        ([shell(0, "a\n"), shell(0, "b", "c")], "ok", "a\n\nb\nc"),
        ([shell(0, "a"), shell(2, "", "bad")], "error", "a\nbad"),
        ([shell(1), shell(None)], "timeout", ""),
        ([], "unknown", ""),
    ],
)
def test_a_shell_says_how_each_command_ended(
    entries: list[JsonObject], status: str, text: str
) -> None:
    item: JsonObject = {
        "type": "shell_call",
        "id": "sh_1",
        "call_id": "call_1",
        "status": "completed",
        "action": {"commands": ["ls"], "max_output_length": 9},
    }
    told = {
        "type": "shell_call_output",
        "call_id": "call_1",
        "max_output_length": 9,
        "output": entries,
    }
    result = only_result(item, told)
    assert result.status == status
    assert "".join(one.text for one in result.content if isinstance(one, TextBlock)) == text
    assert result.structured == entries
    assert rewritten(item, told) == [item, told]


@pytest.mark.parametrize(
    ("native", "status", "result"),
    [("completed", "ok", "applied"), ("failed", "error", "hunk 1 failed")],
)
def test_a_patch_says_whether_it_was_applied(native: str, status: str, result: str) -> None:
    item: JsonObject = {
        "type": "apply_patch_call",
        "id": "apc_1",
        "call_id": "call_1",
        "status": "completed",
        "operation": {"type": "delete_file", "path": "a"},
    }
    told = {
        "type": "apply_patch_call_output",
        "call_id": "call_1",
        "status": native,
        "output": result,
    }
    read_back = only_result(item, told)
    assert (read_back.status, read_back.content) == (status, (TextBlock(text=result),))
    assert rewritten(item, told) == [item, told]


@each_case("name", ["call_1", "lsh_1"])
@each_case(
    ("native", "text"),
    [
        ('{"stdout":"a\\n"}', "a\n"),
        ('{"stdout":"a","stderr":""}', '{"stdout":"a","stderr":""}'),
        ("plain", "plain"),
        ('{"stdout":"{}"}', "{}"),
    ],
)
def test_a_local_shell_answers_with_json_and_either_id(name: str, native: str, text: str) -> None:
    item: JsonObject = {
        "type": "local_shell_call",
        "id": "lsh_1",
        "call_id": "call_1",
        "status": "completed",
        "action": {"type": "exec", "command": ["ls"], "env": {}},
    }
    told = {"type": "local_shell_call_output", "id": name, "output": native}
    result = only_result(item, told)
    assert (result.call_id, result.content) == ("call_1", (TextBlock(text=text),))
    if native == '{"stdout":"a\\n"}':
        assert rewritten(item, told) == [item, {**told, "id": "call_1"}]


def test_a_local_shell_whose_output_is_no_text() -> None:
    told = {"type": "local_shell_call_output", "id": "x", "output": {"a": 1}}
    assert only_result(told).content == (TextBlock(text='{"a":1}'),)
    assert only_result({**told, "output": None}).content == ()
    odd = {"type": "function_call_output", "call_id": "x", "output": {"a": 1}}
    assert only_result(odd).content == (ProviderBlock(native={"a": 1}),)


@pytest.mark.parametrize(
    "place", [{"image_url": "data:image/png;base64,aGk="}, {"file_id": "file-1"}]
)
def test_a_computer_answers_with_a_picture(place: dict[str, str]) -> None:
    item: JsonObject = {
        "type": "computer_call",
        "id": "cu_1",
        "call_id": "call_1",
        "status": "completed",
        "actions": [{"type": "wait"}],
        "pending_safety_checks": [{"id": "s"}],
    }
    told = {
        "type": "computer_call_output",
        "call_id": "call_1",
        "acknowledged_safety_checks": [{"id": "s"}],
        "output": {"type": "computer_screenshot", **place},
    }
    (block,) = only_result(item, told).content
    assert isinstance(block, MediaBlock)
    assert rewritten(item, told) == [item, told]
    strange = {**told, "output": {"type": "hologram"}}
    (block,) = only_result(item, strange).content
    assert block == ProviderBlock(native={"type": "hologram"})


def test_a_search_for_tools_is_answered_with_tools() -> None:
    item: JsonObject = {
        "type": "tool_search_call",
        "call_id": "call_1",
        "execution": "client",
        "status": "completed",
        "arguments": {"queries": ["x"]},
    }
    tools = [{"type": "function", "name": "f", "parameters": None, "strict": None}]
    told = {
        "type": "tool_search_output",
        "call_id": "call_1",
        "execution": "client",
        "status": "completed",
        "tools": tools,
    }
    result = only_result(item, told)
    assert (result.structured, result.content) == (tools, ())
    assert rewritten(item, told) == [item, told]
    hosted = [
        {**item, "execution": "server", "call_id": None},
        {**told, "execution": "server", "call_id": None},
    ]
    (message,) = read(*hosted)
    assert [type(block) for block in message.blocks] == [ProviderBlock, ProviderBlock]
    assert rewritten(*hosted) == hosted


def test_a_hosted_shell_and_its_output_go_back_as_they_came() -> None:
    items: list[JsonObject] = [
        {
            "type": "shell_call",
            "id": "sh",
            "call_id": "call_1",
            "status": "completed",
            "action": {"commands": ["ls"]},
            "environment": {"type": "container_reference", "container_id": "c"},
        },
        {"type": "shell_call_output", "call_id": "call_1", "output": [shell(0)]},
    ]
    (message,) = read(*items)
    assert message.calls == ()
    assert rewritten(*items) == items


def test_a_part_of_the_assistant_that_is_not_understood_is_no_item() -> None:
    said = {"role": "assistant", "content": [{"type": "hologram"}]}
    (message,) = read(said)
    assert message.blocks == (ProviderBlock(native={"type": "hologram"}, extras={"item": {}}),)
    assert rewritten(said) == [said]
    whole: JsonObject = {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "hologram"}, {"type": "output_text", "text": "a", "annotations": []}],
    }
    assert rewritten(whole) == [whole]
    phased = {"role": "assistant", "content": "a", "phase": "commentary"}
    assert rewritten(phased) == [phased]
