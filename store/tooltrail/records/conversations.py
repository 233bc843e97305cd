"""A conversation as every provider could tell it: messages in order, and the tools on offer.

Calls that were asked for together stand together, in one message of the assistant; that message is
their batch. Their results stand in a message of the role `tool`. Which result belongs to which call
is said by equal keys, else by the provider's ids, else by their order.
"""

from collections.abc import Iterable
from typing import ClassVar, Literal, Self

from pydantic import Field, JsonValue

from tooltrail.records import canonical_json
from tooltrail.records._model import Record
from tooltrail.records.blocks import (
    CallBlock,
    Extras,
    MessageBlock,
    ProviderBlock,
    ResultBlock,
    TextBlock,
)
from tooltrail.records.digests import Digest, digest_of
from tooltrail.records.errors import InvalidRecordError
from tooltrail.records.tool_calls import ToolCall

Role = Literal["system", "developer", "user", "assistant", "tool"]


class Origin(Record):
    """Which provider's answer a message is.

    Attributes:
        wire_format: the name of the format that it came in.
        provider: whose server gave it, in the caller's word; formats are spoken by many.
        model: that gave it, as the answer names it.
        response_id: the provider's id of the answer.
        finish_reason: why it ended, in the provider's word.
        choice: which of several answers to one request, from 0.
        extras: what else the provider said of the message, verbatim.
    """

    wire_format: str
    provider: str | None = None
    model: str | None = None
    response_id: str | None = None
    finish_reason: str | None = None
    choice: int = 0
    extras: Extras = Field(default_factory=dict[str, JsonValue])


class _Document(Record):
    """A record that is stored as canonical JSON, without what has its default."""

    called: ClassVar[str]

    @classmethod
    def from_json(cls, data: bytes | str) -> Self:
        """The record behind its canonical JSON.

        Raises:
            InvalidRecordError: it is no such JSON.
        """
        try:
            return cls.model_validate(canonical_json.decode(data))
        except ValueError as error:
            raise InvalidRecordError(f"no {cls.called}: {error}") from error

    def to_json(self) -> bytes:
        """Canonical JSON; what has its default is left out."""
        dumped = self.model_dump(exclude_defaults=True)
        return canonical_json.encode(canonical_json.with_lists(dumped))


class Message(_Document):
    """One entry of a conversation.

    Attributes:
        role: who says it; results of tools are of the role `tool`.
        blocks: what is said, in order.
        origin: which answer it is; None for a message that no provider gave.
        is_complete: false when the answer ended before it was whole.
    """

    called = "message"

    role: Role
    blocks: tuple[MessageBlock, ...] = ()
    origin: Origin | None = None
    is_complete: bool = True

    @classmethod
    def of(cls, role: Role, text: str) -> Self:
        """A message of one text."""
        return cls(role=role, blocks=(TextBlock(text=text),))

    @property
    def text(self) -> str:
        """What is said in it, block after block."""
        return "".join(block.text for block in self.blocks if isinstance(block, TextBlock))

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls that are for the caller to run: the batch."""
        return tuple(block.call for block in self.blocks if isinstance(block, CallBlock))

    @property
    def provider_calls(self) -> tuple[ToolCall, ...]:
        """The calls of tools that the provider ran itself."""
        blocks = (block for block in self.blocks if isinstance(block, ProviderBlock))
        return tuple(block.call for block in blocks if block.call is not None)

    @property
    def results(self) -> tuple[ResultBlock, ...]:
        """The results that it brings."""
        return tuple(block for block in self.blocks if isinstance(block, ResultBlock))


class ToolDefinition(_Document):
    """One version of a tool as it is offered to a model.

    Attributes:
        name: by which the model calls it.
        namespace: the server that has it, or another namespace; see `ToolCall`.
        description: for the model.
        parameters: JSON Schema of the arguments; None for a tool that takes none.
        kind: `custom` for a tool that takes free text.
        grammar: what the free text must fit, as its provider spells it; None for any text.
        strict: whether the provider is to enforce the schema; None to leave that to it.
        wire_format: the name of the format that the extras are of; None where there are none.
        extras: what else the provider was sent about the tool, verbatim.
    """

    called = "definition of a tool"

    name: str
    description: str | None = None
    parameters: dict[str, JsonValue] | None = None
    kind: Literal["function", "custom"] = "function"
    grammar: JsonValue = None
    strict: bool | None = None
    wire_format: str | None = None
    extras: Extras = Field(default_factory=dict[str, JsonValue])
    namespace: str | None = None

    @property
    def digest(self) -> Digest:
        """Of its canonical JSON: the same one is the same version of the tool."""
        return digest_of(self.to_json())


class Conversation(Record):
    """Messages in their order, and the tools that were on offer."""

    messages: tuple[Message, ...] = ()
    tools: tuple[ToolDefinition, ...] = ()

    @classmethod
    def of(cls, messages: Iterable[Message], tools: Iterable[ToolDefinition] = ()) -> Self:
        """A conversation of these messages."""
        return cls(messages=tuple(messages), tools=tuple(tools))
