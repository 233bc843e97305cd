"""Idempotency keys: names that a recorder gives to what it records, so that it is recorded once.

A key and what it names are written in one transaction, the key first. Who comes second finds it
there, or on PostgreSQL waits until the first has committed or failed, and has written nothing yet.
A key is found by its digest, since text of any length and kind does not fit into an index.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, NamedTuple, cast
from uuid import UUID

from sqlalchemy import Connection, Table, select

from tooltrail.records import Digest, IdempotencyConflictError, InvalidRecordError, digest_of
from tooltrail.records.canonical_json import encode
from tooltrail.store._engines.database import Database
from tooltrail.store._engines.persistence import persistently
from tooltrail.store._engines.prepared import Row
from tooltrail.store._recording import writes
from tooltrail.store.tables import IdempotencyKeyRow

KEY_CHARS = 1_000
"""Longest key, in characters; a path or a URL with a number fits."""

SubjectKind = Literal["session", "invocation"]


@dataclass(frozen=True, slots=True)
class Claim:
    """What is to be recorded under a key.

    Attributes:
        name: the key.
        kind: what it is to name.
        subject_id: of the record that is made, if none is there.
        fingerprint: digest of what makes two records the same.
        at: when the record is made.
    """

    name: str
    kind: SubjectKind
    subject_id: UUID
    fingerprint: Digest
    at: datetime

    @property
    def digest(self) -> Digest:
        """By which the key is found."""
        return digest_of(self.name.encode("utf-8", "surrogatepass"))

    def row(self) -> Row:
        """As it is stored."""
        return {
            "digest": self.digest,
            "name": self.name,
            "kind": self.kind,
            "subject_id": self.subject_id,
            "fingerprint": self.fingerprint,
            "created_at": self.at,
        }


class Taken(NamedTuple):
    """What a key names already."""

    kind: SubjectKind
    subject_id: UUID
    fingerprint: Digest


def claim(
    name: str, kind: SubjectKind, subject_id: UUID, content: Row, created_at: datetime
) -> Claim:
    """Ask for a key.

    Args:
        name: the key, 1 to `KEY_CHARS` characters of any kind.
        kind: what it is to name.
        subject_id: of the record that is made, if none is there.
        content: what makes two records the same; it becomes canonical JSON.
        created_at: when the record is made.

    Raises:
        InvalidRecordError: it is empty or too long.
    """
    fingerprint = digest_of(encode({"kind": kind, **content}))
    return Claim(checked_key(name), kind, subject_id, fingerprint, created_at)


def checked_key(name: str) -> str:
    """The same, when it can be a key.

    Raises:
        InvalidRecordError: it is empty or too long.
    """
    if not 0 < len(name) <= KEY_CHARS:
        raise InvalidRecordError(
            f"an idempotency key has 1 to {KEY_CHARS:,} characters, not {len(name):,}"
        )
    return name


def take(connection: Connection, claims: Sequence[Claim]) -> dict[UUID, Taken]:
    """Take keys for what is about to be written, before any of it is.

    Of two claims of one key the first is the one that counts.

    Returns:
        What those keys name that were taken before, by the subjects of the claims.
    """
    first: dict[Digest, Claim] = {}
    for one in claims:
        first.setdefault(one.digest, one)
    # In one order for all, since PostgreSQL makes the second wait for the first.
    rows = [one.row() for _, one in sorted(first.items())]
    taken_count = writes.put_each_once(connection, IdempotencyKeyRow, rows)
    return {} if taken_count == len(claims) else find_taken(connection, claims)


def find_taken(connection: Connection, claims: Sequence[Claim]) -> dict[UUID, Taken]:
    """What keys name that others have taken, by the subjects of the claims."""
    digests = {one.digest: one for one in claims}
    columns = _KEYS.c
    query = select(columns.digest, columns.kind, columns.subject_id, columns.fingerprint).where(
        columns.digest.in_(list(digests))
    )
    there = {row.digest: Taken(*row[1:]) for row in connection.execute(query)}
    found = ((one, there.get(one.digest)) for one in claims)
    return {
        one.subject_id: taken
        for one, taken in found
        if taken is not None and taken.subject_id != one.subject_id
    }


def find_taken_unlocked(database: Database, claims: Sequence[Claim]) -> dict[UUID, Taken]:
    """The same before anything is locked, made or published, so that it may change meanwhile.

    Raises:
        UnavailableError, DamageError: see `Database.read`.
    """

    def look() -> dict[UUID, Taken]:
        with database.read() as connection:
            return find_taken(connection, claims)

    return persistently(look) if claims else {}


def refuse_conflict(claimed: Claim, taken: Taken) -> None:
    """Raise unless what a key names is what it was asked for.

    Raises:
        IdempotencyConflictError: it names something else.
    """
    if (taken.kind, taken.fingerprint) != (claimed.kind, claimed.fingerprint):
        raise IdempotencyConflictError(
            key=claimed.name,
            kind=taken.kind,
            subject_id=taken.subject_id,
            recorded=taken.fingerprint,
            given=claimed.fingerprint,
        )


_KEYS = cast("Table[Any]", IdempotencyKeyRow.__table__)
