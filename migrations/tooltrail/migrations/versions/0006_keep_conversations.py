"""Add messages as a whole, which message asked for which invocation, and which tools it offers.

In tables of their own: a message that is text alone, and a call that no message asked for, take no
room for it, and nothing of what is there is rewritten.

Revision ID: 0006
Revises: 0005
"""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

BIG_INT = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

DOCUMENTS = "message_documents"
ORIGINS = "call_origins"
OFFERS = "tool_offers"
TABLES = (DOCUMENTS, ORIGINS, OFFERS)


def upgrade() -> None:
    op.create_table(
        DOCUMENTS,
        sa.Column("message_key", BIG_INT, autoincrement=False, nullable=False),
        sa.Column("wire_format", sa.Text(), nullable=True),
        sa.Column("document_digest", sa.Text(), nullable=False),
        sa.Column("payload_digest", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["message_key"], ["messages.key"], name=op.f(f"fk_{DOCUMENTS}_message_key")
        ),
        sa.ForeignKeyConstraint(
            ["document_digest"], ["bodies.digest"], name=op.f(f"fk_{DOCUMENTS}_document_digest")
        ),
        sa.ForeignKeyConstraint(
            ["payload_digest"], ["bodies.digest"], name=op.f(f"fk_{DOCUMENTS}_payload_digest")
        ),
        sa.PrimaryKeyConstraint("message_key", name=op.f(f"pk_{DOCUMENTS}")),
    )
    op.create_table(
        ORIGINS,
        sa.Column("invocation_key", BIG_INT, autoincrement=False, nullable=False),
        sa.Column("message_key", BIG_INT, nullable=False),
        sa.Column("position", BIG_INT, nullable=False),
        sa.ForeignKeyConstraint(
            ["invocation_key"], ["invocations.key"], name=op.f(f"fk_{ORIGINS}_invocation_key")
        ),
        sa.ForeignKeyConstraint(
            ["message_key"], ["messages.key"], name=op.f(f"fk_{ORIGINS}_message_key")
        ),
        sa.PrimaryKeyConstraint("invocation_key", name=op.f(f"pk_{ORIGINS}")),
    )
    op.create_table(
        OFFERS,
        sa.Column("message_key", BIG_INT, autoincrement=False, nullable=False),
        sa.Column("position", BIG_INT, autoincrement=False, nullable=False),
        sa.Column("tool_digest", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["message_key"], ["messages.key"], name=op.f(f"fk_{OFFERS}_message_key")
        ),
        sa.ForeignKeyConstraint(
            ["tool_digest"], ["tools.digest"], name=op.f(f"fk_{OFFERS}_tool_digest")
        ),
        sa.PrimaryKeyConstraint("message_key", "position", name=op.f(f"pk_{OFFERS}")),
    )
    for table in TABLES:
        _guard(table)


def downgrade() -> None:
    for table in reversed(TABLES):
        op.drop_table(table)


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
