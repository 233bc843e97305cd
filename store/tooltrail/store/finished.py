"""What recording the end of an invocation comes to, also where nobody said that it was recorded."""

from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from tooltrail.records import (
    CanonicalResult,
    CompleteOutput,
    DamageError,
    InvocationFinishedError,
    InvocationState,
    Receipt,
    StreamRecord,
    ToolCall,
)
from tooltrail.store.reader import Reader


@dataclass(frozen=True, slots=True)
class Finished:
    """What `Invocation.finish` hands back once everything is durable.

    Attributes:
        invocation_id: of the invocation.
        call: what the model asked for.
        state: its final state.
        canonical: the canonical result.
        receipt: what to show to the model.
        postponed: streams whose bytes wait in the spool, since the artifact sink was away; `repair`
            stores them.
        damages: what is known to be damaged in what was stored, each in one sentence, since a spool
            file was altered after it was captured; all that is left is kept.
        recorded_in: the `store`; the `outbox`, from which it is delivered later; or `nowhere`, when
            it was dropped and counted. See `tooltrail.store.on_unavailable`.
    """

    invocation_id: UUID
    call: ToolCall
    state: InvocationState
    canonical: CanonicalResult
    receipt: Receipt
    postponed: tuple[StreamRecord, ...] = ()
    damages: tuple[str, ...] = ()
    recorded_in: Literal["store", "outbox", "nowhere"] = "store"


def as_recorded(reader: Reader, invocation_id: UUID, call: ToolCall) -> Finished:
    """What an end came to that was recorded whole, as it was told then.

    Args:
        reader: of the store.
        invocation_id: of the invocation.
        call: what it was recorded for.

    Raises:
        NotFoundError, DamageError, UnavailableError: it is not there or damaged, or the store
            cannot be asked.
    """
    stored = reader.invocation(invocation_id)
    told = stored.receipt
    if stored.canonical_json is None or told is None:
        raise DamageError(f"invocation {invocation_id} has lost its end", path=str(invocation_id))
    receipt = Receipt(
        told.text,
        told.renderer_name,
        told.renderer_version,
        told.policy_digest,
        tuple(one for one in stored.omissions if one.stage == "rendering"),
    )
    canonical = CanonicalResult.from_json(stored.canonical_json)
    return Finished(invocation_id, call, stored.summary.state, canonical, receipt)


def find_recorded(reader: Reader, output: CompleteOutput, attempt: Finished) -> Finished | None:
    """What an attempt to end an invocation came to of which nobody knows; None for nothing.

    Args:
        reader: of the store.
        output: what the invocation is to end with.
        attempt: what it comes to, if it is recorded.

    Raises:
        InvocationFinishedError: another end is recorded.
        DamageError, UnavailableError: the store cannot be asked, or what it has is damaged.
    """
    stored = reader.invocation(attempt.invocation_id)
    if stored.summary.state == "started":
        return None
    told = (stored.complete_json, stored.canonical_json, stored.receipt and stored.receipt.text)
    documents = (output.to_json().decode(), attempt.canonical.to_json().decode())
    if told != (*documents, attempt.receipt.text):
        raise InvocationFinishedError(f"invocation {attempt.invocation_id} has ended otherwise")
    return attempt
