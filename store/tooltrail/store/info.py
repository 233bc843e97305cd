"""What a store knows about itself."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection, select

from tooltrail.records import DamageError, StoreNotFoundError
from tooltrail.store.tables import StoreInfoRow

FORMAT = 1
"""The layout of artifacts and ledger; raised when an older program could not read it."""


@dataclass(frozen=True, slots=True)
class StoreInfo:
    """One store.

    Attributes:
        id: made when the store was created.
        format: see `FORMAT`.
        artifact_root: a URL, or a path; a relative one starts at the folder of the database file.
        created_at: aware UTC.
    """

    id: UUID
    format: int
    artifact_root: str
    created_at: datetime


def read_info(connection: Connection) -> StoreInfo:
    """Read the one row.

    Raises:
        StoreNotFoundError: the schema is there, the row is not.
        DamageError: the row does not hold what was stored.
    """
    row = connection.execute(
        select(
            StoreInfoRow.id,
            StoreInfoRow.format,
            StoreInfoRow.artifact_root,
            StoreInfoRow.created_at,
        )
    ).one_or_none()
    if row is None:
        raise StoreNotFoundError("the store was never completely created; create it again")
    facts: tuple[object, object] = (row.format, row.artifact_root)
    if not (isinstance(facts[0], int) and isinstance(facts[1], str)):
        raise DamageError("the store's own row is damaged", path=StoreInfoRow.__tablename__)
    return StoreInfo(row.id, row.format, row.artifact_root, row.created_at)
