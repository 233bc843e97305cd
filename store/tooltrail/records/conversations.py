"""A conversation in provider-neutral form: messages in order, and the tools on offer.

Calls that the model requested together are in one message of the assistant; that message is their
batch. Their results are in a message with the role `tool`. A result is matched to its call by equal
keys, else by the provider's ids, else by order.
"""

from collections.abc import Iterable
from typing import Literal, Self

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
    """The provider's answer that a message comes from.

    Attributes:
        provider: the caller's name for the provider, since many providers share a format.
        finish_reason: why the answer ended, in the provider's word.
        choice: index among several answers to one request, from 0.
    """

    wire_format: str
    provider: str | None = None
    model: str | None = None
    response_id: str | None = None
    finish_reason: str | None = None
    choice: int = 0
    extras: Extras = Field(default_factory=dict[str, JsonValue])


class _Document(Record):
    """A record that is stored as canonical JSON, without members that have their default."""

    @classmethod
    def from_json(cls, data: bytes | str) -> Self:
        """Read a record from its canonical JSON.

        Raises:
            InvalidRecordError: `data` is not the canonical JSON of such a record.
        """
        try:
            return cls.model_validate(canonical_json.decode(data))
        except ValueError as error:
            raise InvalidRecordError(f"not a {cls.__name__}: {error}") from error

    def to_json(self) -> bytes:
        """The canonical JSON; members that have their default are left out."""
        dumped = self.model_dump(exclude_defaults=True)
        return canonical_json.encode(canonical_json.with_lists(dumped))


class Message(_Document):
    """One entry of a conversation. `is_complete` is false if the provider's answer was cut off."""

    role: Role
    blocks: tuple[MessageBlock, ...] = ()
    origin: Origin | None = None
    is_complete: bool = True

    @classmethod
    def of(cls, role: Role, text: str) -> Self:
        """A message with a single text."""
        return cls(role=role, blocks=(TextBlock(text=text),))

    @property
    def text(self) -> str:
        """The texts of its blocks, concatenated."""
        return "".join(block.text for block in self.blocks if isinstance(block, TextBlock))

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls for the caller to run: the batch."""
        return tuple(block.call for block in self.blocks if isinstance(block, CallBlock))

    @property
    def provider_calls(self) -> tuple[ToolCall, ...]:
        """The calls of tools that the provider ran itself."""
        blocks = (block for block in self.blocks if isinstance(block, ProviderBlock))
        return tuple(block.call for block in blocks if block.call is not None)

    @property
    def results(self) -> tuple[ResultBlock, ...]:
        """The results in the message."""
        return tuple(block for block in self.blocks if isinstance(block, ResultBlock))


class ToolDefinition(_Document):
    """One version of a tool as it is offered to a model.

    Attributes:
        parameters: JSON Schema of the arguments; None for a tool without arguments.
        kind: `custom` for a tool that accepts free text.
        grammar: the grammar of the free text, as its provider spells it; None for any text.
        strict: whether the provider must enforce the schema; None for the provider's default.
        wire_format: the format of the extras.
        namespace: see `ToolCall`.
    """

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
        """The digest of the canonical JSON; equal digests mean the same version of the tool."""
        return digest_of(self.to_json())


class Conversation(Record):
    """The messages in order, and the tools on offer."""

    messages: tuple[Message, ...] = ()
    tools: tuple[ToolDefinition, ...] = ()

    @classmethod
    def of(cls, messages: Iterable[Message], tools: Iterable[ToolDefinition] = ()) -> Self:
        """A conversation of these messages."""
        return cls(messages=tuple(messages), tools=tuple(tools))
