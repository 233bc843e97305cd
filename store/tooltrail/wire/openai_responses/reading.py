"""An answer of OpenAI Responses that was not streamed, into the canonical conversation.

Whether there are calls follows from the items. An answer that did not come to its end has no call
that may be run; in one that the provider cut short, those whose items are completed are whole.
"""

from collections.abc import Mapping

from pydantic import JsonValue

from tooltrail.records import CallBlock, CallFlag, Message, MessageBlock, Origin
from tooltrail.wire._reading import cut_off
from tooltrail.wire.members import JsonObject, list_in, object_in, others, text_in
from tooltrail.wire.openai_responses.calls import hosted_shells
from tooltrail.wire.openai_responses.items import ItemReader
from tooltrail.wire.openai_responses.limits import NAME
from tooltrail.wire.responses import ProviderFailure, Response, failure_of

CUT_SHORT = "incomplete"
"""The status of an answer that ended in order, and before the model had said everything."""

_TYPE = frozenset({"type"})
_KNOWN = ("completed", CUT_SHORT, "failed", "cancelled", "queued", "in_progress")
NO_FLAGS: Mapping[int, tuple[CallFlag, ...]] = {}


def read_response(payload: JsonObject) -> Response:
    """An answer that was not streamed; it has one message."""
    return read_answer(payload, unread=[])


def read_answer(
    payload: JsonObject,
    *,
    unread: list[str],
    has_ended: bool = True,
    failure: ProviderFailure | None = None,
    flags: Mapping[int, tuple[CallFlag, ...]] = NO_FLAGS,
) -> Response:
    """The answer of a payload.

    Args:
        payload: as an answer that is not streamed has it.
        unread: what of it could not be read so far.
        has_ended: whether a stream said that it ended.
        failure: that a stream gave.
        flags: of calls, by the position of their items.
    """
    failure = failure or read_failure(payload)
    output = payload.get("output")
    items = list_in(output)
    if not isinstance(output, list) and failure is None:
        unread.append("the answer has neither output nor an error")
    status = payload.get("status")
    if status is not None and status not in _KNOWN:
        unread.append(f"the status {str(status)[:60]!a} is not known")
    is_whole = has_ended and failure is None and status in (None, "completed", CUT_SHORT)
    reader = ItemReader(unread, hosted_shells(items, in_answer=True))
    for position, item in enumerate(items):
        reader.take(item, f"output[{position}]", flags.get(position, ()))
    _flag(reader.blocks, items, is_whole=is_whole, is_cut=status == CUT_SHORT)
    messages = (
        ()
        if not isinstance(output, list) or (failure and not items)
        else (
            Message(
                role="assistant",
                blocks=tuple(reader.blocks),
                origin=_origin(payload),
                is_complete=is_whole and status != CUT_SHORT,
            ),
        )
    )
    return Response.of(messages, failure, unread, reader.remarks)


def read_failure(payload: JsonObject) -> ProviderFailure | None:
    """The error that an answer, or an event of a stream, tells."""
    error = payload.get("error")
    if not error and payload.get("type") == "error":
        error = payload
    if not error:
        # That an answer failed is known also where nobody says why.
        return ProviderFailure("", None, error) if payload.get("status") == "failed" else None
    # The type of the whole payload says only that it is an error.
    return failure_of(others(payload, _TYPE) if error is payload else error, error)


def _origin(payload: JsonObject) -> Origin:
    reason = object_in(payload.get("incomplete_details")).get("reason")
    return Origin(
        wire_format=NAME,
        model=text_in(payload.get("model")),
        response_id=text_in(payload.get("id")),
        finish_reason=text_in(reason) or text_in(payload.get("status")),
    )


def _flag(
    blocks: list[MessageBlock], items: list[JsonValue], *, is_whole: bool, is_cut: bool
) -> None:
    """Flag the calls that may not be whole."""
    for number, block in enumerate(blocks):
        is_last = number == len(blocks) - 1
        # The last item of an answer that was cut short is whole only if it says so.
        is_open = is_cut and is_last and object_in(items[-1]).get("status") != "completed"
        if isinstance(block, CallBlock) and (not is_whole or is_open):
            blocks[number] = cut_off(block)
