"""What a wire format is, and which ones there are."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from types import MappingProxyType
from typing import Protocol, TypeVar, cast

from tooltrail.records import Conversation, InvalidRecordError, NotFoundError, ToolDefinition
from tooltrail.wire.capabilities import Capabilities
from tooltrail.wire.exports import Export, ExportPolicy
from tooltrail.wire.members import JsonObject
from tooltrail.wire.requests import StructuredFormat, ToolChoice
from tooltrail.wire.responses import Response
from tooltrail.wire.sturdy import TOO_DEEP, bounded_event, is_bounded
from tooltrail.wire.usage import NO_USAGE, UsageSpelling, usage_in

ReadT = TypeVar("ReadT")


class Assembler(Protocol):
    """Puts the events of one stream together; each format has its own."""

    def feed(self, event: JsonObject) -> None:
        """Take one event. It MAY be a whole answer, as a proxy sends that does not stream."""
        ...

    def finish(self, *, is_done: bool = False) -> Response:
        """The answer; called once, when nothing follows.

        Args:
            is_done: whether the stream marked its end by the `[DONE]` of server-sent events.
        """
        ...


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
        write_structured: the members that ask for an answer of a shape.
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
    write_structured: Callable[[StructuredFormat], Export]
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


def sturdy(known: WireFormat) -> WireFormat:
    """The format, with readers that raise nothing but `InvalidRecordError`.

    An answer with a part that no record can hold is read: the part becomes JSON in a text, and no
    call of the answer may run. A request with such a part is refused.
    """
    return replace(
        known,
        read_response=_for_answers(known.read_response, known.usage),
        read_history=_refusing(known.read_history),
        read_tools=_refusing(known.read_tools),
    )


def _for_answers(
    read: Callable[[JsonObject], Response], usage: UsageSpelling
) -> Callable[[JsonObject], Response]:
    def read_bounded(payload: JsonObject) -> Response:
        counts = usage_in([usage.find(payload)], usage)
        if is_bounded(payload):
            return replace(read(payload), usage=counts)
        response = read(bounded_event(payload))
        unread = (*response.unread, TOO_DEEP)
        return Response.of(response.messages, response.failure, unread, response.remarks, counts)

    return read_bounded


def _refusing(read: Callable[[JsonObject], ReadT]) -> Callable[[JsonObject], ReadT]:
    def read_or_refuse(request: JsonObject) -> ReadT:
        if not is_bounded(request):
            raise InvalidRecordError(
                "the request has what no record can hold: nested too deep, or too long a number"
            )
        return read(request)

    return read_or_refuse
