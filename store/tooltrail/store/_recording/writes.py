"""The statements behind a record, each on the caller's transaction."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, Self, cast
from uuid import UUID

from sqlalchemy import (
    ClauseElement,
    Connection,
    Insert,
    Table,
    bindparam,
    func,
    insert,
    select,
    text,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite

from tooltrail.records import (
    DamageError,
    Digest,
    InvalidRecordError,
    NotFoundError,
    SessionClosedError,
    digest_of,
    parse_digest,
)
from tooltrail.records.canonical_json import encode
from tooltrail.records.ledger import GENESIS, EntryKind, entry_json
from tooltrail.store._engines.copying_in import MANY, copy_in
from tooltrail.store._engines.pipelines import is_pipelined
from tooltrail.store._engines.prepared import Prepared, Row
from tooltrail.store._recording.bodies import encode_body
from tooltrail.store.tables import (
    Base,
    BodyRow,
    InvocationRow,
    LedgerEntryRow,
    LedgerHeadRow,
    MessageRow,
    SessionRow,
)
from tooltrail.store.tables._types import UtcTime, Uuid16


@dataclass(slots=True)
class Chain:
    """The end of a session's ledger while its row is locked, and the next place in its order."""

    session_key: int
    session_id: UUID
    entry_count: int
    digest: str
    next_seq: int
    closed_at: datetime | None

    def take_seq(self) -> int:
        """The next place in the conversation."""
        self.next_seq += 1
        return self.next_seq - 1

    def refuse_if_closed(self) -> None:
        """Raise when the session takes no new records.

        Raises:
            SessionClosedError: it was closed.
        """
        if self.closed_at is not None:
            raise SessionClosedError(f"session {self.session_id} is closed")


def lock_chain(connection: Connection, session_key: int, session_id: UUID) -> Chain:
    """Lock a session's head, which orders all its writers, and read it.

    Raises:
        NotFoundError: another session has its key, or none: the store is not the one any more in
            which that was its key.
        DamageError: the session has no head, or a damaged one.
    """
    head = _LOCK_HEAD.run_one(connection, {"which": session_key})
    _refuse_another_session(connection, session_key, session_id, None if head is None else head[4])
    match head:
        case (int(entry_count), str(digest), int(next_seq), closed_at, _):
            with suppress(InvalidRecordError, ValueError):
                closed_at = _TIME.process_result_value(closed_at, connection.dialect)
                return Chain(
                    session_key, session_id, entry_count, parse_digest(digest), next_seq, closed_at
                )
        case _:
            pass
    raise DamageError(f"the ledger head of session {session_id} is damaged", path="ledger_heads")


def refuse_closed(connection: Connection, session_key: int, session_id: UUID) -> None:
    """Raise for a session that is closed by now; without a lock, one that is open may be so next.

    Raises:
        SessionClosedError: it is closed.
    """
    closed_at = (
        select(_HEADS.c.closed_at)
        .join(_SESSIONS, _SESSIONS.c.key == _HEADS.c.session_key)
        .where(_HEADS.c.session_key == session_key, _SESSIONS.c.id == session_id)
    )
    if connection.scalar(closed_at) is not None:
        raise SessionClosedError(f"session {session_id} is closed")


def _refuse_another_session(
    connection: Connection, session_key: int, session_id: UUID, found: object
) -> None:
    """Raise unless the head that was found under a key, if any, is that of the session."""
    name = _UUID.process_result_value(found, connection.dialect)
    if name == session_id:
        return
    if name is None:
        # Looked at only where there is no head.
        name = connection.scalar(select(_SESSIONS.c.id).where(_SESSIONS.c.key == session_key))
    if name == session_id:
        raise DamageError(f"session {session_id} has no ledger head", path="ledger_heads")
    there = "no session is" if name is None else f"session {name} is now"
    raise NotFoundError(
        f"session {session_id} is not in the store any more, where {there} in its place:"
        " the store was made anew"
    )


@dataclass(frozen=True, slots=True)
class Event:
    """What a ledger entry is about."""

    kind: EntryKind
    subject_id: UUID
    happened_at: datetime
    payload: Row


