"""Statistics of agents, counted from records, never from what an agent claims.

A run belongs to the time at which it began. Every ended run without a result lowers the success
rate: killed, cancelled, or without a submission. A run that may still be going on is not counted.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import ceil
from uuid import UUID

from tooltrail.records import Digest
from tooltrail.records.agent_runs import SUCCESSES
from tooltrail.records.families.structured_output import MAX_VIOLATIONS
from tooltrail.store.read.agent_runs import LegView, OnError, iter_legs
from tooltrail.store.read.reader import Reader

_INDEX = re.compile(r"\[\d+\]")

_GRACE = timedelta(minutes=1)
"""Time after the time limit of a leg in which its end may still be recorded."""

UNLISTED = "(not listed)"
"""The field of errors that a record does not list, because there are too many."""


@dataclass(slots=True)
class AgentStatistics:
    """Counts of the runs, or of the legs of one tier, of one agent with one schema.

    Attributes:
        agent_id: id of the agent.
        schema_digest: digest of the schema of its result; None for free text.
        tier: tier whose legs are counted; None to count runs.
        count: runs, or legs.
        open_count: those that may still be going on.
        success_count: those with a result.
        first_try_count: those whose first submission was accepted.
        attempt_count: submissions, including unreadable ones.
        rejected_count: submissions that the schema refused, and unreadable ones.
        missing_count: legs that ended without a submission: `result_not_submitted`.
        lost_count: those without a recorded end, because their program was killed.
        outcomes: ended runs or legs by outcome.
        errors: errors of the schema by field, without the indices of lists.
        escalations: by tier, next tier and outcome of the first of them.
        reminder_count: reminders that a result is missing.
        input_tokens: tokens in all, as far as servers count them.
        output_tokens: likewise.
        durations_ms: durations of ended runs or legs.
    """

    agent_id: str
    schema_digest: Digest | None
    tier: str | None = None
    count: int = 0
    open_count: int = 0
    success_count: int = 0
    first_try_count: int = 0
    attempt_count: int = 0
    rejected_count: int = 0
    missing_count: int = 0
    lost_count: int = 0
    outcomes: Counter[str] = field(default_factory=Counter[str])
    errors: Counter[str] = field(default_factory=Counter[str])
    escalations: Counter[tuple[str, str, str]] = field(
        default_factory=Counter[tuple[str, str, str]]
    )
    reminder_count: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    durations_ms: list[int] = field(default_factory=list[int], repr=False)

    @property
    def ended_count(self) -> int:
        """Those that are over: ended or lost."""
        return self.count - self.open_count

    @property
    def success_rate(self) -> float | None:
        """Share of successes among those that are over, from 0 to 1; None if there are none."""
        return _share(self.success_count, self.ended_count)

    @property
    def first_try_rate(self) -> float | None:
        """Share of those whose first submission was accepted; None without a schema."""
        if self.schema_digest is None:
            return None
        return _share(self.first_try_count, self.ended_count)

    def duration_ms(self, share: float) -> int | None:
        """A percentile of the durations, by nearest rank; None if there are no durations.

        Args:
            share: above 0, at most 1; 0.5 is the median.
        """
        if not self.durations_ms:
            return None
        ordered = sorted(self.durations_ms)
        return ordered[ceil(share * len(ordered)) - 1]


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def agent_statistics(
    reader: Reader,
    *,
    now: datetime,
    agent: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    on_error: OnError | None = None,
) -> list[AgentStatistics]:
    """Statistics of the runs that began in a time span, by agent, schema and tier.

    Args:
        reader: reader of the store.
        now: the current time, aware; decides whether a run may still be going on.
        agent: id of an agent; None for all.
        since: first start time, aware; None for no limit.
        until: end of the time span, aware and exclusive; None for no limit.
        on_error: see `iter_legs`; a leg that cannot be read does not count.

    Returns:
        For each agent and schema, first the counts of runs, then the counts of legs by tier.

    Raises:
        UnavailableError, DamageError: see `Reader`.
    """
    found: dict[tuple[str, Digest | None, str | None], AgentStatistics] = {}

    def statistics(first: LegView, tier: str | None) -> AgentStatistics:
        key = (first.started.agent_id, first.started.schema_digest, tier)
        return found.setdefault(key, AgentStatistics(*key))

    legs = iter_legs(reader, agent=agent, since=since, on_error=on_error)
    for run in _runs(legs, until):
        _count(statistics(run[0], None), run, now)
        for leg in run:
            _count(statistics(run[0], leg.started.tier), [leg], now)
    # The sort is stable: tiers stay in the order in which they were first tried.
    return sorted(
        found.values(),
        key=lambda one: (one.agent_id, one.schema_digest or "", one.tier is not None),
    )


def _runs(legs: Iterable[LegView], until: datetime | None) -> Iterator[list[LegView]]:
    """The legs of each run whose first leg is among these legs and began before a time."""
    open_runs: dict[UUID, list[LegView]] = {}
    for leg in legs:
        if leg.started.position == 0 and (until is None or leg.started_at < until):
            open_runs[leg.started.run_id] = []
        run = open_runs.get(leg.started.run_id)
        if run is None:
            continue
        run.append(leg)
        if leg.ended is not None and leg.ended.escalated_to is None:
            yield open_runs.pop(leg.started.run_id)
    yield from open_runs.values()


def _count(counted: AgentStatistics, run: Sequence[LegView], now: datetime) -> None:
    """Add a run, or one leg of a tier, to its counts."""
    first, last = run[0], run[-1]
    counted.count += 1
    if first.attempts and first.attempts[0].valid:
        counted.first_try_count += 1
    for leg in run:
        _count_work(counted, leg)
    if last.ended is not None and (counted.tier is not None or _has_ended(last)):
        counted.outcomes[last.ended.outcome] += 1
        counted.success_count += last.ended.outcome in SUCCESSES
        spent = sum(leg.ended.duration_ms for leg in run if leg.ended is not None)
        counted.durations_ms.append(spent)
    elif now < last.started_at + timedelta(milliseconds=last.started.time_limit_ms) + _GRACE:
        counted.open_count += 1
    else:
        counted.lost_count += 1


def _has_ended(last: LegView) -> bool:
    """Whether a run ended with this leg."""
    return last.ended is not None and last.ended.escalated_to is None


def _count_work(counted: AgentStatistics, leg: LegView) -> None:
    is_judged = leg.started.schema_digest is not None
    attempts = [one for one in leg.attempts if is_judged and one.state != "denied"]
    counted.attempt_count += len(attempts)
    counted.rejected_count += sum(attempt.valid is not True for attempt in attempts)
    for attempt in attempts:
        for error in attempt.errors:
            counted.errors[_INDEX.sub("[]", error.path)] += 1
        unlisted = attempt.error_count - len(attempt.errors)
        # One entry beyond the largest number is not an error: see `NOT_LISTED`.
        unlisted -= unlisted > 0 and attempt.error_count == MAX_VIOLATIONS + 1
        if unlisted:
            counted.errors[UNLISTED] += unlisted
    ended = leg.ended
    if ended is None:
        return
    if ended.escalated_to is not None:
        counted.escalations[leg.started.tier, ended.escalated_to, ended.outcome] += 1
    counted.missing_count += ended.outcome == "result_not_submitted"
    counted.reminder_count += ended.reminder_count
    counted.input_tokens += ended.input_tokens or 0
    counted.output_tokens += ended.output_tokens or 0
