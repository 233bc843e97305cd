"""Records runs of LangChain in a session, by a callback handler.

    config = {"callbacks": [RecordingHandler(session)]}
    tool.invoke(call, config)

A `ToolMessage` has two of the three surfaces: `content` is the text that the model is shown, and
`artifact`, if there is one, the complete output.
"""
# ruff: noqa: ARG002  the signatures are those of LangChain

import json
from collections.abc import Iterable
from contextlib import suppress
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ToolMessage,
    convert_to_openai_messages,
)
from langchain_core.outputs import ChatGeneration, LLMResult

from tooltrail.adapters._shared import Inputs, json_of, output_of, text_of
from tooltrail.records import CompleteOutput, Message, ToolCall, error_of_exception
from tooltrail.store import EndedCall, Invocation, Session
from tooltrail.wire import complete_output_of, wire_format

_FORMAT = "openai"


class RecordingHandler(BaseCallbackHandler):
    """Records the tool calls and messages of runs in a session. Safe to share between threads.

    LangChain logs an exception of recording as a warning, and the run goes on. In asynchronous runs
    LangChain calls the handler in a thread, so that recording does not block the event loop.

    Args:
        session: the session of one conversation, whose runs all take the same handler: another one
            would record the history again. For a child session, the tool that runs another agent
            passes `config={"callbacks": [RecordingHandler(child)]}` to the agent.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._inputs = Inputs(_shown)
        self._system: list[BaseMessage] = []
        self._running: dict[UUID, ToolCall | Invocation] = {}
        self._answered: set[int] = set()  # hashes of answers, and of results of recorded calls

    def on_chat_model_start(
        self, serialized: dict[str, Any], messages: list[list[BaseMessage]], **kwargs: Any
    ) -> None:
        """Record changed system messages, and the new messages that are not recorded yet."""
        for given in messages:
            system = [one for one in given if one.type == "system"]
            new = self._inputs.new_items(one for one in given if one.type != "system")
            changed = system if system != self._system else []
            said = (one for one in new if hash(_shown(one)) not in self._answered)
            self._record([*changed, *said])
            self._system = system

    def on_llm_end(self, response: LLMResult, **kwargs: Any) -> None:
        """Record the answers of a chat model."""
        self._record(self._answers(response))

    def on_llm_error(self, error: BaseException, *, response: Any = None, **kwargs: Any) -> None:
        """Record the text of an answer that broke off, as far as it was streamed."""
        texts = [one.text for one in self._answers(response)] if response else []
        messages = (Message.of("assistant", text) for text in texts if text)
        self._session.messages(one.model_copy(update={"is_complete": False}) for one in messages)

    def on_tool_start(
        self, serialized: dict[str, Any], input_str: str, *, run_id: UUID, **kwargs: Any
    ) -> None:
        """Record that a tool is about to run. Without a tool call, there is no call id."""
        name, call_id, inputs = serialized["name"], kwargs.get("tool_call_id"), kwargs.get("inputs")
        call = ToolCall(tool_name=name, arguments_raw=input_str, call_id=call_id)
        if inputs is not None:
            with suppress(ValueError):  # an argument contains itself, or is too deep
                call = ToolCall.of(name, json_of(inputs), call_id=call_id)
        self._running[run_id] = call
        self._running[run_id] = self._session.start(call)

    def on_tool_end(self, output: object, *, run_id: UUID, **kwargs: Any) -> None:
        """Record the result of a tool."""
        running = self._running.pop(run_id)
        name = running.tool_name
        if isinstance(output, ToolMessage):
            self._end(running, _output_of_message(name, output), text_of(output.content))
            if output.artifact is None or isinstance(output.content, str):
                self._answered.add(hash(_shown(output)))
        else:
            self._end(running, output_of(name, output))

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Record that a tool raised an exception."""
        running = self._running.pop(run_id)
        failure = CompleteOutput.failure(running.tool_name, error_of_exception(error))
        self._end(running, failure)

    def _end(
        self, running: ToolCall | Invocation, output: CompleteOutput, seen: str | None = None
    ) -> None:
        """Record the end of a call; a call without a recorded start is recorded now."""
        if isinstance(running, Invocation):
            running.finish(output, seen=seen)
        else:
            self._session.record(EndedCall(running, output, seen=seen))

    def _answers(self, response: LLMResult) -> list[BaseMessage]:
        """The answers of a chat model, which later inputs repeat."""
        found = [one for some in response.generations for one in some]
        answers = [one.message for one in found if isinstance(one, ChatGeneration)]
        self._answered.update(hash(_shown(one)) for one in answers)
        return answers

    def _record(self, messages: Iterable[BaseMessage]) -> None:
        natives = [_native(one) for one in messages]
        self._session.messages(wire_format(_FORMAT).read_history({"messages": natives}).messages)


def _shown(message: BaseMessage) -> str:
    """What the model is shown of a message: no id, which may be made later, and no artifact."""
    kind = "ai" if isinstance(message, AIMessage) else message.type  # a streamed one is a chunk
    calls, call_id = (getattr(message, name, None) for name in ("tool_calls", "tool_call_id"))
    return repr((kind, message.content, calls, call_id))


def _native(message: BaseMessage) -> Any:
    """The message in the JSON of Chat Completions."""
    try:
        native = convert_to_openai_messages(message, text_format="block")
    except ValueError:  # a block of a type that LangChain cannot convert
        content = json.dumps(json_of(message.content))
        native = convert_to_openai_messages(message.model_copy(update={"content": content}))
    return json_of(native)


def _output_of_message(name: str, message: ToolMessage) -> CompleteOutput:
    """The artifact of a result if there is one, else its content; or the failure of the tool."""
    is_error = message.status == "error"
    shown = complete_output_of(_FORMAT, name, _native(message), is_error=is_error)
    if message.artifact is None:
        return shown
    whole = output_of(name, message.artifact)
    return CompleteOutput.failure(name, shown.error, whole.streams) if shown.error else whole
