"""A conversation in steps: whether a batch is told natively or as text is decided once for it."""

import json
from collections.abc import Sequence
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.cases import each_case
from tests.support.conversations import conversations
from tests.support.nasty_messages import tangled_conversations
from tests.support.wire.checks import history_problems

from tooltrail.records import (
    CallBlock,
    Conversation,
    Message,
    MessageBlock,
    ProviderBlock,
    ResultBlock,
    Role,
    TextBlock,
    ToolCall,
)
from tooltrail.wire import Capabilities, ExportPolicy
from tooltrail.wire._steps import Answered, Step, steps
from tooltrail.wire._writing import Writing
from tooltrail.wire.openai_chat import FORMAT as OPENAI

NEEDS_IDS = Capabilities()
DOES_WITHOUT = Capabilities(needs_call_ids=False, call_id_scope="batch")
NO_RESULT = "[no result recorded: interrupted; outcome unknown, verify before retrying]"


def batch(*ids: str | None, results: Sequence[str | None] | None = None) -> list[Message]:
    """Calls with these ids, and results with the same ids or with those given."""
    calls = [
        CallBlock(call=ToolCall(tool_name=f"tool_{n}", call_id=one, position=n))
        for n, one in enumerate(ids)
    ]
    told = [
        ResultBlock(call_id=one, tool_name=f"tool_{n}", content=(TextBlock(text=f"result {n}"),))
        for n, one in enumerate(ids if results is None else results)
    ]
    asked: tuple[MessageBlock, ...] = (TextBlock(text="Let me look."), *calls)
    return [Message(role="assistant", blocks=asked), Message(role="tool", blocks=tuple(told))]


def taken(
    messages: Sequence[Message], able: Capabilities = NEEDS_IDS, policy: ExportPolicy | None = None
) -> tuple[list[Step], Writing]:
    writing = Writing("openai", able, policy or ExportPolicy())
    return list(steps(writing, Conversation.of(messages))), writing


def kinds(writing: Writing) -> list[str]:
    return [change.kind for change in writing.report]


@each_case("ids", list(product(["a", "b", "", None], repeat=2)))
def test_one_call_without_an_id_makes_the_whole_batch_text_where_ids_are_needed(
    ids: tuple[str | None, str | None],
) -> None:
    found, writing = taken(batch(*ids))
    if all(ids):
        (step,) = found
        assert len(step.answered) == 2
        assert "batch_as_text" not in kinds(writing)
    else:
        asked, told = found
        assert not asked.answered
        assert not told.answered
        assert (asked.message.role, told.message.role) == ("assistant", "user")
        assert asked.message.text.startswith("Let me look.")
        assert not asked.message.calls
        for number in range(2):
            assert f"tool_{number}" in asked.message.text
            assert f"result {number}" in told.message.text
        assert kinds(writing) == ["batch_as_text"]


@each_case("ids", list(product(["a", "b", "", None], repeat=2)))
@each_case(
    ("able", "policy"),
    [(DOES_WITHOUT, ExportPolicy()), (NEEDS_IDS, ExportPolicy(ids="synthesise"))],
    ids=["ids are not needed", "ids are made"],
)
def test_a_batch_is_native_where_ids_are_not_needed_or_made(
    able: Capabilities, policy: ExportPolicy, ids: tuple[str | None, str | None]
) -> None:
    found, writing = taken(batch(*ids), able, policy)
    (step,) = found
    assert step.answered
    wire_ids = [one.wire_id for one in step.answered]
    if able.needs_call_ids:
        assert all(wire_ids)
        assert len(set(wire_ids)) == 2
        assert kinds(writing).count("id_synthesised") == sum(not one for one in ids)
    else:
        assert [bool(one) for one in wire_ids] == [bool(one) for one in ids]
        assert "id_synthesised" not in kinds(writing)
    assert [one.result.content[0] for one in step.answered] == [
        TextBlock(text="result 0"),
        TextBlock(text="result 1"),
    ]


def test_each_batch_decides_for_itself() -> None:
    found, _ = taken([*batch("a"), *batch(None), *batch("b")])
    assert [len(step.answered) for step in found] == [1, 0, 0, 1]


