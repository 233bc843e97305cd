"""Index the exit statuses and sizes that few invocations have, and states with kinds of error.

Revision ID: 0004
Revises: 0003
"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

TABLE = "invocations"


def upgrade() -> None:
    drop_partial("state")
    drop_partial("error_kind")
    create_partial(["state", "error_kind"], "state <> 'success'")
    create_partial(["exit_status"], "exit_status <> 0")
    create_partial(["output_size"], "output_size >= 4096")


def downgrade() -> None:
    drop_partial("output_size")
    drop_partial("exit_status")
    drop_partial("state_error_kind")
    create_partial(["error_kind"], "error_kind IS NOT NULL")
    create_partial(["state"], "state <> 'success'")


def drop_partial(columns: str) -> None:
    op.drop_index(op.f(f"ix_{TABLE}_{columns}"), table_name=TABLE)


def create_partial(columns: list[str], condition: str) -> None:
    where = sa.text(condition)
    name = op.f(f"ix_{TABLE}_{'_'.join(columns)}")
    op.create_index(name, TABLE, columns, sqlite_where=where, postgresql_where=where)
