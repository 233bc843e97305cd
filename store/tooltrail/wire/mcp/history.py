"""Messages of JSON-RPC as the canonical conversation, both ways.

There is no conversation in them, only calls and results: each call is a message of the assistant,
each result one of a tool, joined by a key. Rounds before a result (input that is asked for, tasks
that are polled) are no calls and no results: they are kept where they stand, as blocks of their
provider, and are not written again.

Client and server number their requests each for themselves, so an id may be open on both sides. A
result says by its members which request it answers. An error does not, and is kept by itself.
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
from tooltrail.wire._steps import Answers, Said, steps
from tooltrail.wire._writing import Writing
from tooltrail.wire.mcp.asking import read_tools
from tooltrail.wire.mcp.calls import VERSION, call_native, read_call
from tooltrail.wire.mcp.limits import LATEST, NAME, RPC, RequestId, Revision
from tooltrail.wire.mcp.results import Pending, read_outcome, response_native
from tooltrail.wire.members import JsonObject, object_in

_FROM_SERVER = {"sampling/createMessage", "elicitation/create", "roots/list"}
"""Methods that a server asks of its client, with ids of its own."""

_SAMPLED = {"role", "model"}
"""What the answer to such a request has, where it might be taken for the result of a tool."""

_OF_PINGS = {"_meta", "resultType"}
"""What alone the answer to a ping may have."""

_OWN = Origin(wire_format=NAME)


def read_history(request: JsonObject) -> Conversation:
    """The calls, results and tools of `{"messages": […]}`, requests and responses in their order.

    Handshakes, notifications of progress and what a server asks of its client are of the protocol
    and are passed over. A result without its call is one without a call; any other response to
    nothing that is known is kept as a provider block.
    """
    session = _Session()
    for native in messages_in(request):
        session.take(native)
    return Conversation.of(session.said, session.tools)


class _Session:
    """Finds the call of each message by the ids, states and tasks that are open.

    Attributes:
        said: the messages of the conversation so far.
        tools: that the server listed so far.
    """

    def __init__(self) -> None:
        self.said: list[Message] = []
        self.tools: list[ToolDefinition] = []
        # What each call was asked with, by its key, and the keys by what names the call.
        self._params: dict[str, JsonObject] = {}
        self._waiting: dict[JsonValue, str | None] = {}
        self._tasks: dict[JsonValue, str] = {}
        # Calls that wait for input, each with what brings it; the next to go on comes first.
        self._asked: dict[str, JsonObject] = {}
        self._of_server: set[JsonValue] = set()

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
            self._of_server.add(message_id)
        elif method != "ping":
            self._waiting[message_id] = task
            if task is not None:
                self._say("tool", ProviderBlock(native=message))

    def _begun(self, message: JsonObject) -> str:
        key = f"mcp:{len(self._params)}"
        self._params[key] = object_in(message.get("params"))
        self._say("assistant", CallBlock(call=read_call(message), key=key))
        return key

    def _resumed(self, message: JsonObject, params: JsonObject) -> str | None:
        """The key of the call that a request goes on with; None where it begins one.

        A stream that broke off is asked for again, with the same state and the same input.
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
        if is_other and message.get("result") == result and result.keys() <= _OF_PINGS:
            return
        is_of_client = is_error or is_other or result.keys() >= _SAMPLED
        if message_id in self._of_server and is_of_client:
            self._of_server.discard(message_id)
            if is_error and message_id in self._waiting:
                # Nothing tells whose it is.
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
    """What a request that brings input says of the call that it goes on with."""
    return {"name": params.get("name"), "arguments": params.get("arguments"), "state": state}


def write_history(writing: Writing, conversation: Conversation) -> JsonObject:
    """`{"messages": […]}`: each call as a request, and behind it the response to it."""
    return {"messages": [*_written(writing, conversation)]}


def _written(writing: Writing, conversation: Conversation) -> Iterator[JsonValue]:
    ids = _RequestIds(writing)
    own = {
        id(result)
        for message in conversation.messages
        if writing.replays(message)
        for result in message.results
    }
    for step in steps(writing, conversation):
        if isinstance(step, Said) and step.orphans:
            # Responses to requests that are not there.
            for one in step.orphans:
                is_own = id(one) in own
                request_id = ids.of(one.extras if is_own else {}, step.where)
                yield response_native(writing, one, request_id, LATEST, step.where, replays=is_own)
            continue
        _note_said(writing, step)
        for answered in step.answered if isinstance(step, Answers) else ():
            call, is_own = answered.call, id(answered.result) in own
            replays = writing.replays(step.message)
            request_id = ids.of(call.extras if replays else {}, answered.where)
            # What a server of the older revision was asked goes back without what it does not know.
            meta = object_in(call.extras.get("_meta"))
            is_older = replays and RPC in call.extras and VERSION not in meta
            revision: Revision = "2025-11-25" if is_older else LATEST
            where, name, result = answered.where, answered.wire_name, answered.result
            yield call_native(
                writing, call, request_id, where, name=name, revision=revision, replays=replays
            )
            yield response_native(writing, result, request_id, revision, where, replays=is_own)


def _note_said(writing: Writing, step: Said | Answers) -> None:
    """Tell what is spoken around calls, which has no place."""
    for block in step.message.blocks:
        if not isinstance(block, CallBlock | ResultBlock):
            writing.dropped_block(block, step.where)
    writing.note_message_extras(step.message, step.where)
    if not step.message.blocks:
        writing.note("message_empty", step.where, "a message without blocks")
    if isinstance(step, Answers) and len(step.answered) > 1:
        note = "the calls of one message are requests one after the other"
        writing.note("order_changed", step.where, note)


class _RequestIds:
    """Gives each request of an export an id of its own."""

    def __init__(self, writing: Writing) -> None:
        self._writing = writing
        self._used: set[JsonValue] = set()
        self._numbers = count(1)

    def of(self, extras: JsonObject, where: str) -> RequestId:
        """The id that was recorded, if it is free; else the next number."""
        recorded = object_in(extras.get(RPC)).get("id")
        if isinstance(recorded, str):
            recorded = self._writing.clean.text(recorded, where)
        if not isinstance(recorded, int | str) or recorded in self._used:
            free = next(number for number in self._numbers if number not in self._used)
            if recorded is not None:
                self._writing.note("id_renamed", where, f"request {recorded!a} is {free} here")
            recorded = free
        self._used.add(recorded)
        return recorded


def is_result(item: JsonObject) -> bool:
    """Whether a message of JSON-RPC answers a request."""
    return "result" in item or "error" in item
