"""Reads answers and contents of Gemini into the canonical conversation."""

from collections.abc import Iterator, Mapping

from pydantic import JsonValue

from tooltrail.records import (
    CallBlock,
    ContentBlock,
    Conversation,
    InvalidRecordError,
    Message,
    MessageBlock,
    Origin,
    ProviderBlock,
    ReasoningBlock,
    ResultBlock,
    ResultStatus,
    Role,
    TextBlock,
    ToolCall,
)
from tooltrail.wire._reading import (
    message_of_answer,
    message_of_request,
    messages_of_request,
    numbered,
)
from tooltrail.wire.gemini.asking import NAME, read_tools
from tooltrail.wire.gemini.partial_arguments import PIECES
from tooltrail.wire.gemini.parts import camel, media_of_part
from tooltrail.wire.members import (
    LAYOUT,
    JsonObject,
    are_objects,
    items_of,
    object_in,
    objects_in,
    others,
    spelled,
    text_in,
)
from tooltrail.wire.responses import ProviderFailure, Response, failure_of

_WHOLE = {None, "STOP", "FINISH_REASON_UNSPECIFIED", "CONTINUATION"}
"""Finish reasons after which all calls are complete."""

_FAILED = {
    "MALFORMED_FUNCTION_CALL",
    "UNEXPECTED_TOOL_CALL",
    "TOO_MANY_TOOL_CALLS",
    "MISSING_THOUGHT_SIGNATURE",
}
"""Finish reasons for a call that failed."""

_ROLES: Mapping[str, Role] = {"model": "assistant", "user": "user", "function": "user"}
_CALL_PART = frozenset({"functionCall"})
_RESPONSE_PART = frozenset({"functionResponse"})
_CALL = frozenset({"id", "name", "args"})
_TEXT = frozenset({"text"})
_RESPONSE = frozenset({"id", "name", "response", "parts"})
_BY_PROVIDER = {"executableCode": "code_execution", "toolCall": "tool"}


def read_response(payload: JsonObject) -> Response:
    """Read an answer that was not streamed, with one message for each candidate."""
    payload = camel(payload)
    candidates = [camel(one) for one in objects_in(payload.get("candidates"))]
    messages = [
        read_candidate(payload, candidate, position)
        for position, candidate in enumerate(candidates)
    ]
    failure = read_failure(payload) or failed_call(candidates)
    return Response.of(messages, failure, unread_of(payload))


def unread_of(event: JsonObject) -> Iterator[str]:
    """One sentence for each malformed part of an answer or of an event of a stream."""
    if not are_objects(event.get("candidates")):
        yield "the candidates are not valid"
    for candidate in objects_in(event.get("candidates")):
        content = candidate.get("content")
        if not isinstance(content, dict | None):
            yield "the content is not an object"
        elif not are_objects(object_in(content).get("parts")):
            yield "parts of the content is not valid"


def read_failure(payload: JsonObject) -> ProviderFailure | None:
    """The error in an answer, or the reason why the prompt was blocked."""
    error = payload.get("error")
    if error is not None:
        return failure_of(error, error, ("status", "code"))
    feedback = camel(object_in(payload.get("promptFeedback")))
    reason = text_in(feedback.get("blockReason"))
    if reason is None:
        return None
    message = text_in(feedback.get("blockReasonMessage")) or "the prompt was blocked"
    return ProviderFailure(message, reason, feedback, is_refusal=True)


def failed_call(candidates: list[JsonObject]) -> ProviderFailure | None:
    """The failure of the first candidate with a failed call."""
    for candidate in candidates:
        reason = text_in(candidate.get("finishReason"))
        if reason in _FAILED:
            message = text_in(candidate.get("finishMessage")) or ""
            return ProviderFailure(message, reason, candidate.get("finishMessage"))
    return None


def read_candidate(
    payload: JsonObject, candidate: JsonObject, position: int, *, is_complete: bool = True
) -> Message:
    """Read the message of one candidate.

    Args:
        payload: the answer.
        candidate: the candidate, with keys in camel case.
        position: the index of the candidate in the answer.
        is_complete: whether the end of the answer was received.
    """
    reason, index = text_in(candidate.get("finishReason")), candidate.get("index")
    is_whole = is_complete and reason in _WHOLE
    origin = Origin(
        wire_format=NAME,
        model=text_in(payload.get("modelVersion")),
        response_id=text_in(payload.get("responseId")),
        finish_reason=reason,
        choice=index if isinstance(index, int) and index >= 0 else position,
    )
    # The last event of an ordinary stream has an empty text beside the finish reason.
    blocks = [
        block
        for block in _blocks(_parts_of(candidate.get("content")))
        if not isinstance(block, TextBlock) or block.text or block.extras
    ]
    return message_of_answer(blocks, origin, is_complete=is_whole, is_cut=False)


