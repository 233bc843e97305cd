"""Add the keys under which something is recorded once, however often it is asked for.

Revision ID: 0003
Revises: 0002
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

UUID = sa.LargeBinary(16).with_variant(postgresql.UUID(as_uuid=True), "postgresql")
TIME = sa.Text().with_variant(postgresql.TIMESTAMP(timezone=True), "postgresql")

TABLE = "idempotency_keys"


def upgrade() -> None:
    op.create_table(
        TABLE,
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("subject_id", UUID, nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.CheckConstraint(
            "kind IN ('session', 'invocation')", name=op.f("ck_idempotency_keys_kind")
        ),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_idempotency_keys")),
        sqlite_with_rowid=False,
    )
    if op.get_bind().dialect.name == "postgresql":
        for event, level in (("UPDATE", "ROW"), ("DELETE", "ROW"), ("TRUNCATE", "STATEMENT")):
            op.execute(
                f"CREATE TRIGGER {TABLE}_no_{event.lower()} BEFORE {event} ON {TABLE} "
                f"FOR EACH {level} EXECUTE FUNCTION tooltrail_refuse()"
            )
    else:
        for event in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER {TABLE}_no_{event.lower()} BEFORE {event} ON {TABLE} "
                f"BEGIN SELECT RAISE(ABORT, '{TABLE} is append-only'); END"
            )


def downgrade() -> None:
    op.drop_table(TABLE)
