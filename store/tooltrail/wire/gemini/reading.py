"""Gemini's answers and contents into the canonical conversation."""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from itertools import groupby

from pydantic import JsonValue

from tooltrail.records import (
    CallBlock,
    CallFlag,
    ContentBlock,
    Conversation,
    InvalidRecordError,
    Message,
    MessageBlock,
    Origin,
    ProviderBlock,
    ReasoningBlock,
    ResultBlock,
    TextBlock,
    ToolCall,
)
from tooltrail.wire._reading import is_for_provider
from tooltrail.wire.gemini.asking import read_tools
from tooltrail.wire.gemini.limits import NAME
from tooltrail.wire.gemini.parts import camel, media_of_part
from tooltrail.wire.members import (
    JsonObject,
    are_objects,
    list_in,
    object_in,
    objects_in,
    others,
    spelled,
    text_in,
)
from tooltrail.wire.responses import ProviderFailure, Response

_WHOLE = {None, "STOP", "FINISH_REASON_UNSPECIFIED", "CONTINUATION"}
"""Reasons to finish that leave all calls as they are."""

_FAILED = {
    "MALFORMED_FUNCTION_CALL",
    "UNEXPECTED_TOOL_CALL",
    "TOO_MANY_TOOL_CALLS",
    "MISSING_THOUGHT_SIGNATURE",
}
"""Reasons to finish that say that a call went wrong."""

_CALL_PART = frozenset({"functionCall"})
_CALL = frozenset({"id", "name", "args", "willContinue", "partialArgs"})
_TEXT = frozenset({"text"})
_RESPONSE = frozenset({"id", "name", "response", "parts"})
_BY_PROVIDER = {"executableCode": "code_execution", "toolCall": "tool"}
NONE: AbstractSet[int] = frozenset()


def read_response(payload: JsonObject) -> Response:
    """An answer that was not streamed, with one message for each candidate."""
    payload = camel(payload)
    candidates = [camel(one) for one in objects_in(payload.get("candidates"))]
    messages = tuple(
        read_candidate(payload, candidate, position)
        for position, candidate in enumerate(candidates)
    )
    failure = read_failure(payload) or failed_call(candidates)
    unread = [] if candidates or failure else ["the answer has neither candidates nor an error"]
    for candidate in candidates:
        unread += unread_of(candidate)
    return Response.of(messages, failure, tuple(unread))


def unread_of(candidate: JsonObject) -> tuple[str, ...]:
    """What a candidate has in the place of parts that is none."""
    is_read = are_objects(object_in(candidate.get("content")).get("parts"))
    return () if is_read else ("parts of the content is not what it is to be",)


def read_failure(payload: JsonObject) -> ProviderFailure | None:
    """The error that an answer tells, or the reason for which there is none."""
    error = payload.get("error")
    if isinstance(error, dict):
        kind = text_in(error.get("status")) or str(error.get("code"))
        return ProviderFailure(text_in(error.get("message")) or "", kind, error)
    feedback = camel(object_in(payload.get("promptFeedback")))
    reason = text_in(feedback.get("blockReason"))
    if reason is None:
        return None
    message = text_in(feedback.get("blockReasonMessage")) or "the prompt was blocked"
    return ProviderFailure(message, reason, feedback)


def failed_call(candidates: list[JsonObject]) -> ProviderFailure | None:
    """The failure of a candidate whose call went wrong."""
    for candidate in candidates:
        reason = text_in(candidate.get("finishReason"))
        if reason in _FAILED:
            message = text_in(candidate.get("finishMessage")) or ""
            return ProviderFailure(message, reason, candidate.get("finishMessage"))
    return None


