"""Answers of models whose program was killed while they came."""

import os
import signal
from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

from tests.support.killing import end_of

from tooltrail.store import open_store
from tooltrail.store.traffic import RecordedStream
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
"""An answer in the format `openai`, as its body comes."""


def cut_off_answer(
    database: str,
    session: UUID,
    count: int,
    spool: Path | None = None,
    *,
    chunks: Sequence[Chunk] = CHUNKS,
    wire_format: str = "openai",
) -> None:
    """Have a program record this many chunks of an answer, and be killed then."""
    child = os.fork()
    if child == 0:
        with open_store(database, spool=spool) as store:
            stream = iter(RecordedStream(store.join_session(session), wire_format, chunks))
            for _ in range(count):
                next(stream)
            os.kill(os.getpid(), signal.SIGKILL)
    assert end_of(child) == -signal.SIGKILL
