"""Tool calls as the model requested them."""

from typing import Annotated, Final, Literal, Self
from uuid import UUID

from pydantic import Field, JsonValue, PlainSerializer

from tooltrail.records import canonical_json
from tooltrail.records._model import Record, ToolName
from tooltrail.records.argument_previews import preview_arguments
from tooltrail.records.canonical_json import read_json
from tooltrail.records.digests import digest_of, hex_of
from tooltrail.records.errors import InvalidRecordError
from tooltrail.records.plain_text import TOOL_NAME_CHARS, UNNAMED

CallKind = Literal["function", "custom", "builtin", "mcp"]
"""The kind of arguments: JSON of the tool's own schema, free text, JSON of a provider's schema
(`shell`, `apply_patch`, `computer`), or JSON for a tool of an MCP server, in this order."""

CallFlag = Literal[
    "incomplete", "arguments_were_object", "id_synthesised", "id_repeated", "index_missing"
]
"""An irregularity of a call as it was received.

`incomplete`: the answer ended, or may have ended, before the call did; the call must not run.
`arguments_were_object`: the provider sent a JSON value where its format has a text; the raw
arguments are the JSON of that value, in its order. `id_synthesised`: the provider sent no id; this
one was made up. `id_repeated`: another call of the same answer has this id. `index_missing`:
fragments of the call had no index, and were joined by their ids and their order.
"""


_NAME_DIGITS: Final = 12
"""Digits of the SHA-256 at the end of a name that was too long."""

SERVER_SEPARATOR: Final = "___"
"""Separates the server from the tool in a name that has both."""


def name_with_server(namespace: str | None, tool_name: str) -> str:
    """The combined name of server and tool, `disk___read`; without a server, the tool's name."""
    return f"{namespace}{SERVER_SEPARATOR}{tool_name}" if namespace else tool_name


class ToolCall(Record):
    """One request to run a tool, with the arguments exactly as the model sent them.

    Attributes:
        tool_name: the name that the model used. A blank name becomes `(unnamed)`, a name of more
            than 256 characters ends in an ellipsis, NUL and lone surrogates are escaped. The exact
            bytes of such a name are not kept.
        arguments_raw: the argument text as sent, even if it is not valid JSON.
        call_id: the provider's id of the call; only data, since it may repeat or be empty.
        title: a short form of the arguments for people, for example a command line.
        namespace: the owner of the tool name, if the name alone does not identify the tool: a
            namespace, a toolset, or the label of an MCP server.
        position: position of the call among the calls of its message, from 0.
        by_provider: whether the provider runs the call; then no other program may run it.
        extras: the provider's additional members, verbatim; sent back to that provider alone.
        message_id: id of the stored message that asks for the call; text in a dump.
    """

    tool_name: ToolName
    arguments_raw: str = "{}"
    call_id: str | None = None
    title: str | None = None
    kind: CallKind = "function"
    namespace: str | None = None
    position: Annotated[int, Field(ge=0)] = 0
    by_provider: bool = False
    flags: tuple[CallFlag, ...] = ()
    extras: dict[str, JsonValue] = Field(default_factory=dict[str, JsonValue])
    message_id: Annotated[UUID, PlainSerializer(str, return_type=str)] | None = None

    @classmethod
    def of(cls, tool_name: str, arguments: JsonValue, *, call_id: str | None = None) -> Self:
        """A call whose arguments are a JSON value."""
        return cls(
            tool_name=tool_name,
            arguments_raw=canonical_json.encode_text(arguments),
            call_id=call_id,
        )

    @property
    def full_name(self) -> str:
        """The name that is recorded for the call: `disk___read` for the tool of a server."""
        if not self.namespace:
            return self.tool_name
        name = name_with_server(self.namespace, self.tool_name)
        if len(name) > TOOL_NAME_CHARS:  # a digest keeps two long names apart
            digits = hex_of(digest_of(name.encode("utf-8", "surrogatepass")))[:_NAME_DIGITS]
            name = f"{name[: TOOL_NAME_CHARS - _NAME_DIGITS - 1]}_{digits}"
        return ToolCall(tool_name=name).tool_name

    @property
    def arguments(self) -> JsonValue:
        """The arguments as a value: `{}` for a blank text; for a custom tool, the text itself.

        None if they cannot be read; `parse_error` distinguishes that from a `null`.
        """
        return self._parsed()[0]

    @property
    def parse_error(self) -> str | None:
        """Why the arguments cannot be read; None if they can."""
        return self._parsed()[1]

    @property
    def is_executable(self) -> bool:
        """Whether the call is complete, readable, names a tool, and is for the caller to run."""
        is_whole = "incomplete" not in self.flags and self.tool_name != UNNAMED
        return is_whole and not (self.by_provider or self.parse_error)

    @property
    def arguments_bytes(self) -> bytes:
        """The arguments as they are stored: UTF-8, including lone surrogates."""
        return self.arguments_raw.encode("utf-8", "surrogatepass")

    @property
    def arguments_preview(self) -> str:
        """The title, or else the raw arguments, on one line of bounded length."""
        return preview_arguments(self.title or self.arguments_raw)

    def _parsed(self) -> tuple[JsonValue, str | None]:
        if self.kind == "custom":
            return self.arguments_raw, None
        if not self.arguments_raw or self.arguments_raw.isspace():
            return {}, None
        try:
            return read_json(self.arguments_raw), None
        except InvalidRecordError as error:
            return None, str(error)
