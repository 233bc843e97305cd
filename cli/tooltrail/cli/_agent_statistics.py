"""The outcomes of agent runs, as tables and as records."""

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING

from tooltrail.cli._output import Members, Record, attributes, duration_of, short_digest, write
from tooltrail.cli._tables import Columns, print_table

if TYPE_CHECKING:
    from tooltrail.agents import AgentStatistics


def print_statistics(found: "Sequence[AgentStatistics]") -> None:
    """Print tables of runs and tiers, of errors by field, and of escalations."""
    rows = ([cell(one) for cell in _COLUMNS.values()] for one in found)
    print_table([*_COLUMNS], rows, right=[*_COLUMNS][3:])
    totals = [one for one in found if one.tier is None]
    errors = [(one, path, count) for one in totals for path, count in one.errors.most_common()]
    escalations = [
        (one, f"{before} → {after}: {outcome}", count)
        for one in totals
        for (before, after, outcome), count in one.escalations.most_common()
    ]
    for counts, number, what in (
        (errors, "ERRORS", "FIELD"),
        (escalations, "TIMES", "ESCALATION"),
    ):
        if counts:
            write("\n")
            rows = (
                [one.agent_id, short_digest(one.schema_digest), f"{count:,}", text]
                for one, text, count in counts
            )
            print_table(("AGENT", "SCHEMA", number, what), rows, right=(number,))


def _number(name: str) -> Callable[["AgentStatistics"], str]:
    return lambda one: f"{getattr(one, name):,}"


def _percent(name: str) -> Callable[["AgentStatistics"], str]:
    return lambda one: "" if (share := getattr(one, name)) is None else f"{share:.1%}"


_COLUMNS: Columns = {
    "AGENT": attrgetter("agent_id"),
    "SCHEMA": lambda one: short_digest(one.schema_digest),
    "TIER": lambda one: one.tier or "(all)",
    "RUNS": _number("count"),
    "OPEN": _number("open_count"),
    "OK": _number("success_count"),
    "RATE": _percent("success_rate"),
    "1ST TRY": _percent("first_try_rate"),
    "SUBMITTED": _number("attempt_count"),
    "REJECTED": _number("rejected_count"),
    "MISSING": _number("missing_count"),
    "LOST": _number("lost_count"),
    "P50": lambda one: duration_of(one.duration_ms(0.5)),
    "P95": lambda one: duration_of(one.duration_ms(0.95)),
}


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
