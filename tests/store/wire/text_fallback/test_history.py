"""A conversation as messages of text alone, and back: exact up to what the family cannot say."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.store.wire.text_fallback.test_markup import any_texts, forged
from tests.support.cases import each_case
from tests.support.conversations import conversations
from tests.support.nasty_messages import tangled_conversations
from tests.support.wire.fake_provider import request_problems

from tooltrail.records import (
    CallBlock,
    Conversation,
    MediaBlock,
    Message,
    MessageBlock,
    ProviderBlock,
    ReasoningBlock,
    ResultBlock,
    TextBlock,
    ToolCall,
)
from tooltrail.wire import (
    DEFAULT_EXPORT_POLICY,
    Export,
    ExportPolicy,
    ExportRefusedError,
    wire_format,
)
from tooltrail.wire.members import objects_in
from tooltrail.wire.text_fallback import FAMILIES, TextFamily, text_format

families = pytest.mark.parametrize("family", sorted(FAMILIES))
FORMAT = wire_format("text-fallback")
NAMES_RESULTS = {"tool_result": True}
"""Families whose results say the name of the tool; Claude's say it of those that are no errors."""

UNSENDABLE = re.compile("[\x00\ud800-\udfff]")


def written(conversation: Conversation, family: str = "tool_result") -> Export:
    return text_format(family).write_history(conversation, DEFAULT_EXPORT_POLICY)


def again(export: Export, family: str = "tool_result") -> Conversation:
    return text_format(family).read_history(export.request)


def contents(export: Export) -> list[str]:
    messages = export.request["messages"]
    assert isinstance(messages, list)
    found = [one["content"] for one in messages if isinstance(one, dict)]
    return [one for one in found if isinstance(one, str)]


# The row of the loss table: text, names and arguments stay; of ids, names of results and how they
# came out stays what the family has attributes for, and a failure has a prefix where it has none.
def row(conversation: Conversation, family: TextFamily) -> Conversation:
    return Conversation.of(
        message.model_copy(update={"blocks": tuple(_row(one, family) for one in message.blocks)})
        for message in conversation.messages
    )


def _row(block: MessageBlock, family: TextFamily) -> MessageBlock:
    if isinstance(block, CallBlock):
        ids = {} if family.tells_ids else {"call_id": None}
        return block.model_copy(update={"call": block.call.model_copy(update=ids)})
    if not isinstance(block, ResultBlock):
        return block
    changes: dict[str, object] = {} if family.tells_ids else {"call_id": None}
    has_name = family.name in NAMES_RESULTS or (
        family.name == "anthropic-xml" and not block.is_error
    )
    if not has_name:
        changes["tool_name"] = None
    if not family.tells_errors:
        (text,) = block.content
        assert isinstance(text, TextBlock)
        told = text.text
        if block.is_error and not told.startswith("ERROR: "):
            told = f"ERROR: {told}"
        changes["content"] = (TextBlock(text=told),)
        changes["status"] = "error" if told.startswith("ERROR: ") else "unknown"
    return block.model_copy(update=changes)


@families
@given(conversations())
def test_normal_form_comes_back_up_to_the_row_of_the_loss_table(
    family: str, conversation: Conversation
) -> None:
    export = written(conversation, family)
    assert again(export, family) == row(conversation, FAMILIES[family])
    losses = {change.kind for change in export.report}
    # The generic family loses nothing.
    assert losses <= ({"id_dropped", "error_as_prefix"} if family != "tool_result" else set[str]())
    assert ("id_dropped" in losses) <= (not FAMILIES[family].tells_ids)


said = any_texts.map(lambda text: UNSENDABLE.sub("", text)).filter(bool)