@given(st.lists(st.lists(st.sampled_from(["a", "b", None]), min_size=1, max_size=3), max_size=4))
def test_in_chat_completions_no_result_is_ever_without_its_call(
    batches: list[list[str | None]],
) -> None:
    messages = [message for ids in batches for message in batch(*ids)]
    request = OPENAI.write_history(Conversation.of(messages), ExportPolicy()).request
    assert history_problems("openai", request) == []
    written = request["messages"]
    assert isinstance(written, list)
    pending: list[object] = []
    for native in written:
        assert isinstance(native, dict)
        if native["role"] == "tool":
            pending.remove(native["tool_call_id"])
            continue
        assert not pending
        calls = native.get("tool_calls")
        for call in calls if isinstance(calls, list) else []:
            assert isinstance(call, dict)
            pending.append(call["id"])
    assert not pending
    as_text = sum(None in ids for ids in batches)
    assert json.dumps(written).count("tool_result id=") + json.dumps(written).count(
        "<tool_result name="
    ) == sum(len(ids) for ids in batches if None in ids)
    assert len(written) == sum(2 if None in ids else 1 + len(ids) for ids in batches)
    assert as_text <= len(batches)


def test_an_id_that_was_made_on_the_way_in_stays_away_from_a_format_that_needs_none() -> None:
    call = ToolCall(tool_name="now", call_id="call_0_0", flags=("id_synthesised",))
    messages = [
        Message(role="assistant", blocks=(CallBlock(call=call),)),
        Message(role="tool", blocks=(ResultBlock(call_id="call_0_0"),)),
    ]
    for able, wire_id, report in (
        (DOES_WITHOUT, None, []),
        (NEEDS_IDS, "call_0_0", ["id_synthesised"]),
    ):
        (step,), writing = taken(messages, able)
        assert step.answered[0].wire_id == wire_id
        assert kinds(writing) == report


def test_a_batch_as_text_names_the_ids_of_the_calls_even_where_results_have_others() -> None:
    calls = (
        CallBlock(call=ToolCall(tool_name="now", call_id="a"), key="1"),
        CallBlock(call=ToolCall(tool_name="then", call_id=None), key="2"),
    )
    results = (ResultBlock(call_id="z", key="1"), ResultBlock(call_id="y", key="2"))
    (_, told), _ = taken(
        [Message(role="assistant", blocks=calls), Message(role="tool", blocks=results)]
    )
    assert not told.answered
    assert '<tool_result id="a" name="now"' in told.message.text
    assert '<tool_result name="then"' in told.message.text


def test_a_batch_as_text_tells_what_its_family_does_not_say_of_a_call() -> None:
    asked, told = batch("a", None)
    kind = asked.calls[0].model_copy(update={"kind": "mcp"})
    blocks = (CallBlock(call=kind), *asked.blocks[2:])
    messages = [asked.model_copy(update={"blocks": blocks}), told]
    _, writing = taken(messages, policy=ExportPolicy(text_family="hermes"))
    assert {"id_dropped", "provider_data_dropped"} <= set(kinds(writing))


def test_a_call_without_a_result_gets_one_that_says_so() -> None:
    found, writing = taken(batch("a", "b", results=["a"]))
    (step,) = found
    assert step.answered[1].result.status == "interrupted"
    assert step.answered[1].result.is_error
    assert step.answered[1].result.content == (TextBlock(text=NO_RESULT),)
    assert [(one.kind, one.where) for one in writing.report] == [
        ("result_missing", "messages[0].calls[1]")
    ]


def test_a_call_without_a_result_is_left_out_where_the_policy_says_so() -> None:
    drop = ExportPolicy(unanswered="drop")
    (step,), writing = taken(batch("a", "b", results=["a"]), policy=drop)
    assert step.answered
    assert [one.call.call_id for one in step.answered] == ["a"]
    said = [block for block in step.blocks() if not isinstance(block, Answered)]
    assert said == [TextBlock(text="Let me look.")]
    assert kinds(writing) == ["result_missing"]
    # A batch of which nothing is left is what was said beside it, or nothing at all.
    (alone,), _ = taken(batch("a", results=[])[:1], policy=drop)
    assert alone == Step(Message.of("assistant", "Let me look."), "messages[0]")
    bare = Message(role="assistant", blocks=(CallBlock(call=ToolCall(tool_name="now")),))
    assert taken([bare], policy=drop)[0] == []


def test_a_call_left_out_does_not_make_its_batch_text() -> None:
    (step,), _ = taken(batch("a", None, results=["a"]), policy=ExportPolicy(unanswered="drop"))
    assert step.answered


