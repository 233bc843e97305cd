"""`artifact:read` and `artifact:grep`: read and search the long outputs of one's own session."""

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID

from pydantic import JsonValue

from tooltrail.agents.definitions import LINES, define
from tooltrail.agents.searching import PATTERN, run_search
from tooltrail.agents.tools import AgentTool
from tooltrail.artifacts import ArtifactReader
from tooltrail.records import (
    FileReadOutput,
    LineRange,
    NotFoundError,
    SearchOutput,
    StreamRecord,
)
from tooltrail.store import ArtifactView, Store

MAX_SLICE = 256 << 10
"""Bytes that one call reads at most. A receipt shows about 20,000 characters."""

_PATH: dict[str, JsonValue] = {
    "type": "string",
    "minLength": 1,
    "description": "Path of the artifact, from a result.",
}

READ = define(
    "artifact:read",
    f"Read an artifact of this session, or some of its lines or bytes: at most "
    f"{MAX_SLICE >> 10} KiB. An artifact is an output that was too long to be shown.",
    ["path"],
    path=_PATH,
    **LINES,
    offset={"type": "integer", "minimum": 0, "description": "First byte, from 0."},
    length={"type": "integer", "minimum": 1, "description": "Number of bytes from `offset` on."},
)

GREP = define(
    "artifact:grep",
    "Search an artifact of this session for lines that match a pattern. Results are lines "
    "`LINE:TEXT`.",
    ["pattern", "path"],
    path=_PATH,
    **PATTERN,
)

NAMES = frozenset({READ.name, GREP.name})
"""The names of the tools."""


@dataclass(frozen=True, slots=True)
class SessionArtifacts:
    """The artifacts of one session, and of no other. Safe to share between threads.

    Attributes:
        store: the store of the session.
        session: id of the session.
    """

    store: Store
    session: UUID

    def find(self, path: str) -> ArtifactView:
        """The artifact with this path, if a call of the session refers to it.

        Raises:
            NotFoundError: no call of the session does, or the sink does not have the artifact yet.
        """
        for view in self.store.reader.artifacts(session=self.session, beginning=path):
            if view.path == path:
                return view
        raise NotFoundError(
            f"this session has no stored artifact {path}; a new one may still wait for the sink"
        )

    def reader(self, path: str) -> ArtifactReader:
        """A reader of parts of an artifact; raises what `find` raises."""
        return self.store.archive.reader(path, size=self.find(path).size)


def artifact_tools(artifacts: SessionArtifacts) -> dict[str, AgentTool]:
    """The tools that read the artifacts of a session, by name."""
    tools = (
        AgentTool(READ, partial(_read, artifacts), has_side_effects=False, family="file_read"),
        AgentTool(GREP, partial(_grep, artifacts), has_side_effects=False, family="search"),
    )
    return {tool.name: tool for tool in tools}


def _read(artifacts: SessionArtifacts, arguments: dict[str, Any]) -> FileReadOutput:
    # JSON Schema takes 10.0 for an integer.
    asked = {name: int(arguments[name]) for name in arguments.keys() - {"path"}}
    by_lines = asked.keys() & {"start_line", "end_line"}
    by_bytes = asked.keys() & {"offset", "length"}
    if by_lines and by_bytes:
        raise ValueError("lines and bytes exclude each other")
    reader = artifacts.reader(arguments["path"])
    if by_lines:
        content, lines = _lines(reader, asked.get("start_line", 1), asked.get("end_line"))
    else:
        content, lines = _bytes(reader, asked.get("offset", 0), asked.get("length")), None
    stream = StreamRecord.from_bytes("content", content)
    return FileReadOutput(path=reader.path, content=stream, line_range=lines)


def _lines(reader: ArtifactReader, start: int, end: int | None) -> tuple[bytes, LineRange]:
    last = reader.line_count if end is None else min(end, reader.line_count)
    if last < start:
        raise ValueError(f"there are no lines {start} to {last} in {_shape(reader)}")
    content = b""
    for block in reader.iter_line_bytes(start, last):
        content += block
        _check_size(len(content), reader)
    return content, LineRange(start=start, end=last)


def _bytes(reader: ArtifactReader, offset: int, length: int | None) -> bytes:
    if offset >= reader.size > 0:
        raise ValueError(f"there is no byte {offset} in {_shape(reader)}")
    stop = reader.size if length is None else min(offset + length, reader.size)
    _check_size(stop - offset, reader)
    return reader.read_bytes(offset, stop)


def _check_size(size: int, reader: ArtifactReader) -> None:
    if size > MAX_SLICE:
        raise ValueError(
            f"more than {MAX_SLICE >> 10} KiB at once; read fewer lines or bytes of "
            f"{_shape(reader)}, or search it"
        )


def _shape(reader: ArtifactReader) -> str:
    return f"{reader.path}, which has {reader.line_count:,} lines and {reader.size:,} bytes"


async def _grep(artifacts: SessionArtifacts, arguments: dict[str, Any]) -> SearchOutput:
    request = {name: arguments[name] for name in arguments.keys() & PATTERN.keys()}
    reader = await asyncio.to_thread(artifacts.reader, arguments["path"])
    return await run_search(request, reader.iter_bytes())
