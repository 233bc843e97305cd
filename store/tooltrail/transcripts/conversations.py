"""A transcript as a conversation: what any provider can be told of a session.

An invocation belongs to the call of a message that asked for it: the one that it names, else the
latest one with its call id, or, where neither has an id, with its tool and its arguments. Where no
message asked, as of commands that people run, the call stands in a message of its own: who asked
for what together cannot be told from times. What the model was shown of a call is its receipt.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import cast, get_args
from uuid import UUID

from tooltrail.records import (
    CallBlock,
    Conversation,
    Message,
    MessageBlock,
    ResultBlock,
    Role,
    TextBlock,
    ToolCall,
    result_status,
)
from tooltrail.store import InvocationDetail, MessageView, ToolView
from tooltrail.transcripts._wording import arguments, compact_json
from tooltrail.transcripts.transcript import Transcript

_ROLES: frozenset[str] = frozenset(get_args(Role))

_Spelling = tuple[str, str]
"""The tool of a call without an id, and its arguments."""


def conversation_of(transcript: Transcript) -> Conversation:
    """The conversation that a session was; a call without a receipt has no result in it.

    The tools are those that it offered last.
    """
    building, offered = _Building(transcript), tuple[ToolView, ...]()
    for entry in transcript.entries:
        if isinstance(entry, MessageView) and entry.tools is not None:
            offered = entry.tools
        elif isinstance(entry, MessageView):
            building.take_message(entry)
        else:
            building.take_invocation(entry)
    return Conversation.of(building.messages(), [tool.definition for tool in offered])


@dataclass(slots=True)
class _Draft:
    message: Message
    blocks: list[MessageBlock] = field(default_factory=list[MessageBlock])


@dataclass(slots=True)
class _Place:
    """Where a call stands, and the key of it and its result once it has an invocation.

    Attributes:
        draft: of the message with the call.
        number: of the block of the call in it.
        key: the id of its invocation.
        is_answered: whether the invocation says what the model was shown.
    """

    draft: _Draft
    number: int
    key: str | None = None
    is_answered: bool = False

    @property
    def block(self) -> CallBlock:
        """The call."""
        return cast("CallBlock", self.draft.blocks[self.number])


class _Building:
    def __init__(self, transcript: Transcript) -> None:
        self._compacted = transcript.compacted
        self._drafts: list[_Draft] = []
        self._asked: dict[tuple[UUID, int], _Place] = {}
        self._named: defaultdict[str | _Spelling, list[_Place]] = defaultdict(list)

    def messages(self) -> list[Message]:
        """All of them, as far as they have come."""
        return [
            draft.message.model_copy(update={"blocks": tuple(draft.blocks)})
            for draft in self._drafts
            if draft.blocks or draft.message.role != "tool"
        ]

    def take_message(self, view: MessageView) -> None:
        """A message as it was recorded, or what can be made of an older one, which is text."""
        message = _message(view)
        draft = self._add(message)
        draft.blocks.extend(filter(None, map(self._untold, message.blocks)))
        calls = (n for n, block in enumerate(draft.blocks) if isinstance(block, CallBlock))
        for position, number in enumerate(calls):
            place = self._asked[view.id, position] = _Place(draft, number)
            call = place.block.call
            self._named[call.call_id or (call.tool_name, call.arguments_raw)].append(place)

    def take_invocation(self, detail: InvocationDetail) -> None:
        """Its call, unless a message asked for it, and what the model was shown."""
        place = self._place_of(detail)
        if place is None:
            draft = self._add(Message(role="assistant"))
            draft.blocks.append(CallBlock(call=_call(detail)))
            place = _Place(draft, 0)
        place.key = place.key or str(detail.summary.id)
        place.draft.blocks[place.number] = place.block.model_copy(update={"key": place.key})
        result = self._result(detail, place.key)
        if result is not None:
            place.is_answered = True
            self._answers().blocks.append(result)

    def _place_of(self, detail: InvocationDetail) -> _Place | None:
        if detail.message_id is not None:
            place = self._asked.get((detail.message_id, detail.position or 0))
            if place is not None:
                return place
        found: _Place | None = None
        name = detail.summary.call_id or (detail.summary.tool_name, arguments(detail))
        # Ids repeat: the first free call of the latest message that has one.
        for place in reversed(self._named.get(name, ())):
            if found is not None and place.draft is not found.draft:
                break
            if place.key is None:
                found = place
        return found

    def _result(self, detail: InvocationDetail, key: str) -> ResultBlock | None:
        summary, compacted = detail.summary, self._compacted.get(detail.summary.id)
        if compacted is not None:
            text = compact_json(compacted)
        elif detail.receipt is not None:
            text = detail.receipt.text
        else:
            return None
        return ResultBlock(
            call_id=summary.call_id,
            tool_name=summary.tool_name,
            status=result_status(summary.state, summary.error_kind),
            content=(TextBlock(text=text),),
            key=key,
        )

    def _add(self, message: Message) -> _Draft:
        draft = _Draft(message)
        self._drafts.append(draft)
        return draft

    def _answers(self) -> _Draft:
        """The message that takes the next result: the last one, if it has results too."""
        last = self._drafts[-1]
        return last if last.message.role == "tool" else self._add(Message(role="tool"))

    def _untold(self, block: MessageBlock) -> MessageBlock | None:
        """The block; None for the recorded result of a call whose invocation tells it already."""
        if not isinstance(block, ResultBlock):
            return block
        places = self._named.get(block.call_id or "")
        if not places or places[-1].key is None:
            return block
        place = places[-1]
        # A call of which nothing was kept but that it ran: what the message says of it counts.
        return None if place.is_answered else block.model_copy(update={"key": place.key})


def _message(view: MessageView) -> Message:
    """A message as it was recorded; of one without a document there is its text."""
    if view.document is not None:
        return Message.from_json(view.document)
    if view.role in _ROLES and view.role != "tool":
        return Message.of(cast("Role", view.role), view.text)
    # What a runtime calls its own kinds of messages is no role of a provider's.
    return Message(role="user", blocks=(TextBlock(text=view.text, extras={"role": view.role}),))


def _call(detail: InvocationDetail) -> ToolCall:
    summary = detail.summary
    return ToolCall(
        tool_name=summary.tool_name, arguments_raw=arguments(detail), call_id=summary.call_id
    )
