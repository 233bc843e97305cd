"""Add the legs of agent runs: how each began, and how it came out.

What models were told and what they submitted is in tables that are there: messages, invocations,
and `structured_outputs`, which programs of before left empty.

Revision ID: 0007
Revises: 0006
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

BIG_INT = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
UUID = sa.LargeBinary(16).with_variant(postgresql.UUID(as_uuid=True), "postgresql")
TIME = sa.Text().with_variant(postgresql.TIMESTAMP(timezone=True), "postgresql")

LEGS = "agent_legs"
OUTCOMES = "agent_outcomes"
TABLES = (LEGS, OUTCOMES)


def upgrade() -> None:
    op.create_table(
        LEGS,
        *_named_by_message(),
        sa.Column("run_id", UUID, nullable=False),
        sa.Column("position", BIG_INT, nullable=False),
        sa.Column("tier", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("wire_format", sa.Text(), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("agent_digest", sa.Text(), nullable=False),
        sa.Column("schema_digest", sa.Text(), nullable=True),
        sa.Column("started_at", TIME, nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        *_constraints(LEGS),
        sa.ForeignKeyConstraint(
            ["agent_digest"], ["agents.digest"], name=op.f(f"fk_{LEGS}_agent_digest")
        ),
    )
    op.create_table(
        OUTCOMES,
        *_named_by_message(),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("escalated_to", sa.Text(), nullable=True),
        sa.Column("attempt_count", BIG_INT, nullable=False),
        sa.Column("duration_ms", BIG_INT, nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        *_constraints(OUTCOMES),
    )
    for table in TABLES:
        op.create_index(op.f(f"ix_{table}_session_key"), table, ["session_key"])
    op.create_index(op.f(f"ix_{LEGS}_agent_id_started_at"), LEGS, ["agent_id", "started_at"])
    op.create_index(op.f(f"ix_{LEGS}_started_at"), LEGS, ["started_at"])
    for table in TABLES:
        _guard(table)


def downgrade() -> None:
    for table in reversed(TABLES):
        op.drop_table(table)


def _named_by_message() -> tuple[sa.Column[int], ...]:
    return (
        sa.Column("message_key", BIG_INT, autoincrement=False, nullable=False),
        sa.Column("session_key", BIG_INT, nullable=False),
    )


def _constraints(table: str) -> tuple[sa.Constraint, ...]:
    return (
        sa.ForeignKeyConstraint(
            ["message_key"], ["messages.key"], name=op.f(f"fk_{table}_message_key")
        ),
        sa.ForeignKeyConstraint(
            ["session_key"], ["sessions.key"], name=op.f(f"fk_{table}_session_key")
        ),
        sa.PrimaryKeyConstraint("message_key", name=op.f(f"pk_{table}")),
    )


def _guard(table: str) -> None:
    if op.get_bind().dialect.name == "postgresql":
        for event, level in (("UPDATE", "ROW"), ("DELETE", "ROW"), ("TRUNCATE", "STATEMENT")):
            op.execute(
                f"CREATE TRIGGER {table}_no_{event.lower()} BEFORE {event} ON {table} "
                f"FOR EACH {level} EXECUTE FUNCTION tooltrail_refuse()"
            )
    else:
        for event in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER {table}_no_{event.lower()} BEFORE {event} ON {table} "
                f"BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
            )
