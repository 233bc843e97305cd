"""What the tool loop needs of a model: one question at a time, in the model's own wire format."""

from collections.abc import AsyncIterator
from typing import Protocol, runtime_checkable

from tooltrail.records import TooltrailError
from tooltrail.wire import JsonObject


class ModelError(TooltrailError):
    """A model's server did not answer, or refused to.

    Attributes:
        status: the HTTP status; None where there was no answer.
        is_transient: whether the same question may be answered if it is put again.
        retry_after_ms: how long the server asks to wait before that.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        is_transient: bool = False,
        retry_after_ms: int | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.is_transient = is_transient
        self.retry_after_ms = retry_after_ms


@runtime_checkable
class ChatModel(Protocol):
    """A model that can be asked.

    Attributes:
        name: as its server knows it.
        wire_format: the name of the format that its server speaks.
        provider: whose server it is; None where the format says enough.
    """

    @property
    def name(self) -> str: ...
    @property
    def wire_format(self) -> str: ...
    @property
    def provider(self) -> str | None: ...

    def answer(self, members: JsonObject) -> AsyncIterator[bytes]:
        """The answer to one question, in pieces as they come, streamed or not.

        An asynchronous generator: it is closed when the answer is not wanted any more, and frees
        what it holds then. It MUST let a cancellation through.

        Args:
            members: of the request, as the wire format spells a conversation, tools and the choice
                of one; what the model is called and that it is to stream is added here.

        Raises:
            ModelError: there is no answer, or it broke off.
        """
        ...

    def answer_limit(self, tokens: int) -> JsonObject:
        """The members of a request that bound the tokens of its answer."""
        ...
