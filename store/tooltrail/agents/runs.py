"""An agent run: its legs, how each ended, the result, and the events on the way."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias
from uuid import UUID

from pydantic import JsonValue

from tooltrail.journal.invocation import Finished
from tooltrail.records import LegEnded, LegOutcome, LegStarted, Message, TooltrailError
from tooltrail.records.agent_runs import SUCCESSES


class RunFailedError(TooltrailError):
    """The run has no result.

    Attributes:
        outcome: outcome of its last leg.
    """

    def __init__(self, outcome: LegOutcome, reason: str) -> None:
        super().__init__(f"{outcome}: {reason}")
        self.outcome = outcome


@dataclass(frozen=True, slots=True)
class Leg:
    """One recorded conversation of a run."""

    session_id: UUID
    started: LegStarted
    ended: LegEnded


@dataclass(frozen=True, slots=True)
class AgentRun:
    """A run that has ended.

    Attributes:
        legs: the legs in order, at least one.
        value: the accepted submission, or the text of an agent without a schema; None if there is
            no result.
    """

    legs: tuple[Leg, ...]
    value: JsonValue = None

    @property
    def run_id(self) -> UUID:
        """The id of the session of its first leg."""
        return self.legs[0].session_id

    @property
    def outcome(self) -> LegOutcome:
        """The outcome of its last leg."""
        return self.legs[-1].ended.outcome

    @property
    def is_success(self) -> bool:
        """Whether there is a result."""
        return self.outcome in SUCCESSES

    @property
    def result(self) -> JsonValue:
        """The value, of any type that the schema allows.

        Raises:
            RunFailedError: there is no result.
        """
        if not self.is_success:
            raise RunFailedError(self.outcome, self.legs[-1].ended.reason)
        return self.value


@dataclass(frozen=True, slots=True)
class ChunkCame:
    """The model's server sent a piece of an answer."""

    data: bytes


@dataclass(frozen=True, slots=True)
class AnswerCame:
    """A complete answer of the model was recorded."""

    message: Message


@dataclass(frozen=True, slots=True)
class QuestionFailed:
    """A question failed and will be retried after a pause."""

    reason: str
    pause_ms: int


RunEvent: TypeAlias = LegStarted | ChunkCame | AnswerCame | QuestionFailed | Finished | LegEnded
"""An event of a run, reported after it is recorded. `Finished` is the end of a tool call."""

Observer: TypeAlias = Callable[[RunEvent], object]
"""Called in the thread of the event loop. It must return fast; an exception ends the run."""
