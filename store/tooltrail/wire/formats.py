"""The `WireFormat` class and the table of all wire formats."""

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from importlib import import_module
from types import MappingProxyType
from typing import Protocol, cast

from tooltrail.records import Conversation, InvalidRecordError, NotFoundError, ToolDefinition
from tooltrail.records.errors import check_type
from tooltrail.wire._identifiers import NO_SERVERS, split_servers, split_tools
from tooltrail.wire._writing import Writing
from tooltrail.wire.capabilities import Capabilities
from tooltrail.wire.exports import DEFAULT_EXPORT_POLICY, Export, ExportPolicy, ToolChoice
from tooltrail.wire.members import JsonObject, object_in
from tooltrail.wire.responses import Response, odd_calls
from tooltrail.wire.sturdy import TOO_DEEP, bounded, is_bounded
from tooltrail.wire.usage import TokenCounts, UsageSpelling, usage_in


class Assembler(Protocol):
    """Assembles the events of one stream into an answer; each format has its own assembler."""

    def feed(self, event: JsonObject) -> None:
        """Add one event. It MAY be a complete answer, from a proxy that does not stream."""
        ...

    def finish(self, *, is_done: bool = False) -> Response:
        """Return the answer; called once, after the last event.

        `is_done`: the stream marked its end with `data: [DONE]`.
        """
        ...


@dataclass(frozen=True, slots=True)
class WireFormat:
    """How one provider represents conversations in JSON. All functions are pure.

    Readers accept any JSON object that a provider sends. The only error they raise is
    `InvalidRecordError`, for an object of another kind. Writers return JSON types only.

    Attributes:
        name: the name in commands and records.
        capabilities: the limits of the format.
        response_reader: see `read_response`; called with a payload that a record can hold.
        new_assembler: makes the assembler for the events of a streamed answer.
        history_reader: see `read_history`.
        history_writer: see `write_history`; all writers return members of a request.
        is_result: whether an item of such a history contains tool results.
        tools_reader: see `read_tools`.
        tools_writer: see `write_tools`.
        choice_writer: writes the members for a choice among the offered tools; None for a format
            that has no such member and cannot force a call.
        usage: where an answer reports its token counts; by default nowhere.
    """

    name: str
    capabilities: Capabilities
    response_reader: Callable[[JsonObject], Response]
    new_assembler: Callable[[], Assembler]
    history_reader: Callable[[JsonObject], Conversation]
    history_writer: Callable[[Writing, Conversation], JsonObject]
    is_result: Callable[[JsonObject], bool]
    tools_reader: Callable[[JsonObject], Iterable[ToolDefinition]]
    tools_writer: Callable[[Writing, Iterable[ToolDefinition]], JsonObject]
    choice_writer: Callable[[Writing, ToolChoice], JsonObject] | None
    usage: UsageSpelling = field(default_factory=UsageSpelling)

    def read_response(
        self, payload: JsonObject, servers: AbstractSet[str] = NO_SERVERS
    ) -> Response:
        """Read an answer that was not streamed.

        A part that no record can hold becomes JSON in a text; then no call of the answer may run.

        Args:
            payload: the body of the answer.
            servers: the known servers; their `server___tool` names are split into server and tool.
        """
        counts = usage_in([self.usage.find(payload)], self.usage)
        fits = is_bounded(payload)
        read = self.response_reader(payload if fits else object_in(bounded(payload)))
        if not fits:
            read = Response.of(read.messages, read.failure, (*read.unread, TOO_DEEP))
        return self.finished(read, counts, servers)

    def finished(
        self, read: Response, counts: TokenCounts | None, servers: AbstractSet[str]
    ) -> Response:
        """Complete an answer for the caller: check its calls, add token counts, split names."""
        if not (read.messages or read.failure or read.unread):
            read = read.with_more(unread=("there is neither a message nor an error",))
        if not self.capabilities.arguments_are_text:
            read = read.with_more(unread=odd_calls(read.messages))
        return replace(read, usage=counts).with_servers(self.unsplit(servers))

    def read_history(
        self, request: JsonObject, servers: AbstractSet[str] = NO_SERVERS
    ) -> Conversation:
        """Read the conversation and the tools in the body of a request.

        Raises:
            InvalidRecordError: the request has no conversation, a message has no known role, or
                no record can hold a part.
        """
        read = self.history_reader(_bounded(request))
        known = self.unsplit(servers)
        messages = (split_servers(message, known) for message in read.messages)
        return Conversation.of(messages, split_tools(read.tools, known))

    def read_tools(
        self, request: JsonObject, servers: AbstractSet[str] = NO_SERVERS
    ) -> tuple[ToolDefinition, ...]:
        """Read the tools that the body of a request offers; `servers` as in `read_response`.

        Raises:
            InvalidRecordError: the request has a part that no record can hold.
        """
        return split_tools(self.tools_reader(_bounded(request)), self.unsplit(servers))

    def write_history(
        self, conversation: Conversation, policy: ExportPolicy = DEFAULT_EXPORT_POLICY
    ) -> Export:
        """Write a conversation as members of a request.

        Raises:
            ExportRefusedError: the policy is strict and the export would change something.
            NotFoundError: the policy names an unknown text format.
        """
        writing = Writing(self.name, self.capabilities, policy)
        return writing.export(self.history_writer(writing, conversation))

    def write_tools(
        self, tools: Iterable[ToolDefinition], choice: ToolChoice | None = None
    ) -> Export:
        """Write the members of a request that offer tools and the choice among them.

        If no tool is offered, no choice is written: servers refuse a choice without tools.
        A format without a member for the choice offers no tools in the mode `none`.
        """
        writing = Writing(self.name, self.capabilities, DEFAULT_EXPORT_POLICY)
        if choice is not None and choice.mode == "none" and self.choice_writer is None:
            return writing.export({})
        request = self.tools_writer(writing, tuple(tools))
        if choice is not None:
            chosen = self._choice(writing, choice, has_tools=bool(request))
            request = writing.with_extras(request, chosen, "tool_choice")
        return writing.export(request)

    def _choice(self, writing: Writing, choice: ToolChoice, *, has_tools: bool) -> JsonObject:
        if choice.mode == "tool" and not choice.names:
            writing.note_choice("no tool is named; any may be called")
            choice = replace(choice, mode="required")
        if has_tools and self.choice_writer is not None:
            return self.choice_writer(writing, choice)
        if has_tools:
            writing.note_unforced(choice)
        elif choice.mode in ("required", "tool"):
            writing.note_choice("no tool is offered, so none can be called")
        return {}

    def unsplit(self, servers: AbstractSet[str]) -> AbstractSet[str]:
        """The servers whose tool names must still be split; none if the reader splits names."""
        return NO_SERVERS if self.capabilities.names_servers else servers


