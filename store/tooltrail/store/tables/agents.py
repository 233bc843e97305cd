"""Agents, and the legs of their runs; see `tooltrail.records.agent_runs`."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import ForeignKey, Index
from sqlalchemy.orm import Mapped, mapped_column

from tooltrail.store.tables._base import Base


class AgentRow(Base):
    """One version of an agent, named by the digest of its description."""

    __tablename__ = "agents"

    digest: Mapped[str] = mapped_column(primary_key=True)
    agent_id: Mapped[str] = mapped_column(index=True)
    version: Mapped[str | None]
    document: Mapped[str]
    created_at: Mapped[datetime]


class AgentLegRow(Base):
    """How a leg of a run began, as a message of its session tells; all of that is the document."""

    __tablename__ = "agent_legs"
    __table_args__ = (Index(None, "agent_id", "started_at"),)

    message_key: Mapped[int] = mapped_column(
        ForeignKey("messages.key"), primary_key=True, autoincrement=False
    )
    session_key: Mapped[int] = mapped_column(ForeignKey("sessions.key"), index=True)
    run_id: Mapped[UUID]
    position: Mapped[int]
    tier: Mapped[str]
    model: Mapped[str]
    wire_format: Mapped[str]
    agent_id: Mapped[str]
    agent_digest: Mapped[str] = mapped_column(ForeignKey("agents.digest"))
    schema_digest: Mapped[str | None]
    started_at: Mapped[datetime] = mapped_column(index=True)
    document: Mapped[str]


class AgentOutcomeRow(Base):
    """How a leg of a run came out, the same."""

    __tablename__ = "agent_outcomes"

    message_key: Mapped[int] = mapped_column(
        ForeignKey("messages.key"), primary_key=True, autoincrement=False
    )
    session_key: Mapped[int] = mapped_column(ForeignKey("sessions.key"), index=True)
    outcome: Mapped[str]
    escalated_to: Mapped[str | None]
    attempt_count: Mapped[int]
    duration_ms: Mapped[int]
    document: Mapped[str]
