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
        schema: JSON Schema; None for any JSON.
        name: of the schema, for providers that need one.
        description: of the schema, the same.
        strict: whether the provider is to enforce every keyword; None to leave that to it.
    """

    schema: JsonObject | None
    name: str = SCHEMA_NAME
    description: str | None = None
    strict: bool | None = None


@dataclass(frozen=True, slots=True)
class ShapeSpelling:
    """How a format asks for an answer of a shape.

    Attributes:
        member: of the request.
        write: what stands in it.
        is_named: whether it has a name and what else is said beside the schema.
        takes_any: whether it can ask for any JSON.
    """

    member: str
    write: Callable[[StructuredFormat], JsonValue]
    is_named: bool = False
    takes_any: bool = True


def named_schema(wanted: StructuredFormat) -> JsonObject:
    """The schema with what is said beside it, as OpenAI's formats have them."""
    schema: JsonObject = {"name": wanted.name}
    if wanted.description is not None:
        schema["description"] = wanted.description
    schema["schema"] = wanted.schema
    if wanted.strict is not None:
        schema["strict"] = wanted.strict
    return schema
