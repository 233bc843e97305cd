"""The interface between the tool loop and a model, in the model's own wire format."""

from collections.abc import AsyncIterator
from typing import Protocol, runtime_checkable

from tooltrail.records import TooltrailError
from tooltrail.wire import JsonObject


class ModelError(TooltrailError):
    """A model's server did not answer, or answered with an error.

    Attributes:
        status: the HTTP status; None without an answer.
        is_transient: whether a retry may succeed.
        retry_after_ms: time to wait before a retry, if the server names one.
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
    """A model that the tool loop can ask.

    Attributes:
        name: name of the model at its server.
        wire_format: name of the wire format of its server.
        provider: name of the provider, for the record; None if the format implies it.
    """

    @property
    def name(self) -> str: ...
    @property
    def wire_format(self) -> str: ...
    @property
    def provider(self) -> str | None: ...

    def answer(self, members: JsonObject) -> AsyncIterator[bytes]:
        """Ask the model once; yield the bytes of the answer as they arrive, streamed or not.

        An asynchronous generator. Closing it frees its resources. It MUST pass a cancellation on.

        Args:
            members: members of the request in the wire format: conversation, tools and choice.
                The implementation adds the name of the model and the request for a stream.

        Raises:
            ModelError: there is no answer, or the answer broke off.
        """
        ...

    def answer_limit(self, tokens: int) -> JsonObject:
        """The members of a request that limit the tokens of the answer."""
        ...