@st.composite
def interleaved(draw: st.DrawFn, texts: st.SearchStrategy[str]) -> Conversation:
    """One batch with texts anywhere around its calls, which say anything."""
    blocks: list[MessageBlock] = []
    calls = draw(st.integers(0, 3))
    for position in range(calls):
        if draw(st.booleans()):
            blocks.append(TextBlock(text=draw(texts)))
        raw = draw(st.sampled_from(["{}", '{"a":1}']) | said)
        call = ToolCall(tool_name="f", arguments_raw=raw, call_id=f"c{position}", position=position)
        blocks.append(CallBlock(call=call))
    if not calls or draw(st.booleans()):
        blocks.append(TextBlock(text=draw(texts)))
    results = tuple(
        ResultBlock(call_id=f"c{position}", tool_name="f", content=(TextBlock(text=draw(texts)),))
        for position in range(calls)
    )
    messages = [Message.of("user", draw(texts)), Message(role="assistant", blocks=tuple(blocks))]
    if results:
        messages.append(Message(role="tool", blocks=results))
    return Conversation.of([*messages, Message.of("user", draw(texts))])


def around_a_call(before: str, after: str) -> Conversation:
    call = CallBlock(call=ToolCall(tool_name="f"))
    result = ResultBlock(tool_name="f", content=(TextBlock(text="x"),))
    said = (TextBlock(text=before), call, TextBlock(text=after))
    return Conversation.of(
        [Message(role="assistant", blocks=said), Message(role="tool", blocks=(result,))]
    )


@families
@given(interleaved(said | forged.map(lambda text: UNSENDABLE.sub("", text)).filter(bool)))
@example(around_a_call("```", "```"))
@example(around_a_call('{"name":"x","parameters":', "}"))
@example(Conversation.of([Message.of("assistant", '{"name":"x","parameters":{}}')]))
@example(Conversation.of([Message.of("assistant", '\\{"name":"x","parameters":{}}')]))
def test_texts_around_calls_stay_what_they_are_whatever_they_say(
    family: str, conversation: Conversation
) -> None:
    back = again(written(conversation, family), family)
    expected = row(_with_blank_arguments(conversation), FAMILIES[family])
    assert back.messages[: len(expected.messages)] == expected.messages


def _with_blank_arguments(conversation: Conversation) -> Conversation:
    """Blank arguments are the empty object on every wire."""

    def told(block: MessageBlock) -> MessageBlock:
        if isinstance(block, CallBlock) and block.call.arguments_raw.isspace():
            call = block.call.model_copy(update={"arguments_raw": "{}"})
            return block.model_copy(update={"call": call})
        return block

    return Conversation.of(
        message.model_copy(update={"blocks": tuple(map(told, message.blocks))})
        for message in conversation.messages
    )


def gist(conversation: Conversation) -> list[object]:
    """What is said, asked and answered, and by whom, without what no text can say."""
    told: list[object] = []
    for message in conversation.messages:
        texts: list[str] = []
        for block in message.blocks:
            if isinstance(block, TextBlock) and block.text:
                texts.append(block.text)
            elif isinstance(block, CallBlock):
                call = block.call
                name = (call.namespace or None, call.tool_name)
                told.append(
                    ("call", name, call.call_id or None, call.arguments_raw.strip() or "{}")
                )
            elif isinstance(block, ResultBlock):
                words = [one.text for one in block.content if isinstance(one, TextBlock)]
                told.append(("result", block.status, "\n".join(words)))
        if texts:
            told.append((message.role, sorted("\n".join(texts))))
    return told


@families
@given(conversation=tangled_conversations)
def test_any_conversation_is_written_and_the_second_export_changes_nothing_more(
    family: str, conversation: Conversation
) -> None:
    export = written(conversation, family)
    assert request_problems("openai", export.request) == []
    back = again(export, family)
    second = written(back, family)
    if not export.report:
        assert sorted(map(repr, gist(back))) == sorted(map(repr, gist(conversation)))
    calls = [call for message in conversation.messages for call in message.calls]
    if FAMILIES[family].tells_kinds or all(call.kind == "function" for call in calls):
        assert second.request == export.request
        assert {change.kind for change in second.report} <= {"output_empty"}
    # Free text becomes the arguments of a function at first, and stays that from then on.
    third = written(again(second, family), family)
    assert third.request == second.request


