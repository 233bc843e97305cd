"""Responses into the canonical conversation: answers, and the input of requests.

All items of one answer are one message, in their order: a text may stand behind a call. In the
input of a request nothing says where an answer ends; there it ends with what is not the model's.
"""

from collections.abc import Iterator, Mapping

from pydantic import JsonValue

from tooltrail.records import (
    CallBlock,
    ContentBlock,
    Conversation,
    InvalidRecordError,
    MediaBlock,
    Message,
    MessageBlock,
    Origin,
    ProviderBlock,
    ReasoningBlock,
    ResultBlock,
    ResultStatus,
    Role,
    TextBlock,
)
from tooltrail.wire._results import result_of_text
from tooltrail.wire.media_uris import media_of_uri
from tooltrail.wire.members import JsonObject, list_in, object_in, objects_in, others, text_in
from tooltrail.wire.openai_responses.asking import read_tools
from tooltrail.wire.openai_responses.items import (
    BUILT_IN_OUTPUTS,
    OUTPUTS,
    is_call,
    is_output,
    read_call,
    read_provider_call,
)
from tooltrail.wire.openai_responses.limits import NAME
from tooltrail.wire.responses import ProviderFailure, Response

_ROLES: Mapping[str, Role] = {
    "system": "system",
    "developer": "developer",
    "user": "user",
    "assistant": "assistant",
}
_TEXTS = {"input_text": "text", "output_text": "text", "text": "text", "refusal": "refusal"}
_PART = frozenset({"type", "text", "refusal"})
_OUTPUT = frozenset({"type", "call_id", "output", "name"})
_RESPONSE = frozenset({"id", "object", "model", "status", "output", "error", "incomplete_details"})


def read_response(payload: JsonObject) -> Response:
    """An answer that was not streamed; what the request repeated in it is left in the payload."""
    failure = read_failure(payload)
    if not isinstance(payload.get("output"), list):
        unread = () if failure else ("the answer has neither output nor an error",)
        return Response((), failure, unread)
    message = read_message(payload)
    return Response((message,) if message.blocks or not failure else (), failure)


def read_failure(payload: JsonObject) -> ProviderFailure | None:
    """The error that an answer, or an event of a stream, tells."""
    error = payload.get("error")
    if payload.get("type") == "error" and not error:
        error = dict(payload)
    if not error:
        return None
    told = object_in(error)
    kind = text_in(told.get("code")) or text_in(told.get("type"))
    return ProviderFailure(text_in(told.get("message")) or "", kind, error)


def read_message(response: JsonObject, *, is_complete: bool = True) -> Message:
    """All items of an answer as one message."""
    status = text_in(response.get("status"))
    is_complete = is_complete and status in (None, "completed")
    reason = text_in(object_in(response.get("incomplete_details")).get("reason"))
    origin = Origin(
        wire_format=NAME,
        model=text_in(response.get("model")),
        response_id=text_in(response.get("id")),
        finish_reason=reason or status,
    )
    blocks = list(_answer_blocks(list_in(response.get("output"))))
    if not is_complete:
        # An item that was whole says so itself; one that does not may have been cut off.
        items = objects_in(response.get("output"))
        whole = {text_in(item.get("call_id")) for item in items if _is_whole(item)}
        blocks = [_unless_whole(block, whole) for block in blocks]
    return Message(role="assistant", blocks=tuple(blocks), origin=origin, is_complete=is_complete)


def _is_whole(item: JsonObject) -> bool:
    return item.get("status") == "completed"


def _unless_whole(block: MessageBlock, whole: set[str | None]) -> MessageBlock:
    if not isinstance(block, CallBlock) or "incomplete" in block.call.flags:
        return block
    if block.call.call_id in whole:
        return block
    flags = (*block.call.flags, "incomplete")
    return block.model_copy(update={"call": block.call.model_copy(update={"flags": flags})})


def read_history(request: JsonObject) -> Conversation:
    """The input and tools of a request, its `instructions` as the first message.

    Raises:
        InvalidRecordError: there is no input, or an item of it is no object.
    """
    given = request.get("input")
    messages: list[Message] = []
    if instructions := text_in(request.get("instructions")):
        messages.append(Message.of("system", instructions))
    if isinstance(given, str):
        messages.append(Message.of("user", given))
    elif isinstance(given, list):
        messages.extend(_Input().read(given))
    else:
        raise InvalidRecordError("the request has no input")
    return Conversation.of(messages, read_tools(request))


