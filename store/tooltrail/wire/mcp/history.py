"""Reads and writes messages of JSON-RPC as the canonical conversation.

The messages contain only calls and results. Each call becomes a message of the assistant, each
result a message of a tool; a key joins them. Rounds before a result (requests for input, polled
tasks) are neither calls nor results: they are kept in order as provider blocks and are not
written again.

Client and server number their requests independently, so one id may be open on both sides. The
members of a result show which request it answers. An error has none and is kept separately,
unless only a `ping` shares the id: no error answers a ping.
"""

from collections.abc import Iterator
from itertools import count
from typing import Literal

from pydantic import JsonValue

from tooltrail.records import (
    CallBlock,
    Conversation,
    Message,
    MessageBlock,
    Origin,
    ProviderBlock,
    ResultBlock,
    ToolDefinition,
)
from tooltrail.wire._reading import messages_in
from tooltrail.wire._steps import Step, steps
from tooltrail.wire._writing import Writing
from tooltrail.wire.mcp.asking import NAME, read_tools
from tooltrail.wire.mcp.calls import RequestId, call_native, read_call
from tooltrail.wire.mcp.results import Pending, read_outcome, response_native
from tooltrail.wire.members import JsonObject, object_in

_FROM_SERVER = {"sampling/createMessage", "elicitation/create", "roots/list", "ping"}
"""The methods that a server calls at its client, with its own ids. A client may ping, too."""

_SAMPLED = {"role", "model"}
"""The members of an answer to `sampling/createMessage`, which resembles a tool's result."""

_OWN = Origin(wire_format=NAME)


def read_history(request: JsonObject) -> Conversation:
    """Read the calls, results and tools of `{"messages": […]}`, in the order of the messages.

    Handshakes, progress notifications and a server's requests to its client belong to the protocol
    and are skipped. A tool result without a known request becomes a result without a call; any
    other response without a known request is kept as a provider block.
    """
    session = _Session()
    for native in messages_in(request):
        session.take(native)
    return Conversation.of(session.said, session.tools)


