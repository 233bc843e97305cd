"""Asks a model: writes the request, records the answer, and retries."""

import asyncio
import random
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from time import monotonic

from tooltrail.agents.configuration import Limits
from tooltrail.agents.models import ChatModel, ModelError
from tooltrail.agents.runs import AnswerCame, ChunkCame, Observer, QuestionFailed
from tooltrail.journal.answers import RecordedAnswer, record_stream
from tooltrail.journal.session import Session
from tooltrail.records import Conversation, Message, TextBlock, ToolDefinition
from tooltrail.wire import ExportPolicy, JsonObject, TokenCounts, ToolChoice, wire_format
from tooltrail.wire.finish_reasons import is_refusal

_FIRST_PAUSE_MS = 500
_LONGEST_PAUSE_MS = 30_000
_BAD_REQUEST = 400

_NO_ENDS = frozenset({None, "in_progress", "queued"})
"""Finish reasons of an answer that did not end. Responses names its states until the end."""


@dataclass(slots=True)
class Spent:
    """The resources that a leg has used so far.

    Attributes:
        began: start of the leg by the monotonic clock, in seconds.
        steps: answers of the model.
        reminders: reminders that a result is missing.
        input_tokens: counted by the model's server; None if the server counts none.
        output_tokens: likewise.
    """

    began: float = field(default_factory=monotonic)
    steps: int = 0
    reminders: int = 0
    input_tokens: int | None = None
    output_tokens: int | None = None

    @property
    def tokens(self) -> int:
        """Input and output tokens in all, as far as they are known."""
        return (self.input_tokens or 0) + (self.output_tokens or 0)

    def add(self, usage: TokenCounts | None) -> None:
        """Add the tokens of one answer."""
        if usage is not None:
            self.input_tokens = _sum(self.input_tokens, usage.input_tokens)
            self.output_tokens = _sum(self.output_tokens, usage.output_tokens)

    @property
    def duration_ms(self) -> int:
        """Milliseconds since the leg began."""
        return round((monotonic() - self.began) * 1000)


def _sum(known: int | None, more: int | None) -> int | None:
    return known if more is None else (known or 0) + more


@dataclass(slots=True, kw_only=True)
class Questions:
    """Asks the model of one leg. Not safe to share between tasks.

    Attributes:
        offered: definitions of the tools, by the names that the model sees.
        limits: limits of the length of an answer and of retries.
        spent: counts the tokens of each answer, complete or not.
        retry_count: number of retries so far.
    """

    session: Session
    model: ChatModel
    offered: Sequence[ToolDefinition]
    limits: Limits
    spent: Spent
    observer: Observer
    retry_count: int = field(init=False, default=0)

    async def ask(self, messages: Sequence[Message], choice: ToolChoice | None) -> RecordedAnswer:
        """Ask the model with retries, and record the answer.

        Args:
            messages: the conversation so far.
            choice: forced choice of tools; None to let the model choose. If the server refuses
                the choice, it is asked again without it.

        Raises:
            ModelError: the last retry failed.
            UnavailableError: the answer could not be recorded.
        """
        while True:
            try:
                return await self._ask_once(self._members(messages, choice))
            except ModelError as error:
                if choice is not None and error.status == _BAD_REQUEST:
                    choice = None
                    continue
                if not error.is_transient or self.retry_count >= self.limits.model_retries:
                    raise
                await self._pause(error)

    async def _pause(self, error: ModelError) -> None:
        pause = error.retry_after_ms
        if pause is None:
            longest = min(_FIRST_PAUSE_MS << min(self.retry_count, 10), _LONGEST_PAUSE_MS)
            # Jitter: many agents that failed at once must not retry at once.
            pause = round(longest * random.uniform(0.5, 1))  # noqa: S311  not a secret
        self.retry_count += 1
        self.observer(QuestionFailed(str(error), pause))
        await asyncio.sleep(pause / 1000)

    def _members(self, messages: Sequence[Message], choice: ToolChoice | None) -> JsonObject:
        known = wire_format(self.model.wire_format)
        policy = ExportPolicy(provider=self.model.provider)
        history = known.write_history(Conversation.of(messages, self.offered), policy).request
        tools = known.write_tools(self.offered, choice).request
        limit = self.model.answer_limit(self.limits.max_answer_tokens)
        return {**history, **tools, **limit}

    async def _ask_once(self, members: JsonObject) -> RecordedAnswer:
        """Ask the model once.

        Raises:
            ModelError: there is no answer, the answer broke off, or it is an error.
        """
        async with aclosing(_closable(self.model.answer(members))) as pieces:
            # An answer without a byte is not recorded.
            first = await anext(pieces, None)
            if first is None:
                raise ModelError("the answer is empty", is_transient=True)
            complete = _with_first(first, pieces)
            stream = record_stream(
                self.session, self.model.wire_format, complete, provider=self.model.provider
            )
            try:
                async with stream:
                    async for piece in stream:
                        self.observer(ChunkCame(piece))
            finally:
                if stream.is_recorded:
                    self.spent.add(stream.answer.response.usage)
        answer = stream.answer
        _refuse_broken(answer)
        self.observer(AnswerCame(answer.response.messages[0]))
        return answer


async def _closable(pieces: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
    """The pieces, without empty ones, as a generator that can be closed."""
    try:
        async for piece in pieces:
            if piece:
                yield piece
    finally:
        close = getattr(pieces, "aclose", None)
        if close is not None:
            await close()


async def _with_first(first: bytes, others: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for piece in others:
        yield piece


def refusal_in(message: Message) -> str:
    """A sentence about the refusal, if the model or its provider refused; else empty."""
    reason = None if message.origin is None else message.origin.finish_reason
    if is_refusal(reason):
        return f"the model refused to answer: {reason}"
    has_refusal = any(isinstance(one, TextBlock) and one.is_refusal for one in message.blocks)
    return "the model refused to answer" if has_refusal else ""


def _refuse_broken(answer: RecordedAnswer) -> None:
    """Refuse an answer that is an error, or that ended without a finish reason.

    Raises:
        ModelError: the answer is refused.
    """
    response = answer.response
    if (failure := response.failure) is not None:
        said = ": ".join(filter(None, (failure.kind, failure.message))) or "no message"
        sentence = f"the model's server gave an error: {said}"
        raise ModelError(sentence, is_transient=not failure.is_refusal)
    if not response.messages:
        raise ModelError("the answer has no message", is_transient=True)
    message = response.messages[0]
    reason = None if message.origin is None else message.origin.finish_reason
    if not message.is_complete and reason in _NO_ENDS:
        raise ModelError("the answer broke off", is_transient=True)
