"""Results as `CallToolResult`, and calls with their results as messages of JSON-RPC.

A result keeps all of its blocks, its structured value and what was said beside them. What is spoken
around calls has no place. A call that took several rounds is written with all of them to the
protocol that they came from, and never as several calls: they go back as they came, and only where
they lead from this request to this result, for what a record holds may be anything.
"""

from collections.abc import Iterator

from pydantic import JsonValue

from tooltrail.records import CallBlock, Conversation, ResultBlock
from tooltrail.wire._clean_text import compact
from tooltrail.wire._steps import Answered, Answers, Said, steps
from tooltrail.wire._writing import Writing
from tooltrail.wire.exports import DEFAULT_EXPORT_POLICY, Export, ExportPolicy
from tooltrail.wire.mcp.calls import call_native
from tooltrail.wire.mcp.content import write_block
from tooltrail.wire.mcp.limits import (
    CAPABILITIES,
    LATEST,
    NAME,
    VERSION_KEY,
    RequestId,
    Revision,
)
from tooltrail.wire.mcp.outcomes import RPC
from tooltrail.wire.mcp.reading import read_history
from tooltrail.wire.members import JsonObject, list_in, object_in, objects_in


def write_result(
    result: ResultBlock,
    *,
    revision: Revision = LATEST,
    policy: ExportPolicy = DEFAULT_EXPORT_POLICY,
    is_own: bool = False,
) -> Export:
    """The `CallToolResult`; an error of the protocol is one of the tool in it.

    Args:
        result: that is to be sent.
        revision: of the protocol.
        policy: what is done where something cannot be written; it may keep provider data back.
        is_own: whether what the result has for a provider alone, extras and blocks, is MCP's, as
            `read_result` gives it, and goes with it.

    Raises:
        ExportRefusedError: something would be changed, and the policy is strict.
    """
    writing = Writing(NAME, CAPABILITIES, policy)
    replays = is_own and policy.replay_provider_data
    return writing.export(_result(writing, result, revision, "result", replays=replays))


def write_response(
    result: ResultBlock,
    request_id: RequestId,
    *,
    revision: Revision = LATEST,
    policy: ExportPolicy = DEFAULT_EXPORT_POLICY,
    is_own: bool = False,
) -> Export:
    """The response of JSON-RPC to the request with this id, an error of the protocol among them.

    Args:
        result: that is to be sent.
        request_id: of JSON-RPC.
        revision: of the protocol.
        policy: what is done where something cannot be written; it may keep provider data back.
        is_own: see `write_result`.

    Raises:
        ExportRefusedError: something would be changed, and the policy is strict.
    """
    writing = Writing(NAME, CAPABILITIES, policy)
    replays = is_own and policy.replay_provider_data
    native = _response(writing, result, request_id, revision, "result", replays=replays)
    return writing.export(native)


def write_history(writing: Writing, conversation: Conversation) -> JsonObject:
    """`{"messages": […]}`: each call as a request, and behind it the response to it."""
    return {"messages": list(_History(writing, conversation).messages())}


