"""Reads and writes a server's answer to `tools/call`: a result, or a notice that it is pending.

A result with `isError` came from the tool. An `error` of JSON-RPC did not; its status is `denied`
if the server refused the request, and `interrupted` if it is unknown whether the tool ran. A server
that asks for input or returns a task has not answered the call.

A result keeps all of its blocks and its structured value, and other members (annotations, `_meta`,
a link's title and size) as extras. Blocks of unknown types are kept unchanged.
"""

from dataclasses import dataclass

from pydantic import JsonValue

from tooltrail.records import (
    ContentBlock,
    InvalidRecordError,
    MediaBlock,
    ProviderBlock,
    ResourceBlock,
    ResultBlock,
    ResultStatus,
    TextBlock,
)
from tooltrail.wire._writing import Writing
from tooltrail.wire.exports import DEFAULT_EXPORT_POLICY, Export
from tooltrail.wire.mcp.asking import CAPABILITIES, NAME
from tooltrail.wire.mcp.calls import TOO_DEEP, RequestId
from tooltrail.wire.media_uris import decoded
from tooltrail.wire.members import JsonObject, list_in, object_in, others, text_in
from tooltrail.wire.sturdy import is_bounded

_RPC = "jsonrpc"
"""The member of a result's extras with what came beside it: the error, or the task that ended."""

_REFUSALS = frozenset({-32700, -32600, -32601, -32602, -32020, -32021, -32022, -32042})
"""Codes of errors with which a server refuses a request before any tool runs: those of JSON-RPC for
unreadable, unknown or unacceptable requests, and MCP's own for headers, capabilities and versions,
and for input that is required first."""

_RESULT = frozenset({"content", "structuredContent", "isError", "resultType"})
_TASK_ENDS = frozenset({"result", "error"})
_TEXT = frozenset({"type", "text"})
_MEDIA = frozenset({"type", "data", "mimeType"})
_LINK = frozenset({"type", "uri", "name", "mimeType"})
_RESOURCE = frozenset({"type", "resource"})
_CONTENTS = frozenset({"uri", "mimeType", "text", "blob"})


@dataclass(frozen=True, slots=True)
class Pending:
    """A round before the result: the server asks for input, or returns a task.

    Attributes:
        task_id: the id with which the client asks for the result; None if the server asks for
            input.
        state: the state that the client returns with the input; None if there is none.
    """

    task_id: str | None = None
    state: str | None = None


def read_result(response: JsonObject) -> ResultBlock:
    """Read the result in a response of JSON-RPC, or a `CallToolResult` by itself.

    Raises:
        InvalidRecordError: the response has no result, or no result yet.
    """
    outcome = read_outcome(response)
    if isinstance(outcome, ResultBlock):
        return outcome
    note = "no result" if outcome is None else "no result yet"
    raise InvalidRecordError(f"the response has {note}")


def read_outcome(response: JsonObject) -> ResultBlock | Pending | None:
    """Read a server's answer to a call; None if it answers another kind of request.

    Accepts a response of JSON-RPC, or the result in it.

    Raises:
        InvalidRecordError: no record can hold the response.
    """
    if not is_bounded(response):
        raise InvalidRecordError(TOO_DEEP)
    is_message = "jsonrpc" in response
    if is_message and response.get("error") is not None:
        return _protocol_error(response["error"])
    result = response.get("result") if is_message else response
    if not isinstance(result, dict):
        return None
    kind = result.get("resultType")
    if kind == "input_required" or ("inputRequests" in result and "content" not in result):
        return Pending(state=text_in(result.get("requestState")))
    task = result if "taskId" in result else object_in(result.get("task"))
    if "content" not in result and isinstance(task_id := task.get("taskId"), str):
        return _read_task(task) or Pending(task_id=task_id)
    return _read_result(result) if kind in (None, "complete") and _is_result(result) else None


def _is_result(result: JsonObject) -> bool:
    if "content" in result:
        return isinstance(result["content"], list)
    return "structuredContent" in result or "isError" in result


def _read_result(result: JsonObject) -> ResultBlock:
    extras, is_error = others(result, _RESULT), result.get("isError")
    status: ResultStatus = "error" if is_error else "ok"
    if not isinstance(is_error, bool | None):
        extras["isError"], status = is_error, "unknown"
    return ResultBlock(
        status=status,
        content=tuple(map(_read_block, list_in(result.get("content")))),
        structured=result.get("structuredContent"),
        has_structured="structuredContent" in result,
        extras=extras,
    )


def _protocol_error(error: JsonValue) -> ResultBlock:
    code = object_in(error).get("code")
    return ResultBlock(
        status="denied" if isinstance(code, int) and code in _REFUSALS else "interrupted",
        content=_text_content(object_in(error).get("message")),
        extras={_RPC: {"error": error}},
    )


def _text_content(message: JsonValue) -> tuple[ContentBlock, ...]:
    text = text_in(message)
    return () if text is None else (TextBlock(text=text),)


def _read_task(task: JsonObject) -> ResultBlock | None:
    """The result of a task; None if it has not ended with one."""
    match task:
        case {"status": "completed", "result": dict(result)} if _is_result(result):
            ended = _read_result(result)
        case {"status": "failed", "error": error} if error is not None:
            ended = _protocol_error(error)
        case {"status": "cancelled"}:
            content = _text_content(task.get("statusMessage"))
            ended = ResultBlock(status="cancelled", content=content)
        case _:
            return None
    beside = {**object_in(ended.extras.get(_RPC)), "task": others(task, _TASK_ENDS)}
    return ended.model_copy(update={"extras": {**ended.extras, _RPC: beside}})


