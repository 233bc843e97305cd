"""Reads and writes one request to run a tool.

The protocol has no id of a tool call: the id of JSON-RPC belongs to the request, and a call of
several rounds has several requests. The request's id is in the extras; a model's id is not sent.
"""

from tooltrail.records import InvalidRecordError, ToolCall
from tooltrail.wire._writing import Writing
from tooltrail.wire.exports import DEFAULT_EXPORT_POLICY, Export
from tooltrail.wire.mcp.limits import (
    CAPABILITIES,
    LATEST,
    NAME,
    RPC,
    TOO_DEEP,
    RequestId,
    Revision,
)
from tooltrail.wire.members import JsonObject, object_in, others, spelled, text_in
from tooltrail.wire.sturdy import is_bounded

VERSION = "io.modelcontextprotocol/protocolVersion"
_ABILITIES = "io.modelcontextprotocol/clientCapabilities"
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
    extras = others(params, _PARAMS)
    if request.get("id") is not None:
        extras[RPC] = {"id": request["id"]}
    arguments = params.get("arguments")
    raw = "" if arguments is None else spelled(arguments)
    name = text_in(params.get("name")) or ""
    return ToolCall(tool_name=name, arguments_raw=raw, kind="mcp", extras=extras)


def write_call(
    call: ToolCall,
    request_id: RequestId,
    *,
    revision: Revision = LATEST,
    is_own: bool = False,
) -> Export:
    """Write the request of JSON-RPC, with the tool's own name.

    With `is_own`, the extras of the call come from `read_call` and are written. A call does not
    record where its extras come from, and a server must not get data of a model's provider.
    """
    writing = Writing(NAME, CAPABILITIES, DEFAULT_EXPORT_POLICY)
    native = call_native(
        writing, call, request_id, "call", name=call.tool_name, revision=revision, replays=is_own
    )
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
    revision: Revision,
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
    extras = {name: member for name, member in call.extras.items() if name != RPC}
    if revision == LATEST:
        meta = object_in(extras.pop("_meta", None)) if replays else {}
        native["_meta"] = {VERSION: revision, _ABILITIES: {}, **meta}
    params = writing.with_extras(native, extras, where, replays=replays)
    return {"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": params}
