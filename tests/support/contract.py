"""What the contract tests share: one long log, and a look at each surface of a record."""

import json
from typing import Any

from sqlalchemy import func, select
from tests.support.recording import (
    in_memory,
)

from tooltrail.records import (
    CommandOutput,
    CompleteOutput,
    StreamRecord,
    ToolCall,
)
from tooltrail.store import InvocationDetail, Store

BASH = ToolCall(tool_name="Bash")
ENVELOPE = ["error", "result", "status", "summary_text", "tool_name"]

LINES = b"".join(b"line %07d of a long log\n" % n for n in range(100_000))
"""2.5 MB, of which a preview shows a small part."""


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


def rows_of(store: Store, table: type[Any]) -> int:
    with store.database.read() as connection:
        count = connection.scalar(select(func.count()).select_from(table))
    return count or 0
