"""The three surfaces of an invocation, and what was left out between them."""

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKey, Index
from sqlalchemy.orm import Mapped, mapped_column

from tooltrail.store.tables._base import CLUSTERED, Base


class CompleteOutputRow(Base):
    """Everything the tool produced, as a document whose streams are rows of `output_streams`."""

    __tablename__ = "complete_outputs"

    invocation_key: Mapped[int] = mapped_column(ForeignKey("invocations.key"), primary_key=True)
    document: Mapped[str]
    digest: Mapped[str]


class OutputStreamRow(Base):
    """One stream of a complete output; its bytes are an artifact, else a body of that digest.

    Where the sink was away they wait in a spool, and `postponed_reason` says why; since then they
    may have become an artifact of that digest.
    """

    __tablename__ = "output_streams"
    __table_args__ = (
        # Who refers to a body or an artifact is what retention must know before it removes one.
        Index(None, "digest"),
        CLUSTERED,
    )

    invocation_key: Mapped[int] = mapped_column(ForeignKey("invocations.key"), primary_key=True)
    n: Mapped[int] = mapped_column(primary_key=True)
    role: Mapped[str]
    digest: Mapped[str]
    size: Mapped[int]
    line_count: Mapped[int]
    produced_size: Mapped[int]
    produced_line_count: Mapped[int]
    loss_reason: Mapped[str | None]
    artifact_path: Mapped[str | None] = mapped_column(ForeignKey("artifacts.path"))
    postponed_reason: Mapped[str | None]


class CanonicalResultRow(Base):
    """The bounded envelope as canonical JSON, readable with SQL."""

    __tablename__ = "canonical_results"

    invocation_key: Mapped[int] = mapped_column(ForeignKey("invocations.key"), primary_key=True)
    status: Mapped[str]
    summary_text: Mapped[str]
    document: Mapped[str]
    digest: Mapped[str]


class ReceiptRow(Base):
    """What the model was shown. A further receipt of the same invocation gets the next `n`."""

    __tablename__ = "receipts"
    __table_args__ = CLUSTERED

    invocation_key: Mapped[int] = mapped_column(ForeignKey("invocations.key"), primary_key=True)
    n: Mapped[int] = mapped_column(primary_key=True)
    renderer_name: Mapped[str]
    renderer_version: Mapped[int]
    policy_digest: Mapped[str] = mapped_column(ForeignKey("policies.digest"))
    body_digest: Mapped[str] = mapped_column(ForeignKey("bodies.digest"))
    size: Mapped[int]
    created_at: Mapped[datetime]


class OmissionRow(Base):
    """What one stage left out of one field."""

    __tablename__ = "omissions"
    __table_args__ = (
        CheckConstraint("after_count < before_count", name="counts"),
        CLUSTERED,
    )

    invocation_key: Mapped[int] = mapped_column(ForeignKey("invocations.key"), primary_key=True)
    n: Mapped[int] = mapped_column(primary_key=True)
    stage: Mapped[str]
    field: Mapped[str]
    unit: Mapped[str]
    before_count: Mapped[int]
    after_count: Mapped[int]
    reason: Mapped[str]


class RedactionRow(Base):
    """How often a rule matched in a stream; never what it matched."""

    __tablename__ = "redactions"
    __table_args__ = CLUSTERED

    invocation_key: Mapped[int] = mapped_column(ForeignKey("invocations.key"), primary_key=True)
    n: Mapped[int] = mapped_column(primary_key=True)
    role: Mapped[str]
    rule: Mapped[str]
    match_count: Mapped[int]


class StructuredOutputRow(Base):
    """One attempt of an agent to submit its structured result."""

    __tablename__ = "structured_outputs"

    invocation_key: Mapped[int] = mapped_column(ForeignKey("invocations.key"), primary_key=True)
    agent_digest: Mapped[str | None] = mapped_column(ForeignKey("agents.digest"))
    schema_digest: Mapped[str]
    attempt: Mapped[int]
    valid: Mapped[bool]
    document: Mapped[str]
