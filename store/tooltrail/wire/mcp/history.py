"""Messages of JSON-RPC as the canonical conversation, both ways.

There is no conversation in them, only calls and results: each call is a message of the assistant,
each result one of a tool, joined by a key. Rounds before a result (input that is asked for, tasks
that are polled) are no calls and no results: they stand verbatim in the extras of their call, and
are not written again.

Client and server number their requests each for themselves, so an id may be open on both sides. A
result says by its members which request it answers. An error does not, and is kept by itself.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

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
    return session.conversation()


@dataclass(slots=True, eq=False)
class _Call:
    """One call of a tool, however many requests it takes.

    Attributes:
        key: that joins it with its result.
        request: the first one.
        rounds: the messages between that and the result.
        state: that the server wants back with the input that it asked for.
    """

    key: str
    request: JsonObject
    rounds: list[JsonValue] = field(default_factory=list[JsonValue])
    state: str | None = None

    def message(self) -> Message:
        call = read_call(self.request)
        if self.rounds:
            rpc: JsonObject = {**object_in(call.extras.get(RPC)), "rounds": self.rounds}
            call = call.model_copy(update={"extras": {**call.extras, RPC: rpc}})
        return Message(role="assistant", blocks=(CallBlock(call=call, key=self.key),), origin=_OWN)

    def goes_on_with(self, params: JsonObject) -> bool:
        """Whether a request brings the input that this one waits for."""
        asked = {**object_in(self.request.get("params")), "requestState": self.state}
        names = ("name", "arguments", "requestState")
        is_same = all(asked.get(name) == params.get(name) for name in names)
        return is_same and ("inputResponses" in params or self.state is not None)


class _Session:
    """Finds the call of each message by the ids, states and tasks that are open."""

    def __init__(self) -> None:
        self._said: list[Message | _Call] = []
        self._tools: list[ToolDefinition] = []
        self._waiting: dict[JsonValue, _Call | None] = {}
        self._of_server: set[JsonValue] = set()
        self._tasks: dict[str, _Call] = {}
        # Calls that wait for input, the one that is to go on first at the end.
        self._asked: list[_Call] = []
        self._numbers = count()

    def conversation(self) -> Conversation:
        messages = (one.message() if isinstance(one, _Call) else one for one in self._said)
        return Conversation.of(messages, self._tools)

    def take(self, native: JsonValue) -> None:
        message = object_in(native)
        method, message_id = message.get("method"), message.get("id")
        params = object_in(message.get("params"))
        if isinstance(method, str) and isinstance(message_id, int | str):
            self._request(message, method, message_id, params)
        elif isinstance(method, str):
            self._notification(message, method, params)
        elif "result" in message or "error" in message:
            self._response(message, message_id if isinstance(message_id, int | str) else None)
        else:
            self._answer(ProviderBlock(native=native))

    def _answer(self, block: ResultBlock | ProviderBlock) -> None:
        self._said.append(Message(role="tool", blocks=(block,), origin=_OWN))

    def _request(
        self, message: JsonObject, method: str, message_id: int | str, params: JsonObject
    ) -> None:
        if method == "tools/call" and isinstance(message.get("params"), dict):
            call = self._resumed(message, params)
            if call is None:
                call = _Call(f"mcp:{next(self._numbers)}", message)
                self._said.append(call)
            self._waiting[message_id] = call
        elif method in _FROM_SERVER:
            self._of_server.add(message_id)
        elif method != "ping":
            self._waiting[message_id] = self._of_task(params)
            if call := self._waiting[message_id]:
                call.rounds.append(message)

    def _resumed(self, message: JsonObject, params: JsonObject) -> _Call | None:
        """The call that a request goes on with; None where it begins one.

        A stream that broke off is asked for again, with the same state and the same input.
        """
        call = next((one for one in reversed(self._asked) if one.goes_on_with(params)), None)
        if call is not None:
            call.rounds.append(message)
            self._asked.remove(call)
            self._asked.insert(0, call)
        return call

    def _of_task(self, params: JsonObject) -> _Call | None:
        return self._tasks.get(str(params.get("taskId")))

    def _notification(self, message: JsonObject, method: str, params: JsonObject) -> None:
        call = self._of_task(params) if method == "notifications/tasks" else None
        if call is not None:
            self._answered(call, message, read_outcome({"jsonrpc": "2.0", "result": params}))

    def _response(self, message: JsonObject, message_id: int | str | None) -> None:
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
                self._answer(ProviderBlock(native=message))
        elif message_id in self._waiting:
            call = self._waiting.pop(message_id)
            if call is not None:
                self._answered(call, message, outcome)
            else:
                self._tools.extend(read_tools(result))
        elif isinstance(outcome, ResultBlock) and "content" in result:
            self._answer(outcome)
        else:
            self._answer(ProviderBlock(native=message))

    def _answered(
        self, call: _Call, message: JsonObject, outcome: ResultBlock | Pending | None
    ) -> None:
        if isinstance(outcome, ResultBlock):
            self._answer(outcome.model_copy(update={"key": call.key}))
            if call in self._asked:
                self._asked.remove(call)
            return
        call.rounds.append(message)
        if outcome is not None and outcome.task_id is not None:
            self._tasks[outcome.task_id] = call
        elif outcome is not None:
            call.state = outcome.state
            if call in self._asked:
                self._asked.remove(call)
            self._asked.append(call)


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
            if "rounds" in object_in(call.extras.get(RPC)):
                writing.note("provider_data_dropped", where, "the rounds before the result")


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
        self._next = 1

    def of(self, extras: JsonObject, where: str) -> RequestId:
        """The id that was recorded, if it is free; else the next number."""
        recorded = object_in(extras.get(RPC)).get("id")
        if isinstance(recorded, str):
            recorded = self._writing.clean.text(recorded, where)
        if not isinstance(recorded, int | str) or recorded in self._used:
            while self._next in self._used:
                self._next += 1
            if recorded is not None:
                note = f"request {recorded!a} is {self._next} here"
                self._writing.note("id_renamed", where, note)
            recorded = self._next
        self._used.add(recorded)
        return recorded


def is_result(item: JsonObject) -> bool:
    """Whether a message of JSON-RPC answers a request."""
    return "result" in item or "error" in item
