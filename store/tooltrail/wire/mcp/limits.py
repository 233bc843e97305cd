"""What MCP's `tools/call` can carry, and the two revisions of the protocol."""

import re
import sys
from typing import Literal, TypeAlias

from tooltrail.wire.capabilities import Capabilities

NAME = "mcp"

Revision: TypeAlias = Literal["2025-11-25", "2026-07-28"]
LATEST: Revision = "2026-07-28"

RequestId: TypeAlias = int | str
"""Of JSON-RPC: of one request on one connection, and not of a tool call."""

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"

REFUSALS = frozenset({-32700, -32600, -32601, -32602, -32020, -32021, -32022, -32042})
"""Codes of errors with which a server refuses a request before any tool runs: those of JSON-RPC for
what it cannot read, does not know or does not take, and MCP's own for headers, capabilities and
versions, and for input that has to be given first."""

# Any image and sound goes, so `result_media` would have no end; a block has its type beside it.
CAPABILITIES = Capabilities(
    needs_call_ids=False,
    call_id_length=sys.maxsize,
    call_id_scope="none",
    tool_name=re.compile(r"[A-Za-z0-9._-]{1,128}"),
    tool_name_length=128,
    arguments_are_text=False,
    takes_orphans=True,
    has_error_flag=True,
    result_media=frozenset({"image/*", "audio/*"}),
)
