"""All that Gemini's contents can carry is written without a word, and comes back as it was."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.support.conversations import (
    ids_used_once,
    interleaved_batches,
    json_objects,
    json_values,
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
    MessageBlock,
    Origin,
    ProviderBlock,
    ReasoningBlock,
    ResultBlock,
    Role,
    TextBlock,
    ToolCall,
)
from tooltrail.wire import DEFAULT_EXPORT_POLICY, wire_format

GEMINI = wire_format("gemini")
OURS = Origin(wire_format="gemini")
BASE64 = st.sampled_from(["aGk=", "JVBERi0=", "/+8="])

_signed: st.SearchStrategy[Any] = st.sampled_from([{}, {"thoughtSignature": "c2ln"}])
_plain = st.builds(TextBlock, text=spoken_texts)
_texts = st.builds(TextBlock, text=spoken_texts, extras=_signed)
_thoughts = st.builds(
    ReasoningBlock,
    text=spoken_texts,
    extras=_signed.map(lambda extras: {"thought": True, **extras}),
)
_ran: st.SearchStrategy[Any] = st.just(
    {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}}
)
_TYPES: Any = [
    ("image", "image/png"),
    ("image", "image/bmp"),
    ("audio", "audio/ogg"),
    ("document", "application/pdf"),
    ("document", "text/plain"),
]


@st.composite
def _media(draw: st.DrawFn) -> MediaBlock:
    kind, media_type = draw(st.sampled_from(_TYPES))
    has_data = draw(st.booleans())
    places = st.sampled_from(["https://example.org/x", "gs://bucket/x", "file:f_1"])
    return MediaBlock(
        kind=kind,
        media_type=media_type,
        data=draw(BASE64) if has_data else None,
        uri=None if has_data else draw(places),
        name=draw(st.none() | st.just("a.bin")),
    )


@st.composite
def _calls(draw: st.DrawFn, ids: st.SearchStrategy[str]) -> ToolCall:
    raw = json.dumps(draw(json_objects), ensure_ascii=False, separators=(",", ":"))
    return ToolCall(
        tool_name=draw(tool_names),
        arguments_raw=raw,
        call_id=draw(st.none() | ids),
        extras=draw(_signed),
    )


@st.composite
def _results(draw: st.DrawFn, call: ToolCall) -> ResultBlock:
    is_error, is_text = draw(st.booleans()), draw(st.booleans())
    text: list[ContentBlock] = [draw(_plain)] if is_text else []
    media = [] if is_error else draw(st.lists(_media(), max_size=2))
    value = None if is_text else draw(json_values.filter(lambda one: not isinstance(one, str)))
    scheduled: st.SearchStrategy[Any] = st.sampled_from([{}, {"scheduling": "SILENT"}])
    return ResultBlock(
        call_id=call.call_id,
        tool_name=call.tool_name,
        status="error" if is_error else "ok",
        content=(*text, *media),
        structured=value,
        has_structured=not is_text,
        extras=draw(scheduled),
    )


def message(role: Role, blocks: list[Any]) -> Message:
    """A message that says whose it is where it has what only Gemini is told."""
    kept = [block.extras or isinstance(block, ProviderBlock) for block in blocks]
    kept += [block.call.extras for block in blocks if isinstance(block, CallBlock)]
    media = [block for block in blocks if isinstance(block, MediaBlock)]
    kept += [(block.uri or "https:").partition(":")[0] != "https" for block in media]
    inner = [one for block in blocks if isinstance(block, ResultBlock) for one in block.content]
    is_ours = any(kept) or (bool(inner) and message(role, inner).origin is not None)
    return Message(role=role, blocks=tuple(blocks), origin=OURS if is_ours else None)


@st.composite
def histories(draw: st.DrawFn) -> Conversation:
    ids = ids_used_once()
    instructions = draw(st.lists(_plain, max_size=2))
    messages = [message("system", [*instructions])] if instructions else []
    for _ in range(draw(st.integers(1, 2))):
        messages.append(message("user", draw(st.lists(_plain | _media(), min_size=1, max_size=3))))
        for _ in range(draw(st.integers(0, 2))):
            asked, told = draw(interleaved_batches(_calls(ids), _results, _texts, _thoughts))
            messages += [message("assistant", asked), message("tool", [*told])]
        said: list[MessageBlock] = [draw(_texts)]
        said += [ProviderBlock(native=one) for one in draw(st.lists(_ran, max_size=1))]
        messages.append(message("assistant", said))
    return Conversation.of(messages)


@given(conversation=histories())
def test_what_gemini_can_carry_comes_back_as_it_was(conversation: Conversation) -> None:
    export = GEMINI.write_history(conversation, DEFAULT_EXPORT_POLICY)
    assert list(export.report) == []
    assert request_problems("gemini", export.request) == []
    assert GEMINI.read_history(export.request) == conversation
