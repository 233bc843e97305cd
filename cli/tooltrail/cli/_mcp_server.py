"""The tools of `tooltrail mcp`, with which an agent reads its own record.

An answer has at most `MAX_BYTES` of the requested text. A second text says which part this is and
how to read on; `show_call` needs none. An error is one sentence. Each call of a tool opens the
store again, so it finds every fact that was recorded before.
"""

import asyncio
from codecs import getincrementaldecoder
from contextlib import AbstractContextManager, nullcontext
from typing import Annotated, Any

from pydantic import Field, NonNegativeInt, PositiveInt, ValidationError
from pydantic_core import to_jsonable_python

from tooltrail.agents.searching import PATTERN_SYNTAX, run_search
from tooltrail.artifacts import ArtifactReader
from tooltrail.cli._artifacts import open_known
from tooltrail.cli._location import Location
from tooltrail.cli._output import counted
from tooltrail.cli._surfaces import as_record
from tooltrail.cli._texts import reader_of, streams_of
from tooltrail.cli._version import VERSION
from tooltrail.records import NotFoundError, TooltrailError, UnavailableError
from tooltrail.records.canonical_json import encode
from tooltrail.records.readable_json import indent_json
from tooltrail.records.shortened_json import shorten_json
from tooltrail.store import InvocationDetail, InvocationFilter, Store
from tooltrail.store.filters import FAILED, OUTCOMES
from tooltrail.transcripts import FORMATS, load_transcript

try:
    from mcp.server.mcpserver import Context, MCPServer
    from mcp.server.mcpserver.exceptions import ToolError
    from mcp.server.mcpserver.tools import Tool
    from mcp_types import CallToolResult, InputRequiredResult, ToolAnnotations
except ModuleNotFoundError as error:
    raise UnavailableError(
        "the MCP server needs mcp, which is not installed: pip install 'tooltrail[mcp]'"
    ) from error

MAX_BYTES = 32 << 10
"""Most bytes of UTF-8 in the first text of an answer."""

Outcome = Annotated[str | None, Field(json_schema_extra={"enum": ["failed", *OUTCOMES, None]})]
Text = Annotated[str, Field(min_length=1)]
Artifact = Annotated[str | None, Field(description="Path or digest of an artifact.")]
Session = Annotated[str | None, Field(description="Id, its beginning or end; name; @last.")]
Call = Annotated[
    Text, Field(description="Id, its beginning or end; SESSION#SEQ; @last; @last:TOOL; @running.")
]
Part = Annotated[str | None, Field(description="Stream (default: first), or member in show_call.")]