def _bounded(request: JsonObject) -> JsonObject:
    if not is_bounded(request):
        raise InvalidRecordError(
            "the request has what no record can hold: nested too deep, or too long a number"
        )
    return request


FORMAT_MODULES: Mapping[str, str] = MappingProxyType(
    {
        "openai": "tooltrail.wire.openai_chat",
        "openai-responses": "tooltrail.wire.openai_responses",
        "anthropic": "tooltrail.wire.anthropic",
        "bedrock": "tooltrail.wire.bedrock",
        "ollama": "tooltrail.wire.ollama",
        "gemini": "tooltrail.wire.gemini",
        "cohere": "tooltrail.wire.cohere",
        "mcp": "tooltrail.wire.mcp",
        "text-fallback": "tooltrail.wire.text_fallback",
    }
)
"""The package of each format by the format's name; `wire_format` imports it on first use."""


def wire_format(name: str) -> WireFormat:
    """Return the format with this name.

    Raises:
        NotFoundError: no format has this name.
        InvalidRecordError: the name is not a text.
    """
    check_type("the name of a wire format", name, str)
    if name not in FORMAT_MODULES:
        known = ", ".join(sorted(FORMAT_MODULES))
        raise NotFoundError(f"there is no wire format {name!r}; there are {known}")
    return cast("WireFormat", import_module(FORMAT_MODULES[name]).FORMAT)
