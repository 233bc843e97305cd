"""Reads an answer with `choices`; the format decides how a message is read.

A format has calls in separate members of a message, or in its text.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from tooltrail.records import CallFlag, Message, MessageBlock, Origin
from tooltrail.wire._reading import REASONING, message_of_answer, origin_of_choice
from tooltrail.wire.finish_reasons import end_of
from tooltrail.wire.members import JsonObject, are_objects, object_in, objects_in, text_in
from tooltrail.wire.responses import ProviderFailure, Response, failure_in

_FAILED = frozenset({"error", "ERROR", "TIMEOUT"})
"""Finish reasons of answers that failed at the server."""

TEXTS = ("content", "refusal", *REASONING)
"""Members of a delta whose texts are joined into one text."""

Flags = Mapping[int, tuple[CallFlag, ...]]
"""Flags of calls, by their position."""

NO_FLAGS: Flags = {}

ODD_CALLS = "tool_calls of the message is not valid"
ODD_CALL = "a call is not valid"
"""The notes for calls that may be missing, and for a call that may lack a piece."""


@dataclass(frozen=True, slots=True)
class ChatSpelling:
    """How a format reads the messages of a chat.

    Attributes:
        blocks: reads the blocks of an answer's message; appends notes on malformed parts to the
            list.
        extras: the other members of such a message.
        is_part: whether an object in place of a content is a known part.
        texts: members of a delta whose texts are joined into one text.
    """

    name: str
    blocks: Callable[[JsonObject, list[str], Flags], Iterable[MessageBlock]]
    extras: Callable[[JsonObject], JsonObject]
    is_part: Callable[[JsonValue], bool]
    texts: tuple[str, ...] = TEXTS

    def read_message(
        self,
        native: JsonObject,
        origin: Origin,
        unread: list[str],
        *,
        is_complete: bool = True,
        flags: Flags = NO_FLAGS,
    ) -> Message:
        """Read the message of one choice; its other members become extras of the origin.

        Notes on malformed parts are appended to `unread`. `is_complete`: the end of the answer was
        received.
        """
        is_cut = end_of(origin.finish_reason) is not None
        blocks = [*self.blocks(native, unread, flags)]
        if extras := self.extras(native):
            origin = origin.model_copy(update={"extras": extras})
        return message_of_answer(blocks, origin, is_complete=is_complete, is_cut=is_cut)


def read_response(spelling: ChatSpelling, payload: JsonObject) -> Response:
    """Read an answer that was not streamed, with one message for each choice."""
    failure = failure_in(payload)
    choices = objects_in(payload.get("choices"))
    unread: list[str] = []
    messages: list[Message] = []
    if not are_objects(payload.get("choices")):
        unread.append("choices of the answer is not valid")
    for position, choice in enumerate(choices):
        failure = failure or choice_failure(choice)
        native = choice.get("message")
        if not isinstance(native, dict):
            unread.append(f"choices[{position}] has no message")
        origin = origin_of_choice(spelling.name, payload, choice, position)
        messages.append(spelling.read_message(object_in(native), origin, unread))
    return Response.of(messages, failure, unread)


def choice_failure(choice: JsonObject) -> ProviderFailure | None:
    """The error in a choice; gateways send one there when a server behind them fails."""
    if choice.get("error"):
        return failure_in({"error": choice["error"]})
    if text_in(choice.get("finish_reason")) in _FAILED:
        return ProviderFailure("", None, choice)
    return None


def is_odd_call(native: JsonObject) -> bool:
    """Whether a call, or a fragment of one, has a member of the wrong type."""
    bodies = [native[name] for name in ("function", "custom") if native.get(name)]
    texts = [native.get("id"), *(object_in(body).get("name") for body in bodies)]
    are_texts = all(isinstance(text, str | None) for text in texts)
    return len(bodies) > 1 or not are_texts or not all(isinstance(one, dict) for one in bodies)


def odd_texts(native: JsonObject, names: Iterable[str]) -> JsonObject:
    """The members with these names that should be texts but are not."""
    found = {name: native.get(name) for name in names}
    return {name: value for name, value in found.items() if not isinstance(value, str | None)}


def asks_for_call(legacy: JsonValue) -> bool:
    """Whether the deprecated `function_call` contains a call; some servers always send it, empty.

    Snowflake's does so in an answer that is only text.
    """
    return isinstance(legacy, dict) and any(legacy.values())
