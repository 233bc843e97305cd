"""The blocks of a message, in the order in which the message has them.

Every wire format can express some of them. Content that only its provider understands (an encrypted
search, a tool that the provider ran itself) is a `ProviderBlock`: it is kept verbatim and sent back
to that provider alone.
"""

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, JsonValue, SerializerFunctionWrapHandler, model_serializer

from tooltrail.records._model import Record
from tooltrail.records.states import InvocationState
from tooltrail.records.tool_calls import ToolCall
from tooltrail.records.tool_errors import ErrorKind

Extras: TypeAlias = dict[str, JsonValue]
"""A provider's additional members, verbatim; sent back to that provider alone."""

MediaKind = Literal["image", "audio", "document"]

ResultStatus = Literal["ok", "error", "timeout", "cancelled", "interrupted", "denied", "unknown"]
"""The outcome of a call. A format without an error flag yields `unknown`."""


def result_status(state: InvocationState, error_kind: str | None) -> ResultStatus:
    """The outcome of a call, from the final state of its invocation and the kind of its error."""
    if error_kind in {ErrorKind.TOOL_TIMED_OUT, ErrorKind.COMMAND_TIMED_OUT}:
        return "timeout"
    if state == "started":
        return "unknown"
    return "ok" if state == "success" else state


class Block(Record):
    """The base of all blocks. `extras` is empty for a block that no provider sent."""

    extras: Extras = Field(default_factory=dict[str, JsonValue])

    @model_serializer(mode="wrap")
    def _with_type(self, members: SerializerFunctionWrapHandler) -> dict[str, Any]:
        # The type is written even when defaults are left out: a reader needs it to read the rest.
        return {"type": getattr(self, "type", None), **members(self)}


class TextBlock(Block):
    """A text, exactly as sent; with `is_refusal`, the text of the model's refusal."""

    type: Literal["text"] = "text"
    text: str
    is_refusal: bool = False


class MediaBlock(Block):
    """An image, a sound or a document.

    Attributes:
        media_type: such as `image/png`; None if the provider does not state one.
        data: the bytes in base64 (RFC 4648 section 4); None if they are elsewhere.
        uri: location of the bytes: a URL, or a provider's name for a file in `file:…` form.
    """

    type: Literal["media"] = "media"
    kind: MediaKind
    media_type: str | None = None
    data: str | None = Field(default=None, repr=False)
    uri: str | None = None
    name: str | None = None


class ResourceBlock(Block):
    """A resource of an MCP server, with its content as text or in base64; or a link to one."""

    type: Literal["resource"] = "resource"
    uri: str
    media_type: str | None = None
    text: str | None = None
    data: str | None = Field(default=None, repr=False)
    name: str | None = None

    @property
    def is_link(self) -> bool:
        """Whether the block only links to the content and does not contain it."""
        return self.text is None and self.data is None


class ReasoningBlock(Block):
    """The reasoning of the model, as far as its provider shows it.

    `extras` has what authenticates it to the provider: a signature, encrypted content.
    """

    type: Literal["reasoning"] = "reasoning"
    text: str = ""


class CallBlock(Block):
    """A tool call for the caller to run.

    If the matching result block is known, both have the same `key`, which is never on the wire.
    """

    type: Literal["tool_call"] = "tool_call"
    call: ToolCall
    key: str | None = None


class ProviderBlock(Block):
    """Content that only its provider understands, verbatim.

    `call` is the tool call in the block, if it calls a tool that the provider runs itself.
    """

    type: Literal["provider"] = "provider"
    native: JsonValue
    call: ToolCall | None = None


ContentBlock: TypeAlias = Annotated[
    TextBlock | MediaBlock | ResourceBlock | ProviderBlock, Field(discriminator="type")
]
"""A block of a result's content."""


class ResultBlock(Block):
    """The result of one tool call.

    Attributes:
        tool_name: name of the tool; None if the format does not repeat it.
        namespace: server of the tool; None if the format does not repeat it.
        structured: a JSON value beside the content that the model was shown.
        has_structured: whether there is a structured value; the value may be `null`.
        key: see `CallBlock`.
    """

    type: Literal["tool_result"] = "tool_result"
    call_id: str | None = None
    tool_name: str | None = None
    status: ResultStatus = "ok"
    content: tuple[ContentBlock, ...] = ()
    structured: JsonValue = None
    has_structured: bool = False
    key: str | None = None
    namespace: str | None = None

    @property
    def is_error(self) -> bool:
        """Whether the result is reported to the model as a failure."""
        return self.status not in {"ok", "unknown"}


MessageBlock: TypeAlias = Annotated[
    ContentBlock | ReasoningBlock | CallBlock | ResultBlock, Field(discriminator="type")
]
"""A block of a message."""
