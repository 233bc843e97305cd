"""Readers that take whatever a provider sends: what no record can hold is kept as text.

A value may be nested deeper than a record can be (`MAX_EMBEDDED_DEPTH`), and an integer may be
longer than Python prints. Of an answer with such a part the rest is read, the part is JSON in a
text, and no call of it may run; a history with one is refused.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from pydantic import JsonValue

from tooltrail.records import InvalidRecordError
from tooltrail.records.canonical_json import MAX_EMBEDDED_DEPTH, is_deeper_than
from tooltrail.wire.members import JsonObject
from tooltrail.wire.responses import Response

if TYPE_CHECKING:
    from tooltrail.wire.formats import WireFormat

ReadT = TypeVar("ReadT")

MOST_LEVELS = MAX_EMBEDDED_DEPTH - 50
"""Levels of one event; what is read of it has some around it."""

_LONGEST_BITS = 14_000
"""Python prints integers of up to 4,300 digits, which have some 14,284 bits."""

TOO_DEEP = f"what is nested deeper than {MOST_LEVELS} levels is kept as text"
FAULTS = (ValueError, RecursionError)
"""What such a value makes of reading it: pydantic's errors and our own are `ValueError`s, too."""


def sturdy(known: "WireFormat") -> "WireFormat":
    """The format, with readers that raise nothing but `InvalidRecordError`."""
    return replace(
        known,
        read_response=_for_answers(known.read_response),
        read_history=_refusing(known.read_history),
        read_tools=_refusing(known.read_tools),
    )


def is_bounded(value: JsonValue) -> bool:
    """Whether a record can hold all of a value."""
    return not is_deeper_than(value, MOST_LEVELS) and not _has_long_integer(value)


def bounded(value: JsonValue, levels: int = MOST_LEVELS) -> JsonValue:
    """The value, with what no record can hold as text: JSON of what is too deep, a long integer in
    hexadecimal digits.
    """
    if isinstance(value, dict | list) and levels == 0:
        return _text_of(value)
    if isinstance(value, dict):
        return {name: bounded(member, levels - 1) for name, member in value.items()}
    if isinstance(value, list):
        return [bounded(item, levels - 1) for item in value]
    return hex(value) if isinstance(value, int) and _is_long(value) else value


def bounded_event(event: JsonObject) -> JsonObject:
    """The same of a whole event."""
    return {name: bounded(member, MOST_LEVELS - 1) for name, member in event.items()}


def _for_answers(read: Callable[[JsonObject], Response]) -> Callable[[JsonObject], Response]:
    def read_bounded(payload: JsonObject) -> Response:
        try:
            return read(payload)
        except FAULTS:
            # Looked for only now: hardly any answer has it.
            response = read(bounded_event(payload))
            return Response.of(response.messages, response.failure, (*response.unread, TOO_DEEP))

    return read_bounded


def _refusing(read: Callable[[JsonObject], ReadT]) -> Callable[[JsonObject], ReadT]:
    def read_or_refuse(request: JsonObject) -> ReadT:
        try:
            return read(request)
        except InvalidRecordError:
            raise
        except FAULTS as error:
            told = "the request has what no record can hold: nested too deep, or too long a number"
            raise InvalidRecordError(told) from error

    return read_or_refuse


def _text_of(value: JsonValue) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except (RecursionError, ValueError):
        return "[nested too deep to be told]"


def _has_long_integer(value: JsonValue) -> bool:
    waiting: list[JsonValue] = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            waiting.extend(part.values())
        elif isinstance(part, list):
            waiting.extend(part)
        elif _is_long(part):
            return True
    return False


def _is_long(value: JsonValue) -> bool:
    return isinstance(value, int) and value.bit_length() > _LONGEST_BITS
