"""What all exporters share: texts, arguments and results made to fit, and an account of it."""

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
)
from tooltrail.wire.media_uris import is_file_name, is_public
from tooltrail.wire.members import JsonObject, object_in
from tooltrail.wire.requests import ToolChoice
from tooltrail.wire.text_fallback.limits import CAPABILITIES as TEXT_CAPABILITIES

ERROR_PREFIX = "ERROR: "
"""What the text of a failure begins with in formats without an error flag."""

_NO_OUTPUT = "(no output)"
_SHOWN_CHARS = 40
_INVALID = "invalid_json"
_WRAPPED = "arguments"


@dataclass(slots=True)
class Writing:
    """One export under way.

    Attributes:
        names: of tools in this format.
        text_names: the same where calls are written as text.
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
        """The name of the one tool that a choice forces, in a format that forces one or any.

        Args:
            choice: the report tells what the format does not say of it.
            has_parallel: whether the format says that no two tools may be called at once.
        """
        if choice.parallel is False and not has_parallel:
            self.note_choice("nothing keeps the model from calling several tools at once")
        named = [name for name, _ in self.chosen(choice)]
        if choice.mode == "tool" and len(named) == 1:
            return named[0]
        self.note_any(choice)
        return None

    def note_any(self, choice: ToolChoice) -> None:
        """Tell that any tool may be called, where a choice names some."""
        if choice.names and choice.mode != "none":
            self.note_choice(f"any tool may be called, not only {', '.join(choice.names)}")

    def note_unforced(self, choice: ToolChoice) -> None:
        """Tell what a format without a choice does not say of one that lets tools be called."""
        if choice.mode != "auto":
            wanted = " ".join((choice.mode, ", ".join(choice.names))).rstrip()
            self.note_choice(f"{wanted}: the model may answer without a call")
        if choice.parallel is False:
            self.note_choice("the model may call several tools at once")
        if choice.mode != "tool":
            self.note_any(choice)

    def note_choice(self, note: str) -> None:
        """Tell what nothing enforces of a choice."""
        self.note("choice_not_enforced", "tool_choice", note)

    def offered(self, tools: Iterable[ToolDefinition]) -> Iterator[tuple[str, ToolDefinition]]:
        """Each tool once, with its place: of several of one name the last one counts.

        Those that the provider brings are distinguished by what it says of them, not by name. That
        the same definition stands there twice is no change.
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
        """The name on the wire of a tool on offer."""
        if self.is_namespace(tool.namespace or ""):
            return self.names.beside_server(tool.name, where)
        return self.names.of(tool.name, where, tool.namespace)

    def is_namespace(self, server: str) -> bool:
        """Whether a field can have the name of a server, in a format where any call has one."""
        able = self.capabilities
        return able.server_field == "any" and able.tool_name.fullmatch(server) is not None

    def chosen(self, choice: ToolChoice) -> Iterator[tuple[str, bool]]:
        """The names on the wire that a choice is among, each with whether it takes free text.

        OpenAI's client for agents chooses a tool of a group as `server.tool`.
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
        """`{"tools": […]}` with what `write` makes of each tool; nothing where there is none."""
        natives: list[JsonValue] = [write(self, tool, where) for where, tool in self.offered(tools)]
        return {"tools": natives} if natives else {}

    def export(self, request: JsonObject) -> Export:
        """What was written, with the report.

        Raises:
            ExportRefusedError: something was changed, and the policy is strict.
        """
        # Once more all of it, with what was noted of media and of tools.
        sendable = {name: self.clean.value(value, name) for name, value in request.items()}
        if self.policy.strict and self.report:
            raise ExportRefusedError(self.report)
        return Export(sendable, self.report, dict(self.names.renamed))

    def replays(self, message: Message) -> bool:
        """Whether what a provider said of this message for itself goes back to it here."""
        origin, policy = message.origin, self.policy
        if origin is None or origin.wire_format != self.format_name:
            return False
        return policy.replay_provider_data and policy.provider in (None, origin.provider)

    def call_name(self, call: ToolCall, message: Message, where: str) -> str:
        """The name on the wire of a call's tool, with its server where the call has no field."""
        if self.policy.identifiers == "keep" and not call.namespace:
            return call.tool_name
        if self.has_server_field(call, replays=self.replays(message)):
            return self.names.beside_server(call.tool_name, where)
        return self.names.of(call.tool_name, where, call.namespace)

    def has_server_field(self, call: ToolCall, *, replays: bool) -> bool:
        """Whether the server of a call goes into a field of its own."""
        if self.capabilities.server_field == "own":
            return bool(call.namespace) and replays
        # A namespace is none of MCP's servers.
        return call.kind != "mcp" and self.is_namespace(call.namespace or "")

    def content_text(self, blocks: Iterable[MessageBlock], where: str) -> str:
        """Content as one text: what is no text is described, and the report says so."""
        return self.joined([self.block_text(block, where) for block in blocks], where)

    def block_text(self, block: MessageBlock, where: str) -> str:
        """The words of a text, or those that stand for another block; see the report."""
        if isinstance(block, TextBlock):
            self.note_text(block, where)
            return self.clean.text(block.text, where)
        self.note_extras(block, where)
        return self.described(block, where)

    def joined(self, texts: Sequence[str], where: str) -> str:
        """Several texts as the one that the format has a place for."""
        if len(texts) > 1:
            self.note("messages_merged", where, "its texts are one, each on a line of its own")
        return "\n".join(texts)

    def note_text(self, block: TextBlock, where: str) -> None:
        """Tell what a plain text does not say of a block."""
        self.note_extras(block, where)
        self.note_refusal(block, where)

    def note_refusal(self, block: TextBlock, where: str) -> None:
        """Tell that the words of a refusal read as any text."""
        if block.is_refusal:
            self.note("block_described", where, "the words of a refusal are text here")

    def note_role(self, role: str, note: str, where: str) -> None:
        """Tell of a role that another one stands for."""
        if role != note:
            self.note("role_changed", where, f"{role} is {note} here")

    def result_text(
        self, result: ResultBlock, where: str, *, prefix: bool = True, has_status: bool = False
    ) -> str:
        """What the model is shown of a result, as one text.

        Args:
            result: with its content; a structured value stands for a content that is missing.
            where: the call stands.
            prefix: whether a failure is to begin with `ERROR_PREFIX`, where there is no flag.
            has_status: whether the format says more than that it failed.
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
        """Tell what a flag for errors does not say of how a call came out."""
        if result.is_error and result.status != "error":
            self.note("status_flattened", where, f"{result.status} is an error here")
        elif result.status == "unknown" and self.capabilities.has_error_flag:
            self.note("status_flattened", where, "unknown is a success here")

    def prefixed(self, text: str, result: ResultBlock, where: str) -> str:
        """The text, beginning with `ERROR_PREFIX` where the call failed."""
        has_prefix = text.startswith(ERROR_PREFIX)
        if result.is_error and not has_prefix:
            self.note("error_as_prefix", where, f"the text begins with {ERROR_PREFIX!r}")
            return ERROR_PREFIX + text
        if has_prefix and result.status == "ok":
            note = f"a success that begins with {ERROR_PREFIX!r} reads as a failure"
            self.note("error_as_prefix", where, note)
        return text

    def arguments_text(self, call: ToolCall, where: str) -> str:
        """The arguments for a format that has them as text: as they came, as far as possible."""
        if call.kind == "custom":
            return self.clean.text(call.arguments_raw, where)
        raw = call.arguments_raw
        return "{}" if not raw or raw.isspace() else self.clean.json_text(raw, where)

    def arguments_object(self, call: ToolCall, where: str, free_text: str = _WRAPPED) -> JsonObject:
        """The arguments for a format that has them as an object; nothing of them is lost.

        Args:
            call: with them.
            where: it stands.
            free_text: the member that the format's tools of free text have their text in.
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
        """Say that a block does not fit into this format."""
        is_own = isinstance(block, ProviderBlock)
        kind: ChangeKind = "provider_data_dropped" if is_own else "block_dropped"
        self.note(kind, where, describe_block(block))

    def note_thoughts(self, block: ReasoningBlock, native: str, where: str) -> None:
        """Say that reasoning goes back as its provider has it, where its text says another thing.

        Args:
            block: that is written.
            native: what is shown of the provider's own.
            where: it stands in the conversation.
        """
        if block.text != native:
            note = f"{describe_block(block)}: the provider's own text goes back in its place"
            self.note("block_dropped", where, note)

    def note_extras(self, block: MessageBlock, where: str) -> None:
        """Say that what a provider said of a block is left out."""
        self.note_dropped(block.extras, where)

    def note_dropped(self, names: Iterable[str], where: str) -> None:
        """Say that members with these names, which a provider sent, are left out."""
        if note := ", ".join(sorted(names)):
            self.note("provider_data_dropped", where, note)

    def described(self, block: MessageBlock, where: str) -> str:
        """The words for a block that the format cannot carry; the report has them too."""
        words = describe_block(block)
        self.note("block_described", where, words)
        return words

    def tool_extras(self, tool: ToolDefinition, where: str) -> JsonObject:
        """What a provider was sent about a tool beside what all are sent, if it is this one's."""
        if tool.extras and tool.wire_format != self.format_name:
            self.note_dropped(tool.extras, where)
            return {}
        return dict(tool.extras)

    def with_message_extras(
        self, native: JsonObject, message: Message, where: str, known: frozenset[str] = frozenset()
    ) -> JsonObject:
        """What is written, with what a provider said of the whole message; see `beside`."""
        extras = {} if message.origin is None else message.origin.extras
        return self.beside(native, message, extras, where, known)

    def note_message_extras(self, message: Message, where: str) -> None:
        """Tell of what was said of a whole message, where a format has no place for it."""
        if message.origin is not None:
            self.note_dropped(message.origin.extras, where)

    def tells_place(self, message: Message, media: MediaBlock) -> bool:
        """Whether the place of media means anything to the receiver.

        Any server can fetch a public one; a name of a file means something to its provider alone.
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
        """What is written, with what its provider said of it for itself, if it goes back to it."""
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
        """What is written, with extras where they go back to their provider.

        The report names those that do not: what is null, which readers take for missing, and what
        would replace a member.

        Args:
            native: what is written.
            extras: what was said besides; an object goes into the member of its name, too.
            where: it stands in the conversation.
            replays: whether they go back.
            known: members that mean something, and are not said by way of extras.
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
    """Whether both are objects, and one says nothing in the place of what the other says."""
    if not isinstance(found, dict) or not isinstance(value, dict) or not value:
        return False
    return not found.keys() & value.keys() and None not in value.values()


def _chosen_by(tools: list[ToolDefinition]) -> dict[str, ToolDefinition]:
    """The tools by the names that a choice has for them; no two have one name."""
    servers = {tool.namespace for tool in tools if tool.namespace}
    own = {tool.name: tool for tool in tools if not tool.namespace}
    return own | {spelled_name(one.namespace, one.name, servers): one for one in tools}


def _key(tool: ToolDefinition) -> tuple[str | None, str]:
    return tool.namespace, tool.name


def _is_provided(tool: ToolDefinition) -> bool:
    return "type" in tool.extras or tool.name in tool.extras


def _counted(numbers: list[str]) -> str:
    """The first one, and how many there are besides."""
    more = f" and {len(numbers) - 1:,} more" if len(numbers) > 1 else ""
    return f"{numbers[0][:_SHOWN_CHARS]}{more} has more digits than a double"
