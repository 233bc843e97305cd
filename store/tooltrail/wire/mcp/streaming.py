"""A stream of JSON-RPC messages, as a server sends it in answer to a request.

Responses are results; notifications, and what the server asks of its client, are none, but for the
one that ends a task: it brings the result that the response had put off. A response comes whole. On
a stream that serves several requests there are several.
"""

from tooltrail.records import Message, ResultBlock
from tooltrail.wire.mcp.outcomes import TaskPending, read_outcome
from tooltrail.wire.mcp.reading import read_response
from tooltrail.wire.members import JsonObject, object_in
from tooltrail.wire.responses import ProviderFailure, Response


class McpAssembler:
    """Takes the responses out of a stream, in their order."""

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._tasks: dict[str, int] = {}
        self._failure: ProviderFailure | None = None
        self._unread: list[str] = []

    def feed(self, event: JsonObject) -> None:
        """Take one message."""
        if event.get("method") == "notifications/tasks":
            self._take_task(object_in(event.get("params")))
        elif "method" in event:
            return
        elif "result" not in event and "error" not in event:
            self._unread.append("an event is no message of JSON-RPC")
        else:
            self._take(event, len(self._messages))

    def _take_task(self, task: JsonObject) -> None:
        """Take what is said of a task: the result, if it has ended."""
        ended: JsonObject = {"jsonrpc": "2.0", "result": task}
        if isinstance(read_outcome(ended), ResultBlock):
            task_id = str(task.get("taskId"))
            self._take(ended, self._tasks.pop(task_id, len(self._messages)))

    def _take(self, event: JsonObject, place: int) -> None:
        response = read_response(event)
        self._failure = self._failure or response.failure
        self._unread.extend(response.unread)
        for message in response.messages:
            self._messages[place : place + 1] = [_placed(message, place)]
            outcome = None if message.is_complete else read_outcome({"jsonrpc": "2.0", **event})
            if isinstance(outcome, TaskPending):
                self._tasks[outcome.task_id] = place

    def finish(self, *, is_done: bool = False) -> Response:  # noqa: ARG002  nothing tells the end
        """The responses, one message each; none where the stream ended before one came."""
        if not self._messages:
            self._unread.append("the stream has no response")
        return Response.of(tuple(self._messages), self._failure, tuple(self._unread))


def _placed(message: Message, place: int) -> Message:
    if message.origin is None or place == 0:
        return message
    origin = message.origin.model_copy(update={"choice": place})
    return message.model_copy(update={"origin": origin})