def read_candidate(
    payload: JsonObject,
    candidate: JsonObject,
    position: int,
    *,
    is_complete: bool = True,
    cut: AbstractSet[int] = NONE,
) -> Message:
    """The message of one candidate.

    Args:
        payload: the answer.
        candidate: with keys in camel case.
        position: of it in the answer.
        is_complete: whether the answer came to its end.
        cut: places of parts whose calls did not come to theirs.
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
    parts = list_in(object_in(candidate.get("content")).get("parts"))
    blocks = list(_blocks(parts, None if not is_whole else cut))
    return Message(role="assistant", blocks=tuple(blocks), origin=origin, is_complete=is_whole)


def read_history(request: JsonObject) -> Conversation:
    """The contents and tools of a request, its `systemInstruction` as the first message.

    Raises:
        InvalidRecordError: there are no contents, or one is no object or of an unknown role.
    """
    request = camel(request)
    given, system = request.get("contents"), request.get("systemInstruction")
    messages: list[Message] = []
    if isinstance(system, dict):
        blocks = tuple(_blocks(list_in(system.get("parts")), NONE))
        messages.append(Message(role="system", blocks=blocks))
    if isinstance(given, dict):
        given = [given]
    if not isinstance(given, list):
        raise InvalidRecordError("the request has no contents")
    for position, native in enumerate(given):
        messages.extend(_read_messages(object_in(native), position))
    return Conversation.of(messages, read_tools(request))


def _read_messages(native: JsonObject, position: int) -> Iterator[Message]:
    blocks = tuple(_blocks(list_in(native.get("parts")), NONE))
    match native.get("role", "user"):
        case "model":
            origin = Origin(wire_format=NAME) if any(map(is_for_provider, blocks)) else None
            yield Message(role="assistant", blocks=blocks, origin=origin)
        case "user" | "function":
            if not blocks:
                yield Message(role="user")
            for is_result, group in groupby(blocks, key=lambda one: isinstance(one, ResultBlock)):
                yield Message(role="tool" if is_result else "user", blocks=tuple(group))
        case _:
            raise InvalidRecordError(f"contents[{position}] has no role that is known")


def _blocks(parts: list[JsonValue], cut: AbstractSet[int] | None) -> Iterator[MessageBlock]:
    """The blocks of parts; `cut` has the places of calls that are incomplete, None for all."""
    position = 0
    for number, value in enumerate(parts):
        part = camel(object_in(value))
        if "functionCall" in part:
            is_cut = cut is None or number in cut
            yield CallBlock(call=_call(part, position, ("incomplete",) if is_cut else ()))
            position += 1
        else:
            yield _block(part, value)


def _block(part: JsonObject, native: JsonValue) -> MessageBlock:
    text = part.get("text")
    if isinstance(text, str):
        if part.get("thought") is True:
            return ReasoningBlock(text=text, extras=others(part, _TEXT))
        return TextBlock(text=text, extras=others(part, _TEXT))
    if "functionResponse" in part:
        return _result(camel(object_in(part["functionResponse"])))
    for member, tool_name in _BY_PROVIDER.items():
        if member in part:
            return ProviderBlock(native=native, call=_provider_call(part, member, tool_name))
    return media_of_part(part) or ProviderBlock(native=native)


def _call(part: JsonObject, position: int, flags: tuple[CallFlag, ...]) -> ToolCall:
    told = camel(object_in(part["functionCall"]))
    extras = others(part, _CALL_PART)
    if more := others(told, _CALL):
        extras["functionCall"] = more
    args = told.get("args")
    return ToolCall(
        tool_name=text_in(told.get("name")) or "",
        arguments_raw=spelled({} if args is None else args),
        call_id=text_in(told.get("id")),
        position=position,
        flags=flags,
        extras=extras,
    )


def _provider_call(part: JsonObject, member: str, tool_name: str) -> ToolCall:
    told = camel(object_in(part[member]))
    return ToolCall(
        tool_name=text_in(told.get("toolType")) or tool_name,
        arguments_raw=spelled(told.get("args", told)),
        call_id=text_in(told.get("id")),
        kind="builtin",
        by_provider=True,
    )


def _result(told: JsonObject) -> ResultBlock:
    response = object_in(told.get("response"))
    is_error = "error" in response and "output" not in response
    value: JsonValue = response.get("error" if is_error else "output")
    if not is_error and "output" not in response:
        # Without either key all of it is the output.
        value = response
    media: list[ContentBlock] = [
        media_of_part(camel(part)) or ProviderBlock(native=part)
        for part in objects_in(told.get("parts"))
    ]
    is_text = isinstance(value, str)
    text: list[ContentBlock] = [TextBlock(text=value)] if isinstance(value, str) and value else []
    return ResultBlock(
        call_id=text_in(told.get("id")),
        tool_name=text_in(told.get("name")),
        status="error" if is_error else "ok",
        content=(*text, *media),
        structured=None if is_text else value,
        has_structured=not is_text,
        extras=others(told, _RESPONSE),
    )
