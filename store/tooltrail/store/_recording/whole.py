"""Invocations that are written whole: start and end of each in the same transaction.

The rows are those that the two would have left one after the other.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection

from tooltrail.store._engines.prepared import Row
from tooltrail.store._recording import writes
from tooltrail.store._recording.finishing import FinishedRows, artifact_row, surfaces_of
from tooltrail.store._recording.publisher import StreamPublisher
from tooltrail.store._recording.starting import (
    Beginning,
    origin_rows,
    policy_row,
    start_event,
    started_row,
)
from tooltrail.store._recording.writes import Body, Chain
from tooltrail.store.tables import (
    ArtifactRow,
    Base,
    CallOriginRow,
    InvocationRow,
    LedgerEntryRow,
    PolicyRow,
)


class Whole(NamedTuple):
    """All that is known of an invocation that has ended.

    Attributes:
        beginning: how it began.
        arguments: what it was called with.
        rows: how it ended.
        publisher: of its streams.
    """

    beginning: Beginning
    arguments: Body
    rows: FinishedRows
    publisher: StreamPublisher


def write_whole(connection: Connection, chain: Chain, records: Sequence[Whole]) -> None:
    """Write invocations at the next places of a session, in their order, with their ledger."""
    put_shared(connection, records)
    write_rows(connection, chain, records)


def write_rows(connection: Connection, chain: Chain, records: Sequence[Whole]) -> None:
    """The same without what `put_shared` has written."""
    tables: dict[type[Base], list[Row]] = defaultdict(list)
    keys = list(writes.take_invocation_keys(connection, len(records)))
    for key, one in zip(keys, records, strict=True):
        finished_at = one.rows.ended_at()
        start = started_row(chain, one.beginning, one.arguments.digest)
        end = surfaces_of(key, one.rows, one.publisher, finished_at)
        tables[InvocationRow].append({"key": key, **start, **end.columns})
        for table, children in end.children.items():
            tables[table] += children
        for event in (start_event(one.beginning, start), end.event):
            tables[LedgerEntryRow].append(writes.linked(chain, event))
    begun = [(key, one.beginning) for key, one in zip(keys, records, strict=True)]
    tables[CallOriginRow] = origin_rows(connection, begun)
    for table, rows in tables.items():
        writes.insert_rows(connection, table, rows)
    writes.move_head(connection, chain)


def put_shared(
    connection: Connection,
    records: Sequence[Whole],
    bodies: Sequence[Body] = (),
    beginnings: Sequence[Beginning] = (),
) -> None:
    """Write what other invocations may share, in one order for all; see `write_finished`.

    Args:
        connection: within a transaction.
        records: which refer to it.
        bodies: which others refer to that are written with them.
        beginnings: of calls that are started with them, and have not ended.
    """
    begun = [*(one.beginning for one in records), *beginnings]
    policies = {one.policy_digest: one for one in begun}
    for _, beginning in sorted(policies.items()):
        writes.put_once(connection, PolicyRow, policy_row(beginning))
    artifacts = {
        stored.path: artifact_row(stored, one.rows.ended_at())
        for one in records
        for stored in one.publisher.published
    }
    for _, row in sorted(artifacts.items()):
        writes.put_once(connection, ArtifactRow, row)
    own = [body for one in records for body in (one.arguments, *one.rows.bodies)]
    writes.put_bodies(connection, [*own, *bodies])
