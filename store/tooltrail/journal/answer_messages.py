"""The messages of a provider's answer: one for each choice, and the answer's bytes with the first.

The ids of the messages follow from the id of the answer. So its program, and the ingester after the
program died, record the same messages. The last message has the id of the answer and says that the
answer has ended: an append that was cut off between two messages must not say so.
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple
from uuid import UUID

from tooltrail.journal.log import Entry
from tooltrail.journal.session import message_entry
from tooltrail.records import CallBlock, Message, NotFoundError, Origin, ToolCall
from tooltrail.records.facts import AnswerStarted
from tooltrail.wire import Response, read_stream, wire_format

PAYLOAD: Final = "payload"
"""Role of the captured bytes of an answer; its file is `<spool>/<message id>/payload.zst`."""


class AnswerMessage(NamedTuple):
    """A message of an answer, and its id."""

    id: UUID
    message: Message


def messages_of(started: AnswerStarted, response: Response) -> list[AnswerMessage]:
    """The messages of an answer, at least one. An answer that is nothing but an error has one, too.

    Their ids follow each other, up to the id of the answer. Each call has an id; an id that was
    made is flagged.
    """
    origin = Origin(wire_format=started.wire_format)
    nothing = Message(role="assistant", origin=origin, is_complete=False)
    messages, found = response.messages or (nothing,), list[AnswerMessage]()
    for number, message in enumerate(messages, 1 - len(messages)):
        message_id = UUID(int=started.id.int + number)
        named = _with_provider(_with_call_ids(message, message_id), started.provider)
        found.append(AnswerMessage(message_id, named))
    return found


def answer_entries(
    started: AnswerStarted, messages: Sequence[AnswerMessage], payload: bytes
) -> list[Entry]:
    """The facts of the messages of an answer."""
    return [
        message_entry(
            started.session,
            message_id,
            message,
            payload=payload if number == 0 else None,
            at=started.at,
        )
        for number, (message_id, message) in enumerate(messages)
    ]


def cut_off_entries(started: AnswerStarted, payload: bytes) -> list[Entry]:
    """The facts of an answer whose program died, from the bytes that had come.

    An answer in a format that this program does not know is kept as bytes.
    """
    try:
        response = read_stream(wire_format(started.wire_format), [payload])
    except NotFoundError as error:
        response = Response.of(unread=[str(error)])
    return answer_entries(started, messages_of(started, response), payload)


def naming(message_id: UUID, message: Message) -> Message:
    """A recorded message whose calls name it as the message that asked."""
    return _with_calls(message, lambda _place, _call: {"message_id": message_id})


def _with_provider(message: Message, provider: str | None) -> Message:
    if provider is None or message.origin is None:
        return message
    origin = message.origin.model_copy(update={"provider": provider})
    return message.model_copy(update={"origin": origin})


def _with_call_ids(message: Message, message_id: UUID) -> Message:
    """The message with an id for each call, made of its own where it has none."""

    def made(place: int, call: ToolCall) -> dict[str, object]:
        if call.call_id:
            return {}
        flags = (*call.flags, "id_synthesised")
        return {"call_id": f"call_{message_id.hex}_{place}", "flags": flags}

    return _with_calls(message, made)


def _with_calls(message: Message, changes: Callable[[int, ToolCall], dict[str, object]]) -> Message:
    """The message with other members in its calls; a call is known by the place of its block."""
    blocks = tuple(
        block.model_copy(update={"call": block.call.model_copy(update=changes(place, block.call))})
        if isinstance(block, CallBlock)
        else block
        for place, block in enumerate(message.blocks)
    )
    return message.model_copy(update={"blocks": blocks})
