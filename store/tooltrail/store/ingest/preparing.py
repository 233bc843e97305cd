"""Reads the facts of a batch, and makes the outcomes of the calls that ended.

No transaction is open during this step: projecting and rendering take longer than writing.
"""

import struct
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple
from uuid import UUID

from tooltrail.journal import Frame, Gap
from tooltrail.records import InvalidRecordError
from tooltrail.records.digests import EMPTY, Digest
from tooltrail.records.facts import CallEnded, CallStarted, Fact
from tooltrail.store.engines.database import Database
from tooltrail.store.ingest.known import Call, load_calls
from tooltrail.store.ingest.outcomes import Outcome, OutcomeMaker
from tooltrail.store.read.bodies import load_bodies


class Item(NamedTuple):
    """One frame of a batch, read and prepared, or a gap between two.

    Attributes:
        fact: fact of the frame; None if it cannot be read.
        bodies: bodies that travel with the fact, and the empty body.
        outcome: outcome of a `call.ended`, unless the end is stored already.
        problem: why the fact cannot be applied; None if no problem is known.
    """

    source: Frame | Gap
    fact: Fact | None
    bodies: Mapping[Digest, bytes]
    outcome: Outcome | None = None
    problem: str | None = None


def prepare(database: Database, maker: OutcomeMaker, sources: Sequence[Frame | Gap]) -> list[Item]:
    """Prepare the frames of a batch and the gaps between them, in their order."""
    items = [read_item(one) for one in sources]
    ended = {one.fact.id for one in items if isinstance(one.fact, CallEnded)}
    if not ended:
        return items
    starts: dict[UUID, CallStarted | Call] = {}
    policies: dict[Digest, bytes] = {}
    for one in items:
        if isinstance(one.fact, CallStarted):
            # If two starts differ, the first one counts.
            policy = starts.setdefault(one.fact.id, one.fact).policy
            if policy in one.bodies:
                policies[policy] = one.bodies[policy]
    with database.read() as connection:
        starts |= load_calls(connection, ended)
        unknown = {one.policy for one in starts.values()} - maker.policies.keys()
        stored = load_bodies(connection, unknown - policies.keys())
    policies |= {name: one.data for name, one in stored.items() if one.data is not None}
    for digest in unknown & policies.keys():
        with suppress(InvalidRecordError):  # calls that need it are rejected, with their bytes
            maker.learn_policy(digest, policies[digest])
    return [_with_outcome(maker, one, starts) for one in items]


def _with_outcome(
    maker: OutcomeMaker, item: Item, starts: Mapping[UUID, CallStarted | Call]
) -> Item:
    fact = item.fact
    if not isinstance(fact, CallEnded) or item.problem is not None:
        return item
    start = starts.get(fact.id)
    if start is None:
        return item._replace(problem=f"no call {fact.id} was started")
    if isinstance(start, Call) and start.end is not None:
        return item
    try:
        outcome = maker.outcome(fact, item.bodies, start.family, start.policy)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        return item._replace(problem=str(error) or repr(error))
    return item._replace(outcome=outcome)


def read_item(source: Frame | Gap) -> Item:
    """Read a frame. A gap becomes an item with a problem."""
    if isinstance(source, Gap):
        return Item(source, None, {}, problem=source.reason)
    try:
        return Item(source, source.fact, {EMPTY: b"", **source.bodies()})
    except (ArithmeticError, LookupError, ValueError, struct.error) as error:
        return Item(source, None, {}, problem=str(error) or repr(error))
