"""Reads items of OpenAI Responses, of an answer or a request, into the canonical conversation.

Calls are read from the items. If the end of an answer was not received, none of its calls may run.
If the provider cut an answer short, calls whose items are completed are complete. The blocks of a
message item keep its other members, such as its id, in their extras under `item`, so that they can
become one item again.

Items of a request have no batches. All items of the model up to the next output or the next message
of another role are one turn, and so one message of the assistant.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import groupby

from pydantic import JsonValue

from tooltrail.records import (
    CallBlock,
    Conversation,
    InvalidRecordError,
    Message,
    MessageBlock,
    ProviderBlock,
    ReasoningBlock,
    Role,
)
from tooltrail.wire._chat.answers import NO_FLAGS, Flags
from tooltrail.wire._reading import (
    cut_off,
    message_of_request,
    numbered,
    origin_of_choice,
)
from tooltrail.wire.members import JsonObject, list_in, object_in, objects_in, others, text_in
from tooltrail.wire.openai_responses.asking import FROM_INSTRUCTIONS, NAME, read_tools
from tooltrail.wire.openai_responses.calls import (
    hosted_shells,
    is_for_caller,
    read_call,
    read_hosted_call,
    type_of,
)
from tooltrail.wire.openai_responses.outputs import OUTPUT_TYPES, read_output
from tooltrail.wire.openai_responses.parts import read_part
from tooltrail.wire.responses import ProviderFailure, Response, failure_in

CUT_SHORT = "incomplete"
"""The status of an answer that the provider ended before the model had finished."""

ITEM = "item"
"""The extra of a block with the members of its item other than the content."""

_KNOWN = ("completed", CUT_SHORT, "failed", "cancelled", "queued", "in_progress")
_MESSAGE = frozenset({"type", "role", "content"})
_SPEAKERS: dict[str, Role] = {"user": "user", "system": "system", "developer": "developer"}


def _read_turn(
    items: Iterable[JsonValue], hosted: frozenset[str], unread: list[str], flags: Flags = NO_FLAGS
) -> Iterator[MessageBlock]:
    """The blocks of one message of the assistant; notes on malformed items go to `unread`."""
    hosted_calls = 0
    for position, item in enumerate(items):
        where = f"output[{position}]"
        if not isinstance(item, dict):
            unread.append(f"{where} is not an object")
            yield ProviderBlock(native=item)
        elif is_for_caller(item, hosted):
            # A missing id is visible in the call; an id of the wrong type would be lost silently.
            if not isinstance(item.get("call_id"), str | None):
                unread.append(f"the call_id of {where} is not a string")
            yield CallBlock(call=read_call(item, flags.get(position, ())))
        elif type_of(item) == "message" and item.get("role") in ("assistant", None):
            if not isinstance(item.get("content"), str | list):
                unread.append(f"{where} has no content")
            yield from _read_content(item, in_turn=True)
        elif type_of(item) == "reasoning":
            yield ReasoningBlock(text=thoughts_in(item), extras=_proof(item))
        else:
            call = read_hosted_call(item, hosted_calls)
            hosted_calls += call is not None
            yield ProviderBlock(native=item, call=call)


def _read_content(item: JsonObject, *, in_turn: bool = False) -> Iterator[MessageBlock]:
    """Read the blocks of a message; each keeps the other members of the message in its extras."""
    about = others(item, _MESSAGE)
    if about.get("status") == "completed":
        del about["status"]
    content = item.get("content")
    # An empty text is kept, so that its message is not lost.
    parts: list[JsonValue] = [{"type": "input_text", "text": content}]
    for part in parts if isinstance(content, str) else list_in(content):
        block = read_part(part)
        # In a turn, this extra distinguishes an unknown part from an unknown item.
        if about or (in_turn and isinstance(block, ProviderBlock)):
            block = block.model_copy(update={"extras": {**block.extras, ITEM: about}})
        yield block


def _proof(item: JsonObject) -> JsonObject:
    """The complete reasoning item; its provider accepts it only unchanged."""
    extras = others(item, frozenset({"type"}))
    # A null `encrypted_content` is kept, because it may be sent back; other nulls may not.
    return {"encrypted_content": None, **extras} if "encrypted_content" in item else extras


def thoughts_in(item: JsonObject) -> str:
    """The visible text of the reasoning: its summary, or else its content."""
    for member in ("summary", "content"):
        texts = [
            text for part in objects_in(item.get(member)) if (text := text_in(part.get("text")))
        ]
        if texts:
            return "\n\n".join(texts)
    return ""


def read_response(
    payload: JsonObject,
    *,
    problems: Iterable[str] = (),
    has_ended: bool = True,
    failure: ProviderFailure | None = None,
    flags: Flags = NO_FLAGS,
) -> Response:
    """Read the answer in a payload; it has one message.

    For a stream, the arguments are the notes on unread events, whether the end was received, the
    failure in the stream, and the flags of calls by the position of their items.
    """
    unread = [*problems]
    failure = failure or read_failure(payload)
    output, status = payload.get("output"), payload.get("status")
    if not isinstance(output, list) and failure is None:
        unread.append("the answer has neither output nor an error")
    if status is not None and status not in _KNOWN:
        unread.append(f"the status {str(status)[:60]!a} is not known")
    is_whole = has_ended and failure is None and status in (None, "completed", CUT_SHORT)
    items = list_in(output)
    hosted = hosted_shells(output, in_answer=True)
    blocks = [*numbered(_read_turn(items, hosted, unread, flags))]
    if not is_whole:
        blocks = [*map(cut_off, blocks)]
    elif status == CUT_SHORT and blocks and object_in(items[-1]).get("status") != "completed":
        # The last item of an answer that was cut short is complete only if its status says so.
        blocks[-1] = cut_off(blocks[-1])
    messages: list[Message] = []
    if isinstance(output, list) and (items or failure is None):
        is_complete = is_whole and status != CUT_SHORT
        reason = object_in(payload.get("incomplete_details")).get("reason")
        origin = origin_of_choice(NAME, payload, {"finish_reason": text_in(reason) or status}, 0)
        messages = [
            Message(role="assistant", blocks=tuple(blocks), origin=origin, is_complete=is_complete)
        ]
    return Response.of(messages, failure, unread)


def read_failure(payload: JsonObject) -> ProviderFailure | None:
    """The error in an answer or in an event of a stream."""
    if failure := failure_in(payload):
        return failure
    # An answer may have failed without an error that gives the reason.
    failed = payload.get("status") == "failed"
    return ProviderFailure("", None, payload.get("error")) if failed else None


def read_history(request: JsonObject) -> Conversation:
    """Read the input and tools of a request; `instructions` is a system message at the front."""
    given = request.get("input")
    items: JsonValue = [{"role": "user", "content": given}] if isinstance(given, str) else given
    if not isinstance(items, list):
        raise InvalidRecordError("the request has no input")
    instructions = text_in(request.get("instructions"))
    said = _read_content({"content": instructions})
    messages = [message_of_request(NAME, "system", said, FROM_INSTRUCTIONS)] if instructions else []
    messages.extend(_messages(items))
    return Conversation.of(messages, read_tools(request))


def _messages(items: list[JsonValue]) -> Iterator[Message]:
    hosted = hosted_shells(items, in_answer=False)
    local_shells = {
        text_in(item.get("id")): text_in(item.get("call_id"))
        for item in objects_in(items)
        if type_of(item) == "local_shell_call"
    }
    for role, run in groupby(items, key=partial(_role, hosted=hosted)):
        if role == "assistant":
            yield message_of_request(NAME, role, numbered(_read_turn(run, hosted, [])))
        elif role == "tool":
            results = [read_output(object_in(item), local_shells) for item in run]
            yield message_of_request(NAME, role, results)
        else:
            for item in run:
                yield message_of_request(NAME, role, _read_content(object_in(item)))


def _role(native: JsonValue, hosted: frozenset[str]) -> Role:
    """The role of an item; the assistant's unless it belongs to another role."""
    item = object_in(native)
    kind = type_of(item)
    if kind == "message":
        return _SPEAKERS.get(str(item.get("role")), "assistant")
    if kind == "tool_search_output" and item.get("execution") != "client":
        return "assistant"
    is_hosted = kind == "shell_call_output" and text_in(item.get("call_id")) in hosted
    return "tool" if kind in OUTPUT_TYPES and not is_hosted else "assistant"