class _Session:
    """Finds the call of each message by the open ids, states and tasks.

    Attributes:
        said: the messages of the conversation so far.
        tools: the tools that the server has listed so far.
    """

    def __init__(self) -> None:
        self.said: list[Message] = []
        self.tools: list[ToolDefinition] = []
        # The params of each call by its key; the keys by open request id and by task id.
        self._params: dict[str, JsonObject] = {}
        self._waiting: dict[JsonValue, str | None] = {}
        self._tasks: dict[JsonValue, str] = {}
        # Calls that wait for input, by key, with the `_round` that continues each one. Calls that
        # were continued last are at the end.
        self._asked: dict[str, JsonObject] = {}
        # The methods of the server's requests by their ids.
        self._of_server: dict[JsonValue, str] = {}

    def take(self, native: JsonValue) -> None:
        """Read one message."""
        message = object_in(native)
        method, message_id = message.get("method"), message.get("id")
        if not isinstance(message_id, int | str):
            message_id = None
        if isinstance(method, str):
            self._request(message, method, message_id, object_in(message.get("params")))
        elif "result" in message or "error" in message:
            self._response(message, message_id)
        else:
            self._say("tool", ProviderBlock(native=native))

    def _say(self, role: Literal["assistant", "tool"], block: MessageBlock) -> None:
        self.said.append(Message(role=role, blocks=(block,), origin=_OWN))

    def _request(
        self, message: JsonObject, method: str, message_id: RequestId | None, params: JsonObject
    ) -> None:
        task = self._tasks.get(str(params.get("taskId")))
        if message_id is None:
            if task is not None and method == "notifications/tasks":
                self._answered(task, message, read_outcome({"jsonrpc": "2.0", "result": params}))
        elif method == "tools/call" and isinstance(message.get("params"), dict):
            self._waiting[message_id] = self._resumed(message, params) or self._begun(message)
        elif method in _FROM_SERVER:
            self._of_server[message_id] = method
        else:
            self._waiting[message_id] = task
            if task is not None:
                self._say("tool", ProviderBlock(native=message))

    def _begun(self, message: JsonObject) -> str:
        key = f"mcp:{len(self._params)}"
        self._params[key] = object_in(message.get("params"))
        self._say("assistant", CallBlock(call=read_call(message), key=key))
        return key

    def _resumed(self, message: JsonObject, params: JsonObject) -> str | None:
        """The key of the call that a request continues; None if it begins a call.

        After a broken stream, the client repeats the request with the same state and input.
        """
        if "inputResponses" not in params and params.get("requestState") is None:
            return None
        brought = _round(params, params.get("requestState"))
        key = next((key for key, asked in self._asked.items() if asked == brought), None)
        if key is not None:
            self._asked[key] = self._asked.pop(key)
            self._say("tool", ProviderBlock(native=message))
        return key

    def _response(self, message: JsonObject, message_id: RequestId | None) -> None:
        outcome = read_outcome({"jsonrpc": "2.0", **message})
        result, is_error = object_in(message.get("result")), message.get("error") is not None
        is_other = outcome is None and "tools" not in result
        is_refusal = is_error and self._of_server.get(message_id) != "ping"
        is_of_client = is_refusal or is_other or result.keys() >= _SAMPLED
        if message_id in self._of_server and is_of_client:
            del self._of_server[message_id]
            if is_error and message_id in self._waiting:
                # Both sides have this id open, so the error may answer either request.
                self._say("tool", ProviderBlock(native=message))
        elif message_id in self._waiting:
            key = self._waiting.pop(message_id)
            if key is not None:
                self._answered(key, message, outcome)
            else:
                self.tools.extend(read_tools(result))
        elif isinstance(outcome, ResultBlock) and "content" in result:
            self._say("tool", outcome)
        else:
            self._say("tool", ProviderBlock(native=message))

    def _answered(
        self, key: str, message: JsonObject, outcome: ResultBlock | Pending | None
    ) -> None:
        if isinstance(outcome, ResultBlock):
            self._say("tool", outcome.model_copy(update={"key": key}))
            self._asked.pop(key, None)
            return
        self._say("tool", ProviderBlock(native=message))
        if outcome is not None and outcome.task_id is not None:
            self._tasks[outcome.task_id] = key
        elif outcome is not None:
            self._asked[key] = _round(self._params[key], outcome.state)


def _round(params: JsonObject, state: JsonValue) -> JsonObject:
    """The members by which a request with input identifies the call that it continues."""
    return {"name": params.get("name"), "arguments": params.get("arguments"), "state": state}


def write_history(writing: Writing, conversation: Conversation) -> JsonObject:
    """Write `{"messages": […]}`: each call as a request, followed by its response."""
    return {"messages": [*_written(writing, conversation)]}


def _written(writing: Writing, conversation: Conversation) -> Iterator[JsonValue]:
    numbers = count(1)
    for step in steps(writing, conversation):
        if step.orphans:
            # Responses without a request.
            for orphan in step.orphans:
                is_own = writing.replays(step.message)
                yield response_native(writing, orphan, next(numbers), step.where, replays=is_own)
            continue
        _note_said(writing, step)
        for one in step.answered:
            number, where, is_own = next(numbers), one.where, writing.replays(step.message)
            yield call_native(writing, one.call, number, where, name=one.wire_name, replays=is_own)
            is_own = writing.replays(one.source)
            yield response_native(writing, one.result, number, where, replays=is_own)


def _note_said(writing: Writing, step: Step) -> None:
    """Report the blocks other than calls and results, which the format cannot carry."""
    for block in step.message.blocks:
        if not isinstance(block, CallBlock | ResultBlock):
            writing.dropped_block(block, step.where)
    writing.note_message_extras(step.message, step.where)
    if not step.message.blocks:
        writing.note("message_empty", step.where, "a message without blocks")
    if len(step.answered) > 1:
        note = "the calls of one message are requests one after the other"
        writing.note("order_changed", step.where, note)
