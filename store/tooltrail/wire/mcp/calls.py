"""Reads and writes one request to run a tool.

The protocol has no id of a tool call: the id of JSON-RPC belongs to a request on its connection,
and a call of several rounds has several requests. So no record keeps it, and no model's id is sent.
"""

from typing import TypeAlias

from tooltrail.records import InvalidRecordError, ToolCall
from tooltrail.wire._writing import Writing
from tooltrail.wire.exports import DEFAULT_EXPORT_POLICY, Export
from tooltrail.wire.mcp.asking import CAPABILITIES, NAME
from tooltrail.wire.members import JsonObject, object_in, others, spelled, text_in
from tooltrail.wire.sturdy import is_bounded

RequestId: TypeAlias = int | str
"""An id of JSON-RPC: it identifies one request on one connection, not a tool call."""

TOO_DEEP = "the message is nested deeper than a record can hold"

_REVISION: JsonObject = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
"""The members of `_meta` that a request must have; servers of the older revision ignore them."""

_PARAMS = frozenset({"name", "arguments"})


def read_call(request: JsonObject) -> ToolCall:
    """Read the call in a request of JSON-RPC.

    Raises:
        InvalidRecordError: the message is not a request to call a tool, or no record can hold it.
    """
    if not is_bounded(request):
        raise InvalidRecordError(TOO_DEEP)
    params = request.get("params")
    if request.get("method") != "tools/call":
        raise InvalidRecordError("the message is no request of tools/call")
    if not isinstance(params, dict):
        raise InvalidRecordError("the request of tools/call has no params")
    arguments = params.get("arguments")
    raw = "" if arguments is None else spelled(arguments)
    name = text_in(params.get("name")) or ""
    return ToolCall(tool_name=name, arguments_raw=raw, kind="mcp", extras=others(params, _PARAMS))


def write_call(call: ToolCall, request_id: RequestId, *, is_own: bool = False) -> Export:
    """Write the request of JSON-RPC, with the tool's own name.

    With `is_own`, the extras of the call come from `read_call` and are written. A call does not
    record where its extras come from, and a server must not get data of a model's provider.
    """
    writing = Writing(NAME, CAPABILITIES, DEFAULT_EXPORT_POLICY)
    native = call_native(writing, call, request_id, "call", name=call.tool_name, replays=is_own)
    if call.namespace is not None:
        writing.note("provider_data_dropped", "call", f"namespace {call.namespace}")
    return writing.export(native)


def call_native(
    writing: Writing,
    call: ToolCall,
    request_id: RequestId,
    where: str,
    *,
    name: str,
    replays: bool,
) -> JsonObject:
    """Write the request and report changes."""
    if call.call_id is not None:
        writing.note("id_dropped", where, "a tool call has no id here")
    # `arguments_object` reports that free text is wrapped in an object.
    if call.kind not in ("function", "mcp", "custom"):
        writing.note("provider_data_dropped", where, f"the call is of the kind {call.kind}")
    native: JsonObject = {"name": name}
    if call.kind == "custom" or call.arguments_raw.strip():
        native["arguments"] = writing.arguments_object(call, where)
    extras = dict(call.extras)
    meta = object_in(extras.pop("_meta", None)) if replays else {}
    native["_meta"] = {**_REVISION, **meta}
    params = writing.with_extras(native, extras, where, replays=replays)
    return {"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": params}
