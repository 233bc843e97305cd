"""Conversations that any provider could have had, for properties of wire formats.

They are in normal form: every call has exactly one result, in the next message and in the order of
the calls. The test of a format states what the format loses, by its row of the loss table.
"""

from collections.abc import Callable

from hypothesis import strategies as st

from tooltrail.records import (
    CallBlock,
    Conversation,
    Message,
    MessageBlock,
    ReasoningBlock,
    ResultBlock,
    ResultStatus,
    TextBlock,
    ToolCall,
    canonical_json,
)

# Texts that every provider accepts: no control characters but tab and newline, no surrogates.
sendable_texts = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")) | st.sampled_from("\t\n"),
    max_size=40,
)
spoken_texts = sendable_texts.filter(lambda text: bool(text.strip()))
call_ids = st.from_regex(r"call_[a-zA-Z0-9]{1,20}", fullmatch=True)
tool_names = st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_]{0,30}", fullmatch=True)
numbers = st.integers(-(2**53), 2**53) | st.floats(-1e9, 1e9).filter(lambda x: x != int(x))
json_values = st.recursive(
    st.none() | st.booleans() | numbers | sendable_texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(sendable_texts, inner, max_size=3),
    max_leaves=6,
)
json_objects = st.dictionaries(sendable_texts, json_values, max_size=4)
statuses: st.SearchStrategy[ResultStatus] = st.sampled_from(["ok", "error"])


@st.composite
def batches(draw: st.DrawFn, ids: st.SearchStrategy[str]) -> list[Message]:
    """A message with calls and perhaps text before them, and the message with the results."""
    blocks: list[MessageBlock] = [TextBlock(text=draw(spoken_texts))] if draw(st.booleans()) else []
    results: list[ResultBlock] = []
    for position in range(draw(st.integers(1, 3))):
        raw = canonical_json.encode_text(draw(json_objects))
        call = ToolCall(
            tool_name=draw(tool_names), arguments_raw=raw, call_id=draw(ids), position=position
        )
        blocks.append(CallBlock(call=call))
        results.append(
            ResultBlock(
                call_id=call.call_id,
                tool_name=call.tool_name,
                status=draw(statuses),
                content=(TextBlock(text=draw(spoken_texts)),),
            )
        )
    return [
        Message(role="assistant", blocks=tuple(blocks)),
        Message(role="tool", blocks=tuple(results)),
    ]


def ids_used_once() -> st.SearchStrategy[str]:
    """A new strategy of call ids that never repeat; each conversation needs its own."""
    used: set[str] = set()

    def is_new(call_id: str) -> bool:
        known = call_id in used
        used.add(call_id)
        return not known

    return call_ids.filter(is_new)


@st.composite
def interleaved_batches(
    draw: st.DrawFn,
    calls: st.SearchStrategy[ToolCall],
    results: Callable[[ToolCall], st.SearchStrategy[ResultBlock]],
    texts: st.SearchStrategy[TextBlock],
    thoughts: st.SearchStrategy[ReasoningBlock],
) -> tuple[list[MessageBlock], list[ResultBlock]]:
    """Perhaps thoughts, then calls with texts between them; and a result for each call."""
    blocks: list[MessageBlock] = list(draw(st.lists(thoughts, max_size=2)))
    told: list[ResultBlock] = []
    for position in range(draw(st.integers(1, 3))):
        blocks += draw(st.lists(texts, max_size=1))
        call = draw(calls).model_copy(update={"position": position})
        blocks.append(CallBlock(call=call))
        told.append(draw(results(call)))
    return blocks, told


@st.composite
def conversations(draw: st.DrawFn) -> Conversation:
    """Perhaps a system prompt, then turns of user and assistant; all ids differ."""
    ids = ids_used_once()
    messages = [Message.of("system", draw(spoken_texts))] if draw(st.booleans()) else []
    for _ in range(draw(st.integers(1, 3))):
        messages.append(Message.of("user", draw(spoken_texts)))
        for _ in range(draw(st.integers(0, 2))):
            messages.extend(draw(batches(ids)))
        messages.append(Message.of("assistant", draw(spoken_texts)))
    return Conversation.of(messages)
