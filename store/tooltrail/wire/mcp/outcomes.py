"""What a server answers to `tools/call`: a result, or that there is none yet.

A result that says `isError` came from the tool; an `error` of JSON-RPC did not, and has a status of
its own: `denied` where the server refused the request, `interrupted` where nobody knows whether the
tool ran. A server that asks for input, or hands out a task, has not answered the call.
"""

from dataclasses import dataclass
from typing import TypeAlias

from pydantic import JsonValue, ValidationError

from tooltrail.records import InvalidRecordError, ResultBlock, ResultStatus, TextBlock
from tooltrail.wire.mcp.content import read_block
from tooltrail.wire.mcp.limits import REFUSALS
from tooltrail.wire.members import JsonObject, list_in, object_in, others, text_in

RPC = "jsonrpc"
"""The member of extras that has what belongs to the message, and not to the call or the result."""

TOO_DEEP = "the message is nested deeper than a record can hold"

_RESULT = frozenset({"content", "structuredContent", "isError", "resultType"})
_TASK_ENDS = frozenset({"result", "error"})


@dataclass(frozen=True, slots=True)
class InputRequired:
    """A round in which the server asks for input before it answers (revision 2026-07-28).

    Attributes:
        requests: what it asks for, by its own keys.
        state: what is to be handed back with the input; None when there is nothing.
        native: the whole of it.
    """

    requests: JsonObject
    state: str | None
    native: JsonObject


@dataclass(frozen=True, slots=True)
class TaskPending:
    """A task that stands for a result which comes later.

    Attributes:
        task_id: by which the client asks for it.
        status: in the server's word, such as `working`.
        native: the whole of it.
    """

    task_id: str
    status: str
    native: JsonObject


Outcome: TypeAlias = ResultBlock | InputRequired | TaskPending


def read_result(response: JsonObject) -> ResultBlock:
    """The result in a response of JSON-RPC, or in a `CallToolResult` by itself.

    Raises:
        InvalidRecordError: there is none, or none yet.
    """
    outcome = read_outcome(response)
    if isinstance(outcome, ResultBlock):
        return outcome
    note = "no result" if outcome is None else "no result yet"
    raise InvalidRecordError(f"the response has {note}")


def read_outcome(response: JsonObject) -> Outcome | None:
    """What the server answered; None where it answered something else than such a call.

    Both the response of JSON-RPC and what is inside of it are taken.

    Raises:
        InvalidRecordError: it is nested deeper than a record can hold.
    """
    try:
        return _read_outcome(response)
    except ValidationError as error:
        raise InvalidRecordError(TOO_DEEP) from error


def _read_outcome(response: JsonObject) -> Outcome | None:
    is_message = "jsonrpc" in response
    response_id = response.get("id") if is_message else None
    if is_message and response.get("error") is not None:
        return _protocol_error(response["error"], _rpc(response_id))
    result = response.get("result") if is_message else response
    if not isinstance(result, dict):
        return None
    kind = result.get("resultType")
    if kind == "input_required" or ("inputRequests" in result and "content" not in result):
        requests = object_in(result.get("inputRequests"))
        return InputRequired(requests, text_in(result.get("requestState")), result)
    task = result if "taskId" in result else object_in(result.get("task"))
    if "content" not in result and isinstance(task_id := task.get("taskId"), str):
        return _read_task(task_id, task, result, _rpc(response_id))
    if kind in {None, "complete"} and _is_result(result):
        return _read_result(result, _rpc(response_id))
    return None


def _rpc(response_id: JsonValue, **members: JsonValue) -> JsonObject:
    given: JsonObject = {} if response_id is None else {"id": response_id}
    return {**given, **members}


def _is_result(result: JsonObject) -> bool:
    if "content" in result:
        return isinstance(result["content"], list)
    return "structuredContent" in result or "isError" in result


def _read_result(result: JsonObject, rpc: JsonObject) -> ResultBlock:
    extras = others(result, _RESULT)
    is_error = result.get("isError")
    status: ResultStatus = "error" if is_error else "ok"
    if not isinstance(is_error, bool | None):
        extras["isError"], status = is_error, "unknown"
    if rpc:
        extras[RPC] = rpc
    return ResultBlock(
        status=status,
        content=tuple(map(read_block, list_in(result.get("content")))),
        structured=result.get("structuredContent"),
        has_structured="structuredContent" in result,
        extras=extras,
    )


def _protocol_error(error: JsonValue, rpc: JsonObject) -> ResultBlock:
    members = object_in(error)
    message, code = text_in(members.get("message")), members.get("code")
    return ResultBlock(
        status="denied" if isinstance(code, int) and code in REFUSALS else "interrupted",
        content=() if message is None else (TextBlock(text=message),),
        extras={RPC: {**rpc, "error": error}},
    )


def _read_task(task_id: str, task: JsonObject, native: JsonObject, rpc: JsonObject) -> Outcome:
    status = text_in(task.get("status")) or ""
    rpc = {**rpc, "task": others(task, _TASK_ENDS)}
    ended, error = task.get("result"), task.get("error")
    if status == "completed" and isinstance(ended, dict) and _is_result(ended):
        return _read_result(ended, rpc)
    if status == "failed" and error is not None:
        return _protocol_error(error, rpc)
    if status == "cancelled":
        message = text_in(task.get("statusMessage"))
        content = () if message is None else (TextBlock(text=message),)
        return ResultBlock(status="cancelled", content=content, extras={RPC: rpc})
    return TaskPending(task_id, status, native)
