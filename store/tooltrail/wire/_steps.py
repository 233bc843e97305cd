"""Splits a conversation into the steps that exporters write: plain messages and answered calls.

This module decides whether a batch of calls is written natively or as text. The decision holds
for all calls of the batch: a mixture would leave results without calls.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tooltrail.records import (
    CallBlock,
    Conversation,
    Message,
    MessageBlock,
    ResultBlock,
    TextBlock,
    ToolCall,
)
from tooltrail.wire._identifiers import CallIds
from tooltrail.wire._pairing import Asked, Batch, pair
from tooltrail.wire._writing import Writing
from tooltrail.wire.text_fallback.family import (
    TextCall,
    TextFamily,
    TextKind,
    TextResult,
    text_family,
)

_NOT_RECORDED = TextBlock(
    text="[no result recorded: interrupted; outcome unknown, verify before retrying]"
)
_NOT_SHOWN = TextBlock(text="[unknown: what the model was shown of this call is not recorded]")
_NO_RESULTS = {
    "mark": ResultBlock(status="interrupted", content=(_NOT_RECORDED,)),
    "unknown": ResultBlock(status="unknown", content=(_NOT_SHOWN,)),
}
"""The replacement for a missing result, by `ExportPolicy.unanswered`."""


@dataclass(frozen=True, slots=True)
class Answered:
    """A call and its result, as they are sent.

    Attributes:
        wire_id: the id of both; None if the call has none and the format needs none.
        result: the result, or the replacement for a missing one.
        where: the position of the call in the conversation.
        source: the message that contains the result; an empty one if the result is missing.
    """

    call: ToolCall
    wire_id: str | None
    wire_name: str
    result: ResultBlock
    where: str
    source: Message


@dataclass(frozen=True, slots=True)
class Step:
    """A message, and the results of its calls.

    Attributes:
        message: a message of any role but `tool`, without results; with calls, the assistant's.
        where: the position in the conversation.
        answered: the calls with their results, in the order of the calls.
        orphans: the results without a call that the message contains as text.
    """

    message: Message
    where: str
    answered: tuple[Answered, ...] = ()
    orphans: tuple[ResultBlock, ...] = ()

    def blocks(self) -> Iterator[MessageBlock | Answered]:
        """The message's blocks in order, each call with its result, without calls left out."""
        given = iter(self.answered)
        following = next(given, None)
        for block in self.message.blocks:
            if not isinstance(block, CallBlock):
                yield block
            elif following is not None and following.call is block.call:
                yield following
                following = next(given, None)


def steps(writing: Writing, conversation: Conversation) -> Iterator[Step]:
    """Split the conversation into steps; orphans become text at the position of their message."""
    return _Planner(writing).steps(conversation)


