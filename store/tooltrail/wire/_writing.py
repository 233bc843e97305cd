"""Shared by all exporters: fits texts, arguments and results to a format, and reports changes."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue

from tooltrail.records import (
    MediaBlock,
    Message,
    MessageBlock,
    ProviderBlock,
    ReasoningBlock,
    ResultBlock,
    TextBlock,
    ToolCall,
    ToolDefinition,
)
from tooltrail.wire._clean_text import CleanText, compact, rounded_numbers
from tooltrail.wire._descriptions import describe_block
from tooltrail.wire._identifiers import ToolNames, spelled_name
from tooltrail.wire.capabilities import Capabilities
from tooltrail.wire.exports import (
    ChangeKind,
    Export,
    ExportPolicy,
    ExportRefusedError,
    ExportReport,
    ToolChoice,
)
from tooltrail.wire.media_uris import is_file_name, is_public
from tooltrail.wire.members import LAYOUT, JsonObject, object_in
from tooltrail.wire.text_fallback.family import CAPABILITIES as TEXT_CAPABILITIES

ERROR_PREFIX = "ERROR: "
"""The prefix of the text of a failed result in formats without an error flag."""

_NO_OUTPUT = "(no output)"
_SHOWN_CHARS = 40
_INVALID = "invalid_json"
_WRAPPED = "arguments"


@dataclass(slots=True)
class Writing:
    """The state of one export.

    Attributes:
        names: the tool names in this format.
        text_names: the tool names in calls that are written as text.
    """

    format_name: str
    capabilities: Capabilities
    policy: ExportPolicy
    report: ExportReport = field(default_factory=ExportReport)
    names: ToolNames = field(init=False)
    text_names: ToolNames = field(init=False)
    clean: CleanText = field(init=False)
    _offered: dict[str, ToolDefinition] = field(default_factory=dict[str, ToolDefinition])

    def __post_init__(self) -> None:
        self.names = ToolNames(self.capabilities, self.report)
        self.text_names = ToolNames(TEXT_CAPABILITIES, self.report)
        self.clean = CleanText(self.report)

    def note(self, kind: ChangeKind, where: str, detail: str) -> None:
        """Add a change to the report."""
        self.report.add(kind, where, detail)

    def forced(self, choice: ToolChoice, *, has_parallel: bool = False) -> str | None:
        """The name of the one tool that a choice forces, in a format that can force one or any.

        What the format cannot express is reported; `has_parallel`: it can forbid parallel calls.
        """
        if choice.parallel is False and not has_parallel:
            self.note_choice("nothing keeps the model from calling several tools at once")
        named = [name for name, _ in self.chosen(choice)]
        if choice.mode == "tool" and len(named) == 1:
            return named[0]
        self.note_any(choice)
        return None

    def note_any(self, choice: ToolChoice) -> None:
        """Report that any tool may be called although the choice names some."""
        if choice.names and choice.mode != "none":
            self.note_choice(f"any tool may be called, not only {', '.join(choice.names)}")

    def note_unforced(self, choice: ToolChoice) -> None:
        """Report what is lost of a choice that allows calls, in a format without a choice."""
        if choice.mode != "auto":
            wanted = " ".join((choice.mode, ", ".join(choice.names))).rstrip()
            self.note_choice(f"{wanted}: the model may answer without a call")
        if choice.parallel is False:
            self.note_choice("the model may call several tools at once")
        if choice.mode != "tool":
            self.note_any(choice)

    def note_choice(self, note: str) -> None:
        """Report a part of a choice that nothing enforces."""
        self.note("choice_not_enforced", "tool_choice", note)

    def offered(self, tools: Iterable[ToolDefinition]) -> Iterator[tuple[str, ToolDefinition]]:
        """Each tool once, with its position; of several tools with one name, the last is used.

        Tools that the provider defines are all kept, even with equal names. An exact duplicate of
        a definition is not reported as a change.
        """
        numbered = list(enumerate(tools))
        self.names.reserve((tool.namespace, tool.name) for _, tool in numbered)
        self._offered = _chosen_by([tool for _, tool in numbered])
        last = {_key(tool): (place, tool) for place, tool in numbered if not _is_provided(tool)}
        for place, tool in numbered:
            where = f"tools[{place}]"
            if _is_provided(tool) or last[_key(tool)][0] == place:
                yield where, tool
            elif last[_key(tool)][1] != tool:
                note = f"another definition of {tool.name!a} stands behind it"
                self.note("tool_repeated", where, note)

    def tool_name(self, tool: ToolDefinition, where: str) -> str:
        """The name on the wire of an offered tool."""
        if self.is_namespace(tool.namespace or ""):
            return self.names.beside_server(tool.name, where)
        return self.names.of(tool.name, where, tool.namespace)

    def is_namespace(self, server: str) -> bool:
        """Whether the server's name fits the server field of this format; False without one."""
        able = self.capabilities
        return able.server_field == "any" and able.tool_name.fullmatch(server) is not None

    def chosen(self, choice: ToolChoice) -> Iterator[tuple[str, bool]]:
        """The names on the wire of a choice's tools, each with whether it is a free-text tool.

        A tool of a group is `server.tool`, as OpenAI's client for agents writes it.
        """
        for name in choice.names:
            tool = self._offered.get(name) or ToolDefinition(name=name)
            wire_name = self.tool_name(tool, "tool_choice")
            if self.is_namespace(tool.namespace or ""):
                wire_name = f"{tool.namespace}.{wire_name}"
            yield wire_name, tool.kind == "custom"

    def tools(
        self,
        tools: Iterable[ToolDefinition],
        write: Callable[["Writing", ToolDefinition, str], JsonObject],
    ) -> JsonObject:
        """`{"tools": […]}` with the result of `write` for each tool; `{}` without tools."""
        natives: list[JsonValue] = [write(self, tool, where) for where, tool in self.offered(tools)]
        return {"tools": natives} if natives else {}

    def export(self, request: JsonObject) -> Export:
        """The written request with the report.

        Raises:
            ExportRefusedError: something was changed, and the policy is strict.
        """
        # Clean the complete request again: parts of media and tools were not cleaned before.
        sendable = {name: self.clean.value(value, name) for name, value in request.items()}
        if self.policy.strict and self.report:
            raise ExportRefusedError(self.report)
        return Export(sendable, self.report, dict(self.names.renamed))

    def replays(self, message: Message) -> bool:
        """Whether provider data of this message is written, because it came from this format."""
        origin, policy = message.origin, self.policy
        if origin is None or origin.wire_format != self.format_name:
            return False
        return policy.replay_provider_data and policy.provider in (None, origin.provider)

    def call_name(self, call: ToolCall, message: Message, where: str) -> str:
        """The name on the wire of a call's tool; it contains a server that has no field."""
        if self.policy.identifiers == "keep" and not call.namespace:
            return call.tool_name
        if self.has_server_field(call, replays=self.replays(message)):
            return self.names.beside_server(call.tool_name, where)
        return self.names.of(call.tool_name, where, call.namespace)

    def has_server_field(self, call: ToolCall, *, replays: bool) -> bool:
        """Whether the server of a call is written to a separate field."""
        if self.capabilities.server_field == "own":
            return bool(call.namespace) and replays
        # The field is for namespaces, and an MCP server is not a namespace.
        return call.kind != "mcp" and self.is_namespace(call.namespace or "")

    def content_text(self, blocks: Iterable[MessageBlock], where: str) -> str:
        """Content as one text; other blocks are described in words and reported."""
        return self.joined([self.block_text(block, where) for block in blocks], where)

    def block_text(self, block: MessageBlock, where: str) -> str:
        """The text of a text block, or a reported description of another block."""
        if isinstance(block, TextBlock):
            self.note_extras(block, where)
            self.note_refusal(block, where)
            return self.clean.text(block.text, where)
        self.note_extras(block, where)
        return self.described(block, where)

    def joined(self, texts: Sequence[str], where: str) -> str:
        """Join several texts with newlines, for a format with a single text; reported."""
        if len(texts) > 1:
            self.note("messages_merged", where, "its texts are one, each on a line of its own")
        return "\n".join(texts)

    def note_refusal(self, block: TextBlock, where: str) -> None:
        """Report that a refusal is written as plain text."""
        if block.is_refusal:
            self.note("block_described", where, "the words of a refusal are text here")

    def note_role(self, role: str, note: str, where: str) -> None:
        """Report a role that is replaced by another one."""
        if role != note:
            self.note("role_changed", where, f"{role} is {note} here")

    def result_text(
        self, result: ResultBlock, where: str, *, prefix: bool = True, has_status: bool = False
    ) -> str:
        """A result as one text for the model.

        Without content, its structured value is written. With `prefix`, for formats without a
        flag, the text of a failure begins with `ERROR_PREFIX`. `has_status`: the format has a
        status, not only an error flag.
        """
        text = self.content_text(result.content, where)
        if result.has_structured:
            if result.content:
                self.note("structured_dropped", where, "the structured value beside the content")
            else:
                text = compact(self.clean.value(result.structured, where))
                self.note("structured_as_text", where, "the structured value is written as JSON")
        if not has_status:
            self.note_status(result, where)
        if prefix:
            text = self.prefixed(text, result, where)
        if text or not self.capabilities.marks_empty_output:
            return text
        self.note("output_empty", where, f"the empty output is {_NO_OUTPUT!r} here")
        return _NO_OUTPUT

    def note_status(self, result: ResultBlock, where: str) -> None:
        """Report what an error flag loses of the status of a result."""
        if result.is_error and result.status != "error":
            self.note("status_flattened", where, f"{result.status} is an error here")
        elif result.status == "unknown" and self.capabilities.has_error_flag:
            self.note("status_flattened", where, "unknown is a success here")

    def prefixed(self, text: str, result: ResultBlock, where: str) -> str:
        """The text; it begins with `ERROR_PREFIX` if the call failed."""
        has_prefix = text.startswith(ERROR_PREFIX)
        if result.is_error and not has_prefix:
            self.note("error_as_prefix", where, f"the text begins with {ERROR_PREFIX!r}")
            return ERROR_PREFIX + text
        if has_prefix and result.status == "ok":
            note = f"a success that begins with {ERROR_PREFIX!r} reads as a failure"
            self.note("error_as_prefix", where, note)
        return text

    def arguments_text(self, call: ToolCall, where: str) -> str:
        """The arguments for a format that has them as text; unchanged as far as possible."""
        if call.kind == "custom":
            return self.clean.text(call.arguments_raw, where)
        raw = call.arguments_raw
        return "{}" if not raw or raw.isspace() else self.clean.json_text(raw, where)

    def arguments_object(self, call: ToolCall, where: str, free_text: str = _WRAPPED) -> JsonObject:
        """The arguments for a format that has them as an object; other values are wrapped in one.

        `free_text` is the member in which the format's free-text tools have their text.
        """
        if call.parse_error is not None:
            self.note("arguments_wrapped", where, f"no JSON ({call.parse_error}); in {_INVALID!r}")
            return {_INVALID: self.clean.text(call.arguments_raw, where)}
        if call.kind != "custom" and (rounded := rounded_numbers(call.arguments_raw)):
            self.note("number_rounded", where, _counted(rounded))
        value = self.clean.value(call.arguments, where)
        if isinstance(value, dict):
            return value
        wrapped = free_text if call.kind == "custom" else _WRAPPED
        self.note("arguments_wrapped", where, f"no object; in {wrapped!r}")
        return {wrapped: value}

    def dropped_block(self, block: MessageBlock, where: str) -> None:
        """Report a block that this format cannot carry."""
        is_own = isinstance(block, ProviderBlock)
        kind: ChangeKind = "provider_data_dropped" if is_own else "block_dropped"
        self.note(kind, where, describe_block(block))

    def note_thoughts(self, block: ReasoningBlock, native: str, where: str) -> None:
        """Report that the provider's own text `native` is written although the block's differs."""
        if block.text != native:
            note = f"{describe_block(block)}: the provider's own text goes back in its place"
            self.note("block_dropped", where, note)

    def note_empty(self, where: str) -> None:
        """Report a message that is left out."""
        self.note("message_empty", where, "it has no content that this format can carry; left out")

    def note_extras(self, block: MessageBlock, where: str) -> None:
        """Report that the extras of a block are left out."""
        self.note_dropped(block.extras, where)

    def note_dropped(self, names: Iterable[str], where: str) -> None:
        """Report that a provider's members with these names are left out."""
        if note := ", ".join(sorted({*names} - {LAYOUT})):
            self.note("provider_data_dropped", where, note)

    def described(self, block: MessageBlock, where: str) -> str:
        """The description of a block that the format cannot carry; it is reported, too."""
        words = describe_block(block)
        self.note("block_described", where, words)
        return words

    def tool_extras(self, tool: ToolDefinition, where: str) -> JsonObject:
        """The extras of a tool if they are of this format; extras of another are reported."""
        if tool.extras and tool.wire_format != self.format_name:
            self.note_dropped(tool.extras, where)
            return {}
        return dict(tool.extras)

    def with_message_extras(
        self, native: JsonObject, message: Message, where: str, known: frozenset[str] = frozenset()
    ) -> JsonObject:
        """The written message with the extras of the recorded message; see `beside`."""
        extras = {} if message.origin is None else message.origin.extras
        return self.beside(native, message, extras, where, known)

    def note_message_extras(self, message: Message, where: str) -> None:
        """Report the extras of a message, in a format that has no place for them."""
        if message.origin is not None:
            self.note_dropped(message.origin.extras, where)

    def tells_place(self, message: Message, media: MediaBlock) -> bool:
        """Whether the receiver can use the URI of media.

        Any server can fetch a public URI; only its own provider knows the name of a file.
        """
        return is_public(media.uri) or (is_file_name(media.uri) and self.replays(message))

    def note_media(self, block: MediaBlock, where: str, *members: str) -> None:
        """Report the members of media that have a value and are not written."""
        unsaid = [name for name in members if getattr(block, name)]
        if unsaid:
            self.note("block_described", where, f"of {block.kind}: no {', '.join(unsaid)} here")

    def beside(
        self,
        native: JsonObject,
        message: Message,
        extras: JsonObject,
        where: str,
        known: frozenset[str] = frozenset(),
    ) -> JsonObject:
        """The written object with the extras of its provider, if `replays` allows them."""
        return self.with_extras(native, extras, where, replays=self.replays(message), known=known)

    def with_extras(
        self,
        native: JsonObject,
        extras: JsonObject,
        where: str,
        *,
        replays: bool = True,
        known: frozenset[str] = frozenset(),
    ) -> JsonObject:
        """The written object with the extras, if they go back to their provider.

        Extras that are left out are reported: null, which readers treat as missing, and extras
        that would replace a member.

        An object is merged into the existing object of its name. `replays`: the extras go back to
        their provider. `known`: members with a meaning in the format, which extras must not set.
        """
        if not replays:
            self.note_dropped(extras, where)
            return dict(native)
        whole, unsaid = dict(native), list[str]()
        for name, value in extras.items():
            if name not in whole and name not in known and value is not None:
                whole[name] = value
            elif _is_beside(whole.get(name), value):
                whole[name] = {**object_in(whole[name]), **object_in(value)}
            else:
                unsaid.append(name)
        self.note_dropped(unsaid, where)
        return whole


def _is_beside(found: JsonValue, value: JsonValue) -> bool:
    """Whether both values are objects without a common member, and the second has no null."""
    if not isinstance(found, dict) or not isinstance(value, dict) or not value:
        return False
    return not found.keys() & value.keys() and None not in value.values()


def _chosen_by(tools: list[ToolDefinition]) -> dict[str, ToolDefinition]:
    """The tools by the names that a choice uses for them; the names are unique."""
    servers = {tool.namespace for tool in tools if tool.namespace}
    own = {tool.name: tool for tool in tools if not tool.namespace}
    return own | {spelled_name(one.namespace, one.name, servers): one for one in tools}


def _key(tool: ToolDefinition) -> tuple[str | None, str]:
    return tool.namespace, tool.name


def _is_provided(tool: ToolDefinition) -> bool:
    return "type" in tool.extras or tool.name in tool.extras


def _counted(numbers: list[str]) -> str:
    """The first number, and how many others there are."""
    more = f" and {len(numbers) - 1:,} more" if len(numbers) > 1 else ""
    return f"{numbers[0][:_SHOWN_CHARS]}{more} has more digits than a double"