class RecordTools:
    """The tools, as methods. Safe for threads."""

    def __init__(self, location: Location) -> None:
        self._location = location

    def list_calls(
        self,
        *,
        session: Session = None,
        tool: str | None = None,
        outcome: Outcome = None,
        limit: Annotated[int, Field(ge=1, le=100)] = 20,
        cursor: Annotated[str | None, Field(description="From the note of a page.")] = None,
    ) -> list[str]:
        """List recorded tool calls, the newest first: one JSON object per line."""
        cursor = cursor or None
        with self._location.open() as store:
            reader = store.reader
            where = InvocationFilter(
                sessions=(reader.session(session).id,) if session else (),
                tools=(tool,) if tool else (),
                outcomes=FAILED if outcome == "failed" else (outcome,) if outcome else (),
            )
            page = reader.invocations(where, limit=limit, cursor=cursor)
            found = (to_jsonable_python(one.as_dict()) for one in page.items)
            rows = (shorten_json(one, MAX_BYTES // 8) for one in found)
            shown, _ = _cut(b"".join(encode(row.value) + b"\n" for row in rows))
            if (count := shown.count("\n")) < len(page.items):  # for the cursor of what is shown
                page = reader.invocations(where, limit=count, cursor=cursor)
            note = f"{len(page.items)} of {counted(reader.count_invocations(where), 'call')}"
        more = f"; read on with cursor={page.next_cursor}" if page.next_cursor else ""
        return [shown, note + more]

    def show_call(self, *, call: Call = "@last") -> list[str]:
        """Show one call with all its members. `read` returns a text that is shortened here."""
        with self._location.open() as store:
            record = _record_of(store.reader.invocation(call))
        # A character has at most four bytes.
        return [encode(shorten_json(record, MAX_BYTES // 4).value).decode()]

    def read(
        self,
        *,
        artifact: Artifact = None,
        session: Session = None,
        call: Call = "@last",
        part: Part = None,
        start_line: Annotated[int | None, Field(description="From 1; -1 is the last line.")] = None,
        end_line: Annotated[PositiveInt | None, Field(description="Last line, included.")] = None,
        offset: Annotated[NonNegativeInt, Field(description="First byte, from 0.")] = 0,
        length: Annotated[PositiveInt | None, Field(description="Number of bytes.")] = None,
    ) -> list[str]:
        """Read an artifact, the transcript of a session or a part of a call, by lines or bytes."""
        with self._location.open() as store, _text(store, artifact, session, call, part) as text:
            if start_line is not None:
                first = start_line if start_line >= 0 else max(text.line_count + 1 + start_line, 1)
                # An agent that reads on may repeat `start_line`, and must not read a part again.
                offset = max(offset, text.line_offset(first))
            end = text.size if end_line is None else text.line_offset(end_line + 1)
            stop = end if length is None else min(end, offset + length)
            whole = f"{counted(text.size, 'byte')}, {counted(text.line_count, 'line')}"
            if offset >= stop and text.size:
                raise NotFoundError(f"the range is empty; the text has {whole}")
            blocks = text.iter_bytes(offset, min(stop, offset + MAX_BYTES + 1))
            shown, count = _cut(b"".join(blocks))
        more = f"; read on with offset={offset + count}" if offset + count < text.size else ""
        return [shown, f"offset {offset:,} to {offset + count:,} of {whole}{more}"]

    def grep(
        self,
        *,
        pattern: Annotated[Text, Field(max_length=10_000, description=PATTERN_SYNTAX)],
        artifact: Artifact = None,
        session: Session = None,
        call: Call = "@last",
        part: Part = None,
        literal: Annotated[bool, Field(description="Search for plain text.")] = False,
        ignore_case: bool = False,
        start_line: Annotated[PositiveInt, Field(description="First line to search.")] = 1,
    ) -> list[str]:
        """Find lines of an artifact, a transcript or a part of a call; prints `LINE:TEXT`."""
        request = {"pattern": pattern, "literal": literal, "ignore_case": ignore_case}
        with self._location.open() as store, _text(store, artifact, session, call, part) as text:
            blocks = text.iter_bytes(text.line_offset(start_line))
            found = asyncio.run(run_search({**request, "first_line": start_line}, blocks))
        *printed, _ = (found.matches.content or b"").split(b"\n")
        shown, _ = _cut(b"".join(b"%s\n" % line for line in printed[: found.returned]))
        *lines, _ = shown.split("\n")
        note = f"{len(lines)} of {counted(found.match_count, 'matching line')}"
        note += "".join(f" {reason.decode()}" for reason in printed[found.returned :])
        if len(lines) < found.match_count:
            note += f"; read on with start_line={int(lines[-1].partition(':')[0]) + 1}"
        return [shown, note]


class _Server(MCPServer[None]):
    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[None, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool. Each error is one sentence, also of arguments that do not fit its schema."""
        known = {one.name: one.input_schema["properties"] for one in await self.list_tools()}
        if unknown := [one for one in arguments if one not in known.get(name, arguments)]:
            raise ToolError(
                f"{name} has no argument {unknown[0]!r}; it has {', '.join(known[name])}"
            )
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            wrong = error.__cause__
            if not isinstance(wrong, TooltrailError | OSError | ValueError):
                raise
            each = [str(wrong)]
            if isinstance(wrong, ValidationError):
                each = [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in wrong.errors()]
            raise ToolError(f"Error executing tool {name}: {'; '.join(each)}") from wrong


def serve(location: Location) -> None:
    """Answer MCP requests on standard input until it ends."""
    tools = RecordTools(location)
    about = "Every tool call with its complete output. Read what a receipt left out."
    offered = list[Tool]()
    for method in (tools.list_calls, tools.show_call, tools.read, tools.grep):
        hints = ToolAnnotations(read_only_hint=True)
        tool = Tool.from_function(method, annotations=hints, structured_output=False)
        tool.parameters["additionalProperties"] = False
        offered.append(tool)
    _Server(
        "tooltrail", version=VERSION, instructions=about, log_level="WARNING", tools=offered
    ).run()


def _text(
    store: Store, artifact: str | None, session: str | None, call: str, part: str | None
) -> AbstractContextManager[ArtifactReader]:
    """A reader of the text that the arguments of a tool name."""
    if artifact:
        return nullcontext(open_known(store, artifact))
    if session:
        return _in_memory("".join(FORMATS["text"](load_transcript(store.reader, session))))
    detail = store.reader.invocation(call)
    roles = [one.role for one in streams_of(store, detail, None)]
    name = part or next(iter(roles), "complete_output")
    if detail.stream(name) or name in roles:
        (stream,) = streams_of(store, detail, name)
        return stream.reader()
    record = _record_of(detail)
    if not (member := record.get(name)):
        parts = ", ".join((*roles, *(one for one in record if record[one])))
        raise NotFoundError(f"call {call} ({detail.summary.state}) has no {name}; it has {parts}")
    return _in_memory(member if isinstance(member, str) else indent_json(encode(member).decode()))


def _record_of(detail: InvocationDetail) -> Any:
    """The members of a call, as JSON values; the receipt is its text."""
    receipt = detail.receipt and detail.receipt.text
    return to_jsonable_python({**as_record(detail), "receipt": receipt})


def _in_memory(text: str) -> AbstractContextManager[ArtifactReader]:
    return reader_of([text.encode("utf-8", "backslashreplace")])  # it may have lone surrogates


def _cut(data: bytes) -> tuple[str, int]:
    """The text of the first bytes that fit into an answer, and the number of these bytes.

    Ends after a line if possible, and never inside a character.
    """
    shown, piece = "", b""
    for room in (MAX_BYTES, MAX_BYTES // 4):  # a byte that is not UTF-8 is shown as 4 characters
        piece = data[:room]
        if room < len(data):
            piece = piece[: piece.rfind(b"\n") + 1] or piece
        decoder = getincrementaldecoder("utf-8")("backslashreplace")
        shown = decoder.decode(piece, final=len(piece) == len(data))
        piece = piece[: len(piece) - len(decoder.getstate()[0])]
        if len(shown.encode()) <= MAX_BYTES:
            break
    return shown, len(piece)
