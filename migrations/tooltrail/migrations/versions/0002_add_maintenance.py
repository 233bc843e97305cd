"""Add the account of maintenance, the frame index of artifacts, and streams stored later.

Revision ID: 0002
Revises: 0001
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
UUID = sa.LargeBinary(16).with_variant(postgresql.UUID(as_uuid=True), "postgresql")
TIME = sa.Text().with_variant(postgresql.TIMESTAMP(timezone=True), "postgresql")

TABLE = "maintenance_runs"

FROZEN_AT_START = ("key", "id", "kind", "environment", "facts", "started_at")
"""Columns of a run that neither its progress nor its end may touch."""


def upgrade() -> None:
    # Not in batch mode, which rebuilds the table on SQLite and drops its triggers.
    op.add_column("artifacts", sa.Column("frame_index", sa.LargeBinary(), nullable=True))
    op.add_column("output_streams", sa.Column("postponed_reason", sa.Text(), nullable=True))
    _create_maintenance_runs()
    if op.get_bind().dialect.name == "postgresql":
        _guard_postgresql()
    else:
        _guard_sqlite()


def downgrade() -> None:
    op.drop_table(TABLE)
    op.drop_column("output_streams", "postponed_reason")
    op.drop_column("artifacts", "frame_index")


def _create_maintenance_runs() -> None:
    op.create_table(
        TABLE,
        sa.Column("key", BIG, nullable=False),
        sa.Column("id", UUID, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("environment", sa.Text(), nullable=False),
        sa.Column("facts", sa.Text(), nullable=False),
        sa.Column("started_at", TIME, nullable=False),
        sa.Column("object_count", BIG, nullable=False),
        sa.Column("stored_bytes", BIG, nullable=False),
        sa.Column("finished_at", TIME, nullable=True),
        sa.Column("outcome", sa.Text(), nullable=True),
        sa.Column("report", sa.Text(), nullable=True),
        sa.CheckConstraint(
            "(finished_at IS NULL) = (outcome IS NULL)", name=op.f("ck_maintenance_runs_finished")
        ),
        sa.CheckConstraint(
            "kind IN ('gc', 'relocate', 'repair')", name=op.f("ck_maintenance_runs_kind")
        ),
        sa.CheckConstraint(
            "outcome IN ('finished', 'interrupted', 'failed', 'abandoned')",
            name=op.f("ck_maintenance_runs_outcome"),
        ),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_maintenance_runs")),
        sa.UniqueConstraint("id", name=op.f("uq_maintenance_runs_id")),
    )
    op.create_index(
        op.f("ix_maintenance_runs_finished_at"),
        TABLE,
        ["finished_at"],
        unique=False,
        sqlite_where=sa.text("finished_at IS NULL"),
        postgresql_where=sa.text("finished_at IS NULL"),
    )


# A condition on OLD and NEW under which an UPDATE is refused. A run counts upwards while it is
# under way, and ends once.
def _update_rule(distinct: str) -> str:
    frozen = " OR ".join(f"NEW.{c} {distinct} OLD.{c}" for c in FROZEN_AT_START)
    return (
        "OLD.finished_at IS NOT NULL "
        "OR NEW.object_count < OLD.object_count OR NEW.stored_bytes < OLD.stored_bytes "
        "OR (NEW.finished_at IS NULL AND NEW.object_count = OLD.object_count) "
        f"OR {frozen}"
    )


def _guard_sqlite() -> None:
    refuse = f"BEGIN SELECT RAISE(ABORT, '{TABLE} is append-only'); END"
    op.execute(f"CREATE TRIGGER {TABLE}_no_delete BEFORE DELETE ON {TABLE} {refuse}")
    op.execute(
        f"CREATE TRIGGER {TABLE}_no_update BEFORE UPDATE ON {TABLE} "
        f"WHEN {_update_rule('IS NOT')} {refuse}"
    )


def _guard_postgresql() -> None:
    for event, level in (("DELETE", "ROW"), ("TRUNCATE", "STATEMENT")):
        op.execute(
            f"CREATE TRIGGER {TABLE}_no_{event.lower()} BEFORE {event} ON {TABLE} "
            f"FOR EACH {level} EXECUTE FUNCTION tooltrail_refuse()"
        )
    op.execute(
        f"CREATE TRIGGER {TABLE}_no_update BEFORE UPDATE ON {TABLE} FOR EACH ROW "
        f"WHEN ({_update_rule('IS DISTINCT FROM')}) EXECUTE FUNCTION tooltrail_refuse()"
    )