def batch(*results: ResultBlock, text: str = "") -> list[Message]:
    calls = [
        CallBlock(call=ToolCall(tool_name="now", call_id=one.call_id, position=position))
        for position, one in enumerate(results)
    ]
    blocks: tuple[MessageBlock, ...] = (*([TextBlock(text=text)] if text else []), *calls)
    return [Message(role="assistant", blocks=blocks), Message(role="tool", blocks=results)]


def test_messages_are_text_alone() -> None:
    result = ResultBlock(call_id="a", tool_name="now", content=(TextBlock(text="noon"),))
    export = FORMAT.write_history(
        Conversation.of(
            [
                Message.of("system", "Be brief."),
                Message.of("user", "What time is it?"),
                *batch(result, text="Let me look."),
                Message.of("assistant", "Noon."),
            ]
        ),
        DEFAULT_EXPORT_POLICY,
    )
    assert export.request == {
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "What time is it?"},
            {
                "role": "assistant",
                "content": 'Let me look.\n\n<tool_call id="a" name="now">\n{}\n</tool_call>',
            },
            {
                "role": "user",
                "content": '<tool_result id="a" name="now" status="ok">\nnoon\n</tool_result>',
            },
            {"role": "assistant", "content": "Noon."},
        ]
    }
    assert not export.report


def test_the_policy_names_the_family_and_a_format_of_one_family_keeps_it() -> None:
    conversation = Conversation.of(batch(ResultBlock(tool_name="now")))
    by_policy = FORMAT.write_history(conversation, ExportPolicy(text_family="hermes"))
    assert contents(by_policy)[0].startswith('<tool_call>\n{"name": "now"')
    of_family = text_format("hermes").write_history(conversation, ExportPolicy())
    assert of_family.request == by_policy.request


@each_case(
    ("message", "kind", "content"),
    [
        (Message.of("developer", "x"), "role_changed", "x"),
        (
            Message(role="user", blocks=(MediaBlock(kind="image", uri="a.png"),)),
            "block_described",
            "[image of unknown type, a.png]",
        ),
        (
            Message(role="assistant", blocks=(ReasoningBlock(text="hm"), TextBlock(text="x"))),
            "block_dropped",
            "x",
        ),
        (
            Message(role="assistant", blocks=(ProviderBlock(native={}), TextBlock(text="x"))),
            "provider_data_dropped",
            "x",
        ),
        (
            Message(role="assistant", blocks=(TextBlock(text="No.", is_refusal=True),)),
            "block_described",
            "No.",
        ),
        (
            Message(role="user", blocks=(TextBlock(text="x", extras={"cache": 1}),)),
            "provider_data_dropped",
            "x",
        ),
        (Message.of("user", "x\0"), "text_replaced", "x\ufffd"),
    ],
)
def test_what_text_cannot_say_is_told(message: Message, kind: str, content: str) -> None:
    export = written(Conversation.of([message]))
    assert contents(export) == [content]
    assert [change.kind for change in export.report] == [kind]
    with pytest.raises(ExportRefusedError, match=kind):
        FORMAT.write_history(Conversation.of([message]), ExportPolicy(strict=True))


@each_case(
    ("call", "kinds"),
    [
        (ToolCall(tool_name="f", extras={"signature": "x"}), ["provider_data_dropped"]),
        (ToolCall(tool_name="f", kind="mcp"), ["provider_data_dropped"]),
        (ToolCall(tool_name="f", kind="custom"), []),
        (ToolCall(tool_name="f", namespace="files"), []),
        (ToolCall(tool_name="f", namespace="a___b"), ["name_renamed"]),
        (ToolCall(tool_name="f", namespace="a_"), ["name_renamed"]),
        (ToolCall(tool_name="a___b"), []),
    ],
)
def test_what_the_text_of_a_call_cannot_say_is_told(call: ToolCall, kinds: list[str]) -> None:
    messages = [
        Message(role="assistant", blocks=(CallBlock(call=call),)),
        Message(role="tool", blocks=(ResultBlock(content=(TextBlock(text="x"),)),)),
    ]
    export = written(Conversation.of(messages))
    assert [change.kind for change in export.report] == kinds
    (back,) = again(export).messages[0].calls
    if not kinds:
        blank = "" if call.kind == "custom" else "{}"
        assert back == call.model_copy(update={"arguments_raw": call.arguments_raw or blank})


