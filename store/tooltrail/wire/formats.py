"""What a wire format is, and which ones there are."""

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from importlib import import_module
from types import MappingProxyType
from typing import Protocol, cast

from tooltrail.records import Conversation, InvalidRecordError, NotFoundError, ToolDefinition
from tooltrail.wire._identifiers import NO_SERVERS, split_servers, split_tools
from tooltrail.wire._writing import Writing
from tooltrail.wire.capabilities import Capabilities
from tooltrail.wire.exports import DEFAULT_EXPORT_POLICY, Export, ExportPolicy
from tooltrail.wire.members import JsonObject, object_in
from tooltrail.wire.requests import ToolChoice
from tooltrail.wire.responses import Response, odd_calls
from tooltrail.wire.sturdy import TOO_DEEP, bounded, is_bounded
from tooltrail.wire.usage import NO_USAGE, TokenCounts, UsageSpelling, usage_in


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

    Readers take whatever a provider sends and raise nothing but `InvalidRecordError`, for what is
    no JSON object of the kind at all; writers give JSON types alone.

    Attributes:
        name: as commands and records spell it.
        capabilities: what the format can carry.
        response_reader: see `read_response`; the payload is one that a record can hold.
        new_assembler: for the events of an answer that is streamed.
        history_reader: see `read_history`.
        history_writer: see `write_history`; all writers give members of a request.
        is_result: whether an item of such a history brings results of tools.
        tools_reader: see `read_tools`.
        tools_writer: see `write_tools`.
        choice_writer: the members for a choice of tools that are offered; None for a format that
            has no such member, and cannot force one.
        usage: how an answer tells the tokens that it took.
    """

    name: str
    capabilities: Capabilities
    response_reader: Callable[[JsonObject], Response]
    new_assembler: Callable[[], Assembler]
    history_reader: Callable[[JsonObject], Conversation]
    history_writer: Callable[[Writing, Conversation], JsonObject]
    is_result: Callable[[JsonObject], bool]
    tools_reader: Callable[[JsonObject], tuple[ToolDefinition, ...]]
    tools_writer: Callable[[Writing, Iterable[ToolDefinition]], JsonObject]
    choice_writer: Callable[[Writing, ToolChoice], JsonObject] | None
    usage: UsageSpelling = NO_USAGE

    def read_response(
        self, payload: JsonObject, servers: AbstractSet[str] = NO_SERVERS
    ) -> Response:
        """An answer that was not streamed.

        A part that no record can hold becomes JSON in a text, and no call of the answer may run.

        Args:
            payload: the body of the answer.
            servers: those that are known: their `server___tool` is split into server and tool.
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
        """An answer as a caller gets it: its calls are looked at, and its tokens are in it."""
        if not (read.messages or read.failure or read.unread):
            read = read.with_more(unread=("there is neither a message nor an error",))
        if not self.capabilities.arguments_are_text:
            read = read.with_more(unread=odd_calls(read.messages))
        return replace(read, usage=counts).with_servers(self.unsplit(servers))

    def read_history(
        self, request: JsonObject, servers: AbstractSet[str] = NO_SERVERS
    ) -> Conversation:
        """The conversation and the tools in the body of a request; for servers, see above.

        Raises:
            InvalidRecordError: there is none, a message has no role that is known, or a part is
                none that a record can hold.
        """
        read = self.history_reader(_bounded(request))
        known = self.unsplit(servers)
        messages = (split_servers(message, known) for message in read.messages)
        return Conversation.of(messages, split_tools(read.tools, known))

    def read_tools(
        self, request: JsonObject, servers: AbstractSet[str] = NO_SERVERS
    ) -> tuple[ToolDefinition, ...]:
        """The tools that the body of a request offers; for servers, see above.

        Raises:
            InvalidRecordError: the request has a part that no record can hold.
        """
        return split_tools(self.tools_reader(_bounded(request)), self.unsplit(servers))

    def write_history(
        self, conversation: Conversation, policy: ExportPolicy = DEFAULT_EXPORT_POLICY
    ) -> Export:
        """The members of a request that tell a conversation.

        Raises:
            ExportRefusedError: something would be changed, and the policy is strict.
            NotFoundError: the policy names a text format that there is not.
        """
        writing = Writing(self.name, self.capabilities, policy)
        return writing.export(self.history_writer(writing, conversation))

    def write_tools(
        self, tools: Iterable[ToolDefinition], choice: ToolChoice | None = None
    ) -> Export:
        """The members of a request that offer tools and say whether they are to be called.

        Where no tool is offered, nothing is said of a choice: servers refuse a choice among none.
        A format without a choice offers no tools in the mode `none`.
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
        """Those of the servers whose names a reader of this format has not split already."""
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
