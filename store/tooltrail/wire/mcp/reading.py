"""Messages of JSON-RPC into the canonical conversation.

There is no conversation in them, only calls and results: each call is a message of the assistant,
each result one of a tool, joined by a key. Rounds before a result (input that is asked for, tasks
that are polled) are no calls and no results: they stand verbatim in the extras of their call.

Client and server number their requests each for themselves, so an id may be open on both sides. A
result says by its members which request it answers. An error does not: it is the client's where an
answer for the call follows, and else is kept by itself, and the call has no result.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue

from tooltrail.records import (
    CallBlock,
    Conversation,
    Message,
    Origin,
    ProviderBlock,
    ResultBlock,
    ToolDefinition,
)
from tooltrail.wire._reading import messages_in
from tooltrail.wire.mcp.asking import read_tools
from tooltrail.wire.mcp.calls import read_call
from tooltrail.wire.mcp.limits import NAME
from tooltrail.wire.mcp.outcomes import (
    RPC,
    InputRequired,
    Outcome,
    TaskPending,
    read_outcome,
)
from tooltrail.wire.members import JsonObject, object_in, text_in
from tooltrail.wire.responses import ProviderFailure, Response, failure_of

_FROM_SERVER: Mapping[str, frozenset[str]] = {
    "sampling/createMessage": frozenset({"role", "model"}),
    "elicitation/create": frozenset({"action"}),
    "roots/list": frozenset({"roots"}),
    "ping": frozenset(),
}
"""Methods that a server asks of its client, with ids of its own, and what an answer has."""


_OF_TASKS = frozenset({"tasks/get", "tasks/result", "tasks/update", "tasks/cancel"})


def read_response(payload: JsonObject) -> Response:
    """A response of JSON-RPC: a message of a tool, which is complete if it has the result."""
    failure = read_failure(payload)
    result = object_in(payload.get("result", payload))
    origin = Origin(wire_format=NAME, finish_reason=text_in(result.get("resultType")))
    outcome = read_outcome(payload)
    is_complete = isinstance(outcome, ResultBlock)
    block = outcome if isinstance(outcome, ResultBlock) else ProviderBlock(native=payload)
    message = Message(role="tool", blocks=(block,), origin=origin, is_complete=is_complete)
    return Response.of((message,), failure, tuple(_unread(outcome, result)))


def read_failure(payload: JsonObject) -> ProviderFailure | None:
    """The error of the protocol in a response; a tool's own error is none."""
    error = payload.get("error")
    return None if error is None else failure_of(error, error, ("code",))


def _unread(outcome: Outcome | None, result: JsonObject) -> Iterator[str]:
    if outcome is None:
        yield "the response is no answer to a call of a tool"
    if not isinstance(outcome, ResultBlock):
        return
    for number, block in enumerate(outcome.content):
        if isinstance(block, ProviderBlock):
            yield f"content[{number}] is of no type that is known"
    if outcome.status == "unknown":
        yield "isError is neither true nor false"
    if "error" not in object_in(outcome.extras.get(RPC)) and "task" not in result:
        inner = object_in(result.get("result", result))
        if "content" not in inner and outcome.status != "cancelled":
            yield "the result has no content"


def read_history(request: JsonObject) -> Conversation:
    """The calls, results and tools of `{"messages": […]}`, requests and responses in their order.

    Handshakes, notifications of progress and what a server asks of its client are of the protocol
    and are passed over. A result without its call is one without a call; any other response to
    nothing that is known is kept as a provider block.
    """
    session = _Session()
    for native in messages_in(request):
        session.take(native)
    return session.conversation()


@dataclass(slots=True, eq=False)
class _Call:
    """One call of a tool, however many requests it takes."""

    request: JsonObject
    number: int
    rounds: list[JsonValue] = field(default_factory=list[JsonValue])
    is_answered: bool = False

    @property
    def key(self) -> str:
        return f"mcp:{self.number}"

    def message(self) -> Message:
        call = read_call(self.request)
        if self.rounds:
            rpc: JsonObject = {**object_in(call.extras.get(RPC)), "rounds": self.rounds}
            call = call.model_copy(update={"extras": {**call.extras, RPC: rpc}})
        block = CallBlock(call=call, key=self.key)
        return Message(role="assistant", blocks=(block,), origin=Origin(wire_format=NAME))


