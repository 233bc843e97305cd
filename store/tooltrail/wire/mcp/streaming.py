"""A stream of JSON-RPC messages, as a server sends it in answer to a request.

Responses are results; notifications, and what the server asks of its client, are none. A response
comes whole. On a stream that serves several requests there are several.
"""

from tooltrail.records import Message
from tooltrail.wire.mcp.reading import read_response
from tooltrail.wire.members import JsonObject
from tooltrail.wire.responses import ProviderFailure, Response


class McpAssembler:
    """Takes the responses out of a stream, in their order."""

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._failure: ProviderFailure | None = None
        self._unread: list[str] = []

    def feed(self, event: JsonObject) -> None:
        """Take one message."""
        if "method" in event:
            return
        if "result" not in event and "error" not in event:
            self._unread.append("an event is no message of JSON-RPC")
            return
        response = read_response(event)
        for message in response.messages:
            self._messages.append(self._placed(message))
        self._failure = self._failure or response.failure
        self._unread.extend(response.unread)

    def _placed(self, message: Message) -> Message:
        number = len(self._messages)
        if message.origin is None or number == 0:
            return message
        origin = message.origin.model_copy(update={"choice": number})
        return message.model_copy(update={"origin": origin})

    def finish(self, *, is_done: bool = False) -> Response:  # noqa: ARG002  nothing tells the end
        """The responses, one message each; none where the stream ended before one came."""
        if not self._messages:
            self._unread.append("the stream has no response")
        return Response.of(tuple(self._messages), self._failure, tuple(self._unread))
