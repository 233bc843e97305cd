"""What a message is made of: blocks in the order in which they were said.

Every wire format has a spelling for some of them. What only its provider understands (an encrypted
search, a tool that it ran itself) is a `ProviderBlock`, kept verbatim and handed back to that
provider alone.
"""

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, JsonValue, SerializerFunctionWrapHandler, model_serializer

from tooltrail.records._model import Record
from tooltrail.records.states import InvocationState
from tooltrail.records.tool_calls import ToolCall
from tooltrail.records.tool_errors import ErrorKind

Extras: TypeAlias = dict[str, JsonValue]
"""What else a provider said of something, verbatim: for itself alone."""

MediaKind = Literal["image", "audio", "document"]

ResultStatus = Literal["ok", "error", "timeout", "cancelled", "interrupted", "denied", "unknown"]
"""How a call came out. `unknown` is what a format without an error flag tells."""


_TIMEOUTS = {ErrorKind.TOOL_TIMED_OUT, ErrorKind.COMMAND_TIMED_OUT}
_STATUSES: dict[InvocationState, ResultStatus] = {
    "started": "unknown",
    "success": "ok",
    "error": "error",
    "interrupted": "interrupted",
    "denied": "denied",
    "cancelled": "cancelled",
}


def result_status(state: InvocationState, error_kind: str | None) -> ResultStatus:
    """How a call came out, by the final state of its invocation and the kind of its error."""
    return "timeout" if error_kind in _TIMEOUTS else _STATUSES[state]


class Block(Record):
    """The base of all blocks.

    Attributes:
        extras: what else the provider said of it; empty for a block of our own.
    """

    extras: Extras = Field(default_factory=dict[str, JsonValue])

    @model_serializer(mode="wrap")
    def _with_type(self, members: SerializerFunctionWrapHandler) -> dict[str, Any]:
        # Also where what has its default is left out: the type says how to read the rest.
        return {"type": getattr(self, "type", None), **members(self)}


class TextBlock(Block):
    """Text, exactly; or the words in which the model refused."""

    type: Literal["text"] = "text"
    text: str
    is_refusal: bool = False


class MediaBlock(Block):
    """An image, a sound or a document.

    Attributes:
        kind: which of them.
        media_type: such as `image/png`; None where the provider does not say.
        data: the bytes in base64 (RFC 4648 section 4); None when they are elsewhere.
        uri: where they are: a URL, or a provider's name for a file in `file:…` form.
        name: of the file.
    """

    type: Literal["media"] = "media"
    kind: MediaKind
    media_type: str | None = None
    data: str | None = Field(default=None, repr=False)
    uri: str | None = None
    name: str | None = None


class ResourceBlock(Block):
    """A resource of an MCP server, or a link to one.

    Attributes:
        uri: its name.
        media_type: such as `text/plain`.
        text: its content as text; None when it is bytes, or when this is a link.
        data: its content in base64; None when it is text, or when this is a link.
        name: what people call it; a link has one.
    """

    type: Literal["resource"] = "resource"
    uri: str
    media_type: str | None = None
    text: str | None = None
    data: str | None = Field(default=None, repr=False)
    name: str | None = None

    @property
    def is_link(self) -> bool:
        """Whether it says where the content is, and does not have it."""
        return self.text is None and self.data is None


class ReasoningBlock(Block):
    """What the model thought, as far as its provider shows it.

    `extras` has what proves it to the provider: a signature, encrypted content.
    """

    type: Literal["reasoning"] = "reasoning"
    text: str = ""


class CallBlock(Block):
    """A tool call that the caller is to run.

    Attributes:
        call: what is asked for.
        key: the same as that of its result, where it is known which one that is; never on the wire.
    """

    type: Literal["tool_call"] = "tool_call"
    call: ToolCall
    key: str | None = None


class ProviderBlock(Block):
    """Something that only its provider understands, verbatim.

    Attributes:
        native: the whole of it as it came.
        call: the tool call in it, of a tool that the provider runs itself.
    """

    type: Literal["provider"] = "provider"
    native: JsonValue
    call: ToolCall | None = None


ContentBlock: TypeAlias = Annotated[
    TextBlock | MediaBlock | ResourceBlock | ProviderBlock, Field(discriminator="type")
]
"""What a result consists of."""


class ResultBlock(Block):
    """What came of one tool call.

    Attributes:
        call_id: of the call, as the provider has it; None when it has none.
        tool_name: of the call; None where the format does not repeat it.
        namespace: server of the tool; None where the format does not repeat it.
        status: how it came out.
        content: what the model was shown, in order.
        structured: a JSON value beside the content.
        has_structured: whether there is one, which may be `null`.
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
        """Whether the model is to learn that the call failed."""
        return self.status not in {"ok", "unknown"}


MessageBlock: TypeAlias = Annotated[
    TextBlock
    | MediaBlock
    | ResourceBlock
    | ReasoningBlock
    | CallBlock
    | ResultBlock
    | ProviderBlock,
    Field(discriminator="type"),
]
"""What a message consists of."""
