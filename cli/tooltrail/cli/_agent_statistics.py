"""The outcomes of agent runs, as tables and as records."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tooltrail.cli._output import Members, Record, attributes, duration_of, short_digest, write
from tooltrail.cli._tables import print_table

if TYPE_CHECKING:
    from tooltrail.agents import AgentStatistics

_HEADER = (
    *("AGENT", "SCHEMA", "TIER", "RUNS", "OPEN", "OK", "RATE", "1ST TRY"),
    *("SUBMITTED", "REJECTED", "MISSING", "LOST", "P50", "P95"),
)


def print_statistics(found: "Sequence[AgentStatistics]") -> None:
    """Print tables of runs and tiers, of errors by field, and of escalations."""
    print_table(_HEADER, [_row(one) for one in found], right=_HEADER[3:])
    totals = [one for one in found if one.tier is None]
    errors = [
        (one.agent_id, short_digest(one.schema_digest), f"{count:,}", path)
        for one in totals
        for path, count in one.errors.most_common()
    ]
    if errors:
        write("\n")
        print_table(("AGENT", "SCHEMA", "ERRORS", "FIELD"), errors, right=("ERRORS",))
    escalations = [
        (
            one.agent_id,
            short_digest(one.schema_digest),
            f"{count:,}",
            f"{before} → {after}: {outcome}",
        )
        for one in totals
        for (before, after, outcome), count in one.escalations.most_common()
    ]
    if escalations:
        write("\n")
        header = ("AGENT", "SCHEMA", "TIMES", "ESCALATION")
        print_table(header, escalations, right=("TIMES",))


def _row(one: "AgentStatistics") -> tuple[str, ...]:
    counts = (one.attempt_count, one.rejected_count, one.missing_count, one.lost_count)
    return (
        one.agent_id,
        short_digest(one.schema_digest),
        one.tier or "(all)",
        *(f"{count:,}" for count in (one.count, one.open_count, one.success_count)),
        _percent(one.success_rate),
        _percent(one.first_try_rate),
        *(f"{count:,}" for count in counts),
        *(duration_of(one.duration_ms(share)) for share in (0.5, 0.95)),
    )


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.1%}"


def _escalations(one: "AgentStatistics") -> list[Record]:
    return [
        {"from": before, "to": after, "outcome": outcome, "count": count}
        for (before, after, outcome), count in one.escalations.items()
    ]


STATISTICS_MEMBERS: Members = {
    **attributes("agent_id", "schema_digest", "tier", "count", "open_count", "success_count"),
    **attributes("success_rate", "first_try_count", "first_try_rate", "attempt_count"),
    **attributes("rejected_count", "missing_count", "lost_count", "reminder_count"),
    **attributes("input_tokens", "output_tokens"),
    "p50_ms": lambda one: one.duration_ms(0.5),
    "p95_ms": lambda one: one.duration_ms(0.95),
    "outcomes": lambda one: dict(one.outcomes),
    "errors": lambda one: dict(one.errors),
    "escalations": _escalations,
}
"""JSON fields of the statistics of an agent."""
