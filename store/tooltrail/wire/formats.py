"""What a wire format is, and which ones there are."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType
from typing import cast

from tooltrail.records import Conversation, NotFoundError, ToolDefinition
from tooltrail.wire.capabilities import Capabilities
from tooltrail.wire.exports import Export, ExportPolicy
from tooltrail.wire.members import JsonObject
from tooltrail.wire.requests import StructuredFormat, ToolChoice
from tooltrail.wire.responses import Response
from tooltrail.wire.streaming import Assembler
from tooltrail.wire.usage import NO_USAGE, UsageSpelling


@dataclass(frozen=True, slots=True)
class WireFormat:
    """How one provider spells conversations. All functions are pure.

    Readers take whatever a provider sends and raise `InvalidRecordError` only for what is no JSON
    object of the kind at all; writers give JSON types alone.

    Attributes:
        name: as commands and records spell it.
        capabilities: what the format can carry.
        read_response: an answer that was not streamed.
        new_assembler: for the events of one that is.
        read_history: the conversation and the tools in the body of a request.
        write_history: the members of a request that tell a conversation.
        is_result: whether an item of such a history brings results of tools.
        write_tools: the member of a request that offers tools.
        read_tools: the tools that the body of a request offers.
        write_choice: the members that say whether tools are to be called; none of them where the
            format cannot say it, which the report tells.
        read_choice: the choice that the body of a request makes; None when it makes none.
        write_structured: the members that ask for an answer of a shape.
        read_structured: the shape that the body of a request asks for; None when it asks for none.
        usage: how an answer tells the tokens that it took.
    """

    name: str
    capabilities: Capabilities
    read_response: Callable[[JsonObject], Response]
    new_assembler: Callable[[], Assembler]
    read_history: Callable[[JsonObject], Conversation]
    write_history: Callable[[Conversation, ExportPolicy], Export]
    is_result: Callable[[JsonObject], bool]
    write_tools: Callable[[Iterable[ToolDefinition]], Export]
    read_tools: Callable[[JsonObject], tuple[ToolDefinition, ...]]
    write_choice: Callable[[ToolChoice], Export]
    read_choice: Callable[[JsonObject], ToolChoice | None]
    write_structured: Callable[[StructuredFormat], Export]
    read_structured: Callable[[JsonObject], StructuredFormat | None]
    usage: UsageSpelling = NO_USAGE


FORMAT_MODULES: Mapping[str, str] = MappingProxyType(
    {
        "openai": "tooltrail.wire.openai_chat",
        "openai-responses": "tooltrail.wire.openai_responses",
        "anthropic": "tooltrail.wire.anthropic",
        "ollama": "tooltrail.wire.ollama",
        "gemini": "tooltrail.wire.gemini",
        "mcp": "tooltrail.wire.mcp",
        "text-fallback": "tooltrail.wire.text_fallback",
    }
)
"""Which package has the format of a name; it is imported when the format is asked for."""


def wire_format(name: str) -> WireFormat:
    """The format of this name.

    Raises:
        NotFoundError: there is none.
    """
    if name not in FORMAT_MODULES:
        known = ", ".join(sorted(FORMAT_MODULES))
        raise NotFoundError(f"there is no wire format {name!r}; there are {known}")
    return cast("WireFormat", import_module(FORMAT_MODULES[name]).FORMAT)
