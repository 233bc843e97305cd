"""One leg of a run: a conversation with one model, until a result or a limit."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from pydantic import JsonValue

from tooltrail.agents._calls import Batch, Toolbox, to_end
from tooltrail.agents._questions import Questions, Spent, refusal_in
from tooltrail.agents.configuration import Limits
from tooltrail.agents.models import ModelError
from tooltrail.agents.runs import Observer
from tooltrail.agents.submission import REMINDER, SUBMIT_RESULT, Judge
from tooltrail.journal.answers import RecordedAnswer
from tooltrail.journal.invocation import Finished
from tooltrail.journal.session import Session
from tooltrail.journal.tool_results import result_block
from tooltrail.records import (
    CallBlock,
    LegOutcome,
    LimitName,
    Message,
    MessageBlock,
    ResultBlock,
    ToolCall,
)
from tooltrail.wire import ToolChoice


@dataclass(frozen=True, slots=True)
class Ending:
    """How a leg ended; see `LegEnded`."""

    outcome: LegOutcome
    reason: str
    limit: LimitName | None = None
    result_id: UUID | None = None
    value: JsonValue = None


@dataclass(slots=True, kw_only=True)
class LegRunner:
    """Runs one conversation. Use an instance once.

    Attributes:
        judge: checks submissions; None for an agent without a schema.
    """

    session: Session
    questions: Questions
    toolbox: Toolbox
    limits: Limits
    judge: Judge | None
    observer: Observer
    spent: Spent
    _messages: list[Message] = field(init=False, default_factory=list[Message])
    _accepted: Ending | None = field(init=False, default=None)

    async def run(self, beginning: Sequence[Message]) -> Ending:
        """Run the conversation to its end.

        Raises:
            UnavailableError: a fact could not be recorded.
            CancelledError: the run was cancelled.
        """
        deadline = asyncio.timeout(self.limits.max_time_ms / 1000)
        try:
            async with deadline:
                return await self._converse(beginning)
        except ModelError as error:
            return Ending("model_failed", str(error))
        except TimeoutError:
            if not deadline.expired():
                raise
            if self._accepted is not None:
                return self._accepted
            return self._ended_by("time", f"no end within {self.limits.max_time_ms:,} ms")

    async def _converse(self, beginning: Sequence[Message]) -> Ending:
        for message in beginning:
            await self._send(message)
        while True:
            ending = self._limit_reached() or await self._step()
            if ending is not None:
                return ending

    async def _send(self, message: Message) -> None:
        """Record a message to the model, and add it to the conversation."""
        await to_end(self.session.amessage(message))
        self._messages.append(message)

    def _limit_reached(self) -> Ending | None:
        limits, spent = self.limits, self.spent
        if spent.steps >= limits.max_steps:
            return self._ended_by("steps", f"no end within {limits.max_steps:,} steps")
        if limits.max_tokens is not None and spent.tokens >= limits.max_tokens:
            return self._ended_by("tokens", f"no end within {limits.max_tokens:,} tokens")
        return None

    def _ended_by(self, limit: LimitName | None, reason: str) -> Ending:
        if self.judge is None:
            return Ending("limit_reached", reason, limit)
        if self.judge.attempt_count:
            return Ending("result_invalid", f"{reason}; the schema refused all submissions", limit)
        message = f"Agent did not call {SUBMIT_RESULT} tool: {reason}"
        return Ending("result_not_submitted", message, limit)

    def _refused(self, reason: str) -> Ending:
        if self.judge is None:
            return Ending("model_failed", reason)
        return self._ended_by(None, reason)

    async def _step(self) -> Ending | None:
        """Ask once, and run the calls of the answer. Returns the ending if the leg ended."""
        self.spent.steps += 1
        answer = await self.questions.ask(self._messages, self._choice())
        if answer.calls:
            return await self._run_calls(answer)
        message = answer.response.messages[0]
        self._messages.append(message)
        if (refusal := refusal_in(message)) and (self.judge is not None or not message.is_complete):
            return self._refused(refusal)
        if self.judge is not None:
            return await self._remind()
        if not message.is_complete:
            return self._ended_by("tokens", "the answer was cut off")
        ids = answer.message_ids
        return Ending("answered", "the model ended", result_id=ids[0], value=message.text)

    def _choice(self) -> ToolChoice | None:
        """The forced choice of `submit_result`, after a reminder and in the last step."""
        is_last = self.spent.steps == self.limits.max_steps
        if self.judge is None or not (is_last or self._is_reminded()):
            return None
        return ToolChoice("tool", (SUBMIT_RESULT,))

    def _is_reminded(self) -> bool:
        return self._messages[-1].role == "user" and self._messages[-1].text == REMINDER

    async def _remind(self) -> Ending | None:
        if self.spent.reminders >= self.limits.max_reminders:
            return self._ended_by("reminders", "the model stopped without a valid result")
        self.spent.reminders += 1
        await self._send(Message.of("user", REMINDER))
        return None

    async def _run_calls(self, answer: RecordedAnswer) -> Ending | None:
        """Run the calls of an answer; submissions come last."""
        calls = answer.calls
        others = [call for call in calls if not self._is_submission(call)]
        ended = dict(zip(map(id, others), await self._batch().run(others), strict=True))
        for call in calls:
            if self._is_submission(call):
                ended[id(call)] = await self._submit(call)
        self._remember(answer.response.messages[0], [ended[id(call)] for call in calls])
        return self._accepted or self._attempts_left()

    def _batch(self) -> Batch:
        limits = self.limits
        return Batch(self.session, self.toolbox, limits.tool_timeout_ms, self.observer)

    def _is_submission(self, call: ToolCall) -> bool:
        return self.judge is not None and call.tool_name == SUBMIT_RESULT

    async def _submit(self, call: ToolCall) -> Finished:
        judge = self.judge
        assert judge is not None
        batch = self._batch()
        if self._accepted is not None or judge.attempt_count >= self.limits.max_attempts:
            is_accepted = self._accepted is not None
            reason = "a result was accepted already" if is_accepted else "no attempt is left"
            [finished] = await batch.refuse([call], reason)
            return finished
        judge.attempt_count += 1
        try:
            [finished] = await batch.run([call])
        finally:
            # Also after a timeout during the recording: a recorded acceptance counts.
            for recorded in batch.finished.values():
                self._accepted = self._acceptance(judge, recorded)
        return finished

    def _acceptance(self, judge: Judge, finished: Finished) -> Ending | None:
        """The ending if a recorded submission was accepted, else None."""
        result = finished.canonical.result
        if result is None or result.get("valid") is not True:
            return None
        reason = f"accepted at attempt {judge.attempt_count:,}"
        value = judge.meant(finished.call.arguments)
        return Ending("submitted", reason, result_id=finished.invocation_id, value=value)

    def _attempts_left(self) -> Ending | None:
        most = self.limits.max_attempts
        if self.judge is None or self.judge.attempt_count < most:
            return None
        return self._ended_by("attempts", f"no valid result in {most:,} attempts")

    def _remember(self, message: Message, ended: Sequence[Finished]) -> None:
        """Add an answer and the results of its calls to the conversation."""
        blocks = tuple(_with_keys(message, ended))
        self._messages.append(message.model_copy(update={"blocks": blocks}))
        results = tuple(_result(finished) for finished in ended)
        self._messages.append(Message(role="tool", blocks=results))


def _with_keys(message: Message, ended: Sequence[Finished]) -> Iterator[MessageBlock]:
    """The blocks of a message; each call has the id of its invocation as its key."""
    left = iter(ended)
    for block in message.blocks:
        if isinstance(block, CallBlock):
            key = str(next(left).invocation_id)
            yield block.model_copy(update={"call": _as_sent(block.call), "key": key})
        else:
            yield block


def _as_sent(call: ToolCall) -> ToolCall:
    """A call with the id that its provider gave, or without an id.

    The provider does not know an id that was made for the record. If its format needs ids, it gets
    the calls and results of such an answer as text.
    """
    is_made = "id_synthesised" in call.flags
    return call.model_copy(update={"call_id": None}) if is_made else call


def _result(finished: Finished) -> ResultBlock:
    block = result_block(finished)
    return block.model_copy(update={"call_id": _as_sent(finished.call).call_id})
