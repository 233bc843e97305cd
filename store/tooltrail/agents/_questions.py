"""Asking a model: the conversation as a request, the answer as it is recorded, and retries."""

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
from tooltrail.records import Conversation, Message, ToolDefinition
from tooltrail.wire import ExportPolicy, JsonObject, TokenCounts, ToolChoice, wire_format

_FIRST_PAUSE_MS = 500
_LONGEST_PAUSE_MS = 30_000
_BAD_REQUEST = 400

_NO_ENDS = frozenset({None, "in_progress", "queued"})
"""What an answer tells of an end that it had not; Responses says until then that it goes on."""


@dataclass(slots=True)
class Spent:
    """What a leg has used up so far.

    Attributes:
        began: when it began, by the monotonic clock, in seconds.
        input_tokens: as the model's server counts them; None where it counts none.
        output_tokens: the same.
    """

    began: float = field(default_factory=monotonic)
    steps: int = 0
    reminders: int = 0
    input_tokens: int | None = None
    output_tokens: int | None = None

    @property
    def tokens(self) -> int:
        """Of both kinds together, as far as they are known."""
        return (self.input_tokens or 0) + (self.output_tokens or 0)

    def take(self, usage: TokenCounts | None) -> None:
        """Add what one answer cost."""
        if usage is not None:
            self.input_tokens = _sum(self.input_tokens, usage.input_tokens)
            self.output_tokens = _sum(self.output_tokens, usage.output_tokens)

    @property
    def duration_ms(self) -> int:
        """Since it began."""
        return round((monotonic() - self.began) * 1000)


def _sum(known: int | None, more: int | None) -> int | None:
    return known if more is None else (known or 0) + more


@dataclass(slots=True, kw_only=True)
class Questions:
    """Puts the questions of one leg to its model. Not safe to share between tasks.

    Attributes:
        offered: the tools, by the names that the model sees.
        limits: how long an answer may be, and how often a question may be put again.
        spent: counts what each answer cost, also of one that broke off.
        retry_count: how often a question was put again.
    """

    session: Session
    model: ChatModel
    offered: Sequence[ToolDefinition]
    limits: Limits
    spent: Spent
    observer: Observer
    retry_count: int = field(init=False, default=0)

    async def ask(self, messages: Sequence[Message], choice: ToolChoice | None) -> RecordedAnswer:
        """Put a question, again if it comes to nothing, and record what is answered.

        Args:
            messages: the conversation so far.
            choice: whether tools are to be called; None to leave that to the model. A server that
                refuses to hear of a choice is asked again without.

        Raises:
            ModelError: it came to nothing in the end.
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
            # Many agents that failed together are not to come back together.
            pause = round(longest * random.uniform(0.5, 1))  # noqa: S311  no secret
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
        """One question.

        Raises:
            ModelError: there is no answer, it broke off, or it is an error.
        """
        async with aclosing(_begun(self.model.answer(members))) as pieces:
            # Nothing is recorded of an answer of which nothing came.
            first = await anext(pieces, None)
            if first is None:
                raise ModelError("the answer is empty", is_transient=True)
            whole = _with_first(first, pieces)
            stream = record_stream(
                self.session, self.model.wire_format, whole, provider=self.model.provider
            )
            try:
                async with stream:
                    async for piece in stream:
                        self.observer(ChunkCame(piece))
            finally:
                if stream.is_recorded:
                    self.spent.take(stream.answer.response.usage)
        answer = stream.answer
        _refuse_broken(answer)
        self.observer(AnswerCame(answer.response.messages[0]))
        return answer


async def _begun(pieces: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
    """The same as a generator that can be closed, whatever the model gives."""
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


def _refuse_broken(answer: RecordedAnswer) -> None:
    """Raise for an answer that is an error, or that broke off for no reason that it tells.

    Raises:
        ModelError: it is one of these.
    """
    response = answer.response
    if response.failure is not None:
        said = response.failure.message or "it does not say what went wrong"
        raise ModelError(f"the model's server gave an error: {said}", is_transient=True)
    if not response.messages:
        raise ModelError("the answer has no message", is_transient=True)
    message = response.messages[0]
    reason = None if message.origin is None else message.origin.finish_reason
    if not message.is_complete and reason in _NO_ENDS:
        raise ModelError("the answer broke off", is_transient=True)
