"""The limits of MCP's `tools/call`, and the two revisions of the protocol."""

import re
import sys
from typing import Literal, TypeAlias

from tooltrail.wire.capabilities import Capabilities

NAME = "mcp"

Revision: TypeAlias = Literal["2025-11-25", "2026-07-28"]
LATEST: Revision = "2026-07-28"

RequestId: TypeAlias = int | str
"""An id of JSON-RPC: it identifies one request on one connection, not a tool call."""

RPC = "jsonrpc"
"""The member of extras with data of the message, not of the call or the result."""

TOO_DEEP = "the message is nested deeper than a record can hold"

# All types of images and sound are allowed; each block names its type.
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
