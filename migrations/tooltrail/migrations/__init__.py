"""The schema's history. Revisions are frozen: they import alembic and sqlalchemy, never our tables.

`HEAD_REVISION` is what this program reads and writes. It is a constant so that opening a store does
not have to import alembic; a test compares it with the revisions themselves.
"""

HEAD_REVISION = "0007"
VERSION_TABLE = "tooltrail_version"
"""Our own, because other programs in the same PostgreSQL database may use alembic too."""

__all__ = ["HEAD_REVISION", "VERSION_TABLE"]