class _History:
    """The requests of one export, each with an id of its own."""

    def __init__(self, writing: Writing, conversation: Conversation) -> None:
        self._writing = writing
        self._conversation = conversation
        self._used: set[JsonValue] = set()
        self._next = 1
        self._own = {
            id(result)
            for message in conversation.messages
            if writing.replays(message)
            for result in message.results
        }

    def messages(self) -> Iterator[JsonValue]:
        for step in steps(self._writing, self._conversation):
            if isinstance(step, Said) and step.orphans:
                yield from self._orphans(step)
                continue
            self._say(step)
            if isinstance(step, Answers):
                for answered in step.answered:
                    yield from self._exchange(step, answered)

    def _orphans(self, step: Said) -> Iterator[JsonObject]:
        """Responses to requests that are not there."""
        for result in step.orphans:
            is_own = id(result) in self._own
            rpc = object_in(result.extras.get(RPC)) if is_own else {}
            request_id = self._id(rpc, step.where)
            yield _response(self._writing, result, request_id, LATEST, step.where, replays=is_own)

    def _say(self, step: Said | Answers) -> None:
        for block in step.message.blocks:
            if not isinstance(block, CallBlock | ResultBlock):
                self._writing.dropped_block(block, step.where)
        self._writing.note_message_extras(step.message, step.where)
        if not step.message.blocks:
            self._writing.note("message_empty", step.where, "a message without blocks")
        if isinstance(step, Answers) and len(step.answered) > 1:
            note = "the calls of one message are requests one after the other"
            self._writing.note("order_changed", step.where, note)

    def _exchange(self, step: Answers, answered: Answered) -> list[JsonObject]:
        """The request, the rounds that followed, and the response."""
        writing, call, where = self._writing, answered.call, answered.where
        replays = writing.replays(step.message)
        rpc = object_in(call.extras.get(RPC)) if replays else {}
        meta = object_in(call.extras.get("_meta"))
        # What a server of the older revision was asked goes back without what it does not know.
        revision: Revision = "2025-11-25" if rpc and VERSION_KEY not in meta else LATEST
        request_id = self._id(rpc, where)
        request = call_native(
            writing,
            call,
            request_id,
            where,
            name=answered.wire_name,
            revision=revision,
            replays=replays,
        )
        is_own = id(answered.result) in self._own
        response = _response(writing, answered.result, request_id, revision, where, replays=is_own)
        exchange = [request, response]
        if recorded := list_in(object_in(call.extras.get(RPC)).get("rounds")):
            clean = writing.clean.value(recorded if replays else [], where)
            rounds = _renumbered(clean, rpc.get("id"), request_id)
            whole = _closed(request, rounds, response)
            if rounds and _is_one_call(whole, answered.result):
                self._used.update(
                    one["id"] for one in rounds if isinstance(one.get("id"), int | str)
                )
                exchange = whole
            else:
                writing.note("provider_data_dropped", where, "the rounds before the result")
        return exchange

    def _id(self, rpc: JsonObject, where: str) -> RequestId:
        recorded = rpc.get("id")
        if isinstance(recorded, str):
            recorded = self._writing.clean.text(recorded, where)
        if isinstance(recorded, int | str) and recorded not in self._used:
            self._used.add(recorded)
            return recorded
        ids = [native.get("id") for native in objects_in(rpc.get("rounds"))]
        taken = {one for one in ids if isinstance(one, int | str)}
        while self._next in self._used or self._next in taken:
            self._next += 1
        if recorded is not None:
            note = f"request {recorded!a} is {self._next} here"
            self._writing.note("id_renamed", where, note)
        self._used.add(self._next)
        return self._next


def _renumbered(rounds: JsonValue, recorded: JsonValue, request_id: RequestId) -> list[JsonObject]:
    """The rounds with the id that the first request has now."""
    natives = objects_in(rounds)
    if recorded is None:
        return natives
    return [
        {**native, "id": request_id} if native.get("id") == recorded else native
        for native in natives
    ]


def _closed(
    request: JsonObject, rounds: list[JsonObject], response: JsonObject
) -> list[JsonObject]:
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


def _is_one_call(exchange: list[JsonObject], result: ResultBlock) -> bool:
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


def is_result(item: JsonObject) -> bool:
    """Whether a message of JSON-RPC answers a request."""
    return "result" in item or "error" in item


def _response(
    writing: Writing,
    result: ResultBlock,
    request_id: RequestId,
    revision: Revision,
    where: str,
    *,
    replays: bool,
) -> JsonObject:
    head: JsonObject = {"jsonrpc": "2.0", "id": request_id}
    rpc = object_in(result.extras.get(RPC)) if replays else {}
    error = object_in(writing.clean.value(rpc.get("error"), where))
    task = object_in(writing.clean.value(rpc.get("task"), where))
    if task:
        ended: JsonObject
        if error:
            ended = {"error": error}
        elif result.status == "cancelled":
            ended = {}
        else:
            ended = {"result": _result(writing, result, revision, where, replays=replays)}
        return {**head, "result": {**task, **ended}}
    if isinstance(error.get("code"), int) and isinstance(error.get("message"), str):
        return {**head, "error": error}
    return {**head, "result": _result(writing, result, revision, where, replays=replays)}


def _result(
    writing: Writing, result: ResultBlock, revision: Revision, where: str, *, replays: bool
) -> JsonObject:
    content: list[JsonValue] = [
        write_block(writing, block, where, replays=replays) for block in result.content
    ]
    members: JsonObject = {"content": content, "isError": result.is_error}
    writing.note_status(result, where)
    if result.has_structured:
        structured = writing.clean.value(result.structured, where)
        if revision == "2026-07-28" or isinstance(structured, dict):
            members["structuredContent"] = structured
        else:
            writing.note("structured_dropped", where, f"no object, which {revision} demands")
            if not content:
                content.append({"type": "text", "text": compact(structured)})
    if revision == "2026-07-28":
        members["resultType"] = "complete"
    extras = {name: member for name, member in result.extras.items() if name != RPC}
    if replays:
        return writing.with_extras(members, object_in(writing.clean.value(extras, where)), where)
    lost = {"task"} & object_in(result.extras.get(RPC)).keys()
    writing.note_dropped([*extras, *lost], where)
    return members
