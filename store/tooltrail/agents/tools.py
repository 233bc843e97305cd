"""A tool of an agent: its definition for the model, and the function that a call runs."""

import inspect
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, cast

from pydantic import JsonValue

from tooltrail.agents._extra import missing_extra
from tooltrail.journal.invocation import Invocation
from tooltrail.records import ToolDefinition

try:
    from jsonschema import Draft202012Validator
    from referencing import Registry
except ModuleNotFoundError as error:
    raise missing_extra(error) from error

Handler = Callable[[dict[str, Any]], object]
"""Takes the arguments of a call; returns the result, or an awaitable of the result."""

running_call: ContextVar[Invocation | None] = ContextVar("running_call", default=None)
"""The recorded call that runs in this context, if its tool captures output; see `AgentTool`.

`run_agent` sets the variable. In a tool loop of your own, the coroutine that awaits `ainvoke` sets
it first, and sets None for a call that is not recorded.
"""

_NO_ARGUMENTS: dict[str, JsonValue] = {"type": "object", "additionalProperties": False}


@dataclass(frozen=True, slots=True)
class AgentTool:
    """A tool. As safe to share between threads as its handler.

    Attributes:
        definition: the definition that the model sees.
        handler: takes the arguments that `parse` returned. `invoke` documents what it may return
            and how its exceptions are recorded. An ordinary function runs in a thread, perhaps
            beside others. A coroutine function runs in the event loop, and can be cancelled.
        has_side_effects: whether a call changes anything outside the conversation.
        family: family of its results; None to take it from the policy and the registry.
        captures_output: whether the handler captures its output with `running_call`. If such a call
            is stopped, or the program is killed, the record has the output so far.
    """

    definition: ToolDefinition
    handler: Handler
    has_side_effects: bool
    family: str | None = None
    captures_output: bool = False

    @property
    def name(self) -> str:
        """The name in its definition."""
        return self.definition.name

    @property
    def is_awaited(self) -> bool:
        """Whether the handler is a coroutine function."""
        called = type(self.handler).__call__
        return inspect.iscoroutinefunction(self.handler) or inspect.iscoroutinefunction(called)

    def parse(self, arguments: JsonValue) -> dict[str, Any]:
        """Check arguments against the schema and return them; the `parse` argument of `invoke`.

        References to other documents are not followed, and `format` is not checked.

        Raises:
            jsonschema.ValidationError: the arguments do not fit; one of the errors.
        """
        parameters = self.definition.parameters
        schema = _NO_ARGUMENTS if parameters is None else parameters
        # An empty registry: the default one downloads the documents that a schema refers to.
        validator = Draft202012Validator(schema, registry=Registry())
        errors = validator.iter_errors(arguments)  # pyright: ignore[reportUnknownMemberType]  half typed there
        # An exception carries one error: the one nearest to the root.
        first = min(errors, key=lambda error: len(error.absolute_path), default=None)
        if first is not None:
            raise first
        if not isinstance(arguments, dict):
            raise TypeError("the arguments must be a JSON object")
        return cast("dict[str, Any]", arguments)