class _Planner:
    def __init__(self, writing: Writing) -> None:
        self._writing = writing
        self._ids = CallIds(writing.capabilities, writing.report)
        self._family = text_family(writing.policy.text_family)

    def steps(self, conversation: Conversation) -> Iterator[Step]:
        tools = [(tool.namespace, tool.name) for tool in conversation.tools]
        calls = [call for message in conversation.messages for call in message.calls]
        self._writing.names.reserve([*tools, *((call.namespace, call.tool_name) for call in calls)])
        paired = pair(conversation, self._writing.report)
        for index, message in enumerate(conversation.messages):
            where = f"messages[{index}]"
            if not message.is_complete:
                self._writing.note("incomplete_unsaid", where, "the answer broke off")
            if index in paired.batches:
                yield from self._batch(paired.batches[index], where)
            elif said := self._without_results(message, where):
                yield Step(said, where)
            if orphans := tuple(paired.orphans.get(index, ())):
                yield Step(self._as_text(message, orphans, where), where, orphans=orphans)

    def _as_text(self, source: Message, orphans: tuple[ResultBlock, ...], where: str) -> Message:
        """Results without a call as the user's text; no text if the format accepts orphans."""
        if self._writing.capabilities.takes_orphans:
            return Message(role="user", origin=source.origin)
        answered = (self._orphan(result, where) for result in orphans)
        return Message.of("user", results_as_text(self._writing, self._family, answered))

    def _orphan(self, result: ResultBlock, where: str) -> Answered:
        """The result with a call of the id and tool that it names."""
        call = ToolCall(
            tool_name=result.tool_name or "", call_id=result.call_id, namespace=result.namespace
        )
        name = self._writing.text_names.of(call.tool_name, where, call.namespace)
        return Answered(call, call.call_id, name, result, where, Message(role="tool"))

    def _without_results(self, message: Message, where: str) -> Message | None:
        """The message without its results; None if nothing remains to be written."""
        said = _without(message, ResultBlock)
        if message.role == "tool":
            self._writing.note_message_extras(message, where)
            if not message.blocks:
                self._writing.note(
                    "message_empty", where, "a tool message without a result is left out"
                )
            if said.blocks:
                self._writing.note(
                    "role_changed", where, "content other than results is sent as a user message"
                )
                return Message(role="user", blocks=said.blocks)
            return None
        return said if said is message or said.blocks else None

    def _batch(self, batch: Batch, where: str) -> Iterator[Step]:
        if batch.message.role != "assistant":
            note = f"a message of the {batch.message.role} with calls is the assistant's"
            self._writing.note("role_changed", where, note)
            batch.message = batch.message.model_copy(update={"role": "assistant"})
        kept = [asked for asked in batch.asked if asked.result or self._keeps(asked)]
        self._ids.begin_batch()
        if not kept:
            said = _without(batch.message, CallBlock, ResultBlock)
            if said.blocks:
                yield Step(said, where)
            return
        is_native = self._is_native(kept)
        answered = tuple(self._answered(asked, batch, is_native=is_native) for asked in kept)
        if is_native:
            yield Step(_without(batch.message, ResultBlock), where, answered)
        else:
            yield from self._batch_as_text(batch.message, answered, where)

    def _keeps(self, asked: Asked) -> bool:
        is_kept = self._writing.policy.unanswered != "drop"
        what = "a result was added that says so" if is_kept else "the call was left out"
        self._writing.note("result_missing", asked.where, what)
        return is_kept

    def _is_native(self, kept: list[Asked]) -> bool:
        is_free = not self._writing.capabilities.needs_call_ids
        is_free = is_free or self._writing.policy.ids == "synthesise"
        return is_free or all(asked.block.call.call_id for asked in kept)

    def _answered(self, asked: Asked, batch: Batch, *, is_native: bool) -> Answered:
        call, where, writing = asked.block.call, asked.where, self._writing
        if "incomplete" in call.flags:
            writing.note("incomplete_unsaid", where, "the call was cut off, or may have been")
        writing.note_extras(asked.block, where)
        if is_native:
            wire_id = self._wire_id(call, batch.number, where)
            name = writing.call_name(call, batch.message, where)
        else:
            wire_id = call.call_id
            name = writing.text_names.of(call.tool_name, where, call.namespace)
        result = asked.result or _NO_RESULTS[writing.policy.unanswered]
        return Answered(call, wire_id, name, result, where, asked.source or Message(role="tool"))

    def _wire_id(self, call: ToolCall, batch: int, where: str) -> str | None:
        needs_id = self._writing.capabilities.needs_call_ids
        # An id that was made for a call without one is not sent to a format that needs no ids.
        is_made = "id_synthesised" in call.flags
        if call.call_id and (needs_id or not is_made):
            if is_made:
                self._writing.note("id_synthesised", where, "the provider of the call sent no id")
            is_kept = self._writing.policy.identifiers == "keep"
            return call.call_id if is_kept else self._ids.given(call.call_id, batch, where)
        return self._ids.synthesised(batch, call.position, where) if needs_id else None

    def _batch_as_text(
        self, message: Message, answered: tuple[Answered, ...], where: str
    ) -> Iterator[Step]:
        writing, family = self._writing, self._family
        writing.note("batch_as_text", where, "a call has no id, which this format needs")
        said = _without(message, CallBlock, ResultBlock)
        said = said if said.blocks else Message(role="assistant")
        blocks = (*said.blocks, TextBlock(text=calls_as_text(writing, family, answered)))
        yield Step(said.model_copy(update={"blocks": blocks}), where)
        yield Step(Message.of("user", results_as_text(writing, family, answered)), where)


def calls_as_text(writing: Writing, family: TextFamily, answered: Iterable[Answered]) -> str:
    """The calls in the text of a family; reports what is lost."""
    calls: list[TextCall] = []
    for one in answered:
        call, where = one.call, one.where
        writing.note_dropped(call.extras, where)
        if call.kind != "function" and not (family.tells_kinds and call.kind == "custom"):
            writing.note("provider_data_dropped", where, f"the kind {call.kind}")
        if one.wire_id and not family.tells_ids:
            writing.note("id_dropped", where, f"{family.name} has no ids")
        kind: TextKind = "custom" if call.kind == "custom" else "function"
        arguments = writing.arguments_text(call, where)
        calls.append(TextCall(one.wire_name, one.wire_id or None, arguments, kind))
    return family.write_calls(calls)


def results_as_text(writing: Writing, family: TextFamily, answered: Iterable[Answered]) -> str:
    """The results in the text of a family; reports what is lost."""
    results: list[TextResult] = []
    for one in answered:
        result, where = one.result, one.where
        writing.note_extras(result, where)
        text = writing.result_text(
            result, where, prefix=not family.tells_errors, has_status=family.tells_status
        )
        if result.status == "unknown" and family.tells_errors and not family.tells_status:
            writing.note("status_flattened", where, "unknown is ok here")
        results.append(TextResult(one.wire_name, one.wire_id or None, result.status, text))
    return family.write_results(results)


def _without(message: Message, *kinds: type[MessageBlock]) -> Message:
    """The message without blocks of these kinds."""
    kept = tuple(block for block in message.blocks if not isinstance(block, kinds))
    if len(kept) == len(message.blocks):
        return message
    return message.model_copy(update={"blocks": kept})
