"""Converts a transcript to a conversation that can be sent to any provider.

Each call is in the message that asked for it. A call that no message asked for, such as a command
that a person ran, is in its own message: times do not show which calls were requested together. The
result of a call is the receipt that the model was shown. Of several answers to one request, the
conversation has the continued one. Differences from the record are listed, as in an export report.
"""

from dataclasses import dataclass, field

from tooltrail.records import (
    CallBlock,
    Conversation,
    Message,
    MessageBlock,
    ResultBlock,
    TextBlock,
    result_status,
)
from tooltrail.store.views import InvocationDetail, MessageView, ToolView
from tooltrail.transcripts._pairs import Asked, Pairs, repeats_receipt
from tooltrail.transcripts.transcript import Transcript
from tooltrail.wire import Change, ChangeKind


def conversation_of(transcript: Transcript) -> Conversation:
    """The conversation of a session.

    A call that has not ended has no result. The result of a call without a recorded receipt says
    that it has ended, and why there is no receipt. The tools are those that the session offered
    last.
    """
    return read_conversation(transcript)[0]


def read_conversation(
    transcript: Transcript, *, fills: bool = True
) -> tuple[Conversation, tuple[Change, ...]]:
    """The conversation of a session, and its differences from the record.

    For an entry that is not in the conversation, `where` of the change is `#SEQ`.

    Args:
        transcript: transcript of the session.
        fills: whether an ended call without a receipt gets a result that says so.
    """
    building, offered = _Building(transcript, fills=fills), tuple[ToolView, ...]()
    for entry in transcript.entries:
        if isinstance(entry, InvocationDetail):
            building.add_invocation(entry)
        elif entry.tools is not None:
            offered = entry.tools
        elif entry.leg is None:  # facts about a leg were not shown to a model
            building.add_message(entry)
    drafts = building.kept()
    messages = [
        draft.message.model_copy(update={"blocks": tuple(draft.blocks)}) for draft in drafts
    ]
    changed = [
        Change(kind, f"messages[{index}].results[{number}]", detail)
        for index, draft in enumerate(drafts)
        for kind, number, detail in draft.changed
    ]
    conversation = Conversation.of(messages, [tool.definition for tool in offered])
    return conversation, (*building.changes, *changed)


@dataclass(slots=True)
class _Draft:
    """A message that is being built.

    Attributes:
        message: message with the role and the origin; its blocks are ignored.
        changed: results that are not the receipt: kind of the change, number of the result among
            the results, and the detail to report.
    """

    message: Message
    blocks: list[MessageBlock] = field(default_factory=list[MessageBlock])
    changed: list[tuple[ChangeKind, int, str]] = field(
        default_factory=list[tuple[ChangeKind, int, str]]
    )


class _Building:
    def __init__(self, transcript: Transcript, *, fills: bool) -> None:
        self._fills = fills
        self._compacted = transcript.compacted
        self._pairs = Pairs(transcript)
        self._drafts: list[_Draft] = []
        self.changes: list[Change] = []

    def kept(self) -> list[_Draft]:
        """The messages, without tool messages whose results are all in other messages."""
        return [draft for draft in self._drafts if draft.blocks or draft.message.role != "tool"]

    def add_message(self, view: MessageView) -> None:
        """Add a recorded message."""
        message = self._pairs.messages[view.id]
        if view.id in self._pairs.left:
            choice = 0 if message.origin is None else message.origin.choice
            self._leave("alternative_dropped", view, f"choice {choice} was not continued")
            return
        draft = self._add(message)
        for number, block in enumerate(message.blocks):
            kept = self._keyed(view, number, block)
            if kept is not None:
                draft.blocks.append(kept)

    def add_invocation(self, detail: InvocationDetail) -> None:
        """Add the result of an invocation, and its call if no message asked for the call."""
        asked = self._pairs.runs[detail.summary.id]
        if asked.message_id is None and asked.run is detail:
            draft = self._add(Message(role="assistant"))
            draft.blocks.append(CallBlock(call=asked.call, key=_key_of(asked)))
        summary, text = detail.summary, self._shown(detail)
        change: tuple[ChangeKind, str] | None = None
        if text is None:
            if not self._fills or summary.state == "started" or asked.results:
                return
            reason = detail.absence_of("receipt")
            text = f"[the call has ended: {summary.state}; {reason}]"
            change = "result_missing", f"a result was added that says so: {reason}"
        elif summary.id in self._compacted:
            change = "result_compacted", "replaced by the receipt of the compacted result"
        draft = self._answers()
        if change is not None:
            number = sum(isinstance(block, ResultBlock) for block in draft.blocks)
            draft.changed.append((change[0], number, change[1]))
        result = ResultBlock(
            call_id=summary.call_id,
            tool_name=asked.call.tool_name,
            namespace=asked.call.namespace,
            status=result_status(summary.state, summary.error_kind),
            content=(TextBlock(text=text),),
            key=_key_of(asked),
        )
        draft.blocks.append(result)

    def _shown(self, detail: InvocationDetail) -> str | None:
        compacted = self._compacted.get(detail.summary.id)
        if compacted is not None:
            return compacted
        return None if detail.receipt is None else detail.receipt.text

    def _keyed(self, view: MessageView, number: int, block: MessageBlock) -> MessageBlock | None:
        """The block with the key of its call; None for a result that an invocation replaces."""
        if isinstance(block, CallBlock):
            asked = self._pairs.calls[view.id, number]
            return block if asked.run is None else block.model_copy(update={"key": _key_of(asked)})
        if not isinstance(block, ResultBlock):
            return block
        found = self._pairs.results.get((view.id, number))
        if found is None or found.run is None:
            return block
        if self._shown(found.run) is None:
            # The invocation has no receipt, so the result in the message is used.
            return block.model_copy(update={"key": _key_of(found)})
        if not repeats_receipt(block, found.run):
            seq = found.run.summary.seq
            self._leave("result_repeated", view, f"replaced by the receipt of #{seq}")
        return None

    def _leave(self, kind: ChangeKind, view: MessageView, detail: str) -> None:
        self.changes.append(Change(kind, f"#{view.seq}", detail))

    def _add(self, message: Message) -> _Draft:
        draft = _Draft(message)
        self._drafts.append(draft)
        return draft

    def _answers(self) -> _Draft:
        """The message for the next result: the last message if it has results, else a new one."""
        last = self._drafts[-1]
        return last if last.message.role == "tool" else self._add(Message(role="tool"))


def _key_of(asked: Asked) -> str | None:
    """The key that a call shares with its results; None if the call was not run."""
    return None if asked.run is None else str(asked.run.summary.id)
