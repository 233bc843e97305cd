"""Id, format and artifact root of a store, and the check that this program can read the store."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from tooltrail.migrations import HEAD_REVISION, VERSION_TABLE
from tooltrail.records.errors import (
    DamageError,
    SchemaMismatchError,
    StoreNotFoundError,
    TooltrailError,
)
from tooltrail.store.engines.connection import Connection
from tooltrail.store.engines.values import moment_of, uuid_from

FORMAT: Final = 1
"""Format of artifacts and ledger; a change that older programs cannot read gets the next number."""


@dataclass(frozen=True, slots=True)
class StoreInfo:
    """One store.

    `artifact_root` is a URL or a path. A relative path starts at the folder of the database file.
    """

    id: UUID
    format: int
    artifact_root: str
    created_at: datetime


def read_revision(connection: Connection) -> str | None:
    """The schema revision; None if the database has no store."""
    if not connection.has_table(VERSION_TABLE):
        return None
    row = connection.query_one(f"SELECT version_num FROM {VERSION_TABLE}")  # noqa: S608  a constant
    return None if row is None else str(row[0])


def refuse_other(connection: Connection, refusal: type[TooltrailError]) -> None:
    """Raise an error of the type `refusal` if an SQLite file has tables and no store."""
    if not connection.is_sqlite or connection.has_table(VERSION_TABLE):
        return
    if connection.query("SELECT 1 FROM sqlite_master LIMIT 1"):
        raise refusal(f"no store in {connection.target}: another application uses the file")


def required_revision(connection: Connection) -> str:
    """The schema revision of a store; raises `StoreNotFoundError` if there is none."""
    found = read_revision(connection)
    if found is None:
        refuse_other(connection, StoreNotFoundError)
        init = "tooltrail init" if connection.is_sqlite else "tooltrail init --artifacts URL"
        raise StoreNotFoundError(f"no store in {connection.target}; create one with `{init}`")
    return found


def check_revision(connection: Connection) -> None:
    """Raise `SchemaMismatchError` unless the store is at head. See also `required_revision`."""
    found = required_revision(connection)
    if found != HEAD_REVISION:
        needed = f"this program needs {HEAD_REVISION}"
        is_newer = found > HEAD_REVISION
        way_out = "use the program that wrote it" if is_newer else "run `tooltrail db upgrade`"
        message = f"the store in {connection.target} is at revision {found}, {needed}; {way_out}"
        raise SchemaMismatchError(message, found=found, expected=HEAD_REVISION)


def read_info(connection: Connection) -> StoreInfo:
    """Read the only row of `store_info`.

    Raises `StoreNotFoundError` if the row is missing, `DamageError` if a value of it is damaged,
    and `SchemaMismatchError` if the store has a newer format.
    """
    row = connection.query_one("SELECT id, format, artifact_root, created_at FROM store_info")
    if row is None:
        raise StoreNotFoundError(f"the store in {connection.target} lacks its row in store_info")
    store_id, known, root, created_at = row
    if not (isinstance(known, int) and isinstance(root, str)):
        raise DamageError("the row of the store is damaged", path="store_info")
    if known > FORMAT:
        needed = f"this program reads up to {FORMAT}; use the program that wrote it"
        message = f"the store in {connection.target} has format {known}, {needed}"
        raise SchemaMismatchError(message, found=str(known), expected=str(FORMAT))
    return StoreInfo(uuid_from(store_id), known, root, moment_of(created_at))
