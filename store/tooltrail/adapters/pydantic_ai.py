"""Records what an agent of Pydantic AI runs, as a capability of the agent."""

from collections.abc import Awaitable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

from pydantic import ValidationError
from pydantic_ai import AgentRunResult, ModelRequestContext, RunContext
from pydantic_ai import exceptions as exc
from pydantic_ai import messages as msg
from pydantic_ai.capabilities import AbstractCapability
from pydantic_core import to_json

from tooltrail import records
from tooltrail.adapters._shared import json_of, logged_errors, output_of
from tooltrail.records import CompleteOutput, ErrorKind, Message, ToolCall
from tooltrail.store import Invocation, Session

Run: TypeAlias = RunContext[Any]

_KINDS: Final = {
    "denied": ErrorKind.PERMISSION_DENIED,
    "unknown_tool": ErrorKind.UNKNOWN_TOOL,
    "unavailable_tool": ErrorKind.TOOL_NOT_EXPOSED,
    "validation_error": ErrorKind.INVALID_TOOL_INPUT,
}
"""The kind of a failure, by the cause of a retry or else by the outcome."""

_DEFERRED = (exc.ApprovalRequired, exc.CallDeferred)
_LATER = (exc.ModelRetry, exc.RunCancelled, exc.SkipToolExecution, exc.ToolFailed, ValidationError)
"""Exceptions that the framework turns into a result; the next request to the model has it."""


@dataclass
class RecordingCapability(AbstractCapability[Any]):
    """Records tool calls and messages of runs in a session. Runs may be parallel."""

    session: Session
    _asked: dict[str, ToolCall] = field(default_factory=dict[str, ToolCall], repr=False)
    _open: dict[str, Invocation] = field(default_factory=dict[str, Invocation], repr=False)
    _deferred: dict[str, Invocation] = field(default_factory=dict[str, Invocation], repr=False)

    async def for_run(self, ctx: Run) -> "RecordingCapability":
        """The copy for one run, which may answer the calls of an earlier run."""
        answers = [one for one in ctx.messages if isinstance(one, msg.ModelResponse)]
        asked = {call.tool_call_id: _call_of(call) for one in answers for call in one.tool_calls}
        return replace(self, _asked=asked, _open={})

    async def on_run_error(self, ctx: Run, *, error: BaseException) -> AgentRunResult[Any]:  # noqa: ARG002
        """End the calls whose result was not known before the run failed."""
        for call_id in [*self._open]:
            await self._kept(self._end(call_id, error))
        raise error

    async def wrap_model_request(
        self, ctx: Run, *, request_context: ModelRequestContext, handler: Any
    ) -> msg.ModelResponse:
        """Record what is new in a request, then the answer, and the calls that it asks for."""
        request = request_context.messages[-1]
        parts = [*request.parts] if request.run_id in {None, ctx.run_id} else []
        if ctx.run_step == 1 and isinstance(request, msg.ModelRequest) and request.instructions:
            parts.insert(0, msg.SystemPromptPart(request.instructions))
        for part in parts:
            if isinstance(part, msg.ToolReturnPart):
                await self._kept(self._end(part.tool_call_id, part))
            elif isinstance(part, msg.SystemPromptPart | msg.UserPromptPart):
                items = [part.content] if isinstance(part.content, str) else part.content
                role: records.Role = "user" if part.part_kind == "user-prompt" else "system"
                await self._kept(self._say(role, items))
        response: msg.ModelResponse = await handler(request_context)
        calls = [_call_of(call, n) for n, call in enumerate(response.tool_calls)]
        texts = [response.text] if response.text else []
        link = {"message_id": await self._kept(self._say("assistant", texts, calls))}
        self._asked.update({one.call_id or "": one.model_copy(update=link) for one in calls})
        return response

    async def wrap_tool_execute(
        self, *_: Any, call: msg.ToolCallPart, args: Any, handler: Any, **__: Any
    ) -> Any:
        """Record the execution of a tool; a call that was deferred in this process goes on."""
        call_id, asked = call.tool_call_id, self._asked.pop(call.tool_call_id, _call_of(call))
        began = self._deferred.pop(call_id, None) or await self._kept(self.session.astart(asked))
        if began is not None:
            self._open[call_id] = began
        try:
            result = await handler(args)
        except BaseException as error:
            if isinstance(error, _DEFERRED) and began is not None:
                self._deferred[call_id] = self._open.pop(call_id)
            elif not isinstance(error, _LATER):
                part = getattr(error, "tool_retry", getattr(error, "tool_failed", error))
                await self._kept(self._end(call_id, part))
            raise
        await self._kept(self._end(call_id, result))
        return result

    async def _say(
        self, role: records.Role, content: Iterable[object], calls: Iterable[ToolCall] = ()
    ) -> object:
        """Record a message: texts, anything else as JSON, and calls."""
        text, other = records.TextBlock, records.ProviderBlock
        blocks = [
            text(text=one) if isinstance(one, str) else other(native=json_of(one))
            for one in content
        ]
        asking = [records.CallBlock(call=call) for call in calls]
        return await self.session.amessage(Message(role=role, blocks=(*blocks, *asking)))

    async def _end(self, call_id: str, ended: Any) -> None:
        """End a call with an exception, a part of a request, or what its tool returned."""
        asked = self._asked.pop(call_id, None)
        found = self._open.get(call_id) or self._deferred.get(call_id)
        if found is None and asked is not None:
            found = await self.session.astart(asked)
        if found is not None:
            output, seen = _output_of(found.call.tool_name, ended)
            for calls in (self._open, self._deferred):
                calls.pop(call_id, None)
            await found.afinish(output, seen=seen)

    async def _kept(self, recording: Awaitable[Any]) -> Any:
        """What recording returns; None if it fails, which is logged."""
        with logged_errors(f"a part of session {self.session.id}"):
            return await recording


def _call_of(call: msg.ToolCallPart, position: int = 0) -> ToolCall:
    """A call, with the arguments as the model sent them."""
    raw = call.args if isinstance(call.args, str) else to_json(call.args or {}).decode()
    name, call_id = call.tool_name, call.tool_call_id
    return ToolCall(tool_name=name, arguments_raw=raw, call_id=call_id, position=position)


def _output_of(name: str, ended: Any) -> tuple[CompleteOutput, str | None]:
    """The complete output of a call, and the text that the model is sent; None for no text."""
    if isinstance(ended, BaseException):
        return CompleteOutput.failure(name, records.error_of_exception(ended)), None
    if not isinstance(ended, msg.ToolReturnPart):
        returned: object = ended
        shown: Any = ended.return_value if isinstance(ended, msg.ToolReturn) else ended
        return output_of(name, returned), msg.ToolReturnPart(name, shown).model_response_str()
    seen = ended.model_response_str()
    if ended.outcome == "success":
        return output_of(name, ended.content), seen
    cause = ended.retry.cause if ended.retry else ended.outcome
    kind = _KINDS.get(cause, ErrorKind.TOOL_EXECUTION_FAILED)
    message = ended.model_response_str(wrap_if_error=False)
    return CompleteOutput.failure(name, records.ToolError(kind=kind, message=message)), seen
