"""What became of runs, against what was counted by hand."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from tests.support.agents.recorded import (
    SCHEMA,
    beginning,
    ending,
    record_leg,
    submit_nothing_readable,
    version,
)

from tooltrail.agents import AgentStatistics, agent_statistics
from tooltrail.agents._leg_facts import leg_entry, outcome_entry
from tooltrail.agents.statistics import UNLISTED
from tooltrail.records import LegOutcome
from tooltrail.store import Store, iter_legs

MISSING = ("findings[0].files", "missing field")
SHORT = ("summary", "too short")


def in_hours(count: int) -> datetime:
    return datetime.now(UTC) + timedelta(hours=count)


def counted(store: Store, **asked: Any) -> list[AgentStatistics]:
    return agent_statistics(store.reader, now=asked.pop("now", in_hours(1)), **asked)


def climb(store: Store, run: UUID, tier: str, outcome: LegOutcome | None, **more: Any) -> UUID:
    """A later leg of a run."""
    return record_leg(store, outcome, run_id=run, position=1, tier=tier, **more)


def picked(one: AgentStatistics, names: Iterable[str]) -> tuple[Any, ...]:
    return tuple(getattr(one, name) for name in names)


COUNTS = ("count", "open_count", "success_count", "first_try_count", "missing_count", "lost_count")


def test_everything_that_is_not_a_success_lowers_the_rate(store: Store) -> None:
    record_leg(store, "submitted", values=[({"a": 1}, ())])
    record_leg(store, "submitted", values=[({"a": 1}, (MISSING, SHORT)), ({"a": 2}, ())])
    record_leg(store, "result_not_submitted")
    record_leg(store, "result_invalid", values=[({"a": 1}, (MISSING,))])
    record_leg(store, "model_failed")
    record_leg(store, "cancelled")
    record_leg(store, None)  # its program was killed
    whole, small = counted(store)
    assert picked(whole, COUNTS) == (7, 0, 2, 1, 1, 1)
    assert whole.success_rate == 2 / 7
    assert whole.first_try_rate == 1 / 7
    assert (whole.attempt_count, whole.rejected_count) == (4, 2)
    assert whole.errors == {"findings[].files": 2, "summary": 1}
    assert whole.outcomes == {
        "submitted": 2,
        "result_not_submitted": 1,
        "result_invalid": 1,
        "model_failed": 1,
        "cancelled": 1,
    }
    assert picked(small, COUNTS) == picked(whole, COUNTS)
    assert (whole.tier, small.tier) == (None, "small")


def test_a_run_that_may_still_go_on_counts_neither_way(store: Store) -> None:
    record_leg(store, "submitted", values=[({}, ())])
    record_leg(store, None, time_limit_ms=3_600_000)
    soon, _ = counted(store, now=datetime.now(UTC))
    assert picked(soon, COUNTS) == (2, 1, 1, 1, 0, 0)
    assert soon.success_rate == 1
    late, _ = counted(store, now=in_hours(2))
    assert picked(late, COUNTS) == (2, 0, 1, 1, 0, 1)
    assert late.success_rate == 0.5


def test_a_run_that_climbs_counts_once_and_its_legs_by_their_tiers(store: Store) -> None:
    first = record_leg(
        store,
        "result_not_submitted",
        ended={"escalated_to": "large", "duration_ms": 30, "reminder_count": 1},
    )
    between = record_leg(store, "submitted", values=[({}, ())], ended={"duration_ms": 5})
    climb(store, first, "large", "submitted", values=[({}, ())], ended={"duration_ms": 70})
    gone = record_leg(store, "model_failed", ended={"escalated_to": "large"})
    climb(store, gone, "large", "result_invalid", values=[({}, (SHORT,))])
    assert between != first
    whole, small, large = counted(store)
    assert picked(whole, COUNTS) == (3, 0, 2, 1, 1, 0)
    assert whole.escalations == {
        ("small", "large", "result_not_submitted"): 1,
        ("small", "large", "model_failed"): 1,
    }
    assert sorted(whole.durations_ms) == [5, 20, 100]
    assert (whole.duration_ms(0.5), whole.duration_ms(0.95)) == (20, 100)
    assert picked(small, COUNTS) == (3, 0, 1, 1, 1, 0)
    assert picked(large, COUNTS) == (2, 0, 1, 1, 0, 0)
    assert whole.reminder_count == 1


def test_agents_and_versions_of_schemas_are_counted_apart(store: Store) -> None:
    other = "sha256:" + "0" * 64
    record_leg(store, "submitted", values=[({}, ())])
    record_leg(store, "submitted", schema_digest=other)
    record_leg(store, "answered", agent=version("writer"), schema_digest=None)
    found = counted(store)
    assert [(one.agent_id, one.schema_digest, one.tier) for one in found] == [
        ("researcher", other, None),
        ("researcher", other, "small"),
        ("researcher", SCHEMA, None),
        ("researcher", SCHEMA, "small"),
        ("writer", None, None),
        ("writer", None, "small"),
    ]
    assert found[4].success_rate == 1
    assert found[4].first_try_rate is None
    assert [one.agent_id for one in counted(store, agent="writer")] == ["writer", "writer"]
    assert counted(store, agent="nobody") == []


def test_a_run_counts_by_when_it_began(store: Store) -> None:
    first = record_leg(store, "model_failed", ended={"escalated_to": "large"})
    climb(store, first, "large", "submitted", values=[({}, ())])
    record_leg(store, "submitted", values=[({}, ())])
    at = [leg.started_at for leg in iter_legs(store.reader)]
    whole, _ = counted(store, since=at[1])
    assert (whole.count, whole.success_count) == (1, 1)
    # Its later legs count with it, whenever they began.
    whole, _, _ = counted(store, until=at[1])
    assert (whole.count, whole.success_count, whole.lost_count) == (1, 1, 0)


def test_a_run_that_was_to_go_on_and_did_not_is_open_and_then_lost(store: Store) -> None:
    record_leg(store, "model_failed", ended={"escalated_to": "large"}, time_limit_ms=3_600_000)
    soon, tier = counted(store, now=datetime.now(UTC))
    assert picked(soon, COUNTS) == (1, 1, 0, 0, 0, 0)
    assert tier.outcomes == {"model_failed": 1}
    late, _ = counted(store, now=in_hours(2))
    assert picked(late, COUNTS) == (1, 0, 0, 0, 0, 1)
    assert late.outcomes == {}


def test_what_nobody_looked_at_is_no_submission(store: Store) -> None:
    with store.open_session() as session:
        session.append([leg_entry(session.id, beginning(session, schema_digest=None), version())])
        submit_nothing_readable(session)
        session.append([outcome_entry(session.id, ending("answered"))])
    whole, _ = counted(store)
    assert (whole.attempt_count, whole.rejected_count) == (0, 0)


def test_submissions_without_a_verdict_and_unlisted_errors_count(store: Store) -> None:
    many = tuple((f"a[{number}]", "wrong") for number in range(40))
    with store.open_session() as session:
        session.append([leg_entry(session.id, beginning(session), version())])
        submit_nothing_readable(session)
        session.append(
            [outcome_entry(session.id, ending("result_invalid", input_tokens=7, output_tokens=2))]
        )
    record_leg(store, "result_invalid", values=[({}, many)])
    whole, _ = counted(store)
    assert (whole.attempt_count, whole.rejected_count) == (2, 2)
    assert (whole.input_tokens, whole.output_tokens) == (7, 2)
    assert whole.errors["a[]"] + whole.errors[UNLISTED] == 40
    assert whole.errors[UNLISTED] > 0


def test_the_entry_that_stands_for_all_other_errors_is_no_error(store: Store) -> None:
    record_leg(store, "result_invalid", values=[({}, (MISSING,) * 1_001)])
    whole, _ = counted(store)
    assert whole.errors.total() == 1_000


def test_all_errors_that_a_caller_lists_are_counted(store: Store) -> None:
    record_leg(store, "result_invalid", values=[({}, (MISSING,) * 1_500)])
    whole, _ = counted(store)
    assert whole.errors.total() == 1_500


def test_nothing_recorded_is_nothing_counted(store: Store) -> None:
    assert counted(store) == []
    nothing = AgentStatistics("a", None)
    assert (nothing.success_rate, nothing.duration_ms(0.5)) == (None, None)
