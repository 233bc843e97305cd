"""Add which invocations of a range of keys have a trait, so that few of very many are found.

What it holds is derived from the invocations and can be made anew, so no trigger guards it.

Revision ID: 0005
Revises: 0004
"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

BIG_INT = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

TABLE = "range_traits"


def upgrade() -> None:
    op.create_table(
        TABLE,
        sa.Column("trait", BIG_INT, autoincrement=False, nullable=False),
        sa.Column("range_number", BIG_INT, autoincrement=False, nullable=False),
        sa.Column("members", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("trait", "range_number", name=op.f("pk_range_traits")),
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    op.drop_table(TABLE)
