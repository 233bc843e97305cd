"""The rounds between a request and its result, written again.

They go back as they came, and only where they lead from this request to this result: what a record
holds may be anything, and half of them would make other calls or results of it.
"""

from pydantic import JsonValue

from tooltrail.records import ResultBlock
from tooltrail.wire.mcp.limits import RequestId
from tooltrail.wire.mcp.outcomes import RPC
from tooltrail.wire.mcp.reading import read_history
from tooltrail.wire.members import JsonObject, object_in, objects_in


def renumbered(rounds: JsonValue, recorded: JsonValue, request_id: RequestId) -> list[JsonObject]:
    """The rounds with the id that the first request has now."""
    natives = objects_in(rounds)
    if recorded is None:
        return natives
    return [
        {**native, "id": request_id} if native.get("id") == recorded else native
        for native in natives
    ]


def closed(request: JsonObject, rounds: list[JsonObject], response: JsonObject) -> list[JsonObject]:
    """All of them in order, the response with the id of the request that still waits.

    Where none waits it is the notification that ends a task.
    """
    open_id = request["id"]
    for native in rounds:
        if "method" in native and "id" in native:
            open_id = native["id"]
        elif "method" not in native and native.get("id") == open_id:
            open_id = None
    if open_id is None:
        params = response.get("result", {})
        last: JsonObject = {
            "jsonrpc": "2.0",
            "method": "notifications/tasks",
            "params": params,
        }
    else:
        last = {**response, "id": open_id}
    return [request, *rounds, last]


def is_one_call(exchange: list[JsonObject], result: ResultBlock) -> bool:
    """Whether these messages are read as one call with this result, and nothing beside."""
    match read_history({"messages": [*exchange]}).messages:
        case (asking, answering) if asking.calls and answering.results:
            rpc = object_in(asking.calls[0].extras.get(RPC))
            return (
                rpc.get("rounds") == exchange[1:-1]
                and answering.results[0].is_error == result.is_error
            )
        case _:
            return False
