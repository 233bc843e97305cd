"""Items of OpenAI Responses into the canonical conversation, those of an answer or of a request.

Whether there are calls follows from the items. An answer that did not come to its end has no call
that may be run; in one that the provider cut short, those whose items are completed are whole.
Where an item has an id, the blocks that came of it remember it in their extras, under `item`, so
that they can become one item again.

Items of a request have no batches. What the model said up to the next output, or to the next
message of somebody else, is taken for one turn: one message of the assistant.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import count, groupby

from pydantic import JsonValue

from tooltrail.records import (
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
    RepeatedIds,
    cut_off,
    is_for_provider,
    message_of_request,
    origin_of_choice,
    with_origins,
)
from tooltrail.wire.members import JsonObject, list_in, object_in, objects_in, others, text_in
from tooltrail.wire.openai_responses.asking import read_tools
from tooltrail.wire.openai_responses.calls import (
    hosted_shells,
    is_for_caller,
    read_call,
    read_hosted_call,
    type_of,
)
from tooltrail.wire.openai_responses.limits import NAME
from tooltrail.wire.openai_responses.outputs import OUTPUT_TYPES, read_output
from tooltrail.wire.openai_responses.parts import read_part
from tooltrail.wire.responses import ProviderFailure, Response, failure_in

CUT_SHORT = "incomplete"
"""The status of an answer that ended in order, and before the model had said everything."""

ITEM = "item"
"""The extra of a block that has what its item said beside the content."""

_KNOWN = ("completed", CUT_SHORT, "failed", "cancelled", "queued", "in_progress")
_MESSAGE = frozenset({"type", "role", "content"})
_SPEAKERS: dict[str, Role] = {"user": "user", "system": "system", "developer": "developer"}


def _read_turn(
    items: Iterable[JsonValue], hosted: frozenset[str], unread: list[str], flags: Flags = NO_FLAGS
) -> Iterator[MessageBlock]:
    """The blocks of one message of the assistant; `unread` takes what is not as the format says."""
    calls, hosted_calls, repeated = count(), 0, RepeatedIds()
    for position, item in enumerate(items):
        where = f"output[{position}]"
        if not isinstance(item, dict):
            unread.append(f"{where} is not an object")
            yield ProviderBlock(native=item)
        elif is_for_caller(item, hosted):
            # Without one a call has no id, which anybody can see; one of another kind is lost.
            if not isinstance(item.get("call_id"), str | None):
                unread.append(f"the call_id of {where} is not a string")
            yield repeated.flagged(read_call(item, next(calls), flags.get(position, ())))
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
    """The blocks of a message; each one remembers what the message says beside its content."""
    about = others(item, _MESSAGE)
    if about.get("status") == "completed":
        del about["status"]
    content = item.get("content")
    # Empty texts are said, too: a message of one is not nothing.
    parts: list[JsonValue] = [{"type": "input_text", "text": content}]
    for part in parts if isinstance(content, str) else list_in(content):
        block = read_part(part)
        # In a turn a part that is not understood differs from an item by this extra.
        if about or (in_turn and isinstance(block, ProviderBlock)):
            block = block.model_copy(update={"extras": {**block.extras, ITEM: about}})
        yield block


def _proof(item: JsonObject) -> JsonObject:
    """All of a reasoning item, which its provider takes back as it was, or not at all."""
    extras = others(item, frozenset({"type"}))
    # That nothing is encrypted is said by a null, which may go back; other nulls may not.
    return {"encrypted_content": None, **extras} if "encrypted_content" in item else extras


def thoughts_in(item: JsonObject) -> str:
    """What is shown of the reasoning: its summary, or else the text itself."""
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
    """The answer of a payload; it has one message.

    Of a stream, the arguments are what could not be read so far, whether the stream said that it
    ended, the failure that it gave, and the flags of calls by the position of their items.
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
    blocks = [*_read_turn(items, hosted_shells(output, in_answer=True), unread, flags)]
    if not is_whole:
        blocks = [*map(cut_off, blocks)]
    elif status == CUT_SHORT and blocks and object_in(items[-1]).get("status") != "completed":
        # The last item of an answer that was cut short is whole only if it says so.
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
    """The error that an answer, or an event of a stream, tells."""
    if failure := failure_in(payload):
        return failure
    # That an answer failed is known also where nobody says why.
    failed = payload.get("status") == "failed"
    return ProviderFailure("", None, payload.get("error")) if failed else None


def read_history(request: JsonObject) -> Conversation:
    """The input and the tools of a request; its instructions are a system message in front."""
    given = request.get("input")
    items: JsonValue = [{"role": "user", "content": given}] if isinstance(given, str) else given
    if not isinstance(items, list):
        raise InvalidRecordError("the request has no input")
    instructions = text_in(request.get("instructions"))
    messages = [Message.of("system", instructions)] if instructions else []
    messages.extend(_messages(items))
    # What a result says for this format goes back with the call that it answers.
    native = {one.call_id for said in messages for one in said.results if is_for_provider(one)}
    return Conversation.of(with_origins(messages, NAME, native), read_tools(request))


def _messages(items: list[JsonValue]) -> Iterator[Message]:
    hosted = hosted_shells(items, in_answer=False)
    local_shells = {
        text_in(item.get("id")): text_in(item.get("call_id"))
        for item in objects_in(items)
        if type_of(item) == "local_shell_call"
    }
    for role, run in groupby(items, key=partial(_role, hosted=hosted)):
        if role == "assistant":
            yield message_of_request(NAME, role, _read_turn(run, hosted, []))
        elif role == "tool":
            results = [read_output(object_in(item), local_shells) for item in run]
            yield Message(role=role, blocks=tuple(results))
        else:
            for item in run:
                yield message_of_request(NAME, role, _read_content(object_in(item)))


def _role(native: JsonValue, hosted: frozenset[str]) -> Role:
    """Who says an item: of what is nobody else's, the assistant."""
    item = object_in(native)
    kind = type_of(item)
    if kind == "message":
        return _SPEAKERS.get(str(item.get("role")), "assistant")
    if kind == "tool_search_output" and item.get("execution") != "client":
        return "assistant"
    is_hosted = kind == "shell_call_output" and text_in(item.get("call_id")) in hosted
    return "tool" if kind in OUTPUT_TYPES and not is_hosted else "assistant"
