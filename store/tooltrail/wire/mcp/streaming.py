"""Reads a server's answer to a request: a stream of JSON-RPC messages, or one response.

Each response is a result and comes in one message; a stream for several requests has several.
Notifications and a server's requests to its client are not results, except the notification that
ends a task: it contains the result that the response postponed.
"""

from tooltrail.records import Message, Origin, ProviderBlock, ResultBlock
from tooltrail.wire.mcp.asking import NAME
from tooltrail.wire.mcp.results import Pending, read_outcome
from tooltrail.wire.members import JsonObject, object_in, text_in
from tooltrail.wire.responses import ProviderFailure, Response, failure_of


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
        self._messages: list[Message] = []
        self._tasks: dict[str, int] = {}
        self._failure: ProviderFailure | None = None
        self._unread: list[str] = []

    def feed(self, event: JsonObject) -> None:
        """Add one message."""
        task = object_in(event.get("params"))
        if "result" in event or "error" in event:
            self._take(event, len(self._messages))
        elif event.get("method") == "notifications/tasks":
            # A notification about a task contains the result if the task has ended.
            ended: JsonObject = {"jsonrpc": "2.0", "result": task}
            if isinstance(read_outcome(ended), ResultBlock):
                place = self._tasks.pop(str(task.get("taskId")), len(self._messages))
                self._take(ended, place)
        elif "method" not in event:
            self._unread.append("an event is no message of JSON-RPC")

    def _take(self, event: JsonObject, place: int) -> None:
        response, outcome = read_response(event, place), read_outcome({"jsonrpc": "2.0", **event})
        self._failure = self._failure or response.failure
        self._unread.extend(response.unread)
        self._messages[place : place + 1] = response.messages
        if isinstance(outcome, Pending) and outcome.task_id is not None:
            self._tasks[outcome.task_id] = place

    def finish(self, *, is_done: bool = False) -> Response:  # noqa: ARG002  no event marks the end
        """Return the responses, one message each; none if the stream ended before the first."""
        if not self._messages:
            self._unread.append("the stream has no response")
        return Response.of(tuple(self._messages), self._failure, tuple(self._unread))