def append_entry(connection: Connection, chain: Chain, happened: Event) -> None:
    """Add a link to the chain and move the head."""
    _insert(LedgerEntryRow).run(connection, linked(chain, happened))
    move_head(connection, chain)


def linked(chain: Chain, happened: Event) -> Row:
    """Add a link to the chain as it is known here; its row, which is to be written."""
    payload = encode(happened.payload)
    document = entry_json(
        session_id=chain.session_id,
        n=chain.entry_count,
        kind=happened.kind,
        subject_id=happened.subject_id,
        happened_at=happened.happened_at,
        payload=payload,
        previous=chain.digest,
    )
    digest = digest_of(document)
    row: Row = {
        "session_key": chain.session_key,
        "n": chain.entry_count,
        "kind": happened.kind,
        "subject_id": happened.subject_id,
        "happened_at": happened.happened_at,
        "payload": payload.decode(),
        "previous": chain.digest,
        "digest": digest,
    }
    chain.entry_count += 1
    chain.digest = digest
    return row


def move_head(connection: Connection, chain: Chain) -> None:
    """Say where the chain ends by now."""
    head = {
        "entry_count": chain.entry_count,
        "digest": chain.digest,
        "next_seq": chain.next_seq,
        "closed_at": chain.closed_at,
    }
    _MOVE_HEAD.run(connection, {"which": chain.session_key, **head})


def insert_session(connection: Connection, row: Row) -> Chain:
    """Insert a session with an empty chain."""
    key = _insert_returning(connection, SessionRow, row)
    head = {"session_key": key, "entry_count": 0, "digest": GENESIS, "next_seq": 0}
    _insert(LedgerHeadRow).run(connection, head)
    return Chain(key, row["id"], 0, GENESIS, 0, None)


def insert_invocation(connection: Connection, row: Row) -> int:
    """Insert a started invocation and return its key."""
    return _insert_returning(connection, InvocationRow, row)


def take_invocation_keys(connection: Connection, count: int) -> Iterable[int]:
    """The keys of so many invocations that are about to be inserted, in their order."""
    if connection.dialect.name == "sqlite":
        # Nobody else writes within this transaction.
        last = connection.scalar(select(func.coalesce(func.max(_INVOCATIONS.c.key), 0))) or 0
        return range(last + 1, last + 1 + count)
    return connection.scalars(_NEXT_KEYS, {"count": count}).all()


def finish_invocation(connection: Connection, key: int, row: Row) -> bool:
    """Move an invocation to its final state; False when it is there already."""
    return _FINISH.count(connection, {"which": key, **row}) == 1


def insert_message(
    connection: Connection, row: Row, besides: Mapping[type[Base], Sequence[Row]]
) -> None:
    """Insert a message, and the rows of other tables that are of it, without its key in them."""
    if not any(besides.values()):
        _insert(MessageRow).run(connection, row)
        return
    key = _insert_returning(connection, MessageRow, row)
    for table, rows in besides.items():
        insert_rows(connection, table, [{"message_key": key, **one} for one in rows])


def message_keys(connection: Connection, ids: Iterable[UUID]) -> Mapping[UUID | None, int]:
    """The keys of messages; of one that is not there, none."""
    query = select(MessageRow.id, MessageRow.key).where(MessageRow.id.in_(list(ids)))
    return {row.id: row.key for row in connection.execute(query)}


@dataclass(frozen=True, slots=True)
class Body:
    """Bytes hashed and compressed, before a transaction makes everybody else wait."""

    digest: Digest
    size: int
    encoding: str
    data: bytes

    @classmethod
    def of(cls, content: bytes) -> Self:
        """Prepare bytes for the database."""
        encoding, data = encode_body(content)
        return cls(digest_of(content), len(content), encoding, data)


def put_bodies(connection: Connection, bodies: Sequence[Body]) -> None:
    """Store each of several bodies once, in the order of their digests.

    Bytes that were erased once and are recorded anew are there again.
    """
    rows: list[Row] = [
        {"digest": digest, "size": body.size, "encoding": body.encoding, "data": body.data}
        for digest, body in sorted({body.digest: body for body in bodies}.items())
    ]
    _PUT_BODY.run_many(connection, rows)


