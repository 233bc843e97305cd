"""Reads the facts of a batch, and makes what is to be written of the calls that ended.

No transaction is open meanwhile: to project and render takes longer than to write.
"""

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias
from uuid import UUID

from tooltrail.journal import Frame, Gap
from tooltrail.records import DamageError, InvalidRecordError
from tooltrail.records.digests import EMPTY, Digest
from tooltrail.records.facts import CallEnded, CallStarted, Fact
from tooltrail.store.bodies import decode_body
from tooltrail.store.engines.database import Database
from tooltrail.store.engines.values import digest_from
from tooltrail.store.ingest.outcomes import Beginning, Outcome, OutcomeMaker


class Item(NamedTuple):
    """One frame of a batch, read and prepared.

    Attributes:
        frame: as it stands in the journal.
        fact: of the frame; None where it cannot be read.
        bodies: that travel with the fact, and the empty one.
        outcome: of a `call.ended` that is news.
        problem: why the fact cannot be applied; None where nothing is known against it.
    """

    frame: Frame
    fact: Fact | None
    bodies: Mapping[Digest, bytes]
    outcome: Outcome | None = None
    problem: str | None = None


Prepared: TypeAlias = Item | Gap


@dataclass(slots=True)
class _Stored:
    """What the store has of the calls that a batch ends.

    Attributes:
        beginnings: how they began.
        ended: those that an earlier batch ended.
    """

    beginnings: dict[UUID, Beginning] = field(default_factory=dict[UUID, Beginning])
    ended: set[UUID] = field(default_factory=set[UUID])


class Preparer:
    """Prepares batches. For one thread.

    Args:
        database: where earlier facts are.
        maker: of outcomes.
    """

    def __init__(self, database: Database, maker: OutcomeMaker) -> None:
        self._database = database
        self._maker = maker

    def prepare(self, items: Sequence[Frame | Gap]) -> list[Prepared]:
        """Prepare the frames of a batch, in their order.

        Raises:
            UnavailableError: the database or a spooled stream cannot be read now.
            DamageError: the database is damaged.
        """
        read = [one if isinstance(one, Gap) else read_frame(one) for one in items]
        stored = self._stored([one for one in read if isinstance(one, Item)])
        return [one if isinstance(one, Gap) else self._with_outcome(one, stored) for one in read]

    def _stored(self, read: Sequence[Item]) -> _Stored:
        stored = _Stored()
        ended: list[UUID] = []
        for one in read:
            fact = one.fact
            if isinstance(fact, CallStarted):
                # Of two different starts the first one counts.
                beginning = Beginning(fact.tool_name, fact.family, fact.policy)
                stored.beginnings.setdefault(fact.id, beginning)
                self._learn(fact.policy, one.bodies.get(fact.policy))
            elif isinstance(fact, CallEnded):
                ended.append(fact.id)
        if ended:
            self._look_up(ended, stored)
        return stored

    def _look_up(self, ended: Sequence[UUID], stored: _Stored) -> None:
        with self._database.read() as connection:
            rows = connection.query_each(
                "SELECT id, tool_name, family, policy, state FROM invocations WHERE id IN (?)",
                [connection.uuid(one) for one in ended],
            )
            for name, tool_name, family, policy, state in rows:
                call = connection.read_uuid(name)
                stored.beginnings[call] = Beginning(tool_name, family, digest_from(policy))
                if state != "started":
                    stored.ended.add(call)
            wanted = {one.policy for one in stored.beginnings.values()}
            unknown = [one for one in wanted if not self._maker.knows_policy(one)]
            bodies = connection.query_each(
                "SELECT digest, size, encoding, data FROM bodies WHERE digest IN (?)",
                [connection.sha(one) for one in unknown],
            )
        for digest, size, encoding, data in bodies:
            name = digest_from(digest)
            try:
                document = decode_body(name, size, encoding, data)
            except DamageError:
                continue  # the calls that need the policy are rejected, with their bytes
            self._learn(name, document)

    def _learn(self, digest: Digest, document: bytes | None) -> None:
        if document is None or self._maker.knows_policy(digest):
            return
        try:
            self._maker.learn_policy(digest, document)
        except InvalidRecordError:
            return  # the calls that need the policy are rejected, with their bytes

    def _with_outcome(self, item: Item, stored: _Stored) -> Item:
        fact = item.fact
        if not isinstance(fact, CallEnded) or item.problem is not None or fact.id in stored.ended:
            return item
        beginning = stored.beginnings.get(fact.id)
        if beginning is None:
            return item._replace(problem=f"no call {fact.id} was started")
        try:
            outcome = self._maker.outcome(fact, item.bodies, beginning)
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            return item._replace(problem=str(error) or repr(error))
        return item._replace(outcome=outcome)


def read_frame(frame: Frame) -> Item:
    """The fact of a frame and its bodies."""
    try:
        return Item(frame, frame.fact, {EMPTY: b"", **frame.bodies()})
    except (ArithmeticError, LookupError, ValueError, struct.error) as error:
        return Item(frame, None, {}, problem=str(error) or repr(error))


def frames_of(prepared: Iterable[Prepared]) -> list[Item]:
    """The frames of a batch, without its gaps."""
    return [one for one in prepared if isinstance(one, Item)]
