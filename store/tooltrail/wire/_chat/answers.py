"""An answer with `choices`, whichever format its messages are read in.

A message has its calls in members of their own, or in its text; that is for the format to say.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from tooltrail.records import CallFlag, Message, MessageBlock, Origin
from tooltrail.wire._reading import CUT_SHORT, REASONING, message_of_answer, origin_of_choice
from tooltrail.wire.members import JsonObject, are_objects, object_in, objects_in, text_in
from tooltrail.wire.responses import ProviderFailure, Response, failure_in

_FAILED = frozenset({"error", "ERROR", "TIMEOUT"})
"""Reasons to end of answers that servers could not go on with."""

TEXTS = ("content", "refusal", *REASONING)
"""Members of a delta whose texts are pieces of one text."""

Flags = Mapping[int, tuple[CallFlag, ...]]
"""Flags of calls, by their position."""

NO_FLAGS: Flags = {}

ODD_CALLS = "tool_calls of the message is not valid"
ODD_CALL = "a call is not valid"
"""What is said of calls that may be missing, and of one that may lack a piece."""


@dataclass(frozen=True, slots=True)
class ChatSpelling:
    """What a format reads in the messages of a chat.

    Attributes:
        name: of the format.
        blocks: what the message of an answer says; takes what is not as the format says.
        extras: what such a message has besides.
        is_part: whether an object in the place of a content is a part that is understood.
        texts: members of a delta whose texts are pieces of one text.
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
        """The message of one choice.

        Args:
            native: the message.
            origin: of the answer; what else the message has becomes extras of it.
            unread: takes what is not as the format says.
            is_complete: whether the answer came to its end.
            flags: of calls, by position.
        """
        is_cut = origin.finish_reason in CUT_SHORT
        blocks = [*self.blocks(native, unread, flags)]
        if extras := self.extras(native):
            origin = origin.model_copy(update={"extras": extras})
        return message_of_answer(blocks, origin, is_complete=is_complete, is_cut=is_cut)


def read_response(spelling: ChatSpelling, payload: JsonObject) -> Response:
    """An answer that was not streamed, with one message for each choice."""
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
    """The error that a choice tells, as gateways do when a server behind them fails."""
    if choice.get("error"):
        return failure_in({"error": choice["error"]})
    if text_in(choice.get("finish_reason")) in _FAILED:
        return ProviderFailure("", None, choice)
    return None


def is_odd_call(native: JsonObject) -> bool:
    """Whether a call, or a piece of one, has a member that is not what it is to be."""
    bodies = [native[name] for name in ("function", "custom") if native.get(name)]
    texts = [native.get("id"), *(object_in(body).get("name") for body in bodies)]
    are_texts = all(isinstance(text, str | None) for text in texts)
    return len(bodies) > 1 or not are_texts or not all(isinstance(one, dict) for one in bodies)


def odd_texts(native: JsonObject, names: Iterable[str]) -> JsonObject:
    """The members of these names that are to be texts, and are not."""
    found = {name: native.get(name) for name in names}
    return {name: value for name, value in found.items() if not isinstance(value, str | None)}


def asks_for_call(legacy: JsonValue) -> bool:
    """Whether the older member for a call has one: some servers always send it, with nothing in it.

    Snowflake's does, beside an answer that is text alone.
    """
    return isinstance(legacy, dict) and any(legacy.values())