def put_once(connection: Connection, table: type[Base], row: Row) -> None:
    """Insert a row that is named by its content; the same one again changes nothing."""
    _insert_once(table).run(connection, row)


def put_each_once(connection: Connection, table: type[Base], rows: Sequence[Row]) -> int:
    """Insert rows that are named by their content; how many of them were not there yet."""
    return _insert_once(table).count_many(connection, rows)


def insert_rows(connection: Connection, table: type[Base], rows: Sequence[Row]) -> None:
    """Insert rows, or nothing."""
    is_copied = connection.dialect.name == "postgresql" and not is_pipelined(connection)
    if is_copied and len(rows) >= MANY:
        copy_in(connection, _table(table), rows)
    else:
        _insert(table).run_many(connection, rows)


def numbered(invocation_key: int, rows: Iterable[Row]) -> list[Row]:
    """Child rows of an invocation, numbered from 0."""
    return [{"invocation_key": invocation_key, "n": n, **row} for n, row in enumerate(rows)]


def _insert_returning(
    connection: Connection, table: type[SessionRow | InvocationRow | MessageRow], row: Row
) -> int:
    answer = _insert_key(table).run_one(connection, row)
    if answer is None:
        raise AssertionError("an insert that is to return its key returned nothing")
    key: int = answer[0]
    return key


@cache
def _insert(row_class: type[Base]) -> Prepared:
    return Prepared(lambda _: insert(_table(row_class)))


@cache
def _insert_once(row_class: type[Base]) -> Prepared:
    table = _table(row_class)

    def build(dialect_name: str) -> Insert:
        if dialect_name == "postgresql":
            return postgresql.insert(table).on_conflict_do_nothing()
        return sqlite.insert(table).on_conflict_do_nothing()

    return Prepared(build)


@cache
def _insert_key(row_class: type[Base]) -> Prepared:
    table = _table(row_class)
    return Prepared(lambda _: insert(table).returning(table.c.key))


def _table(row_class: type[Base]) -> Table[Any]:
    return cast("Table[Any]", row_class.__table__)


_TIME, _UUID = UtcTime(), Uuid16()
_HEADS = _table(LedgerHeadRow)
_SESSIONS = _table(SessionRow)
_LOCK_HEAD = Prepared(
    lambda _: (
        select(
            _HEADS.c.entry_count,
            _HEADS.c.digest,
            _HEADS.c.next_seq,
            _HEADS.c.closed_at,
            # In one with the head, which costs no further way to a server.
            select(_SESSIONS.c.id).where(_SESSIONS.c.key == _HEADS.c.session_key).scalar_subquery(),
        )
        .where(_HEADS.c.session_key == bindparam("which"))
        .with_for_update()
    )
)
_MOVE_HEAD = Prepared(lambda _: update(_HEADS).where(_HEADS.c.session_key == bindparam("which")))
_BODIES = _table(BodyRow)


def _put_body(dialect_name: str) -> ClauseElement:
    if dialect_name == "sqlite":
        put = sqlite.insert(_BODIES)
        restored = {name: put.excluded[name] for name in ("encoding", "data")}
        return put.on_conflict_do_update(
            index_elements=[_BODIES.c.digest], set_=restored, where=_BODIES.c.data.is_(None)
        )
    # That would make all wait for each other who record one body. Both in one all the same, so
    # that nobody waits for the first to see whether the second is needed.
    return text(
        "WITH put AS (INSERT INTO bodies (digest, size, encoding, data)"
        " VALUES (:digest, :size, :encoding, :data) ON CONFLICT DO NOTHING)"
        " UPDATE bodies SET encoding = :encoding, data = :data"
        " WHERE digest = :digest AND data IS NULL"
    ).bindparams(*(bindparam(column.name, type_=column.type) for column in _BODIES.c))


_PUT_BODY = Prepared(_put_body)
_INVOCATIONS = _table(InvocationRow)
_NEXT_KEYS = text(
    "SELECT nextval(pg_get_serial_sequence('invocations', 'key')) FROM generate_series(1, :count)"
)
_FINISH = Prepared(
    lambda _: update(_INVOCATIONS).where(
        _INVOCATIONS.c.key == bindparam("which"), _INVOCATIONS.c.state == "started"
    )
)
