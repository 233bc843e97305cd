"""Records runs of the OpenAI Agents SDK in a session, by the hooks of a run.

    hooks = RecordingHooks(session)
    await Runner.run(agent, "What is 1 + 2?", hooks=hooks)

A result is recorded as the value that the tool returned, and as the text that the SDK makes of the
value for the model.
"""

import asyncio
from types import TracebackType
from typing import Any, Self

from agents import (
    Agent,
    FunctionTool,
    ItemHelpers,
    ModelResponse,
    RunContextWrapper,
    RunHooks,
    Tool,
    TResponseInputItem,
    UserError,
)
from agents.tool_context import ToolContext
from openai.types.responses import ResponseFunctionToolCall

from tooltrail.adapters._shared import Inputs, json_of, logged_errors, output_of
from tooltrail.records import CompleteOutput, Message, ToolCall
from tooltrail.store import EndedCall, Invocation, Session, record_response
from tooltrail.wire import complete_output_of, wire_format

_FORMAT = "openai-responses"

_Context = RunContextWrapper[Any]


class RecordingHooks(RunHooks[Any]):
    """Records the tool calls and messages of runs in a session.

    An exception of recording is logged and never reaches the run. With `async with`, calls that
    the SDK did not end are recorded as interrupted when the block is left. Without it, they are
    when the program ends.

    Args:
        session: the session of one conversation. An agent that is a tool of another agent takes
            hooks of its own, with a child session: `agent.as_tool(…, hooks=RecordingHooks(child))`.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._inputs = Inputs()
        self._system: str | None = None
        self._asked: dict[str, ToolCall] = {}
        self._running: dict[tuple[_Context, str], ToolCall | Invocation] = {}
        self._answered: set[str | None] = set()

    async def on_llm_start(
        self,
        context: _Context,  # noqa: ARG002  the SDK's signature
        agent: Agent[Any],  # noqa: ARG002
        system_prompt: str | None,
        input_items: list[TResponseInputItem],
    ) -> None:
        """Record a changed system prompt, and the new items that are not recorded yet."""
        with logged_errors("an input of the model"):
            items, is_first = self._inputs.new_items(input_items)
            new = [one for one in items if one.get("call_id") not in self._answered]
            messages = wire_format(_FORMAT).read_history({"input": json_of(new)}).messages
            said = [one for one in messages if is_first or one.role != "assistant"]
            if system_prompt and system_prompt != self._system:
                said.insert(0, Message.of("system", system_prompt))
            await self._session.amessages(said)
            self._system = system_prompt

    async def on_llm_end(
        self,
        context: _Context,  # noqa: ARG002
        agent: Agent[Any],  # noqa: ARG002
        response: ModelResponse,
    ) -> None:
        """Record the answer of the model, in the items of the SDK."""
        with logged_errors("an answer of the model"):
            output = [one.model_dump(mode="json", exclude_unset=True) for one in response.output]
            payload = {"id": response.response_id, "output": output}
            answer = await asyncio.to_thread(record_response, self._session, _FORMAT, payload)
            self._asked |= {call.call_id: call for call in answer.calls if call.call_id}

    async def on_tool_start(self, context: _Context, agent: Agent[Any], tool: Tool) -> None:  # noqa: ARG002
        """Record that a tool is about to run."""
        with logged_errors(f"the start of a call of {tool.name}"):
            call = self._call_of(context, tool)
            self._running[context, tool.name] = call
            self._running[context, tool.name] = await self._session.astart(call)

    async def on_tool_end(
        self,
        context: _Context,
        agent: Agent[Any],  # noqa: ARG002
        tool: Tool,
        result: object,
    ) -> None:
        """Record the result of a tool. A call without a recorded start is recorded with it."""
        with logged_errors(f"a result of {tool.name}"):
            running = self._running.pop((context, tool.name), None)
            call = running.call if isinstance(running, Invocation) else running
            call = call or self._call_of(context, tool)
            output, seen = _surfaces(context, tool, call.tool_name, result)
            if isinstance(running, Invocation):
                await running.afinish(output, seen=seen)
            else:
                await self._session.arecord(EndedCall(call, output, seen=seen))
            self._answered |= {call.call_id} - {None}

    def _call_of(self, context: _Context, tool: Tool) -> ToolCall:
        """The call in the answer of the model, or else what the SDK says of the call."""
        if not isinstance(context, ToolContext):
            return ToolCall(tool_name=tool.name, arguments_raw="")
        return self._asked.pop(context.tool_call_id, None) or ToolCall(
            tool_name=context.tool_name,
            arguments_raw=context.tool_arguments,
            call_id=context.tool_call_id,
            namespace=context.tool_namespace,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        running, self._running = self._running, {}
        reason = "the SDK reported no end of the call"
        if kind is not None:
            reason += f"; the run raised {kind.__name__}: {error}"
        for invocation in running.values():
            if isinstance(invocation, Invocation):
                with logged_errors("the end of a call"):
                    await invocation.ainterrupt(reason)


def _surfaces(
    context: _Context, tool: Tool, name: str, result: object
) -> tuple[CompleteOutput, str | None]:
    """The complete output, and the text that the model is shown if the SDK says it."""
    if not isinstance(context, ToolContext):
        return output_of(name, result), None
    call = context.tool_call or ResponseFunctionToolCall(
        arguments=context.tool_arguments,
        call_id=context.tool_call_id,
        name=context.tool_name,
        type="function_call",
    )
    schema = tool.output_json_schema if isinstance(tool, FunctionTool) else None
    value = result if schema is None else json_of(result)
    try:
        shown: Any = ItemHelpers.tool_call_output_item(call, value, output_json_schema=schema)
    except UserError:  # a text of the SDK, such as an error, which does not follow the schema
        shown = ItemHelpers.tool_call_output_item(call, result)
    if isinstance(shown["output"], str):
        return output_of(name, result), shown["output"]
    texts = [part["text"] for part in shown["output"] if "text" in part]
    return complete_output_of(_FORMAT, name, shown, is_error=False), "\n".join(texts) or None
