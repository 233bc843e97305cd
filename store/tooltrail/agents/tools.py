"""A tool that an agent may be given: what a model sees of it, and what a call of it runs."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from pydantic import JsonValue

from tooltrail.agents._extra import missing_extra
from tooltrail.records import ToolDefinition

try:
    from jsonschema import Draft202012Validator
    from referencing import Registry
except ModuleNotFoundError as error:
    raise missing_extra(error) from error

Handler = Callable[[dict[str, Any]], object]
"""Takes the arguments of a call and gives its result, or something to be awaited for it."""

_NO_ARGUMENTS: dict[str, JsonValue] = {"type": "object", "additionalProperties": False}


@dataclass(frozen=True, slots=True)
class AgentTool:
    """A tool. As safe to share between threads as its handler.

    Attributes:
        definition: what a model is offered.
        handler: takes arguments that `parse` let through. What it may return, and what becomes of
            its exceptions, is said at `invoke`. An ordinary function runs in a thread, and may run
            beside others; a coroutine function runs in the event loop, and can be cancelled.
        has_side_effects: whether a call changes anything outside of the conversation.
        family: the family of its results; None where the policy and the registry say.
    """

    definition: ToolDefinition
    handler: Handler
    has_side_effects: bool
    family: str | None = None

    @property
    def name(self) -> str:
        """By which the model calls it."""
        return self.definition.name

    @property
    def is_awaited(self) -> bool:
        """Whether the handler is a coroutine function."""
        called = type(self.handler).__call__
        return inspect.iscoroutinefunction(self.handler) or inspect.iscoroutinefunction(called)

    def parse(self, arguments: JsonValue) -> dict[str, Any]:
        """The arguments, if they fit the schema; it is the `parse` that `invoke` takes.

        References to schemas elsewhere are not followed, and `format` is not checked.

        Raises:
            jsonschema.ValidationError: they do not fit; this is one of the errors.
        """
        parameters = self.definition.parameters
        schema = _NO_ARGUMENTS if parameters is None else parameters
        # A registry of its own, because the default one fetches what a schema refers to.
        validator = Draft202012Validator(schema, registry=Registry())
        errors = validator.iter_errors(arguments)  # pyright: ignore[reportUnknownMemberType]  half typed there
        # One exception carries one error: that which is true of the largest part.
        first = min(errors, key=lambda error: len(error.absolute_path), default=None)
        if first is not None:
            raise first
        if not isinstance(arguments, dict):
            raise TypeError("the arguments must be a JSON object")
        return cast("dict[str, Any]", arguments)
