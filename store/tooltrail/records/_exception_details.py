"""What is told of an exception: its type, its text, its causes and where it came from.

An exception may be of any class, and a class may define anything: so what Python itself keeps of
it is read past its class, and all of it before the first text is made. Everything is told whole,
for it is the projection that cuts. No line of source and no local value is told: they may hold
secrets.
"""

import sys
from collections.abc import Iterator, Sequence
from itertools import groupby
from types import TracebackType
from typing import cast

from pydantic import JsonValue, ValidationError

from tooltrail.records._argument_problems import text_of_refusal
from tooltrail.records._error_details import one_line, read, type_name
from tooltrail.records._exception_links import Reached, iter_leaves, reach
from tooltrail.records._whole_texts import whole

_REPEATED_FRAMES = 3
"""Times that one frame is told; of a recursion the others are counted, as Python does it."""


def describe(error: BaseException) -> dict[str, JsonValue]:
    """The details of an exception, and of every other one that it came from or holds.

    Fields, those left out that have nothing to say:

    - `exception`: its type. Its text is the message of the failure, so that `raised`, type and
      text, stands only in a group whose failure is worded by the cancellation that it holds;
    - `notes`: its notes;
    - `causes`: the exceptions that Python would print before it, the nearest first;
    - `members`: the exceptions of a group;
    - `traceback`: its frames as `FILE:LINE FUNCTION`, the innermost last. `[N more times]` stands
      for frames that are the same as the one before, `[from FRAME on as in N]` for a traceback
      that goes on as that of another exception;
    - `others`: the exceptions of which there is more to say than type and text, in the order in
      which they were reached: each with its number `n`, from 1, with `raised` and with `notes`,
      `causes`, `members` and `traceback` of its own.

    An entry of `causes` or `members` is `TYPE: TEXT`, or the number of one of the `others`, 0 for
    the exception itself. A number ends the causes, for the one that it names has the next. Each
    exception is told once, however many hold it; no level lies below an entry of `others`.
    """
    every = reach(error)
    notes = [_notes(one.error) for one in every]
    numbers = _numbers(every, notes)
    control = control_flow_in(error)
    told: dict[str, JsonValue] = {"exception": type_name(error)}
    if control is not None and control is not error:
        told["raised"] = worded(error)
    told |= _parts(every[0], notes[0], numbers)
    others: list[JsonValue] = [
        {"n": numbers[one], "raised": worded(one.error), **_parts(one, own, numbers)}
        for one, own in zip(every[1:], notes[1:], strict=True)
        if one in numbers
    ]
    return told | _if_any("others", others)


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
    leaves = iter_leaves(error)
    return next((e for e in leaves if not issubclass(type(e), (Exception, SystemExit))), None)


def is_cancellation(error: BaseException) -> bool:
    """Whether it is a `CancelledError` of asyncio."""
    if "asyncio" not in sys.modules:  # then nobody can have raised one
        return False
    import asyncio  # noqa: PLC0415  it brings in sockets and processes, which records do without

    return issubclass(type(error), asyncio.CancelledError)


def _notes(error: BaseException) -> list[str]:
    notes = read(error, "__notes__")
    every = cast("list[object]", notes) if type(notes) is list else []
    return [cast("str", note) for note in every if issubclass(type(note), str)]


def _numbers(every: Sequence[Reached], notes: Sequence[list[str]]) -> dict[Reached, int]:
    """Numbers of those that words alone would not tell, from 0 for the first, which has one."""
    numbers = {every[0]: 0}
    for one, own in zip(every[1:], notes[1:], strict=True):
        has_parts = own or one.members or one.places or one.joins
        # The causes of a member would stand between the members.
        if has_parts or one.times > 1 or (one.is_member and one.cause):
            numbers[one] = len(numbers)
    return numbers


def _parts(one: Reached, notes: Sequence[str], numbers: dict[Reached, int]) -> dict[str, JsonValue]:
    """The fields that an exception has whether it is the first or one of the others."""
    return {
        **_if_any("notes", [whole(note) for note in notes]),
        **_if_any("causes", [*_iter_causes(one, numbers)]),
        **_if_any("members", [_named(member, numbers) for member in one.members]),
        **_if_any("traceback", [*_iter_frames(one, numbers)]),
    }


def _if_any(name: str, entries: list[JsonValue]) -> dict[str, JsonValue]:
    return {name: entries} if entries else {}


def _named(one: Reached, numbers: dict[Reached, int]) -> int | str:
    return numbers[one] if one in numbers else worded(one.error)


def _iter_causes(one: Reached, numbers: dict[Reached, int]) -> Iterator[int | str]:
    cause = one.cause
    while cause is not None:
        yield _named(cause, numbers)
        cause = None if cause in numbers else cause.cause


def _iter_frames(one: Reached, numbers: dict[Reached, int]) -> Iterator[str]:
    for frame, same in groupby(map(_worded_frame, one.places)):
        count = sum(1 for _ in same)
        yield from [frame] * min(count, _REPEATED_FRAMES)
        if count > _REPEATED_FRAMES:
            yield f"[{count - _REPEATED_FRAMES:,} more times]"
    if one.joins is not None:
        place, other = one.joins
        yield f"[from {_worded_frame(place)} on as in {numbers[other]}]"


def _worded_frame(place: TracebackType) -> str:
    code = place.tb_frame.f_code
    return f"{one_line(code.co_filename)}:{place.tb_lineno} {one_line(code.co_name)}"
