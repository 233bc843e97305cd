"""A provider's answer, read into the canonical conversation."""

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Self

from pydantic import JsonValue

from tooltrail.records import InvalidRecordError, Message, ToolCall
from tooltrail.wire._identifiers import split_servers
from tooltrail.wire._reading import cut_message
from tooltrail.wire.finish_reasons import is_refusal
from tooltrail.wire.members import JsonObject, object_in, others, text_in
from tooltrail.wire.usage import TokenCounts

_TYPE = frozenset({"type"})
_UNNAMED = ToolCall(tool_name="").tool_name


@dataclass(frozen=True, slots=True)
class ProviderFailure:
    """An error that the provider reported, before or during the answer.

    Attributes:
        message: the provider's message; empty if there is none.
        kind: the provider's type or code of the error.
        native: the complete error, unchanged.
        is_refusal: whether the provider refused the prompt or the answer. To send the prompt again
            is of no use.
    """

    message: str
    kind: str | None
    native: JsonValue
    is_refusal: bool = False


def failure_of(
    error: JsonValue, native: JsonValue, kinds: Iterable[str] = ("type", "code")
) -> ProviderFailure:
    """The failure in an `error` member, which is a text or an object with a `message`.

    The first non-empty member of `kinds` names the kind; `native` is kept unchanged.
    """
    members = object_in(error)
    kind = next((members[name] for name in kinds if members.get(name)), None)
    message = error if isinstance(error, str) else text_in(members.get("message")) or ""
    name = None if kind is None else str(kind)
    return ProviderFailure(message, name, native, is_refusal(name))


def failure_in(payload: JsonObject) -> ProviderFailure | None:
    """The error in an answer, or in an event of a stream, of one of OpenAI's formats."""
    error = payload.get("error")
    if not error and "error" in (payload.get("object"), payload.get("type")):
        # Some servers send the error itself, not an object with an `error`.
        error = payload
    if not error:
        return None
    # The payload's own `type` says only that it is an error, not which kind.
    return failure_of(others(payload, _TYPE) if error is payload else error, error)


def odd_calls(messages: Iterable[Message]) -> Iterator[str]:
    """Report calls without a name or with non-object arguments, if the format has objects."""
    for call in (call for message in messages for call in message.calls):
        if call.tool_name == _UNNAMED:
            yield "a call has no name"
        if not isinstance(call.arguments, dict) and call.parse_error is None:
            yield "the arguments of a call are not an object"


@dataclass(frozen=True, slots=True)
class Response:
    """One answer; made by `of`.

    Attributes:
        messages: one message for each choice or candidate, by index; most answers have one.
        failure: the error on the provider's side.
        unread: one sentence for each part of the payload that could not be read, and so is missing
            from the messages.
        usage: the tokens of the answer; None if the provider does not report them.
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
        """Make an answer; with an error or an unread part, its calls are flagged `incomplete`.

        The unread part may belong to any call, and arguments that lack a part may still be valid
        JSON. So none of the calls may run.
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
        """The answer with a failure and unread parts that were found in the stream around it."""
        failure, problems = self.failure or failure, (*unread, *self.unread)
        return self.of(self.messages, failure, problems, self.usage)

    def with_servers(self, servers: AbstractSet[str]) -> Self:
        """The answer, with the names of these servers' tools split into server and tool."""
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
        """The calls of the first message, for the caller to run; none without a message."""
        return self.messages[0].calls if self.messages else ()
