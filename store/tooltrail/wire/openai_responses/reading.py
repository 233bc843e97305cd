"""An answer of OpenAI Responses that was not streamed, into the canonical conversation.

Whether there are calls follows from the items. An answer that did not come to its end has no call
that may be run; in one that the provider cut short, those whose items are completed are whole.
Where an item has an id, the blocks that came of it remember it in their extras, under `item`, so
that they can become one item again.
"""

from collections.abc import Iterator, Mapping

from pydantic import JsonValue

from tooltrail.records import (
    CallBlock,
    CallFlag,
    Message,
    MessageBlock,
    Origin,
    ProviderBlock,
    ReasoningBlock,
)
from tooltrail.wire._reading import RepeatedIds, cut_off
from tooltrail.wire.members import JsonObject, list_in, object_in, objects_in, others, text_in
from tooltrail.wire.openai_responses.calls import (
    hosted_shells,
    is_for_caller,
    read_call,
    read_hosted_call,
    type_of,
)
from tooltrail.wire.openai_responses.limits import NAME, PROVIDER_ITEMS
from tooltrail.wire.openai_responses.outputs import OUTPUT_TYPES
from tooltrail.wire.openai_responses.parts import read_part
from tooltrail.wire.responses import ProviderFailure, Response, failure_in

CUT_SHORT = "incomplete"
"""The status of an answer that ended in order, and before the model had said everything."""

_KNOWN = ("completed", CUT_SHORT, "failed", "cancelled", "queued", "in_progress")
NO_FLAGS: Mapping[int, tuple[CallFlag, ...]] = {}

ITEM = "item"
"""The extra of a block that has what its item said beside the content."""

_MESSAGE = frozenset({"type", "role", "content"})


class ItemReader:
    """Reads the items of one message of the assistant.

    Attributes:
        blocks: what they say, in order.
        remarks: what of them is not as the format says, and of no call.
        call_count: of the calls that the caller is to run.
    """

    def __init__(self, unread: list[str], hosted: frozenset[str]) -> None:
        self.blocks: list[MessageBlock] = []
        self.remarks: list[str] = []
        self.call_count = 0
        self._hosted_count = 0
        self._unread = unread
        self._hosted = hosted
        self._repeated = RepeatedIds()

    def take(self, item: JsonValue, where: str, flags: tuple[CallFlag, ...] = ()) -> None:
        """Read one item; what is not as the format says is reported."""
        if not isinstance(item, dict):
            self._unread.append(f"{where} is no object")
            self.blocks.append(ProviderBlock(native=item))
        elif is_for_caller(item, self._hosted):
            self._take_call(item, where, flags)
        elif type_of(item) == "message" and item.get("role") in ("assistant", None):
            self._take_message(item, where)
        elif type_of(item) == "reasoning":
            self.blocks.append(ReasoningBlock(text=thoughts_in(item), extras=_proof(item)))
        else:
            self._take_other(item, where)

    def _take_call(self, item: JsonObject, where: str, flags: tuple[CallFlag, ...]) -> None:
        call_id = item.get("call_id")
        # Without one a call has no id, which anybody can see; one of another kind is lost.
        if not isinstance(call_id, str | None):
            self._unread.append(f"the call_id of {where} is no text")
        call = read_call(item, self.call_count, flags)
        self.call_count += 1
        self.blocks.append(self._repeated.flagged(call))

    def _take_message(self, item: JsonObject, where: str) -> None:
        content = item.get("content")
        if not isinstance(content, str | list):
            self._unread.append(f"{where} has no content")
        self.blocks.extend(read_content(item, in_turn=True))

    def _take_other(self, item: JsonObject, where: str) -> None:
        call = read_hosted_call(item, self._hosted_count)
        if call is not None:
            self._hosted_count += 1
        elif type_of(item) not in OUTPUT_TYPES | PROVIDER_ITEMS and not is_reference(item):
            self.remarks.append(f"{where} is of the unknown type {type_of(item)[:60]!a}")
        self.blocks.append(ProviderBlock(native=item, call=call))


def is_reference(item: JsonObject) -> bool:
    """Whether an item is nothing but the id of one that the provider keeps."""
    return item.get("type") is None and "id" in item and "role" not in item


def read_content(item: JsonObject, *, in_turn: bool = False) -> Iterator[MessageBlock]:
    """The blocks of a message; each one remembers what the message says beside its content.

    Args:
        item: the message.
        in_turn: whether it is one of the items of a turn of the model.
    """
    about = others(item, _MESSAGE)
    if about.get("status") == "completed":
        del about["status"]
    extras: JsonObject = {ITEM: about} if about else {}
    content = item.get("content")
    # Empty texts are said, too: a message of one is not nothing.
    parts: list[JsonValue] = [{"type": "input_text", "text": content}]
    for part in parts if isinstance(content, str) else list_in(content):
        block = read_part(part)
        # In a turn a part that is not understood differs from an item by this extra.
        is_marked = in_turn and isinstance(block, ProviderBlock)
        more: JsonObject = {ITEM: about} if is_marked else extras
        yield block.model_copy(update={"extras": {**block.extras, **more}}) if more else block


def _proof(item: JsonObject) -> JsonObject:
    """The whole of a reasoning item: it is to go back as it came."""
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
    if failure := failure_in(payload):
        return failure
    # That an answer failed is known also where nobody says why.
    failed = payload.get("status") == "failed"
    return ProviderFailure("", None, payload.get("error")) if failed else None


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