class _Input:
    """Puts the items of an input together to messages."""

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._answer: list[MessageBlock] = []
        self._results: list[MessageBlock] = []

    def read(self, items: list[JsonValue]) -> list[Message]:
        for number, value in enumerate(items):
            if not isinstance(value, dict):
                raise InvalidRecordError(f"input[{number}] is no object")
            self._take(value)
        self._end()
        return self._messages

    def _take(self, item: JsonObject) -> None:
        kind = item.get("type", "message")
        role = _ROLES.get(str(item.get("role")), "user")
        if is_output(item) and item.get("call_id") not in self._by_provider():
            self._results.append(_result(item, str(kind)))
        elif kind == "message" and role != "assistant":
            self._end()
            blocks = tuple(_parts(item.get("content")))
            self._messages.append(Message(role=role, blocks=blocks))
        else:
            # A call behind outputs begins the next answer; so does all else of the model's.
            if self._results:
                self._end()
            position = sum(isinstance(block, CallBlock) for block in self._answer)
            self._answer.extend(_item_blocks(item, position))

    def _by_provider(self) -> set[str | None]:
        """Ids of calls that the provider ran, whose outputs are of its answer."""
        blocks = (block for block in self._answer if isinstance(block, ProviderBlock))
        return {block.call.call_id for block in blocks if block.call is not None}

    def _end(self) -> None:
        if self._answer:
            extras = any(map(_is_for_provider, self._answer))
            origin = Origin(wire_format=NAME) if extras else None
            blocks = tuple(self._answer)
            self._messages.append(Message(role="assistant", blocks=blocks, origin=origin))
        if self._results:
            self._messages.append(Message(role="tool", blocks=tuple(self._results)))
        self._answer, self._results = [], []


def _is_for_provider(block: MessageBlock) -> bool:
    if isinstance(block, CallBlock):
        return bool(block.call.extras)
    return isinstance(block, ProviderBlock) or bool(block.extras)


def _answer_blocks(items: list[JsonValue]) -> Iterator[MessageBlock]:
    position = 0
    for item in items:
        for block in _item_blocks(object_in(item), position):
            position += isinstance(block, CallBlock)
            yield block


def _item_blocks(item: JsonObject, position: int) -> Iterator[MessageBlock]:
    kind = item.get("type", "message")
    if kind == "message":
        yield from _parts(item.get("content"), item)
    elif is_call(item):
        yield CallBlock(call=read_call(item, position))
    elif kind == "reasoning":
        texts = [text_in(part.get("text")) or "" for part in objects_in(item.get("summary"))]
        yield ReasoningBlock(text="\n".join(texts), extras=item)
    else:
        yield ProviderBlock(native=item, call=read_provider_call(item))


def _parts(content: JsonValue, item: JsonObject | None = None) -> Iterator[ContentBlock]:
    """The blocks of a message; the first one of an answer's has what else its item says."""
    extras = others(item or {}, frozenset({"type", "role", "content"}))
    told: JsonObject = {"item": extras} if extras else {}
    if isinstance(content, str):
        if content:
            yield TextBlock(text=content, extras=told)
        return
    for number, part in enumerate(list_in(content)):
        block = _part(object_in(part))
        if number == 0 and told:
            block = block.model_copy(update={"extras": {**block.extras, **told}})
        yield block


def _part(part: JsonObject) -> TextBlock | MediaBlock | ProviderBlock:
    kind = str(part.get("type"))
    if kind in _TEXTS:
        extras = {name: value for name, value in others(part, _PART).items() if value != []}
        return TextBlock(
            text=str(part.get(_TEXTS[kind], "")), is_refusal=kind == "refusal", extras=extras
        )
    return _media(part) or ProviderBlock(native=part)


def _media(part: JsonObject) -> MediaBlock | None:
    match part:
        case {"type": "input_image", "image_url": str(uri)}:
            return media_of_uri("image", uri)
        case {"type": "input_image", "file_id": str(name)}:
            return MediaBlock(kind="image", uri=f"file:{name}")
        case {"type": "input_file", "file_data": str(uri)}:
            return media_of_uri("document", uri, text_in(part.get("filename")))
        case {"type": "input_file", "file_url": str(uri)}:
            return MediaBlock(kind="document", uri=uri, name=text_in(part.get("filename")))
        case {"type": "input_file", "file_id": str(name)}:
            return MediaBlock(kind="document", uri=f"file:{name}")
        case _:
            return None


def _result(item: JsonObject, kind: str) -> ResultBlock:
    call_id = text_in(item.get("call_id")) or text_in(item.get(OUTPUTS[kind]))
    name, output = text_in(item.get("name")), item.get("output")
    extras = others(item, _OUTPUT)
    if kind in BUILT_IN_OUTPUTS:
        extras = (
            {"type": kind, **extras}
            if output is None
            else {"type": kind, **extras, "output": output}
        )
        result = result_of_text(call_id, name, tuple(_built_in_texts(output)))
        return result.model_copy(update={"extras": extras, "status": _built_in_status(item)})
    result = result_of_text(call_id, name, tuple(_parts(output)))
    return result.model_copy(update={"extras": extras})


def _built_in_texts(output: JsonValue) -> Iterator[TextBlock]:
    if isinstance(output, str):
        yield TextBlock(text=output)
    for part in objects_in(output):
        text = "".join(text_in(part.get(name)) or "" for name in ("stdout", "stderr"))
        if text:
            yield TextBlock(text=text)


def _built_in_status(item: JsonObject) -> ResultStatus:
    outcomes = [object_in(part.get("outcome")) for part in objects_in(item.get("output"))]
    if any(outcome.get("type") == "timeout" for outcome in outcomes):
        return "timeout"
    return "error" if item.get("status") in ("failed", "incomplete") else "ok"
