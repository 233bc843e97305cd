"""The schema's history. Revisions are frozen: they import alembic and sqlalchemy, never our tables.

`HEAD_REVISION` is what this program reads and writes. A new store is made from the statements of
the head revision, without alembic; a test compares both ways.
"""

from pathlib import Path

HEAD_REVISION = "0001"
VERSION_TABLE = "tooltrail_version"
"""Our own, because other programs in the same PostgreSQL database may use alembic too."""

__all__ = ["HEAD_REVISION", "VERSION_TABLE", "statements_of"]


def statements_of(revision: str, dialect: str) -> list[str]:
    """The statements that make the schema of a revision in an empty database.

    Args:
        revision: such as `HEAD_REVISION`.
        dialect: `sqlite` or `postgresql`.
    """
    script = Path(__file__).parent / "versions" / f"{revision}.{dialect}.sql"
    # A trigger has semicolons inside, so statements stand apart by an empty line.
    return [one.rstrip(";") for one in script.read_text("utf-8").strip().split(";\n\n")]
