"""All that Anthropic's messages can carry is written without a word, and comes back as it was."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.support.conversations import (
    ids_used_once,
    interleaved_batches,
    json_objects,
    spoken_texts,
    tool_names,
)
from tests.support.wire.fake_provider import request_problems

from tooltrail.records import (
    CallBlock,
    ContentBlock,
    Conversation,
    MediaBlock,
    Message,
    Origin,
    ProviderBlock,
    ReasoningBlock,
    ResultBlock,
    Role,
    TextBlock,
    ToolCall,
)
from tooltrail.wire import DEFAULT_EXPORT_POLICY, wire_format

ANTHROPIC = wire_format("anthropic")
OURS = Origin(wire_format="anthropic")
BASE64 = st.sampled_from(["aGk=", "JVBERi0=", "/+8="])

_cached: st.SearchStrategy[Any] = st.sampled_from([{}, {"cache_control": {"type": "ephemeral"}}])
_texts = st.builds(TextBlock, text=spoken_texts)
_images = st.builds(
    MediaBlock,
    kind=st.just("image"),
    media_type=st.sampled_from(["image/png", "image/webp"]),
    data=BASE64,
    extras=_cached,
)
_files = st.builds(
    MediaBlock,
    kind=st.just("document"),
    media_type=st.just("application/pdf"),
    data=BASE64,
    name=st.none() | spoken_texts,
    extras=_cached,
)
_places = st.builds(
    MediaBlock,
    kind=st.sampled_from(["image", "document"]),
    uri=st.sampled_from(["https://example.org/x", "file:f_1"]),
)
_media = _images | _files | _places


def _thought(text: str) -> ReasoningBlock:
    return ReasoningBlock(
        text=text, extras={"type": "thinking", "thinking": text, "signature": "c2ln"}
    )


def _reference(name: str) -> ProviderBlock:
    return ProviderBlock(native={"type": "tool_reference", "tool_name": name})


_hidden = ReasoningBlock(extras={"type": "redacted_thinking", "data": "eHh4"})
_thoughts = spoken_texts.map(_thought) | st.just(_hidden)
_referred = tool_names.map(_reference)


@st.composite
def _calls(draw: st.DrawFn, ids: st.SearchStrategy[str]) -> ToolCall:
    raw = json.dumps(draw(json_objects), ensure_ascii=False, separators=(",", ":"))
    extras: Any = draw(st.sampled_from([{}, {"caller": {"type": "direct"}}]))
    return ToolCall(tool_name=draw(tool_names), arguments_raw=raw, call_id=draw(ids), extras=extras)


@st.composite
def _results(draw: st.DrawFn, call: ToolCall) -> ResultBlock:
    is_error = draw(st.booleans())
    kinds: st.SearchStrategy[ContentBlock] = _texts if is_error else _texts | _media | _referred
    return ResultBlock(
        call_id=call.call_id,
        status="error" if is_error else "ok",
        content=tuple(draw(st.lists(kinds, min_size=1, max_size=3))),
        extras=draw(_cached),
    )


def message(role: Role, blocks: list[Any]) -> Message:
    """A message that says whose it is where it has what only Anthropic is told."""
    kept = [block.extras or isinstance(block, ReasoningBlock | ProviderBlock) for block in blocks]
    kept += [block.call.extras for block in blocks if isinstance(block, CallBlock)]
    media = [block for block in blocks if isinstance(block, MediaBlock)]
    kept += [(block.uri or "").startswith("file:") for block in media]
    inner = [one for block in blocks if isinstance(block, ResultBlock) for one in block.content]
    is_ours = any(kept) or (bool(inner) and message(role, inner).origin is not None)
    return Message(role=role, blocks=tuple(blocks), origin=OURS if is_ours else None)


@st.composite
def histories(draw: st.DrawFn) -> Conversation:
    ids = ids_used_once()
    system = st.builds(TextBlock, text=spoken_texts, extras=_cached)
    instructions = draw(st.lists(system, max_size=2))
    messages = [message("system", [*instructions])] if instructions else []
    for _ in range(draw(st.integers(1, 2))):
        messages.append(message("user", draw(st.lists(_texts | _media, min_size=1, max_size=3))))
        for _ in range(draw(st.integers(0, 2))):
            asked, told = draw(interleaved_batches(_calls(ids), _results, _texts, _thoughts))
            messages += [message("assistant", asked), message("tool", [*told])]
        thoughts = draw(st.lists(_thoughts, max_size=1))
        messages.append(message("assistant", [*thoughts, draw(_texts)]))
    return Conversation.of(messages)


@given(conversation=histories())
def test_what_anthropic_can_carry_comes_back_as_it_was(conversation: Conversation) -> None:
    export = ANTHROPIC.write_history(conversation, DEFAULT_EXPORT_POLICY)
    assert list(export.report) == []
    assert request_problems("anthropic", export.request) == []
    assert ANTHROPIC.read_history(export.request) == conversation
