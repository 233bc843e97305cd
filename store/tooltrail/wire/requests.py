"""What a request asks for besides its messages: a choice of tools, and the shape of the answer."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from pydantic import JsonValue

from tooltrail.wire.members import JsonObject

SCHEMA_NAME = "response"
"""The name of a schema that was given none, for providers that need one."""


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """Whether the model may, must or must not call a tool.

    Attributes:
        mode: `auto`, `none`, `required` for any tool, or `tool` for those that are named.
        names: the tools that it may choose from; in mode `tool` one in most cases, in mode `auto`
            none where any may be called.
        parallel: whether it may call several at once; None to leave that to the provider.
    """

    mode: Literal["auto", "none", "required", "tool"]
    names: tuple[str, ...] = ()
    parallel: bool | None = None


@dataclass(frozen=True, slots=True)
class StructuredFormat:
    """The shape that the text of the answer is to have.

    Attributes:
        schema: JSON Schema.
        name: of the schema, for providers that need one.
    """

    schema: JsonObject
    name: str = SCHEMA_NAME


@dataclass(frozen=True, slots=True)
class ShapeSpelling:
    """How a format asks for an answer of a shape.

    Attributes:
        member: of the request.
        write: what stands in it.
        is_named: whether it has a name beside the schema.
    """

    member: str
    write: Callable[[StructuredFormat], JsonValue]
    is_named: bool = False
