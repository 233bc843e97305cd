"""How agents do, counted from what is recorded: never from what they say of themselves.

A run counts by when it began. Everything that is not a success lowers the rate of successes: a run
whose program was killed, one that was cancelled, one that submitted nothing. Only a run that may
still go on counts neither way.
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
from tooltrail.store.read.agent_runs import LegView, iter_legs
from tooltrail.store.read.reader import Reader

_INDEX = re.compile(r"\[\d+\]")

_GRACE = timedelta(minutes=1)
"""How long after its time limit a leg may take to record that it has ended."""

UNLISTED = "(not listed)"
"""Where the errors count that a record leaves out because there are too many."""


@dataclass(slots=True)
class AgentStatistics:
    """What became of the runs, or legs, of one agent with one schema.

    Attributes:
        agent_id: of the agent.
        schema_digest: of the schema of its result; None for free text.
        tier: whose legs are counted; None where whole runs are.
        count: runs, or legs.
        open_count: of these, may still go on.
        success_count: came to a result.
        first_try_count: whose very first submission was accepted.
        attempt_count: submissions, also those that could not be read.
        rejected_count: submissions that the schema refused, or that could not be read.
        missing_count: legs that ended without any submission: `result_not_submitted`.
        lost_count: ended without a word: their program was killed.
        outcomes: how many ended in each way.
        errors: of the schema, by field: indices of lists are left out.
        escalations: from a tier to a tier, and the outcome that it gave up with.
        reminder_count: how often a model was reminded that a result is missing.
        input_tokens: in all, as far as servers count them.
        output_tokens: the same.
        durations_ms: of those that ended.
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
        """Those that cannot come to anything else any more."""
        return self.count - self.open_count

    @property
    def success_rate(self) -> float | None:
        """Successes among those that ended, from 0 to 1; None where none did."""
        return _share(self.success_count, self.ended_count)

    @property
    def first_try_rate(self) -> float | None:
        """The same of those whose first submission was accepted; None without a schema."""
        if self.schema_digest is None:
            return None
        return _share(self.first_try_count, self.ended_count)

    def duration_ms(self, share: float) -> int | None:
        """How long that share of them took at most, by the nearest rank; None where none ended.

        Args:
            share: 0.5 for the median; above 0, and 1 at most.
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
) -> list[AgentStatistics]:
    """What became of the runs that began in a time, by agent, schema and tier.

    Args:
        reader: of the store.
        now: against which a run that has not ended may still go on; aware.
        agent: the id of one; all when None.
        since: aware; from the first on when None.
        until: aware, itself not included; to the last when None.

    Returns:
        By agent and schema, in that order: first what became of whole runs, then the legs by tier.

    Raises:
        UnavailableError, DamageError: see `Reader`.
    """
    found: dict[tuple[str, Digest | None, str | None], AgentStatistics] = {}

    def statistics(first: LegView, tier: str | None) -> AgentStatistics:
        key = (first.started.agent_id, first.started.schema_digest, tier)
        return found.setdefault(key, AgentStatistics(*key))

    for run in _runs(iter_legs(reader, agent=agent, since=since), until):
        _count(statistics(run[0], None), run, now)
        for leg in run:
            _count(statistics(run[0], leg.started.tier), [leg], now)
    # Tiers stay in the order in which they were first tried.
    return sorted(
        found.values(),
        key=lambda one: (one.agent_id, one.schema_digest or "", one.tier is not None),
    )


def _runs(legs: Iterable[LegView], until: datetime | None) -> Iterator[list[LegView]]:
    """The legs of each run that began among them and before a time, its later legs as well."""
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
    """Count a run, or one leg of a tier."""
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
    """Whether no other leg of a run is to come behind this one."""
    return last.ended is not None and last.ended.escalated_to is None


def _count_work(counted: AgentStatistics, leg: LegView) -> None:
    is_judged = leg.started.schema_digest is not None
    attempts = [one for one in leg.attempts if is_judged and one.state != "denied"]
    counted.attempt_count += len(attempts)
    counted.rejected_count += sum(attempt.valid is not True for attempt in attempts)
    for attempt in attempts:
        for error in attempt.errors:
            counted.errors[_INDEX.sub("[]", error.path)] += 1
        if unlisted := attempt.error_count - len(attempt.errors):
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
