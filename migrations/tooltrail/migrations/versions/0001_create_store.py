"""Create every table, the triggers that keep the evidence append-only, and the views.

Revision ID: 0001
Revises: none
"""

from alembic import op

from tooltrail.migrations import statements_of

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Run the statements of this revision."""
    connection = op.get_bind()
    dialect = connection.dialect.name
    for statement in statements_of(revision, dialect):
        # psycopg takes a single % for a parameter.
        escaped = statement.replace("%", "%%") if dialect == "postgresql" else statement
        connection.exec_driver_sql(escaped)


def downgrade() -> None:
    """Refuse: below the first revision there is no store.

    Raises:
        NotImplementedError: always.
    """
    raise NotImplementedError("0001 is the first revision")
