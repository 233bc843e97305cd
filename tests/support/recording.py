"""Short ways to record and to read back, for tests of the store."""

from typing import Any
from uuid import UUID

from tests.support.keeping import rows
from tests.support.outputs import returned

from tooltrail.journal.clock import new_id, now
from tooltrail.journal.invocation import Finished, Invocation
from tooltrail.journal.log import Entry
from tooltrail.journal.session import Session
from tooltrail.records import CommandOutput, CompleteOutput, StreamRecord, ToolCall, ToolError
from tooltrail.records.digests import digest_of
from tooltrail.records.facts import MessageAdded
from tooltrail.store import Store
from tooltrail.store.read.reader import Reader
from tooltrail.store.views import InvocationDetail, StreamView


def say(session: Session, role: str, text: str) -> UUID:
    """Record a message with only a text, in any role; return its id."""
    message_id, data = new_id(), text.encode("utf-8", "surrogatepass")
    fact = MessageAdded(
        session=session.id, id=message_id, at=now(), role=role, text=digest_of(data)
    )
    session.append([Entry(fact, [data])])
    return message_id


def captured(invocation: Invocation, role: str, data: bytes) -> StreamRecord:
    """A stream that was captured through the spool of its invocation."""
    capture = invocation.capture(role)
    capture.write(data)
    return invocation.captured(capture.close())


def in_memory(role: str, data: bytes = b"") -> StreamRecord:
    return StreamRecord.from_bytes(role, data)


def command_output(
    invocation: Invocation, stdout: bytes = b"", stderr: bytes = b"", *, exit_status: int = 0
) -> CompleteOutput:
    """The output of a command of this invocation, captured through the spool."""
    result = CommandOutput(
        command="make",
        exit_status=exit_status,
        stdout=captured(invocation, "stdout", stdout),
        stderr=captured(invocation, "stderr", stderr),
    )
    return CompleteOutput.success(invocation.call.tool_name, result)


def run_command(
    session: Session,
    stdout: bytes = b"",
    stderr: bytes = b"",
    *,
    exit_status: int = 0,
    call: ToolCall | None = None,
) -> Finished:
    invocation = session.start(call or ToolCall(tool_name="Bash"))
    return invocation.finish(command_output(invocation, stdout, stderr, exit_status=exit_status))


def run_tool(session: Session, *content: str | bytes, tool: str = "Read") -> Finished:
    return session.start(ToolCall(tool_name=tool)).finish(returned(tool, *content))


def fail_tool(
    session: Session, kind: str = "tool_execution_failed", tool: str = "Read"
) -> Finished:
    error = ToolError(kind=kind, message="it did not work")
    return session.start(ToolCall(tool_name=tool)).finish(CompleteOutput.failure(tool, error))


def stream_of(detail: InvocationDetail, role: str) -> StreamView:
    stream = detail.stream(role)
    assert stream is not None
    return stream


def content_of(reader: Reader, stream: StreamView) -> bytes:
    with reader.open_stream(stream) as source:
        return source.read()


def ingested_rows(store: Store, sql: str) -> list[tuple[Any, ...]]:
    """Ingest pending facts, and return all rows of a query."""
    store.ingest()
    return rows(store, sql)