def test_an_orphan_is_told_as_text_by_the_user_where_it_stands() -> None:
    orphan = ResultBlock(call_id="x", status="error", content=(TextBlock(text="lost"),))
    found, writing = taken([Message.of("user", "hello"), Message(role="tool", blocks=(orphan,))])
    assert [step.message.role for step in found] == ["user", "user"]
    assert found[1].message.text == (
        '<tool_result id="x" name="(unnamed)" status="error">\nlost\n</tool_result>'
    )
    assert kinds(writing) == ["result_orphaned"]


@pytest.mark.parametrize("role", ["user", "system", "developer", "tool"])
def test_calls_are_the_assistants_whoever_is_said_to_have_made_them(role: Role) -> None:
    asked, told = batch("a")
    (step,), writing = taken([asked.model_copy(update={"role": role}), told])
    assert step.answered
    assert step.message.role == "assistant"
    assert "role_changed" in kinds(writing)


def test_what_stands_beside_results_is_said_by_the_user_and_that_is_told() -> None:
    asked, told = batch("a")
    both = told.model_copy(update={"blocks": (TextBlock(text="by the way"), *told.blocks)})
    found, writing = taken([asked, both])
    assert found[1] == Step(Message.of("user", "by the way"), "messages[1]")
    assert kinds(writing) == ["role_changed"]


def test_a_user_message_with_results_keeps_what_else_it_says() -> None:
    asked, told = batch("a")
    blocks = (*told.blocks, TextBlock(text="by the way"))
    found, writing = taken([asked, Message(role="user", blocks=blocks)])
    assert found[1].message == Message.of("user", "by the way")
    assert kinds(writing) == ["result_moved"]


def test_results_in_the_message_that_asks_are_told_once() -> None:
    asked, told = batch("a")
    (step,), _ = taken([asked.model_copy(update={"blocks": (*asked.blocks, *told.blocks)})])
    assert step.answered
    assert [type(block) for block in step.blocks()] == [TextBlock, Answered]
    assert step.answered[0].result == told.results[0]


def test_blocks_keep_their_order_around_the_calls() -> None:
    calls = [CallBlock(call=ToolCall(tool_name="now", call_id=one)) for one in "ab"]
    provider = ProviderBlock(native={"type": "search"})
    asked = Message(role="assistant", blocks=(calls[0], provider, calls[1], TextBlock(text="x")))
    results = tuple(ResultBlock(call_id=one) for one in "ab")
    (step,), _ = taken([asked, Message(role="tool", blocks=results)])
    assert step.answered
    blocks = list(step.blocks())
    assert [blocks[1], blocks[3]] == [provider, TextBlock(text="x")]
    assert [one.call for one in blocks if isinstance(one, Answered)] == [
        calls[0].call,
        calls[1].call,
    ]


@given(conversations())
def test_normal_form_is_told_step_by_step_and_nothing_changes(conversation: Conversation) -> None:
    found, writing = taken(conversation.messages)
    assert not writing.report
    again: list[Message] = []
    for step in found:
        again.append(step.message)
        if step.answered:
            results = tuple(one.result for one in step.answered)
            again.append(Message(role="tool", blocks=results))
            assert [one.wire_id for one in step.answered] == [
                one.call_id for one in step.message.calls
            ]
    assert again == list(conversation.messages)


@pytest.mark.parametrize("able", [NEEDS_IDS, DOES_WITHOUT])
@given(
    conversation=tangled_conversations,
    policy=st.builds(
        ExportPolicy,
        ids=st.sampled_from(["fallback", "synthesise"]),
        unanswered=st.sampled_from(["mark", "drop"]),
    ),
)
def test_every_step_can_be_written_whatever_the_conversation(
    able: Capabilities, conversation: Conversation, policy: ExportPolicy
) -> None:
    found, writing = taken(conversation.messages, able, policy)
    wire_ids: list[str | None] = []
    for step in found:
        assert not any(isinstance(one, ResultBlock) for one in step.message.blocks)
        assert step.message.role != "tool"
        if not step.answered:
            assert not step.message.calls
            continue
        assert step.message.role == "assistant"
        assert step.answered
        assert [one for one in step.blocks() if isinstance(one, Answered)] == list(step.answered)
        for one in step.answered:
            assert writing.capabilities.tool_name.fullmatch(one.wire_name)
        wire_ids.extend(one.wire_id for one in step.answered)
    if able.needs_call_ids:
        assert None not in wire_ids
        assert len(set(wire_ids)) == len(wire_ids)
