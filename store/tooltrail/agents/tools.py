"""A tool that an agent may call: what the model is told of it, and what runs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from jsonschema import Draft202012Validator
from pydantic import JsonValue

from tooltrail.records import ToolDefinition


@dataclass(frozen=True, slots=True)
class AgentTool:
    """One tool.

    Attributes:
        definition: as the model is offered it; its name is the one that configurations use.
        handler: takes the arguments as a dictionary, and gives what `tooltrail.records.invoke`
            takes; one that is awaited can be stopped, any other runs in a thread of its own.
        has_side_effects: whether it changes something; then no other call runs beside it.
        family: of its results; None for the one that serves tools of its name.
    """

    definition: ToolDefinition
    handler: Callable[[dict[str, Any]], object]
    has_side_effects: bool = False
    family: str | None = None

    def parse(self, arguments: JsonValue) -> Any:
        """The arguments, if they are those that the definition asks for.

        Raises:
            ValueError: they are no object.
            jsonschema.ValidationError: they do not fit the parameters.
        """
        if self.definition.kind == "custom":
            return arguments
        if not isinstance(arguments, dict):
            raise ValueError("the arguments must be a JSON object")  # noqa: TRY004  of the value
        if self.definition.parameters is not None:
            validator: Any = Draft202012Validator(cast("Any", self.definition.parameters))
            for error in validator.iter_errors(arguments):
                raise error
        return arguments
