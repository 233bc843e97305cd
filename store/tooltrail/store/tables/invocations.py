"""The hot table, and what it names by digest: tool versions and policies."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import CheckConstraint, ForeignKey, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from tooltrail.store.tables._base import Base, partial_index


class PolicyRow(Base):
    """The budgets that shaped results and receipts."""

    __tablename__ = "policies"

    digest: Mapped[str] = mapped_column(primary_key=True)
    document: Mapped[str]
    created_at: Mapped[datetime]


class ToolRow(Base):
    """One version of a tool: its name, family and schema."""

    __tablename__ = "tools"

    digest: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(index=True)
    family: Mapped[str]
    document: Mapped[str]
    created_at: Mapped[datetime]


LARGE_BYTES = 4096
"""Outputs of this size and more are indexed by it: some tenth of all."""


class InvocationRow(Base):
    """One execution of one tool call, small columns only; bodies live in other tables.

    The columns down to `started_at` are written at the start and never change. The others are
    written once, when `state` leaves `started`.
    """

    __tablename__ = "invocations"
    __table_args__ = (
        UniqueConstraint("session_key", "seq"),
        CheckConstraint(
            "state IN ('started', 'success', 'error', 'interrupted', 'denied', 'cancelled')",
            name="state",
        ),
        CheckConstraint("(state = 'started') = (finished_at IS NULL)", name="finished"),
        Index(None, "started_at"),
        Index(None, "tool_name", "started_at"),
        # Of what is unusual. `_reading.conditions` says the same words where it asks for it.
        partial_index("state", "error_kind", where="state <> 'success'"),
        partial_index("exit_status", where="exit_status <> 0"),
        partial_index("output_size", where=f"output_size >= {LARGE_BYTES}"),
        # Providers make call ids longer than a b-tree page of PostgreSQL can hold.
        partial_index("call_id", where="call_id IS NOT NULL", using="hash"),
    )

    key: Mapped[int] = mapped_column(primary_key=True)
    id: Mapped[UUID] = mapped_column(unique=True)
    session_key: Mapped[int] = mapped_column(ForeignKey("sessions.key"))
    seq: Mapped[int]
    call_id: Mapped[str | None]
    tool_name: Mapped[str]
    tool_digest: Mapped[str | None] = mapped_column(ForeignKey("tools.digest"))
    family: Mapped[str]
    policy_digest: Mapped[str] = mapped_column(ForeignKey("policies.digest"))
    arguments_digest: Mapped[str] = mapped_column(ForeignKey("bodies.digest"))
    arguments_preview: Mapped[str]
    started_at: Mapped[datetime]
    state: Mapped[str]
    finished_at: Mapped[datetime | None]
    duration_ms: Mapped[int | None]
    error_kind: Mapped[str | None]
    exit_status: Mapped[int | None]
    signal: Mapped[int | None]
    timed_out: Mapped[bool | None]
    output_size: Mapped[int | None]
    truncated: Mapped[bool | None]
