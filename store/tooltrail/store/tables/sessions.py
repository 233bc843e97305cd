"""Conversations: sessions and their messages."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import ForeignKey, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from tooltrail.store.tables._base import Base


class SessionRow(Base):
    """One conversation or agent run. That it was closed is an entry of its ledger."""

    __tablename__ = "sessions"
    __table_args__ = (Index(None, "opened_at"), Index(None, "parent_key"))

    key: Mapped[int] = mapped_column(primary_key=True)
    id: Mapped[UUID] = mapped_column(unique=True)
    parent_key: Mapped[int | None] = mapped_column(ForeignKey("sessions.key"))
    agent: Mapped[str | None]
    agent_digest: Mapped[str | None] = mapped_column(ForeignKey("agents.digest"))
    title: Mapped[str | None]
    environment: Mapped[str]
    opened_at: Mapped[datetime]


class MessageRow(Base):
    """One entry of a conversation that is not a tool call; its text is a body."""

    __tablename__ = "messages"
    __table_args__ = (UniqueConstraint("session_key", "seq"),)

    key: Mapped[int] = mapped_column(primary_key=True)
    id: Mapped[UUID] = mapped_column(unique=True)
    session_key: Mapped[int] = mapped_column(ForeignKey("sessions.key"))
    seq: Mapped[int]
    role: Mapped[str]
    body_digest: Mapped[str] = mapped_column(ForeignKey("bodies.digest"))
    created_at: Mapped[datetime]


class MessageDocumentRow(Base):
    """The whole of a message whose text is not all of it, and what its provider sent, verbatim."""

    __tablename__ = "message_documents"

    message_key: Mapped[int] = mapped_column(
        ForeignKey("messages.key"), primary_key=True, autoincrement=False
    )
    wire_format: Mapped[str | None]
    document_digest: Mapped[str] = mapped_column(ForeignKey("bodies.digest"))
    payload_digest: Mapped[str | None] = mapped_column(ForeignKey("bodies.digest"))


class ToolOfferRow(Base):
    """One of the tools that a message says are on offer from there on, in their order."""

    __tablename__ = "tool_offers"

    message_key: Mapped[int] = mapped_column(
        ForeignKey("messages.key"), primary_key=True, autoincrement=False
    )
    position: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    tool_digest: Mapped[str] = mapped_column(ForeignKey("tools.digest"))


class CallOriginRow(Base):
    """Which message asked for an invocation, and at which place of its batch the call stands."""

    __tablename__ = "call_origins"

    invocation_key: Mapped[int] = mapped_column(
        ForeignKey("invocations.key"), primary_key=True, autoincrement=False
    )
    message_key: Mapped[int] = mapped_column(ForeignKey("messages.key"))
    position: Mapped[int]
