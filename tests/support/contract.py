"""Shared parts of the contract tests: a long log, and access to each surface of a record."""

import json
from typing import Any, TypeVar

from tests.support.recording import in_memory, ingested_rows

from tooltrail.records import CommandOutput, CompleteOutput, StreamRecord, ToolCall
from tooltrail.records.fact_spelling import read_fact
from tooltrail.records.facts import Fact
from tooltrail.store import InvocationDetail, Store
from tooltrail.store.bodies import unpack_fact

FactT = TypeVar("FactT", bound=Fact)

BASH = ToolCall(tool_name="Bash")
ENVELOPE = ["error", "result", "status", "summary_text", "tool_name"]

LINES = b"".join(b"line %07d of a long log\n" % n for n in range(100_000))
"""2.5 MB of lines; a preview shows a small part of them."""


def printed(stdout: StreamRecord) -> CompleteOutput:
    output = CommandOutput(exit_status=0, stdout=stdout, stderr=in_memory("stderr"))
    return CompleteOutput.success("Bash", output)


def canonical_of(detail: InvocationDetail) -> dict[str, Any]:
    assert detail.canonical_json is not None
    envelope: dict[str, Any] = json.loads(detail.canonical_json)
    return envelope


def receipt_of(detail: InvocationDetail) -> str:
    assert detail.receipt is not None
    return detail.receipt.text


def record(store: Store, output: CompleteOutput) -> InvocationDetail:
    invocation = store.open_session().start(ToolCall(tool_name=output.tool_name))
    invocation.finish(output)
    return store.reader.invocation(invocation.id)


def row_count(store: Store, table: str) -> int:
    """Ingest pending facts, and return the number of rows of a table."""
    return int(ingested_rows(store, f"SELECT count(*) FROM {table}")[0][0])


def facts_of(store: Store, kind: type[FactT]) -> list[FactT]:
    """The facts of a kind in the ledger, in their order."""
    rows = ingested_rows(store, "SELECT fact FROM ledger_entries ORDER BY n")
    facts = [read_fact(unpack_fact(bytes(packed))) for (packed,) in rows]
    return [fact for fact in facts if isinstance(fact, kind)]