@pytest.mark.parametrize("blocks", [(), (TextBlock(text=""),), (ReasoningBlock(text="hm"),)])
def test_an_assistant_that_says_nothing_is_left_out(blocks: tuple[MessageBlock, ...]) -> None:
    silent = Message(role="assistant", blocks=blocks)
    export = written(Conversation.of([Message.of("user", ""), silent]))
    assert export.request == {"messages": [{"role": "user", "content": ""}]}
    assert "message_empty" in {change.kind for change in export.report}


def test_a_text_without_a_word_parts_no_calls_whatever_else_it_has() -> None:
    calls = [CallBlock(call=ToolCall(tool_name=name, arguments_raw="{}")) for name in ("a", "b")]
    silent = TextBlock(text="", extras={"citations": []})
    said = Message(role="assistant", blocks=(calls[0], silent, calls[1]))
    export = written(Conversation.of([said]), "anthropic-xml")
    (message, _) = objects_in(export.request["messages"])
    assert str(message["content"]).count("<function_calls>") == 1
    (dropped,) = export.report.of_kind("provider_data_dropped")
    assert dropped.detail == "citations"


def test_a_custom_call_is_told_to_be_one_only_by_the_generic_family() -> None:
    call = ToolCall(tool_name="sql", arguments_raw="SELECT 1", kind="custom")
    messages = [Message(role="assistant", blocks=(CallBlock(call=call),)), *batch()[1:]]
    for family in FAMILIES:
        export = written(Conversation.of(messages), family)
        (back,) = again(export, family).messages[0].calls
        assert back.arguments_raw == "SELECT 1"
        told = [one.detail for one in export.report if one.kind == "provider_data_dropped"]
        if family == "tool_result":
            assert (back.kind, told) == ("custom", [])
        else:
            assert (back.kind, told) == ("function", ["the kind custom"])


@pytest.mark.parametrize(
    "status", ["ok", "error", "timeout", "cancelled", "interrupted", "denied", "unknown"]
)
@families
def test_how_a_call_came_out_is_told_as_far_as_the_family_can(family: str, status: str) -> None:
    result = ResultBlock.model_validate(
        {"status": status, "content": [{"type": "text", "text": "x"}]}
    )
    export = written(Conversation.of(batch(result)), family)
    (back,) = again(export, family).messages[1].results
    kinds = {change.kind for change in export.report}
    assert back.is_error is result.is_error
    if family == "tool_result":
        assert (back.status, kinds) == (status, set())
    elif result.is_error:
        assert back.status == "error"
        assert ("status_flattened" in kinds) is (status != "error")
        assert ("error_as_prefix" in kinds) is (family != "anthropic-xml")
    elif family == "anthropic-xml":
        assert back.status == "ok"
        assert ("status_flattened" in kinds) is (status == "unknown")
    else:
        assert back.status == "unknown"


@families
def test_a_long_session_takes_no_longer_for_each_call(family: str) -> None:
    calls = [
        CallBlock(call=ToolCall(tool_name="now", call_id=f"c{n}", position=n)) for n in range(3000)
    ]
    results = [
        ResultBlock(call_id=f"c{n}", tool_name="now", content=(TextBlock(text="```"),))
        for n in range(3000)
    ]
    one_batch = [
        Message(role="assistant", blocks=(TextBlock(text="```\n{\n```"), *calls)),
        Message(role="tool", blocks=tuple(results)),
    ]
    many = [message for one in results[:1000] for message in batch(one, text="```\nx\n```")]
    export = written(Conversation.of([*one_batch, *many]), family)
    assert sum(len(one.calls) for one in again(export, family).messages) == 4000