class _Session:
    """Finds the call of each message by the ids, states and tasks that are open."""

    def __init__(self) -> None:
        self._said: list[Message | _Call] = []
        self._tools: list[ToolDefinition] = []
        self._waiting: dict[JsonValue, _Call | None] = {}
        self._listing: set[JsonValue] = set()
        self._of_server: dict[JsonValue, str] = {}
        self._errors: dict[JsonValue, JsonObject] = {}
        self._states: dict[str, _Call] = {}
        self._tasks: dict[str, _Call] = {}
        self._asked: list[_Call] = []
        self._resent: list[_Call] = []
        self._count = 0

    def conversation(self) -> Conversation:
        for error in self._errors.values():
            self._kept(error)
        messages = (one.message() if isinstance(one, _Call) else one for one in self._said)
        return Conversation.of(messages, self._tools)

    def take(self, native: JsonValue) -> None:
        message = object_in(native)
        method, message_id = message.get("method"), message.get("id")
        if not isinstance(method, str):
            if "result" in message or "error" in message:
                self._response(message, message_id)
            else:
                self._kept(native)
        elif isinstance(message_id, int | str):
            self._request(message, method, message_id)
        else:
            self._notification(message, method)

    def _kept(self, native: JsonValue) -> None:
        self._answer(ProviderBlock(native=native))

    def _answer(self, block: ResultBlock | ProviderBlock) -> None:
        self._said.append(Message(role="tool", blocks=(block,), origin=Origin(wire_format=NAME)))

    def _request(self, message: JsonObject, method: str, message_id: int | str) -> None:
        params = message.get("params")
        if method == "tools/call" and isinstance(params, dict):
            self._waiting[message_id] = self._resumed(message, params) or self._begun(message)
        elif method == "tools/list":
            self._listing.add(message_id)
        elif method in _FROM_SERVER:
            self._of_server[message_id] = method
        else:
            call = self._of_task(object_in(params)) if method in _OF_TASKS else None
            if call is not None:
                call.rounds.append(message)
            self._waiting[message_id] = call

    def _begun(self, message: JsonObject) -> _Call:
        call = _Call(message, self._count)
        self._count += 1
        self._said.append(call)
        return call

    def _resumed(self, message: JsonObject, params: JsonObject) -> _Call | None:
        """The call that a request goes on with; None where it begins one.

        A stream that broke off is asked for again, with the same state and the same input.
        """
        state = params.get("requestState")
        call = self._states.get(state) if isinstance(state, str) else None
        if call is None and "inputResponses" in params:
            waiting = (*reversed(self._asked), *reversed(self._resent))
            call = next((one for one in waiting if _is_same(one, params)), None)
        if call is None or call.is_answered:
            return None
        call.rounds.append(message)
        if call in self._asked:
            self._asked.remove(call)
            self._resent.append(call)
        return call

    def _of_task(self, params: JsonObject) -> _Call | None:
        task_id = params.get("taskId")
        return self._tasks.get(task_id) if isinstance(task_id, str) else None

    def _notification(self, message: JsonObject, method: str) -> None:
        params = object_in(message.get("params"))
        call = self._of_task(params) if method == "notifications/tasks" else None
        if call is not None:
            self._answered(call, message, read_outcome({"jsonrpc": "2.0", "result": params}))
        elif method == "notifications/cancelled":
            cancelled = self._waiting.get(_hashable(params.get("requestId")))
            if cancelled is not None:
                cancelled.rounds.append(message)

    def _response(self, message: JsonObject, message_id: JsonValue) -> None:
        message_id = _hashable(message_id)
        outcome = read_outcome({"jsonrpc": "2.0", **message})
        if message_id in self._of_server and self._is_of_client(message, message_id, outcome):
            return
        if message_id in self._waiting:
            call = self._waiting.pop(message_id)
            if call is not None:
                self._answered(call, message, outcome)
        elif message_id in self._listing:
            self._listing.discard(message_id)
            self._tools.extend(read_tools(object_in(message.get("result"))))
        elif isinstance(outcome, ResultBlock) and "content" in object_in(message.get("result")):
            self._answer(outcome)
        else:
            self._kept(message)

    def _is_of_client(
        self, message: JsonObject, message_id: JsonValue, outcome: Outcome | None
    ) -> bool:
        """Whether a response answers what the server asked, or may do so: then it is put aside."""
        is_open = message_id in self._waiting or message_id in self._listing
        method = self._of_server[message_id]
        if message.get("error") is not None:
            return self._is_error_of_client(message, message_id, method, is_open=is_open)
        is_answer = _answers(method, message.get("result"))
        if not (is_answer or message_id in self._listing or method == "ping"):
            # No answer to a call, and a strange one to what was asked.
            is_answer = outcome is None
        aside = self._errors.pop(message_id, None)
        if is_answer or aside is not None:
            del self._of_server[message_id]
        if is_answer and aside is not None:
            # So the error was of the other side.
            self._response(aside, message_id)
        return is_answer

    def _is_error_of_client(
        self, message: JsonObject, message_id: JsonValue, method: str, *, is_open: bool
    ) -> bool:
        if is_open and method == "ping":
            # Nobody refuses it.
            return False
        if is_open and message_id not in self._errors:
            self._errors[message_id] = message
            return True
        # Of two errors the first is the client's: for that the server had to wait.
        self._errors.pop(message_id, None)
        del self._of_server[message_id]
        return not is_open

    def _answered(self, call: _Call, message: JsonObject, outcome: Outcome | None) -> None:
        if isinstance(outcome, ResultBlock):
            call.is_answered = True
            self._answer(outcome.model_copy(update={"key": call.key}))
            return
        call.rounds.append(message)
        if isinstance(outcome, TaskPending):
            self._tasks[outcome.task_id] = call
        elif isinstance(outcome, InputRequired):
            self._asked.append(call)
            if outcome.state is not None:
                self._states[outcome.state] = call


def _is_same(call: _Call, params: JsonObject) -> bool:
    asked = object_in(call.request.get("params"))
    return all(asked.get(name) == params.get(name) for name in ("name", "arguments"))


def _answers(method: str, result: JsonValue) -> bool:
    """Whether a result is one of what a server asks of its client."""
    members = object_in(result)
    if method == "ping":
        return not members.keys() - {"_meta", "resultType"}
    return members.keys() >= _FROM_SERVER[method]


def _hashable(message_id: JsonValue) -> JsonValue:
    return message_id if isinstance(message_id, int | str) else None
