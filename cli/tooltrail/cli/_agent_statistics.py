"""What became of agents' runs, as tables for people and as records for programs."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from tooltrail.cli._output import Record, duration_of, print_table, write

if TYPE_CHECKING:
    from tooltrail.agents import AgentStatistics

_DIGEST_CHARS = 19
"""Of a digest in a table: its algorithm and twelve digits."""

_SHARES = {"p50": 0.5, "p95": 0.95}

_HEADER = (
    *("AGENT", "SCHEMA", "TIER", "RUNS", "OPEN", "OK", "RATE", "1ST TRY"),
    *("SUBMITTED", "REJECTED", "MISSING", "LOST", "P50", "P95"),
)

STATISTICS_FIELDS = (
    *("agent_id", "schema_digest", "tier", "count", "open_count", "success_count"),
    *("success_rate", "first_try_count", "first_try_rate", "attempt_count", "rejected_count"),
    *("missing_count", "lost_count", "reminder_count", "input_tokens", "output_tokens"),
    *("p50_ms", "p95_ms", "outcomes", "errors", "escalations"),
)
"""JSON fields of the runs of an agent."""


def statistics_records(found: "Iterable[AgentStatistics]") -> list[Record]:
    """Statistics as records for programs."""
    return [_record(one) for one in found]


def print_statistics(found: "Sequence[AgentStatistics]") -> None:
    """Print tables: runs and tiers, then errors by field, then escalations, if there are any."""
    print_table(_HEADER, [_row(one) for one in found], right=_HEADER[3:])
    whole = [one for one in found if one.tier is None]
    errors = [
        (one.agent_id, _short(one.schema_digest), f"{count:,}", path)
        for one in whole
        for path, count in one.errors.most_common()
    ]
    if errors:
        write("\n")
        print_table(("AGENT", "SCHEMA", "ERRORS", "FIELD"), errors, right=("ERRORS",))
    escalations = [
        (one.agent_id, _short(one.schema_digest), f"{count:,}", f"{before} → {after}: {outcome}")
        for one in whole
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
        _short(one.schema_digest),
        one.tier or "(all)",
        *(f"{count:,}" for count in (one.count, one.open_count, one.success_count)),
        _percent(one.success_rate),
        _percent(one.first_try_rate),
        *(f"{count:,}" for count in counts),
        *(duration_of(one.duration_ms(share)) for share in _SHARES.values()),
    )


def _short(digest: str | None) -> str:
    return "(text)" if digest is None else digest[:_DIGEST_CHARS]


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.1%}"


def _record(one: "AgentStatistics") -> Record:
    members: dict[str, Any] = {
        "outcomes": dict(one.outcomes),
        "errors": dict(one.errors),
        "escalations": [
            {"from": before, "to": after, "outcome": outcome, "count": count}
            for (before, after, outcome), count in one.escalations.items()
        ],
        **{f"{name}_ms": one.duration_ms(share) for name, share in _SHARES.items()},
    }
    return {
        name: members[name] if name in members else getattr(one, name) for name in STATISTICS_FIELDS
    }