def read_history(request: JsonObject) -> Conversation:
    """Read the contents and tools of a request; `systemInstruction` is the first message."""
    request = camel(request)
    given, system = request.get("contents"), request.get("systemInstruction")
    messages: list[Message] = []
    if system:
        messages.append(message_of_request(NAME, "system", _blocks(_parts_of(system))))
    if isinstance(given, dict | str):
        given = [given]
    if not isinstance(given, list):
        raise InvalidRecordError("the request has no contents")
    for position, native in enumerate(given):
        # The official client accepts a text or a list of parts as a content of the user.
        content: JsonObject = native if isinstance(native, dict) else {"parts": native}
        role = _ROLES.get(str(content.get("role", "user")))
        if role is None:
            raise InvalidRecordError(f"contents[{position}] has no role that is known")
        messages.extend(messages_of_request(NAME, role, _blocks(_parts_of(content))))
    return Conversation.of(messages, read_tools(request))


def _parts_of(content: JsonValue) -> list[JsonValue]:
    """The parts of a content, or a single part as a list."""
    return items_of(content.get("parts") if isinstance(content, dict) else content)


def _blocks(parts: list[JsonValue]) -> Iterator[MessageBlock]:
    return numbered(map(_block, parts))


def _block(native: JsonValue) -> MessageBlock:
    if isinstance(native, str):
        return TextBlock(text=native)
    part = camel(object_in(native))
    if "functionCall" in part:
        return CallBlock(call=_call(part))
    text = part.get("text")
    if isinstance(text, str):
        kind = ReasoningBlock if part.get("thought") is True else TextBlock
        return kind(text=text, extras=others(part, _TEXT))
    if "functionResponse" in part:
        return _result(part, camel(object_in(part["functionResponse"])))
    for member, tool_name in _BY_PROVIDER.items():
        if member in part:
            return ProviderBlock(native=native, call=_provider_call(part, member, tool_name))
    return media_of_part(part) or ProviderBlock(native=native)


def _call(part: JsonObject) -> ToolCall:
    members = camel(object_in(part["functionCall"]))
    extras = others(part, _CALL_PART)
    is_whole = not any(members.get(name) for name in PIECES)
    # In a complete call, the members of pieces have no meaning.
    if more := others(members, _CALL | PIECES if is_whole else _CALL):
        extras["functionCall"] = more
    args = members.get("args")
    return ToolCall(
        tool_name=text_in(members.get("name")) or "",
        arguments_raw=spelled({} if args is None else args),
        call_id=text_in(members.get("id")),
        flags=() if is_whole else ("incomplete",),
        extras=extras,
    )


def _provider_call(part: JsonObject, member: str, tool_name: str) -> ToolCall:
    members = camel(object_in(part[member]))
    return ToolCall(
        tool_name=text_in(members.get("toolType")) or tool_name,
        arguments_raw=spelled(members.get("args", members)),
        call_id=text_in(members.get("id")),
        kind="builtin",
        by_provider=True,
    )


def _result(part: JsonObject, written: JsonObject) -> ResultBlock:
    response, extras = written.get("response"), others(written, _RESPONSE)
    if beside := others(part, _RESPONSE_PART):
        extras["part"] = beside
    members = object_in(response)
    keys = {name for name, member in members.items() if member is not None} or set(members)
    # With other keys besides, or without both, the complete response is the output.
    (key,) = keys if keys in ({"error"}, {"output"}) else ("",)
    value: JsonValue = members[key] if key else response
    status: ResultStatus = "error" if "error" in keys else "ok"
    if not key and isinstance(response, dict):
        # Without another status, the complete response is written as it was read.
        extras[LAYOUT] = status
    elif "response" in written and response != {key: value}:
        # A null, or a value without an object, is not written back. So the report names it.
        extras["response"] = response
    media: list[ContentBlock] = [
        media_of_part(camel(object_in(one))) or ProviderBlock(native=one)
        for one in _parts_of(written)
    ]
    text: list[ContentBlock] = [TextBlock(text=value)] if isinstance(value, str) and value else []
    has_structured = "response" in written and not isinstance(value, str)
    return ResultBlock(
        call_id=text_in(written.get("id")),
        tool_name=text_in(written.get("name")),
        status=status,
        content=(*text, *media),
        structured=value if has_structured else None,
        has_structured=has_structured,
        extras=extras,
    )