def _read_block(native: JsonValue) -> ContentBlock:
    """Read a block; a `ProviderBlock` if its type is unknown or it does not match its type."""
    members = object_in(native)
    media_type = text_in(members.get("mimeType"))
    match members:
        case {"type": "text", "text": str(text)}:
            return TextBlock(text=text, extras=others(members, _TEXT))
        case {"type": "image" | "audio" as kind, "data": str(data)}:
            extras = others(members, _MEDIA)
            return MediaBlock(kind=kind, media_type=media_type, data=data, extras=extras)
        case {"type": "resource_link", "uri": str(uri)}:
            name, extras = text_in(members.get("name")), others(members, _LINK)
            return ResourceBlock(uri=uri, media_type=media_type, name=name, extras=extras)
        case {"type": "resource", "resource": dict(contents)}:
            return _read_resource(members, contents) or ProviderBlock(native=native)
        case _:
            return ProviderBlock(native=native)


def _read_resource(members: JsonObject, contents: JsonObject) -> ResourceBlock | None:
    extras = others(members, _RESOURCE)
    if beside := others(contents, _CONTENTS):
        extras["resource"] = beside
    media_type = text_in(contents.get("mimeType"))
    match contents.get("uri"), contents.get("text"), contents.get("blob"):
        case str(uri), str(text), None:
            return ResourceBlock(uri=uri, media_type=media_type, text=text, extras=extras)
        case str(uri), None, str(data):
            return ResourceBlock(uri=uri, media_type=media_type, data=data, extras=extras)
        case _:
            return None


def write_result(
    result: ResultBlock, request_id: RequestId | None = None, *, is_own: bool = False
) -> Export:
    """Write a `CallToolResult`, or with an id the response of JSON-RPC to that request.

    A response may be an error of the protocol; a `CallToolResult` is always a result of the tool.
    With `is_own`, the result's extras and provider blocks come from `read_result` and are written.
    """
    writing = Writing(NAME, CAPABILITIES, DEFAULT_EXPORT_POLICY)
    native = response_native(writing, result, request_id, "result", replays=is_own)
    return writing.export(native)


def response_native(
    writing: Writing,
    result: ResultBlock,
    request_id: RequestId | None,
    where: str,
    *,
    replays: bool,
) -> JsonObject:
    """Write the response and report changes; without an id, write only the result."""
    head: JsonObject = {"jsonrpc": "2.0", "id": request_id}
    match result.extras.get(_RPC) if replays and request_id is not None else None:
        case {"error": {"code": int(), "message": str()} as error}:
            return {**head, "error": error}
        case _:
            native = _result_native(writing, result, where, replays=replays)
            return native if request_id is None else {**head, "result": native}


def _result_native(
    writing: Writing, result: ResultBlock, where: str, *, replays: bool
) -> JsonObject:
    content: list[JsonValue] = [
        _write_block(writing, block, where, replays=replays) for block in result.content
    ]
    members: JsonObject = {
        "content": content,
        "isError": result.is_error,
        "resultType": "complete",
    }
    writing.note_status(result, where)
    if result.has_structured:
        members["structuredContent"] = result.structured
    extras = others(result.extras, frozenset({_RPC}))
    if "task" in object_in(result.extras.get(_RPC)):
        writing.note_dropped(["task"], where)
    return writing.with_extras(members, extras, where, replays=replays)


def _write_block(writing: Writing, block: ContentBlock, where: str, *, replays: bool) -> JsonObject:
    """Write a block; as a description if the format has no block for it."""
    if isinstance(block, ProviderBlock):
        native = object_in(block.native) if replays else None
    else:
        native = _block_native(writing, block, where)
    if native:
        return writing.with_extras(native, block.extras, where, replays=replays)
    writing.note_extras(block, where)
    return {"type": "text", "text": writing.described(block, where)}


def _block_native(
    writing: Writing, block: TextBlock | MediaBlock | ResourceBlock, where: str
) -> JsonObject | None:
    match block:
        case TextBlock(text=text):
            writing.note_refusal(block, where)
            return {"type": "text", "text": writing.clean.text(text, where)}
        case MediaBlock(kind="image" | "audio" as kind, media_type=str(media_type), data=str(data)):
            if decoded(data) is None:
                return None
            writing.note_media(block, where, "uri", "name")
            return {"type": kind, "data": data, "mimeType": media_type}
        case ResourceBlock():
            return _resource_native(writing, block, where)
        case _:
            return None


def _resource_native(writing: Writing, block: ResourceBlock, where: str) -> JsonObject | None:
    native: JsonObject = {"uri": block.uri}
    if block.media_type is not None:
        native["mimeType"] = block.media_type
    if block.is_link:
        if not block.name:
            writing.note("text_replaced", where, "the link has no name; its URI stands for it")
        return {"type": "resource_link", "name": block.name or block.uri, **native}
    unsaid = {"name": block.name}
    if block.text is not None:
        native["text"], unsaid["data"] = block.text, block.data
    elif block.data is not None and decoded(block.data) is not None:
        native["blob"] = block.data
    else:
        return None
    writing.note_dropped((name for name, value in unsaid.items() if value is not None), where)
    return {"type": "resource", "resource": native}
