"""Id, format and artifact root of a store, and the check that this program can read the store."""

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
from tooltrail.records.frozen import Frozen
from tooltrail.store.engines.connection import Connection
from tooltrail.store.engines.failures import RESTORE
from tooltrail.store.engines.values import moment_of
from tooltrail.store.read.columns import Columns, damage_of
from tooltrail.store.read.rows import Sql, fetch

FORMAT: Final = 1
"""Format of artifacts and ledger; a change that older programs cannot read gets the next number."""

_NEEDED: Final = Columns("store_info: key id format artifact_root")


class StoreInfo(Frozen):
    """One store.

    `artifact_root` is a URL or a path. A relative path starts at the folder of the database file.
    """

    id: UUID
    format: int
    artifact_root: str
    created_at: datetime


def read_revision(connection: Connection) -> str | None:
    """The schema revision; None if the database has no store.

    Raises `DamageError` if the revision of a store is lost or damaged.
    """
    if not connection.has_table(VERSION_TABLE):
        return None
    row = connection.query_one(f"SELECT version_num FROM {VERSION_TABLE}")  # noqa: S608  a constant
    if row is None and not connection.has_table("store_info"):
        return None
    if row is None or not isinstance(row[0], str):
        problem = "has no row" if row is None else "holds no text in version_num"
        message = f"table {VERSION_TABLE} of {connection.target} {problem}; {RESTORE}"
        raise DamageError(message, path=str(connection.target))
    return row[0]


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
        where, init = str(connection.target), "tooltrail init"
        if not connection.is_sqlite:
            ((schema,),) = connection.query("SELECT current_schema()")
            where, init = f"{where}, schema {schema or '(none)'}", "tooltrail init --artifacts URL"
        raise StoreNotFoundError(f"no store in {where}; create one with `{init}`")
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
    """Read the only row of `store_info`. A damaged time of creation is 1970.

    Raises `DamageError` if the row is missing or another value is damaged, and
    `SchemaMismatchError` if the store has a newer format.
    """
    select = Sql(f"SELECT {_NEEDED.sql}, created_at FROM store_info")  # noqa: S608  a constant
    rows = fetch(connection, select)
    if not rows:
        message = f"the store in {connection.target} lacks its row in store_info; {RESTORE}"
        raise DamageError(message, path="store_info")
    values, problems = _NEEDED.read(rows[0])
    if not problems and not values["artifact_root"]:
        problems.append("artifact_root is empty")
    if not problems and values["format"] < 1:
        problems.append("format is below 1")
    if not problems and values["key"] != 1:
        problems.append("key is not 1")
    if damage := damage_of("store_info", values["key"], problems):
        raise DamageError(f"{damage}; {RESTORE}", path="store_info")
    known = values["format"]
    if known > FORMAT:
        needed = f"this program reads up to {FORMAT}; use the program that wrote it"
        message = f"the store in {connection.target} has format {known}, {needed}"
        raise SchemaMismatchError(message, found=str(known), expected=str(FORMAT))
    return StoreInfo(values["id"], known, values["artifact_root"], moment_of(rows[0][-1]))
