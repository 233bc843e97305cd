"""What is told of an exception: its type, its text, its causes and where it came from.

An exception may be of any class, and a class may define anything: so what Python itself keeps of
it is read past its class, and a chain ends. Everything is told whole, for it is the projection that
cuts. No line of source and no local value is told: they may hold secrets.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from types import TracebackType
from typing import TypeVar, cast

from pydantic import JsonValue, ValidationError

from tooltrail.records._argument_problems import text_of_refusal
from tooltrail.records._error_details import one_line, read, type_name
from tooltrail.records._whole_texts import whole

_REPEATED_FRAMES = 3
"""Times that one frame is told; of a recursion the others are counted, as Python does it."""

ItemT = TypeVar("ItemT")


def describe(error: BaseException) -> dict[str, JsonValue]:
    """The details of an exception; given for whatever exception it is.

    Fields: `exception`, its type; `notes`, `causes` and, for a group, `members`; `traceback`,
    frames as `FILE:LINE FUNCTION`, the innermost last. All are whole, but that `[N more times]`
    stands for frames that are the same as the one before.
    """
    return {
        "exception": type_name(error),
        **_listed("notes", _notes(error), whole),
        **_listed("causes", _iter_causes(error), worded),
        **_listed("members", (leaf for leaf in _iter_leaves(error) if leaf is not error), worded),
        **_listed("traceback", _iter_frames(error), str),
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
    name: str, every: Iterable[ItemT], word: Callable[[ItemT], str]
) -> dict[str, JsonValue]:
    """A field with every entry in words; none when there are no entries."""
    words: list[JsonValue] = [word(one) for one in every]
    return {name: words} if words else {}


def _notes(error: BaseException) -> list[str]:
    notes = read(error, "__notes__")
    every = cast("list[object]", notes) if type(notes) is list else []
    return [cast("str", note) for note in every if issubclass(type(note), str)]


def _iter_causes(error: BaseException) -> Iterator[BaseException]:
    seen = {id(error)}
    cause = _cause_of(error)
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        yield cause
        cause = _cause_of(cause)


def _cause_of(error: BaseException) -> BaseException | None:
    """The exception that Python would print before this one."""
    cause = _kept(error, "__cause__")
    if cause is None and not _kept(error, "__suppress_context__"):
        cause = _kept(error, "__context__")
    return cast("BaseException | None", cause)


def _iter_leaves(error: BaseException) -> Iterator[BaseException]:
    """The exceptions of a group, of its groups and so on; else the exception itself."""
    waiting: list[BaseException] = [error]
    seen: set[int] = set()
    while waiting:
        part = waiting.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        if not issubclass(type(part), BaseExceptionGroup):
            yield part
            continue
        members = _kept(part, "exceptions", BaseExceptionGroup)
        waiting += reversed(cast("tuple[BaseException, ...]", members))


def _iter_frames(error: BaseException) -> Iterator[str]:
    for frame, same in groupby(_iter_places(error)):
        count = sum(1 for _ in same)
        yield from [frame] * min(count, _REPEATED_FRAMES)
        if count > _REPEATED_FRAMES:
            yield f"[{count - _REPEATED_FRAMES:,} more times]"


def _iter_places(error: BaseException) -> Iterator[str]:
    traceback = cast("TracebackType | None", _kept(error, "__traceback__"))
    while traceback is not None:
        code = traceback.tb_frame.f_code
        file, function = one_line(code.co_filename), one_line(code.co_name)
        yield f"{file}:{traceback.tb_lineno} {function}"
        traceback = traceback.tb_next


def _kept(error: BaseException, name: str, kind: type[BaseException] = BaseException) -> object:
    """What Python keeps under this name. A class may define another attribute of the same name,
    which gives a new value at each question or none.
    """
    return cast("object", vars(kind)[name].__get__(error))
