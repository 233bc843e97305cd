"""The account of every run that pruned, moved or repaired stored objects."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import CheckConstraint
from sqlalchemy.orm import Mapped, mapped_column

from tooltrail.store.tables._base import Base, partial_index


class MaintenanceRunRow(Base):
    """One run over the objects of the store.

    The columns down to `started_at` are written before the first object is touched. The counts
    only grow while it is under way, and the others are written once, at its end. A row without an
    end is a run that is under way, or one that was killed.
    """

    __tablename__ = "maintenance_runs"
    __table_args__ = (
        CheckConstraint("kind IN ('gc', 'relocate', 'repair')", name="kind"),
        CheckConstraint("(finished_at IS NULL) = (outcome IS NULL)", name="finished"),
        CheckConstraint(
            "outcome IN ('finished', 'interrupted', 'failed', 'abandoned')", name="outcome"
        ),
        partial_index("finished_at", where="finished_at IS NULL"),
    )

    key: Mapped[int] = mapped_column(primary_key=True)
    id: Mapped[UUID] = mapped_column(unique=True)
    kind: Mapped[str]
    environment: Mapped[str]
    facts: Mapped[str]
    started_at: Mapped[datetime]
    object_count: Mapped[int]
    stored_bytes: Mapped[int]
    finished_at: Mapped[datetime | None]
    outcome: Mapped[str | None]
    report: Mapped[str | None]
