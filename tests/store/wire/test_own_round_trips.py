"""All that Anthropic and Gemini can carry is written without a word, and comes back as it was."""

from collections.abc import Callable
from typing import Any

import pytest
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
    Origin,
    ProviderBlock,
    ReasoningBlock,
    ResultBlock,
    Role,
    TextBlock,
    ToolCall,
)
from tooltrail.wire import DEFAULT_EXPORT_POLICY, wire_format
from tooltrail.wire.members import spelled

BASE64 = st.sampled_from(["aGk=", "JVBERi0=", "/+8="])
_plain = st.builds(TextBlock, text=spoken_texts)
Ids = st.SearchStrategy[str]


@st.composite
def _calls(draw: st.DrawFn, ids: st.SearchStrategy[Any], extras: Any) -> ToolCall:
    raw = spelled(draw(json_objects))
    named: Any = {"tool_name": draw(tool_names), "call_id": draw(ids), "extras": draw(extras)}
    return ToolCall(arguments_raw=raw, **named)


def message(name: str, role: Role, blocks: list[Any]) -> Message:
    """A message that says whose it is where it has what only this provider is told."""
    kept = [block.extras or isinstance(block, ReasoningBlock | ProviderBlock) for block in blocks]
    kept += [block.call.extras for block in blocks if isinstance(block, CallBlock)]
    media = [block for block in blocks if isinstance(block, MediaBlock)]
    kept += [(block.uri or "https:").partition(":")[0] != "https" for block in media]
    inner = [one for block in blocks if isinstance(block, ResultBlock) for one in block.content]
    is_own = any(kept) or (bool(inner) and message(name, role, inner).origin is not None)
    origin = Origin(wire_format=name) if is_own else None
    return Message(role=role, blocks=tuple(blocks), origin=origin)


# Anthropic

_cached: st.SearchStrategy[Any] = st.sampled_from([{}, {"cache_control": {"type": "ephemeral"}}])
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
_direct: st.SearchStrategy[Any] = st.sampled_from([{}, {"caller": {"type": "direct"}}])


@st.composite
def _results(draw: st.DrawFn, call: ToolCall) -> ResultBlock:
    is_error = draw(st.booleans())
    kinds: st.SearchStrategy[ContentBlock] = _plain if is_error else _plain | _media | _referred
    return ResultBlock(
        call_id=call.call_id,
        status="error" if is_error else "ok",
        content=tuple(draw(st.lists(kinds, min_size=1, max_size=3))),
        extras=draw(_cached),
    )


def _anthropic_batches(ids: Ids) -> st.SearchStrategy[Any]:
    return interleaved_batches(_calls(ids, _direct), _results, _plain, _thoughts)


# Gemini

_signed: st.SearchStrategy[Any] = st.sampled_from([{}, {"thoughtSignature": "c2ln"}])
_signed_texts = st.builds(TextBlock, text=spoken_texts, extras=_signed)
_signed_thoughts = st.builds(
    ReasoningBlock,
    text=spoken_texts,
    extras=_signed.map(lambda extras: {"thought": True, **extras}),
)
_ran: Any = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}}
_TYPES: Any = [
    ("image", "image/png"),
    ("image", "image/bmp"),
    ("audio", "audio/ogg"),
    ("document", "application/pdf"),
    ("document", "text/plain"),
]


@st.composite
def _typed_media(draw: st.DrawFn) -> MediaBlock:
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
def _responses(draw: st.DrawFn, call: ToolCall) -> ResultBlock:
    is_error, is_text = draw(st.booleans()), draw(st.booleans())
    text: list[ContentBlock] = [draw(_plain)] if is_text else []
    media = [] if is_error else draw(st.lists(_typed_media(), max_size=2))
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


def _gemini_batches(ids: Ids) -> st.SearchStrategy[Any]:
    calls = _calls(st.none() | ids, _signed)
    return interleaved_batches(calls, _responses, _signed_texts, _signed_thoughts)


@st.composite
def _said_by_claude(draw: st.DrawFn) -> list[Any]:
    return [*draw(st.lists(_thoughts, max_size=1)), draw(_plain)]


@st.composite
def _said_by_gemini(draw: st.DrawFn) -> list[Any]:
    ran = [ProviderBlock(native=_ran)] if draw(st.booleans()) else []
    return [draw(_signed_texts), *ran]


CARRIED: dict[str, tuple[Any, Any, Callable[[Ids], Any], Any]] = {
    "anthropic": (
        *(st.builds(TextBlock, text=spoken_texts, extras=_cached), _plain | _media),
        *(_anthropic_batches, _said_by_claude()),
    ),
    "gemini": (_plain, _plain | _typed_media(), _gemini_batches, _said_by_gemini()),
}
"""What stands in the instructions and in a message of the user, batches, and an answer."""


@pytest.mark.parametrize("name", CARRIED)
@given(data=st.data())
def test_what_a_provider_can_carry_comes_back_as_it_was(name: str, data: st.DataObject) -> None:
    draw, ids = data.draw, ids_used_once()
    system, asked, batches, said = CARRIED[name]
    instructions = draw(st.lists(system, max_size=2))
    messages = [message(name, "system", instructions)] if instructions else []
    for _ in range(draw(st.integers(1, 2))):
        messages.append(message(name, "user", draw(st.lists(asked, min_size=1, max_size=3))))
        for _ in range(draw(st.integers(0, 2))):
            calls, results = draw(batches(ids))
            messages += [message(name, "assistant", calls), message(name, "tool", [*results])]
        messages.append(message(name, "assistant", draw(said)))
    known, conversation = wire_format(name), Conversation.of(messages)
    export = known.write_history(conversation, DEFAULT_EXPORT_POLICY)
    assert list(export.report) == []
    assert request_problems(name, export.request) == []
    assert known.read_history(export.request) == conversation
