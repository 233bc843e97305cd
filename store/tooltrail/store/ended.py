"""A call that has ended before it is recorded, and what it comes to to record many of them."""

from dataclasses import dataclass
from datetime import datetime

from tooltrail.records import CompleteOutput, Policy, ToolCall


@dataclass(frozen=True, slots=True)
class EndedCall:
    """One call and all that came of it, for `Session.record_many`; see `Session.record`.

    Attributes:
        call: what the model asked for.
        output: what the tool gave; its streams carry their content.
        family: the name of the family of its result; by default the one that serves the tool.
        policy: other budgets than the store's.
        started_at: when it began, aware; None when that is not known.
        finished_at: when it ended, aware; None when that is not known.
        idempotency_key: a name by which it is recorded once, however often it is asked for.
    """

    call: ToolCall
    output: CompleteOutput
    family: str | None = None
    policy: Policy | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    idempotency_key: str | None = None


@dataclass(frozen=True, slots=True)
class RecordedCalls:
    """What `Session.record_many` came to.

    Attributes:
        recorded_count: calls that were recorded.
        known_count: calls that had been recorded before, under the same idempotency keys.
        waiting_count: calls that wait in the outbox, or were dropped and counted; see
            `on_unavailable`.
    """

    recorded_count: int = 0
    known_count: int = 0
    waiting_count: int = 0
