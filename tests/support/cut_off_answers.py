"""Answers of models that arrived when their program was killed."""

import os
import signal
from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

from tests.support.killing import end_of, fork

from tooltrail.journal.answers import RecordedStream
from tooltrail.journal.recorder import Recorder
from tooltrail.journal.session import Session
from tooltrail.records import ToolDefinition, default_families, default_policy
from tooltrail.wire import Chunk

CHUNKS = (
    b'data: {"id":"c","model":"m","choices":[{"index":0,"delta":{"content":"Let me add."}}]}\n\n',
    (
        b'data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a",'
        b'"function":{"name":"add","arguments":"{\\"a\\":"}}]}}]}\n\n'
    ),
    (
        b'data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,'
        b'"function":{"arguments":"1}"}}]}}]}\n\n'
    ),
    b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}\n\ndata: [DONE]\n\n',
)
"""The body of an answer in the format `openai`, in chunks."""


def new_recorder(spool: Path) -> Recorder:
    """A recorder of another program; it needs no database."""
    families = default_families()
    return Recorder(spool, policy=default_policy(families), families=families)


def cut_off_answer(
    spool: Path,
    session: UUID,
    count: int,
    *,
    chunks: Sequence[Chunk] = CHUNKS,
    wire_format: str = "openai",
    tools: Sequence[ToolDefinition] = (),
) -> None:
    """Run a program that offers tools, records `count` chunks of an answer, and is then killed."""

    def record() -> None:
        joined = Session.join(new_recorder(spool), session)
        if tools:
            joined.offer_tools(tools)
        stream = iter(RecordedStream(joined, wire_format, chunks))
        for _ in range(count):
            next(stream)
        os.kill(os.getpid(), signal.SIGKILL)

    assert end_of(fork(record)) == -signal.SIGKILL
