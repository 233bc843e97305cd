"""Calls that have ended, and what the store has of them."""

from typing import Any
from uuid import UUID

from sqlalchemy import Select, select

from tooltrail.records import CommandOutput, CompleteOutput, StreamRecord, ToolCall, ToolError
from tooltrail.store import EndedCall, Store
from tooltrail.store.tables import (
    CanonicalResultRow,
    CompleteOutputRow,
    InvocationArtifactRow,
    InvocationRow,
    LedgerEntryRow,
    OmissionRow,
    OutputStreamRow,
    ReceiptRow,
    metadata,
)

CHILDREN = (
    CompleteOutputRow,
    OutputStreamRow,
    CanonicalResultRow,
    InvocationArtifactRow,
    ReceiptRow,
    OmissionRow,
)

_OWN = frozenset(
    {"key", "invocation_key", "id", "session_key", "subject_id", "previous"}
    | {"started_at", "finished_at", "happened_at", "created_at", "duration_ms"}
)
"""Columns in which two records of the same call differ: which it is, and when it was."""

BASH = ToolCall.of("Bash", {"command": "make"}, call_id="call 1")


def made(stdout: bytes = b"made\n", stderr: bytes = b"", exit_status: int = 0) -> CompleteOutput:
    """What a command gave, wholly in memory."""
    result = CommandOutput(
        command="make",
        exit_status=exit_status,
        stdout=StreamRecord.from_bytes("stdout", stdout),
        stderr=StreamRecord.from_bytes("stderr", stderr),
    )
    return CompleteOutput.success("Bash", result)


def failed(kind: str = "tool_execution_failed") -> CompleteOutput:
    return CompleteOutput.failure("Bash", ToolError(kind=kind, message="no", details={"n": 1}))


def numbered_calls(count: int, *, first: int = 0, keyed: bool = False) -> list[EndedCall]:
    """Calls that print their number."""
    return [
        EndedCall(
            ToolCall.of("Bash", {"command": f"echo {n}"}, call_id=str(n)),
            made(b"%d\n" % n),
            idempotency_key=f"call {n}" if keyed else None,
        )
        for n in range(first, first + count)
    ]


def rows_about(store: Store, invocation_id: UUID) -> dict[str, list[dict[str, Any]]]:
    """All rows of one invocation, without what makes it another one than the next."""
    key = select(InvocationRow.key).where(InvocationRow.id == invocation_id).scalar_subquery()
    queries: dict[str, Select[Any]] = {
        table.__tablename__: select(table.__table__).where(table.invocation_key == key)
        for table in CHILDREN
    }
    queries["invocations"] = select(InvocationRow.__table__).where(
        InvocationRow.id == invocation_id
    )
    queries["ledger_entries"] = (
        select(LedgerEntryRow.__table__)
        .where(LedgerEntryRow.subject_id == invocation_id)
        .order_by(LedgerEntryRow.n)
    )
    with store.database.read() as connection:
        found = {name: connection.execute(query).mappings() for name, query in queries.items()}
        rows = {name: [dict(row) for row in rows] for name, rows in found.items()}
    for row in rows["ledger_entries"]:
        del row["digest"]  # it covers the others
    return {
        name: [{column: row[column] for column in row if column not in _OWN} for row in some]
        for name, some in rows.items()
    }


def shared_rows(store: Store) -> dict[str, list[Any]]:
    """The rows that several invocations may have in common."""
    names = {"bodies": "digest", "artifacts": "path", "policies": "digest"}
    with store.database.read() as connection:
        return {
            name: sorted(connection.scalars(select(metadata.tables[name].columns[column])))
            for name, column in names.items()
        }
