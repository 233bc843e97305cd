"""Calls that ended before they are recorded. Both facts of each call are made together."""

from datetime import UTC, datetime, timedelta
from types import NoneType
from typing import Final
from uuid import UUID

from tooltrail.journal.clock import id_of, new_id, now
from tooltrail.journal.invocation import Finished, Invocation
from tooltrail.journal.log import Entry
from tooltrail.journal.recorder import Recorder
from tooltrail.records import CompleteOutput, Family, InvalidRecordError, Policy, ToolCall
from tooltrail.records.errors import check_type
from tooltrail.records.frozen import Frozen
from tooltrail.records.times import in_utc

_EARLIEST: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MOST_AHEAD: Final = timedelta(days=1)
"""The greatest difference between the clocks of two machines that is accepted."""


class EndedCall(Frozen):
    """A call that ended before it is recorded, with its output.

    Raises `InvalidRecordError` if a value has a wrong type.

    Attributes:
        call: the call that the model asked for.
        output: output of the tool; its streams have their content.
        family: name of the family of the result; None for the family of the tool.
        policy: budgets of the call; None for those of the recorder.
        started_at: when the call started, aware; None if unknown.
        finished_at: when the call ended, aware; None if unknown.
        idempotency_key: a call with this key is recorded once, even if it is given again.
        seen: the text that the model saw; None to render a receipt.
    """

    call: ToolCall
    output: CompleteOutput
    family: str | None = None
    policy: Policy | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    idempotency_key: str | None = None
    seen: str | None = None

    def __post_init__(self) -> None:
        check_type("call", self.call, ToolCall)
        check_type("output", self.output, CompleteOutput)
        check_type("policy", self.policy, Policy, NoneType)
        check_type("started_at", self.started_at, datetime, NoneType)
        check_type("finished_at", self.finished_at, datetime, NoneType)


def family_of(recorder: Recorder, call: ToolCall, name: str | None, policy: Policy) -> Family:
    """The family of the result of a call; raises `NotFoundError` if none has this name."""
    check_type("family", name, str, NoneType)
    if name is not None:
        return recorder.families.named(name)
    return policy.family_of(call.full_name, recorder.families)


def ended_facts(
    recorder: Recorder, session: UUID, one: EndedCall
) -> tuple[tuple[Entry, Entry], Finished]:
    """The start and end facts of an ended call, and the call, which is not acknowledged yet.

    Raises the errors of `Session.record`.
    """
    at = now()
    started_at = _checked_time("started_at", one.started_at, at)
    finished_at = _checked_time("finished_at", one.finished_at, at)
    is_timed = started_at is not None and finished_at is not None
    finished_at = finished_at or max(at, started_at or at)
    started_at = started_at or finished_at
    if finished_at < started_at:
        raise InvalidRecordError(f"finished_at {finished_at} is before started_at {started_at}")
    policy = one.policy or recorder.policy
    invocation_id = id_of("call", one.idempotency_key)
    invocation = Invocation(
        recorder,
        session,
        one.call,
        family_of(recorder, one.call, one.family, policy),
        policy,
        invocation_id=invocation_id,
        started_at=started_at,
        # If the call is recorded already, the ingester may remove its folder at any time.
        folder=f"{invocation_id}.{new_id()}",
    )
    start = invocation.start_entry(owner=None)
    elapsed = finished_at - started_at
    end, finished = invocation.end_entry(
        one.output,
        at=finished_at,
        duration_ms=round(elapsed.total_seconds() * 1000) if is_timed else None,
        seen=one.seen,
    )
    return (start, end), finished


def _checked_time(name: str, moment: datetime | None, now: datetime) -> datetime | None:
    """A time of a call in UTC.

    Raises `InvalidRecordError` for a time without a zone or out of range.
    """
    if moment is None:
        return None
    try:
        at = in_utc(moment)
    except (ValueError, OverflowError) as error:
        raise InvalidRecordError(f"{name} cannot be recorded: {error}") from error
    if not _EARLIEST <= at <= now + _MOST_AHEAD:
        problem = f"{moment} is before {_EARLIEST.year} or too far in the future"
        raise InvalidRecordError(f"{name} {problem}")
    return at
