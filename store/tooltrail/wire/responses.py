"""What a provider answered, read into the canonical conversation."""

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Self

from pydantic import JsonValue

from tooltrail.records import InvalidRecordError, Message, ToolCall
from tooltrail.wire._identifiers import split_servers
from tooltrail.wire._reading import cut_message
from tooltrail.wire.members import JsonObject, object_in, others, text_in
from tooltrail.wire.usage import TokenCounts

_TYPE = frozenset({"type"})
_UNNAMED = ToolCall(tool_name="").tool_name


@dataclass(frozen=True, slots=True)
class ProviderFailure:
    """An error that the provider gave, before the answer or in the middle of it.

    Attributes:
        message: in the provider's words; empty when it has none.
        kind: the provider's type or code of it.
        native: the whole of it, as it came.
    """

    message: str
    kind: str | None
    native: JsonValue


def failure_of(
    error: JsonValue, native: JsonValue, kinds: Iterable[str] = ("type", "code")
) -> ProviderFailure:
    """The failure that an `error` member tells: a text, or an object with a `message`.

    Args:
        error: the member.
        native: what is kept of the failure.
        kinds: the members that may say the kind; the first that does counts.
    """
    members = object_in(error)
    kind = next((members[name] for name in kinds if members.get(name)), None)
    message = error if isinstance(error, str) else text_in(members.get("message")) or ""
    return ProviderFailure(message, None if kind is None else str(kind), native)


def failure_in(payload: JsonObject) -> ProviderFailure | None:
    """The error that an answer, or an event of a stream, tells in one of OpenAI's formats."""
    error = payload.get("error")
    if not error and "error" in (payload.get("object"), payload.get("type")):
        # Some servers put nothing around it.
        error = payload
    if not error:
        return None
    # The type of the whole payload says only that it is an error.
    return failure_of(others(payload, _TYPE) if error is payload else error, error)


def odd_calls(messages: Iterable[Message]) -> Iterator[str]:
    """What of the calls of an answer is not as it is to be, where arguments are objects."""
    for call in (call for message in messages for call in message.calls):
        if call.tool_name == _UNNAMED:
            yield "a call has no name"
        if not isinstance(call.arguments, dict) and call.parse_error is None:
            yield "the arguments of a call are not an object"


@dataclass(frozen=True, slots=True)
class Response:
    """One answer; `of` makes one.

    Attributes:
        messages: one for each choice or candidate, by its index; most answers have one.
        failure: what went wrong on the provider's side.
        unread: what of the answer could not be read, each one a sentence; it is in the payload, and
            not in the messages.
        usage: what it cost, where its provider tells that.
    """

    messages: tuple[Message, ...] = ()
    failure: ProviderFailure | None = None
    unread: tuple[str, ...] = ()
    usage: TokenCounts | None = None

    @classmethod
    def of(
        cls,
        messages: Iterable[Message] = (),
        failure: ProviderFailure | None = None,
        unread: Iterable[str] = (),
        usage: TokenCounts | None = None,
    ) -> Self:
        """An answer; no call of it may run when it tells an error, or was not read as a whole.

        What could not be read may have been a part of any call, and a call that lacks a part may
        still be JSON.
        """
        problems, read = tuple(unread), tuple(messages)
        if failure is not None or problems:
            read = tuple(map(cut_message, read))
        return cls(read, failure, problems, usage)

    def with_more(
        self,
        failure: ProviderFailure | None = None,
        unread: Iterable[str] = (),
    ) -> Self:
        """The answer, with what else the stream around it told."""
        failure, problems = self.failure or failure, (*unread, *self.unread)
        return self.of(self.messages, failure, problems, self.usage)

    def with_servers(self, servers: AbstractSet[str]) -> Self:
        """The answer, in which the tools of these servers have their own names."""
        messages = tuple(split_servers(message, servers) for message in self.messages)
        return replace(self, messages=messages)

    @property
    def message(self) -> Message:
        """The first message.

        Raises:
            InvalidRecordError: the answer has none.
        """
        if not self.messages:
            note = "" if self.failure is None else f": {self.failure.message}"
            raise InvalidRecordError(f"the answer has no message{note}")
        return self.messages[0]

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls of the first message that are for the caller to run; none without a message."""
        return self.messages[0].calls if self.messages else ()
