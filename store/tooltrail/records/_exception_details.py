"""What is told of an exception: its type, its text, its causes and where it came from.

An exception may be of any class, and a class may define anything: a text that cannot be made, a
chain without an end. Texts are whole, and lists are bounded. No line of source and no local value
is told, for they may hold secrets.
"""

import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import TypeVar, cast

from pydantic import JsonValue, ValidationError

from tooltrail.records._argument_problems import text_of_refusal
from tooltrail.records._error_details import NAME_CHARS, one_line, read, type_name
from tooltrail.records._whole_texts import whole

_LISTED = 100
"""Causes, members and notes that are told; more are counted."""

_FRAMES = 20
"""Frames that are told: the last ones, for the error was raised there."""

_WALK = 10_000
"""Exceptions of one chain or group that are looked at; counts end there."""

ItemT = TypeVar("ItemT")


def describe(error: BaseException) -> dict[str, JsonValue]:
    """The details of an exception; given for whatever exception it is.

    Fields: `exception`, its type; `notes`, `causes` and, for a group, `members`, each with a count
    when not all are told; `traceback`, frames as `FILE:LINE FUNCTION`, the innermost last, with
    `frame_count` when there were more.
    """
    return {
        "exception": type_name(error),
        **_listed("note", _notes(error), whole),
        **_listed("cause", list(_iter_causes(error)), worded),
        **_listed("member", [leaf for leaf in _iter_leaves(error) if leaf is not error], worded),
        **_frames(error),
    }


def text_of(error: BaseException) -> str:
    """The text of an exception, of any length; empty when it has none."""
    try:
        if issubclass(type(error), ValidationError):
            return text_of_refusal(cast("ValidationError", error))
        return str.__str__(str(error))
    except (Exception, SystemExit):  # noqa: BLE001  a class may define any text
        return "(its text cannot be made)"


def worded(error: BaseException) -> str:
    """The exception as Python words it, `KeyError: 'name'`, with its whole text.

    Like `text_of`, it never raises, whatever the exception's class defines.
    """
    name, text = type_name(error), whole(text_of(error))
    return f"{name}: {text}" if text else name


def control_flow_in(error: BaseException) -> BaseException | None:
    """The part of an exception that nobody may swallow: a cancellation, an interruption.

    `SystemExit` is none: a tool must not be able to end the program.
    """
    leaves = _iter_leaves(error)
    return next((e for e in leaves if not issubclass(type(e), (Exception, SystemExit))), None)


def is_cancellation(error: BaseException) -> bool:
    """Whether it is a `CancelledError` of asyncio."""
    if "asyncio" not in sys.modules:  # then nobody can have raised one
        return False
    import asyncio  # noqa: PLC0415  it brings in sockets and processes, which records do without

    return issubclass(type(error), asyncio.CancelledError)


def _listed(
    noun: str, every: Sequence[ItemT], word: Callable[[ItemT], str]
) -> dict[str, JsonValue]:
    fields: dict[str, JsonValue] = {}
    if every:
        fields[f"{noun}s"] = [word(one) for one in every[:_LISTED]]
    if len(every) > _LISTED:
        fields[f"{noun}_count"] = len(every)
    return fields


def _notes(error: BaseException) -> list[str]:
    notes = read(error, "__notes__")
    every = cast("list[object]", notes) if type(notes) is list else []
    return [cast("str", note) for note in every if issubclass(type(note), str)]


def _iter_causes(error: BaseException) -> Iterator[BaseException]:
    seen = {id(error)}
    cause = _cause_of(error)
    while cause is not None and id(cause) not in seen and len(seen) < _WALK:
        seen.add(id(cause))
        yield cause
        cause = _cause_of(cause)


def _cause_of(error: BaseException) -> BaseException | None:
    """The exception that Python would print before this one."""
    cause = read(error, "__cause__")
    if cause is None and read(error, "__suppress_context__") is not True:
        cause = read(error, "__context__")
    return _exception(cause)


def _iter_leaves(error: BaseException) -> Iterator[BaseException]:
    """The exceptions of a group, of its groups and so on; else the exception itself."""
    waiting: list[BaseException] = [error]
    seen: set[int] = set()
    while waiting and len(seen) < _WALK:
        part = waiting.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        if not issubclass(type(part), BaseExceptionGroup):
            yield part
            continue
        members = read(part, "exceptions")
        if type(members) is tuple:
            every = cast("tuple[object, ...]", members)
            waiting += filter(None, map(_exception, reversed(every)))


def _exception(value: object) -> BaseException | None:
    """Not `isinstance`: that asks the value for its class, which may raise."""
    return cast("BaseException", value) if issubclass(type(value), BaseException) else None


def _frames(error: BaseException) -> dict[str, JsonValue]:
    traceback = read(error, "__traceback__")
    last: deque[str] = deque(maxlen=_FRAMES)
    count = 0
    while type(traceback) is TracebackType:
        code = traceback.tb_frame.f_code
        file = one_line(code.co_filename[-NAME_CHARS:], NAME_CHARS)
        cut = "…" if len(code.co_filename) > NAME_CHARS else ""
        function = one_line(code.co_name, NAME_CHARS)
        last.append(f"{cut}{file}:{traceback.tb_lineno} {function}")
        count += 1
        traceback = traceback.tb_next
    fields: dict[str, JsonValue] = {"traceback": [*last]} if last else {}
    return fields | ({"frame_count": count} if count > _FRAMES else {})
