"""Reads text-only answers and requests into the canonical conversation.

An answer has the form of a chat (`choices[0].message.content`), or its text is in the member
`content`. The family determines the calls in a text. Other members are kept as extras.

A block in the text of a user is a result if a call with its id in the last message of the assistant
has no result yet. In a family without ids, any such call without a result matches, or one of the
same tool if the block names a tool. Every other block is text of the user. So an output cannot
answer another call, and a text that the user quotes answers none.
"""

from collections.abc import Iterator
from functools import partial

from pydantic import JsonValue

from tooltrail.records import (
    Conversation,
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
from tooltrail.wire._chat import answers as chat
from tooltrail.wire._chat.answers import ChatSpelling, Flags, asks_for_call
from tooltrail.wire._chat.streaming import ChatAssembler
from tooltrail.wire._identifiers import spelled_name
from tooltrail.wire._reading import (
    REASONING,
    merge_results,
    message_of_request,
    result_of_text,
    spoken_in,
    thoughts_in,
)
from tooltrail.wire.members import (
    JsonObject,
    list_in,
    object_in,
    objects_in,
    others,
    text_in,
)
from tooltrail.wire.responses import Response
from tooltrail.wire.text_fallback.asking import read_tools
from tooltrail.wire.text_fallback.calls_in_text import read_calls, text_beside
from tooltrail.wire.text_fallback.family import NAME, TextFamily, TextResult

_MESSAGE = frozenset({"role", "content", *REASONING})
_ANSWER = frozenset({"id", "model", "error", "choices"})


def _take(waiting: list[ToolCall], family: TextFamily, found: TextResult) -> ToolCall | None:
    """Remove and return the first call that a block answers; None if it answers none."""
    for place, call in enumerate(waiting):
        is_named = found.tool_name in (None, spelled_name(call.namespace, call.tool_name))
        if is_named and (not family.tells_ids or call.call_id == (found.call_id or None)):
            return waiting.pop(place)
    return None


def _spelling_of(family: TextFamily) -> ChatSpelling:
    """How a family reads the messages of answers."""
    return ChatSpelling(
        NAME,
        blocks=partial(_blocks_of_answer, family),
        extras=partial(others, known=_MESSAGE),
        is_part=lambda part: isinstance(object_in(part).get("text"), str),
    )


def read_response(family: TextFamily, payload: JsonObject) -> Response:
    """Read an answer that was not streamed, with one message for each choice, or its text."""
    if not payload.get("choices") and "content" in payload:
        payload = {**payload, "choices": [{"message": others(payload, _ANSWER)}]}
    return chat.read_response(_spelling_of(family), payload)


class TextAssembler:
    """Assembles the events of one answer: chunks of a chat, or events with a `content` each.

    A call in text can be recognized only with its end and with the text before it, which may open
    a code block. So the complete text is assembled first and then read.
    """

    def __init__(self, family: TextFamily) -> None:
        self._chat = ChatAssembler(_spelling_of(family))
        self._texts = 0
        self._is_last = False

    def feed(self, event: JsonObject) -> None:
        """Add one event."""
        if event.get("choices") is None and "content" in event:
            # Servers that complete a prompt stream such events. One alone may be a whole answer.
            self._texts += 1
            self._is_last = event.get("stop", self._texts == 1) is not False
            event = {**event, "choices": [{"delta": others(event, _ANSWER)}]}
        elif "choices" in event:
            self._is_last = False
        self._chat.feed(event)

    def finish(self, *, is_done: bool = False) -> Response:
        """Return the answer; if its end was not received, its calls are incomplete."""
        return self._chat.finish(is_done=is_done or self._is_last)


def _blocks_of_answer(
    family: TextFamily, native: JsonObject, unread: list[str], _: Flags
) -> Iterator[MessageBlock]:
    yield from thoughts_in(native)
    yield from _said(family, native.get("content"), unread)
    if native.get("tool_calls") or asks_for_call(native.get("function_call")):
        unread.append("the answer has native calls; this format has them in its text alone")


def _said(family: TextFamily, content: JsonValue, unread: list[str]) -> Iterator[MessageBlock]:
    if not isinstance(content, str | list | None):
        unread.append("the content is neither a text nor parts")
        yield ProviderBlock(native={"content": content})
    for block in _content(content):
        if isinstance(block, TextBlock):
            read = read_calls(block.text, family.name)
            unread.extend(read.unread)
            yield from read.blocks
        elif thought := _thought_in(block.native):
            yield ReasoningBlock(text=thought)
        else:
            unread.append("a part of the content is not a string")
            yield block


def _thought_in(part: JsonValue) -> str:
    """The reasoning of Mistral's models, which is a part of the content with its own parts."""
    thought = object_in(part).get("thinking")
    if isinstance(thought, str):
        return thought
    return "".join(text_in(one.get("text")) or "" for one in objects_in(thought))


def _content(content: JsonValue) -> Iterator[TextBlock | ProviderBlock]:
    if isinstance(content, str):
        if content:
            yield TextBlock(text=content)
        return
    for part in list_in(content):
        text = object_in(part).get("text")
        yield TextBlock(text=text) if isinstance(text, str) else ProviderBlock(native=part)


def read_history(family: TextFamily, request: JsonObject) -> Conversation:
    """Read the messages and tools of a request."""
    waiting: list[ToolCall] = []
    messages = (
        message
        for native, role in spoken_in(request)
        for message in _read_message(family, native, role, waiting)
    )
    return Conversation.of(merge_results(messages), read_tools(request))


def _read_message(
    family: TextFamily, native: JsonObject, role: Role, waiting: list[ToolCall]
) -> Iterator[Message]:
    extras = others(native, _MESSAGE if role == "assistant" else frozenset({"role", "content"}))
    origin = message_of_request(NAME, role, (), extras).origin
    if role == "assistant":
        blocks = (*thoughts_in(native), *_said(family, native.get("content"), []))
        message = Message(role=role, blocks=blocks, origin=origin)
        waiting[:] = message.calls
        yield message
    elif role == "tool":
        content = tuple(_content(native.get("content")))
        call_id, name = text_in(native.get("tool_call_id")), text_in(native.get("name"))
        yield Message(role=role, blocks=(result_of_text(call_id, name, content),), origin=origin)
    elif role == "user":
        yield from _read_user(family, native, waiting, origin)
    else:
        yield Message(role=role, blocks=tuple(_content(native.get("content"))), origin=origin)


def _read_user(
    family: TextFamily, native: JsonObject, waiting: list[ToolCall], origin: Origin | None
) -> Iterator[Message]:
    """Split a message of the user into its results and its other text."""
    results: list[MessageBlock] = []
    said: list[MessageBlock] = []
    for block in _content(native.get("content")):
        if not isinstance(block, TextBlock):
            said.append(block)
            continue
        place = 0
        for found in family.find_results(block.text):
            if call := _take(waiting, family, found):
                results.append(_result(found, call))
                before = block.text[place : found.begin]
                said += _content(text_beside(before, follows=place > 0, precedes=True))
                place = found.end
        said += _content(text_beside(block.text[place:], follows=place > 0, precedes=False))
    if results:
        yield Message(role="tool", blocks=tuple(results), origin=None if said else origin)
    if said or not results:
        yield Message(role="user", blocks=tuple(said), origin=origin)


def _result(found: TextResult, call: ToolCall) -> ResultBlock:
    content = (TextBlock(text=found.text),) if found.text else ()
    update: dict[str, object] = {} if found.status is None else {"status": found.status}
    if found.tool_name is not None:
        update |= {"tool_name": call.tool_name, "namespace": call.namespace}
    return result_of_text(found.call_id, None, content).model_copy(update=update)
