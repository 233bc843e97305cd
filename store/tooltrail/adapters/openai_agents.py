"""Records runs of the OpenAI Agents SDK in a session, by the hooks of a run.

async with RecordingHooks(session) as hooks:
    await Runner.run(agent, "What is 1 + 2?", hooks=hooks)
"""
# ruff: noqa: ARG002  the signatures are those of the SDK

import asyncio
from collections.abc import Sequence
from typing import Any, Self, cast

import agents as sdk
from agents.tool_context import ToolContext
from openai.types.responses import ResponseFunctionToolCall

from tooltrail.adapters._shared import Inputs, json_of, logged_errors, output_of, text_of
from tooltrail.records import CompleteOutput, Message, ToolCall
from tooltrail.store import EndedCall, Invocation, Session, record_response
from tooltrail.wire import complete_output_of, wire_format

_FORMAT = "openai-responses"

_CHANGING = {"id", "status", "created_by", "provider_data"}
"""Members that the SDK removes from an answer, or adds, before the answer is input again."""

_Context = sdk.RunContextWrapper[Any]
_Agent = sdk.Agent[Any]
_Items = list[sdk.TResponseInputItem]


class RecordingHooks(sdk.RunHooks[Any]):
    """Records the tool calls and messages of runs in a session.

    An exception of recording is logged and never reaches the run. With `async with`, calls that
    the SDK did not end become interrupted when the block is left, else when the program ends.

    Args:
        session: the session of one conversation, whose runs all take the same hooks: other hooks
            would record the history again. An agent that is a tool of another agent takes hooks of
            its own, with a child session: `agent.as_tool(…, hooks=RecordingHooks(child))`.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._inputs = Inputs()
        self._system: str | None = None
        self._asked: dict[tuple[str | None, str], ToolCall] = {}
        self._running: dict[tuple[_Context, str], ToolCall | Invocation] = {}
        # Hashes of items that are recorded as answers, or as results of calls.
        self._recorded: set[int | None] = set()

    async def on_llm_start(
        self, context: _Context, agent: _Agent, system_prompt: str | None, input_items: _Items
    ) -> None:
        """Record a changed system prompt, and the new items that are not recorded yet."""
        with logged_errors("an input of the model"):
            items = await asyncio.to_thread(self._inputs.new_items, input_items)
            new = [one for one in map(json_of, items) if _hash_of(one) not in self._recorded]
            said = list(wire_format(_FORMAT).read_history({"input": new}).messages)
            if system_prompt and system_prompt != self._system:
                said.insert(0, Message.of("system", system_prompt))
            await self._session.amessages(said)
            self._system = system_prompt

    async def on_llm_end(
        self, context: _Context, agent: _Agent, response: sdk.ModelResponse
    ) -> None:
        """Record the answer of the model, in the items of the SDK."""
        with logged_errors("an answer of the model"):
            output = [one.model_dump(mode="json", exclude_unset=True) for one in response.output]
            payload = {"id": response.response_id, "output": output}
            answer = await asyncio.to_thread(record_response, self._session, _FORMAT, payload)
            self._recorded |= set(map(_hash_of, output))
            self._asked |= {(call.call_id, call.arguments_raw): call for call in answer.calls}

    async def on_tool_start(self, context: _Context, agent: _Agent, tool: sdk.Tool) -> None:
        """Record that a tool is about to run."""
        with logged_errors(f"the start of a call of {tool.name}"):
            call = self._call_of(context, tool)
            self._running[context, tool.name] = call
            self._running[context, tool.name] = await self._session.astart(call)

    async def on_tool_end(
        self, context: _Context, agent: _Agent, tool: sdk.Tool, result: object
    ) -> None:
        """Record the result of a tool; a call without a recorded start is recorded now."""
        with logged_errors(f"a result of {tool.name}"):
            running = self._running.pop((context, tool.name), None) or self._call_of(context, tool)
            output, seen, shown = _surfaces(context, tool, running.tool_name, result)
            if isinstance(running, Invocation):
                await running.afinish(output, seen=seen)
            else:
                await self._session.arecord(EndedCall(running, output, seen=seen))
            self._recorded.add(shown)

    def _call_of(self, context: _Context, tool: sdk.Tool) -> ToolCall:
        """The call with these arguments in an answer, or else what the SDK says of the call."""
        if not isinstance(context, ToolContext):
            return ToolCall(tool_name=tool.name, arguments_raw="")
        # Call ids may repeat, also in runs at the same time.
        key = (context.tool_call_id, context.tool_arguments)
        return self._asked.pop(key, None) or ToolCall(
            tool_name=context.tool_name,
            arguments_raw=context.tool_arguments,
            call_id=context.tool_call_id,
            namespace=context.tool_namespace,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, _: object, error: BaseException | None, __: object) -> None:
        raised = f"; the run raised {type(error).__name__}: {error}" if error else ""
        while self._running:
            _, running = self._running.popitem()
            if isinstance(running, Invocation):
                with logged_errors(f"the end of a call of {running.tool_name}"):
                    await running.ainterrupt(f"the SDK reported no end of the call{raised}")


def _hash_of(item: Any) -> int:
    """A hash of an item without the members that the SDK changes."""
    return hash(repr(_said(item)))


def _said(value: Any) -> Any:
    if isinstance(value, list):
        return [_said(one) for one in cast("Sequence[Any]", value)]
    if not isinstance(value, dict):
        return value
    members = cast("dict[str, Any]", value)
    return [(name, _said(one)) for name, one in sorted(members.items()) if name not in _CHANGING]


def _surfaces(
    context: _Context, tool: sdk.Tool, name: str, result: object
) -> tuple[CompleteOutput, str | None, int | None]:
    """The complete output, and the text that the model is shown if the SDK says it, with a hash."""
    if not isinstance(context, ToolContext):
        return output_of(name, result), None, None
    call = context.tool_call or ResponseFunctionToolCall(
        type="function_call", call_id=context.tool_call_id, name=name, arguments=""
    )
    schema = tool.output_json_schema if isinstance(tool, sdk.FunctionTool) else None
    try:
        value = result if schema is None else json_of(result)
        item: Any = sdk.ItemHelpers.tool_call_output_item(call, value, output_json_schema=schema)
    except sdk.UserError:  # a text of the SDK, such as an error, which does not follow the schema
        item = sdk.ItemHelpers.tool_call_output_item(call, result)
    if isinstance(item["output"], str):
        return output_of(name, result), item["output"], _hash_of(item)
    seen = text_of(item["output"])
    return complete_output_of(_FORMAT, name, item, is_error=False), seen, _hash_of(item)
