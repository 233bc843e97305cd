"""Short ways to record something and to read it back, for tests of the store."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, event
from tests.support.outputs import returned

from tooltrail.artifacts import StoredArtifact
from tooltrail.records import (
    CommandOutput,
    CompleteOutput,
    StreamRecord,
    ToolCall,
    ToolError,
)
from tooltrail.store import Finished, Invocation, InvocationDetail, Reader, Session, StreamView
from tooltrail.store._recording import finishing


def captured(invocation: Invocation, role: str, data: bytes) -> StreamRecord:
    """A stream that went through the spool of its invocation."""
    capture = invocation.capture(role)
    capture.write(data)
    return invocation.captured(capture.close())


def in_memory(role: str, data: bytes = b"") -> StreamRecord:
    return StreamRecord.from_bytes(role, data)


def command_output(
    invocation: Invocation, stdout: bytes = b"", stderr: bytes = b"", *, exit_status: int = 0
) -> CompleteOutput:
    """What a command of this invocation gave, captured through the spool."""
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
    return invocation.finish(
        command_output(invocation, stdout, stderr, exit_status=exit_status),
    )


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


@contextmanager
def statements_of(engine: Engine | type[Engine]) -> Generator[list[tuple[str, Any]]]:
    """The statements and parameters that an engine, or any, executes while the block lasts."""
    seen: list[tuple[str, Any]] = []

    def remember(_c: Connection, _cursor: object, sql: str, parameters: Any, *_: object) -> None:
        seen.append((sql, parameters))

    event.listen(engine, "before_cursor_execute", remember)
    try:
        yield seen
    finally:
        event.remove(engine, "before_cursor_execute", remember)


def without_housekeeping(statements: Sequence[tuple[str, Any]]) -> list[str]:
    """Only what asks or changes something: no BEGIN, no setting of the connection."""
    settings = ("BEGIN", "PRAGMA", "SELECT set_config(")
    return [sql for sql, _ in statements if not sql.startswith(settings)]


def with_frame_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have rows of artifacts carry an index of frames, as earlier versions wrote it."""

    def row(artifact: StoredArtifact, created_at: datetime) -> dict[str, object]:
        return {**finishing_row(artifact, created_at), "frame_index": b"of an earlier version"}

    finishing_row = finishing.artifact_row
    monkeypatch.setattr(finishing, "artifact_row", row)
