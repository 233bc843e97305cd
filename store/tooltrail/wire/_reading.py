"""Helpers that readers of several formats share: messages, cut-off calls, results."""

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from itertools import groupby
from typing import TypeVar, get_args

from pydantic import JsonValue

from tooltrail.records import (
    CallBlock,
    CallFlag,
    ContentBlock,
    InvalidRecordError,
    MediaBlock,
    Message,
    MessageBlock,
    Origin,
    ProviderBlock,
    ReasoningBlock,
    ResultBlock,
    Role,
    TextBlock,
)
from tooltrail.wire._writing import ERROR_PREFIX
from tooltrail.wire.media_uris import is_public
from tooltrail.wire.members import JsonObject, object_in, text_in

BlockT = TypeVar("BlockT", bound=MessageBlock)
CallT = TypeVar("CallT", bound=CallBlock)

ROLES: Mapping[str, Role] = {role: role for role in get_args(Role)}
"""The roles of formats that use the role names of records."""


REASONING = ("reasoning_content", "reasoning")
"""The members of a chat message in which servers put the model's reasoning."""


def thoughts_in(native: JsonObject) -> Iterator[ReasoningBlock]:
    """The model's reasoning in a chat message."""
    for member in REASONING:
        if thought := text_in(native.get(member)):
            yield ReasoningBlock(text=thought, extras={"member": member})


def messages_in(request: JsonObject) -> list[JsonValue]:
    """The messages of a request, unchecked.

    Raises:
        InvalidRecordError: `messages` is missing or not an array.
    """
    natives = request.get("messages")
    if not isinstance(natives, list):
        raise InvalidRecordError("the request has no messages")
    return natives


def spoken_in(
    request: JsonObject, roles: Mapping[str, Role] = ROLES
) -> Iterator[tuple[JsonObject, Role]]:
    """The messages of a request, each with its role.

    Raises:
        InvalidRecordError: `messages` is not an array, or a message has no known role.
    """
    for position, native in enumerate(messages_in(request)):
        message = object_in(native)
        role = roles.get(str(message.get("role")))
        if role is None:
            raise InvalidRecordError(f"messages[{position}] has no role that is known")
        yield message, role


def cut_off(block: BlockT) -> BlockT:
    """The block, flagged `incomplete` if it is a call."""
    return _flagged(block, "incomplete") if isinstance(block, CallBlock) else block


def cut_message(message: Message) -> Message:
    """Mark a message of the assistant as incomplete; return any other message unchanged."""
    if message.role != "assistant":
        return message
    blocks = tuple(map(cut_off, message.blocks))
    return message.model_copy(update={"blocks": blocks, "is_complete": False})


def message_of_answer(
    blocks: list[MessageBlock],
    origin: Origin,
    *,
    is_complete: bool,
    is_cut: bool,
    cut: AbstractSet[int] = frozenset(),
) -> Message:
    """The message of an answer, in which the calls that may be incomplete are flagged.

    If the provider cut the answer short (`is_cut`), only its last call can be incomplete. If its
    end was not received (not `is_complete`), every call can be. So can the blocks at
    the indexes `cut`.
    """
    calls = [number for number, block in enumerate(blocks) if isinstance(block, CallBlock)]
    open_calls = calls if not is_complete else calls[-1:] if is_cut else []
    for number in {*open_calls, *cut}:
        blocks[number] = cut_off(blocks[number])
    is_whole = is_complete and not is_cut
    return Message(role="assistant", blocks=tuple(blocks), origin=origin, is_complete=is_whole)


def merge_results(messages: Iterable[Message]) -> Iterator[Message]:
    """Merge the messages that hold the results of one batch into one message.

    Some formats have a message for each result; a conversation has one for the complete batch.
    """
    for is_tool, group in groupby(messages, key=lambda message: message.role == "tool"):
        if is_tool:
            first, *more = group
            blocks = (*first.blocks, *(block for one in more for block in one.blocks))
            origins = (one.origin for one in (first, *more) if one.origin)
            yield first.model_copy(update={"blocks": blocks, "origin": next(origins, None)})
        else:
            yield from group


def message_of_request(
    wire_format: str,
    role: Role,
    blocks: Iterable[MessageBlock],
    extras: JsonObject | None = None,
) -> Message:
    """A message of a request, with an origin if a part can be written only for its provider."""
    said = tuple(blocks)
    is_native = bool(extras) or any(map(is_for_provider, said))
    origin = Origin(wire_format=wire_format, extras=extras or {}) if is_native else None
    return Message(role=role, blocks=said, origin=origin)


def messages_of_request(
    wire_format: str,
    role: Role,
    blocks: Iterable[MessageBlock],
    extras: JsonObject | None = None,
) -> Iterator[Message]:
    """Split a message of a request: results in a user's message become messages of role `tool`."""
    said = tuple(blocks)
    if role != "user" or not said:
        yield message_of_request(wire_format, role, said, extras)
        return
    for is_result, run in groupby(said, key=lambda one: isinstance(one, ResultBlock)):
        yield message_of_request(wire_format, "tool" if is_result else role, run, extras)


def numbered(blocks: Iterable[BlockT]) -> Iterator[BlockT]:
    """Number the calls among the blocks of a message, and flag calls that repeat an id."""
    position, used = 0, set[str | None]()
    for block in blocks:
        if not isinstance(block, CallBlock):
            yield block
            continue
        call = block.call.model_copy(update={"position": position})
        position += 1
        counted = block.model_copy(update={"call": call})
        yield _flagged(counted, "id_repeated") if call.call_id in used else counted
        if call.call_id:
            used.add(call.call_id)


def origin_of_choice(
    wire_format: str, payload: JsonObject, choice: JsonObject, position: int
) -> Origin:
    """The origin of the answer in one of the `choices` of a payload."""
    index = choice.get("index")
    return Origin(
        wire_format=wire_format,
        model=text_in(payload.get("model")),
        response_id=text_in(payload.get("id")),
        finish_reason=text_in(choice.get("finish_reason")),
        choice=index if isinstance(index, int) and index >= 0 else position,
    )


def is_for_provider(block: MessageBlock) -> bool:
    """Whether a part of a block can be written only for its provider."""
    if isinstance(block, CallBlock):
        return block.call.kind == "builtin" or bool(block.call.extras)
    if isinstance(block, MediaBlock) and block.uri is not None and not is_public(block.uri):
        return True
    if isinstance(block, ResultBlock) and any(map(is_for_provider, block.content)):
        return True
    return isinstance(block, ProviderBlock | ReasoningBlock) or bool(block.extras)


def result_of_text(
    call_id: str | None, tool_name: str | None, content: tuple[ContentBlock, ...]
) -> ResultBlock:
    """A result in a format without an error flag: only a prefix of its text marks a failure.

    The prefix stays in the text, because the model saw it. Without the prefix the status is
    `unknown`.
    """
    first = content[0] if content else None
    is_error = isinstance(first, TextBlock) and first.text.startswith(ERROR_PREFIX)
    return ResultBlock(
        call_id=call_id,
        tool_name=tool_name,
        status="error" if is_error else "unknown",
        content=content,
    )


def _flagged(block: CallT, flag: CallFlag) -> CallT:
    if flag in block.call.flags:
        return block
    call = block.call.model_copy(update={"flags": (*block.call.flags, flag)})
    return block.model_copy(update={"call": call})
