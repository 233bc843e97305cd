"""Reads a server's answer to a request: a stream of JSON-RPC messages, or one response.

Each response is a result and comes in one message; a stream for several requests has several.
Notifications and a server's requests to its client are not results, except the notification that
ends a task: it contains the result that the response postponed.
"""

from tooltrail.records import Message, Origin, ProviderBlock, ResultBlock
from tooltrail.wire.mcp.asking import NAME
from tooltrail.wire.mcp.results import Pending, read_outcome
from tooltrail.wire.members import JsonObject, object_in, text_in
from tooltrail.wire.responses import Response, failure_of


def read_response(payload: JsonObject, place: int = 0) -> Response:
    """Read a response of JSON-RPC as a message of a tool, complete if it has the result.

    An error of the protocol is a failure; a tool's own error is not.
    """
    error, outcome = payload.get("error"), read_outcome(payload)
    failure = None if error is None else failure_of(error, error, ("code",))
    reason = text_in(object_in(payload.get("result", payload)).get("resultType"))
    origin = Origin(wire_format=NAME, finish_reason=reason, choice=place)
    result = outcome if isinstance(outcome, ResultBlock) else None
    blocks = (result or ProviderBlock(native=payload),)
    message = Message(role="tool", blocks=blocks, origin=origin, is_complete=result is not None)
    unread = () if outcome else ("the response is no answer to a call of a tool",)
    return Response.of((message,), failure, unread)


class McpAssembler:
    """Collects the responses of a stream, in their order."""

    def __init__(self) -> None:
        # The responses by the id of their task, or by their place; the tasks that have a result.
        self._responses: dict[str | int, JsonObject] = {}
        self._ended: set[str] = set()
        self._unread: list[str] = []

    def feed(self, event: JsonObject) -> None:
        """Add one message."""
        if event.get("method") == "notifications/tasks":
            # A notification about a task contains the result if the task has ended.
            task = object_in(event.get("params"))
            ended: JsonObject = {"jsonrpc": "2.0", "result": task}
            if isinstance(read_outcome(ended), ResultBlock):
                self._end_task(str(task.get("taskId")), ended)
        elif "result" in event or "error" in event:
            outcome = read_outcome({"jsonrpc": "2.0", **event})
            task_id = outcome.task_id if isinstance(outcome, Pending) else None
            if task_id is None:
                self._responses[len(self._responses)] = event
            elif task_id not in self._ended:
                self._responses[task_id] = event
        elif "method" not in event:
            self._unread.append("an event is no message of JSON-RPC")

    def _end_task(self, task_id: str, ended: JsonObject) -> None:
        """Add the result of a task; a second result of one task is a response of its own."""
        if task_id in self._ended:
            self._unread.append(f"the task {task_id!a} has more than one result")
            self._responses[len(self._responses)] = ended
        else:
            self._ended.add(task_id)
            self._responses[task_id] = ended

    def finish(self, *, is_done: bool = False) -> Response:  # noqa: ARG002  no event marks the end
        """Return the responses, one message each; none if the stream ended before the first."""
        if not self._responses:
            self._unread.append("the stream has no response")
        read = [read_response(one, place) for place, one in enumerate(self._responses.values())]
        unread = [*self._unread, *(note for one in read for note in one.unread)]
        failure = next((one.failure for one in read if one.failure), None)
        return Response.of((one.message for one in read), failure, unread)
