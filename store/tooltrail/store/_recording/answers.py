"""What is recorded of a provider's answer: a message for each choice, the bytes with the first."""

from collections.abc import Iterator
from uuid import UUID

from tooltrail.records import CallBlock, Message, MessageBlock, Origin
from tooltrail.wire import Response


def messages_of(
    response: Response, wire_format: str, provider: str | None, first_id: UUID
) -> Iterator[tuple[UUID, Message]]:
    """What is recorded, at least one message; the same ids whoever does it.

    Args:
        response: what was read of the answer. One that is nothing but an error is recorded as well.
        wire_format: that it came in.
        provider: whose server gave it, where the format does not say that.
        first_id: of the first message.

    Returns:
        The messages with their ids. Each call has an id, and those that were made are flagged.
    """
    nothing = Message(role="assistant", origin=Origin(wire_format=wire_format), is_complete=False)
    for number, message in enumerate(response.messages or (nothing,)):
        message_id = UUID(int=first_id.int + number)
        yield message_id, _with_ids(_with_provider(message, provider), message_id)


def _with_provider(message: Message, provider: str | None) -> Message:
    if provider is None or message.origin is None:
        return message
    origin = message.origin.model_copy(update={"provider": provider})
    return message.model_copy(update={"origin": origin})


def _with_ids(message: Message, message_id: UUID) -> Message:
    """The message with an id for each call, made of its own where it has none."""
    if all(call.call_id for call in message.calls):
        return message
    blocks = tuple(
        _with_id(block, f"call_{message_id.hex}_{place}")
        for place, block in enumerate(message.blocks)
    )
    return message.model_copy(update={"blocks": blocks})


def _with_id(block: MessageBlock, call_id: str) -> MessageBlock:
    if not isinstance(block, CallBlock) or block.call.call_id:
        return block
    made = {"call_id": call_id, "flags": (*block.call.flags, "id_synthesised")}
    return block.model_copy(update={"call": block.call.model_copy(update=made)})
