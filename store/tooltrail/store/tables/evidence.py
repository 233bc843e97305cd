"""What proves the record: ledger, checkpoints, tombstones, holds, and the store's own facts."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import CheckConstraint, ForeignKey, Index, LargeBinary
from sqlalchemy.orm import Mapped, mapped_column

from tooltrail.store.tables._base import CLUSTERED, Base


class LedgerEntryRow(Base):
    """One link of a session's hash chain."""

    __tablename__ = "ledger_entries"
    __table_args__ = CLUSTERED

    session_key: Mapped[int] = mapped_column(ForeignKey("sessions.key"), primary_key=True)
    n: Mapped[int] = mapped_column(primary_key=True)
    kind: Mapped[str]
    subject_id: Mapped[UUID]
    happened_at: Mapped[datetime]
    payload: Mapped[str]
    previous: Mapped[str]
    digest: Mapped[str]


class LedgerHeadRow(Base):
    """The end of a session's chain, so that a cut tail shows; its row lock orders the writers."""

    __tablename__ = "ledger_heads"

    session_key: Mapped[int] = mapped_column(ForeignKey("sessions.key"), primary_key=True)
    entry_count: Mapped[int]
    digest: Mapped[str]
    next_seq: Mapped[int]
    closed_at: Mapped[datetime | None]


class CheckpointRow(Base):
    """A signed Merkle root over all session heads."""

    __tablename__ = "checkpoints"

    key: Mapped[int] = mapped_column(primary_key=True)
    created_at: Mapped[datetime]
    document: Mapped[str]
    root: Mapped[str]
    key_id: Mapped[str | None]
    signature: Mapped[bytes | None] = mapped_column(LargeBinary)


class TombstoneRow(Base):
    """What was removed, by whom, when, why, by which rule."""

    __tablename__ = "tombstones"
    __table_args__ = (
        CheckConstraint("kind IN ('body', 'artifact')", name="kind"),
        Index(None, "subject"),
    )

    key: Mapped[int] = mapped_column(primary_key=True)
    kind: Mapped[str]
    subject: Mapped[str]
    size: Mapped[int]
    reason: Mapped[str]
    rule: Mapped[str]
    actor: Mapped[str]
    removed_at: Mapped[datetime]


class HoldRow(Base):
    """A protection against removal, or, when it names one in `releases_key`, its end."""

    __tablename__ = "holds"
    __table_args__ = (Index(None, "session_key"), Index(None, "invocation_key"))

    key: Mapped[int] = mapped_column(primary_key=True)
    id: Mapped[UUID] = mapped_column(unique=True)
    session_key: Mapped[int | None] = mapped_column(ForeignKey("sessions.key"))
    invocation_key: Mapped[int | None] = mapped_column(ForeignKey("invocations.key"))
    releases_key: Mapped[int | None] = mapped_column(ForeignKey("holds.key"))
    reason: Mapped[str]
    actor: Mapped[str]
    created_at: Mapped[datetime]


class IdempotencyKeyRow(Base):
    """What was recorded under a key of its recorder, so that it is recorded once.

    Found by the digest of the key: in `name` it is spelled for people.
    """

    __tablename__ = "idempotency_keys"
    __table_args__ = (
        CheckConstraint("kind IN ('session', 'invocation')", name="kind"),
        CLUSTERED,
    )

    digest: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str]
    kind: Mapped[str]
    subject_id: Mapped[UUID]
    fingerprint: Mapped[str]
    created_at: Mapped[datetime]


class StoreInfoRow(Base):
    """One row: what this store is and where its artifacts are."""

    __tablename__ = "store_info"
    __table_args__ = (CheckConstraint("key = 1", name="single"),)

    key: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    id: Mapped[UUID]
    format: Mapped[int]
    artifact_root: Mapped[str]
    created_at: Mapped[datetime]
