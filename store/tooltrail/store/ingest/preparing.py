"""Reads the facts of a batch, and makes what is to be written of the calls that ended.

No transaction is open meanwhile: to project and render takes longer than to write.
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
from tooltrail.store.ingest.known import Call, load_bodies, load_calls
from tooltrail.store.ingest.outcomes import Outcome, OutcomeMaker


class Item(NamedTuple):
    """One frame of a batch, read and prepared, or a gap between two.

    Attributes:
        source: the frame or the gap.
        fact: of the frame; None where it cannot be read.
        bodies: that travel with the fact, and the empty one.
        outcome: of a `call.ended` that is news.
        problem: why the fact cannot be applied; None where nothing is known against it.
    """

    source: Frame | Gap
    fact: Fact | None
    bodies: Mapping[Digest, bytes]
    outcome: Outcome | None = None
    problem: str | None = None


class Preparer:
    """Prepares batches. For one thread.

    Args:
        database: where earlier facts are.
        maker: of outcomes.
    """

    def __init__(self, database: Database, maker: OutcomeMaker) -> None:
        self._database = database
        self._maker = maker

    def prepare(self, sources: Sequence[Frame | Gap]) -> list[Item]:
        """Prepare the frames of a batch, in their order.

        Raises:
            UnavailableError: the database or a spooled stream cannot be read now.
            DamageError: the database is damaged.
        """
        items = [read_item(one) for one in sources]
        ended = {one.fact.id for one in items if isinstance(one.fact, CallEnded)}
        if not ended:
            return items
        # Of two different starts the first one counts.
        starts: dict[UUID, CallStarted | Call] = {}
        for one in items:
            if isinstance(one.fact, CallStarted):
                starts.setdefault(one.fact.id, one.fact)
                if one.fact.policy in one.bodies:
                    self._learn(one.fact.policy, one.bodies[one.fact.policy])
        with self._database.read() as connection:
            starts |= load_calls(connection, ended)
            wanted = {one.policy for one in starts.values()}
            unknown = [one for one in wanted if not self._maker.knows_policy(one)]
            for digest, document in load_bodies(connection, unknown).items():
                self._learn(digest, document)
        return [self._with_outcome(one, starts) for one in items]

    def _learn(self, digest: Digest, document: bytes) -> None:
        if not self._maker.knows_policy(digest):
            with suppress(
                InvalidRecordError
            ):  # the calls that need it are rejected, with their bytes
                self._maker.learn_policy(digest, document)

    def _with_outcome(self, item: Item, starts: Mapping[UUID, CallStarted | Call]) -> Item:
        fact = item.fact
        if not isinstance(fact, CallEnded) or item.problem is not None:
            return item
        start = starts.get(fact.id)
        if start is None:
            return item._replace(problem=f"no call {fact.id} was started")
        if isinstance(start, Call) and start.end is not None:
            return item
        try:
            outcome = self._maker.outcome(fact, item.bodies, start.family, start.policy)
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            return item._replace(problem=str(error) or repr(error))
        return item._replace(outcome=outcome)


def read_item(source: Frame | Gap) -> Item:
    """The fact of a frame and its bodies; of a gap, what is wrong."""
    if isinstance(source, Gap):
        return Item(source, None, {}, problem=source.reason)
    try:
        return Item(source, source.fact, {EMPTY: b"", **source.bodies()})
    except (ArithmeticError, LookupError, ValueError, struct.error) as error:
        return Item(source, None, {}, problem=str(error) or repr(error))
