"""An export to MCP without a word in its report is exact, but for what JSON-RPC adds to it.

That is the id of each request, and the revision of the protocol in its `_meta`. Every call is one
of MCP there, and has no id of its own.
"""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.store.wire.mcp.test_round_trip import own_conversations, respelled
from tests.support.slightly_odd import media, resources, texts

from tooltrail.records import CallBlock, Conversation, Message, MessageBlock, Origin, ResultBlock
from tooltrail.wire import DEFAULT_EXPORT_POLICY
from tooltrail.wire.mcp import FORMAT

_extras = st.sampled_from([{}, {"a": 1}, {"_meta": {"a": 1}}, {"type": "x"}, {"jsonrpc": {"a": 1}}])
_of_results: dict[str, st.SearchStrategy[Any]] = {
    "status": st.sampled_from(["timeout", "cancelled", "interrupted", "denied", "unknown"]),
    "content": st.lists(st.one_of(texts, media(), resources), max_size=2).map(tuple),
    "extras": _extras,
    "tool_name": st.just("g"),
}
_of_calls: dict[str, st.SearchStrategy[Any]] = {
    "arguments_raw": st.sampled_from(["", "[1]", "{", "null", '{"a":1,"a":2}']),
    "namespace": st.just("files"),
    "kind": st.sampled_from(["function", "custom", "builtin", "mcp"]),
    "extras": _extras,
    "call_id": st.just("a"),
    "tool_name": st.sampled_from(["read file", "x" * 200, "a.b"]),
    "flags": st.just(("incomplete",)),
}


@st.composite
def odd_conversations(draw: st.DrawFn) -> Conversation:
    messages = [*draw(own_conversations().filter(lambda one: bool(one.messages))).messages]
    place = draw(st.integers(0, len(messages) - 1))
    message = messages[place]
    block: MessageBlock = message.blocks[0]
    if isinstance(block, CallBlock):
        name = draw(st.sampled_from(sorted(_of_calls)))
        call = block.call.model_copy(update={name: draw(_of_calls[name])})
        block = block.model_copy(update={"call": call})
    else:
        name = draw(st.sampled_from(sorted(_of_results)))
        block = block.model_copy(update={name: draw(_of_results[name])})
    origin = draw(st.sampled_from([message.origin, None, Origin(wire_format="gemini")]))
    beside = draw(st.just(()) | texts.map(lambda text: (text,)))
    update = {"blocks": (block, *beside), "origin": origin}
    messages[place] = message.model_copy(update=update)
    return Conversation.of(messages)


def told(conversation: Conversation) -> list[tuple[object, ...]]:
    return [_told(block) for message in conversation.messages for block in _blocks(message)]


def _blocks(message: Message) -> tuple[MessageBlock, ...]:
    return message.blocks


def _told(block: MessageBlock) -> tuple[object, ...]:
    if isinstance(block, CallBlock):
        call = block.call
        meta: Any = call.extras.get("_meta", {})
        own = {name: one for name, one in meta.items() if not name.startswith("io.modelcontext")}
        extras = {**call.extras, "_meta": own}
        extras.pop("jsonrpc", None)
        raw = respelled(call.arguments_raw)
        return call.tool_name, call.namespace, raw, extras, block.extras
    if isinstance(block, ResultBlock):
        extras = {name: one for name, one in block.extras.items() if name != "jsonrpc"}
        structured = (block.has_structured, block.structured)
        return block.status, block.content, structured, extras
    return (block,)


@given(odd_conversations())
def test_what_the_report_does_not_name_comes_back(conversation: Conversation) -> None:
    export = FORMAT.write_history(conversation, DEFAULT_EXPORT_POLICY)
    if not export.report:
        assert told(FORMAT.read_history(export.request)) == told(conversation)
