"""What an agent run came to: its legs, how each ended, and the result if there is one."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias
from uuid import UUID

from pydantic import JsonValue

from tooltrail.journal.invocation import Finished
from tooltrail.records import LegEnded, LegOutcome, LegStarted, Message, TooltrailError
from tooltrail.records.agent_runs import SUCCESSES


class RunFailedError(TooltrailError):
    """A run that came to no result.

    Attributes:
        outcome: how its last leg ended.
    """

    def __init__(self, outcome: LegOutcome, reason: str) -> None:
        super().__init__(f"{outcome}: {reason}")
        self.outcome = outcome


@dataclass(frozen=True, slots=True)
class Leg:
    """One conversation of a run, as it is recorded."""

    session_id: UUID
    started: LegStarted
    ended: LegEnded


@dataclass(frozen=True, slots=True)
class AgentRun:
    """A run that has ended. Nothing is taken for a result that was not submitted and accepted.

    Attributes:
        legs: in their order, at least one.
        value: what was submitted and accepted; the text of an agent without a schema; None where
            there is neither.
    """

    legs: tuple[Leg, ...]
    value: JsonValue = None

    @property
    def run_id(self) -> UUID:
        """The session of its first leg."""
        return self.legs[0].session_id

    @property
    def outcome(self) -> LegOutcome:
        """How its last leg ended."""
        return self.legs[-1].ended.outcome

    @property
    def is_success(self) -> bool:
        """Whether there is a result."""
        return self.outcome in SUCCESSES

    @property
    def result(self) -> JsonValue:
        """The value, which may be anything that the schema allows.

        Raises:
            RunFailedError: there is no result.
        """
        if not self.is_success:
            raise RunFailedError(self.outcome, self.legs[-1].ended.reason)
        return self.value


@dataclass(frozen=True, slots=True)
class ChunkCame:
    """A piece of an answer, as the model's server sent it."""

    data: bytes


@dataclass(frozen=True, slots=True)
class AnswerCame:
    """A whole answer of the model, which is recorded."""

    message: Message


@dataclass(frozen=True, slots=True)
class QuestionFailed:
    """A question that came to nothing, and is put again after a pause."""

    reason: str
    pause_ms: int


RunEvent: TypeAlias = LegStarted | ChunkCame | AnswerCame | QuestionFailed | Finished | LegEnded
"""What happens in a run, each after it is recorded; a `Finished` is a call of a tool that ended."""

Observer: TypeAlias = Callable[[RunEvent], object]
"""Called in the thread of the event loop; it is to return soon. What it raises ends the run."""
