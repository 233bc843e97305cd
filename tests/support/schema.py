"""The tables of a store, read from the script of the head revision for SQLite.

`docs/tables.md` describes each table and column.
"""

from typing import Any, Final

from sqlalchemy import Boolean, Column, Integer, LargeBinary, MetaData, Table, Text
from sqlalchemy.types import TypeEngine

from tooltrail.migrations import HEAD_REVISION, statements_of
from tooltrail.store.engines.sqlite_library import sqlite3

Uuid16: Final = LargeBinary(16)
"""A UUID: native on PostgreSQL, 16 bytes on SQLite, in the same order."""

Moment: Final = Integer()
"""A time: timestamptz on PostgreSQL, microseconds since 1970 on SQLite."""

Sha256: Final = LargeBinary(32)
"""A SHA-256 digest in 32 bytes."""

_PLAIN_BYTES: Final = {"head", "hash", "fact", "data"}
_TYPES: Final[dict[str, TypeEngine[Any]]] = {
    "INTEGER": Integer(),
    "TEXT": Text(),
    "BOOLEAN": Boolean(),
    "BLOB": LargeBinary(),
}


def _type_of(name: str, spelled: str) -> TypeEngine[Any]:
    """The type of a column; SQLite has the same type for ids, digests and other bytes."""
    if name.endswith("_at"):
        return Moment
    if spelled == "BLOB" and name not in _PLAIN_BYTES:
        is_id = name in {"id", "branch_of"} or name.endswith("_id")
        return Uuid16 if is_id else Sha256
    return _TYPES[spelled]


def _read_tables() -> MetaData:
    read = MetaData()
    database = sqlite3.connect(":memory:")
    for statement in statements_of(HEAD_REVISION, "sqlite"):
        database.execute(statement)
    for (table,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'"):
        columns = [
            Column(name, _type_of(name, spelled), nullable=not required, primary_key=place > 0)
            for _, name, spelled, required, _, place in database.execute(
                f"PRAGMA table_info({table})"
            )
        ]
        Table(table, read, *columns)
    database.close()
    return read


metadata: Final = _read_tables()

agent_legs: Final = metadata.tables["agent_legs"]
agent_outcomes: Final = metadata.tables["agent_outcomes"]
artifacts: Final = metadata.tables["artifacts"]
bodies: Final = metadata.tables["bodies"]
invocation_artifacts: Final = metadata.tables["invocation_artifacts"]
invocations: Final = metadata.tables["invocations"]
journals: Final = metadata.tables["journals"]
ledger_entries: Final = metadata.tables["ledger_entries"]
messages: Final = metadata.tables["messages"]
omissions: Final = metadata.tables["omissions"]
open_answers: Final = metadata.tables["open_answers"]
pending_artifacts: Final = metadata.tables["pending_artifacts"]
rejected_facts: Final = metadata.tables["rejected_facts"]
sessions: Final = metadata.tables["sessions"]
store_info: Final = metadata.tables["store_info"]
streams: Final = metadata.tables["streams"]
surfaces: Final = metadata.tables["surfaces"]
tool_offers: Final = metadata.tables["tool_offers"]
tools: Final = metadata.tables["tools"]

EVIDENCE: Final = tuple(
    table
    for table in metadata.sorted_tables
    if table not in {journals, pending_artifacts, open_answers}
)
"""Tables whose rows are never deleted, and updated only as their triggers allow."""
