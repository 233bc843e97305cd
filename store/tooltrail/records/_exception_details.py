"""What a record says of an exception: its type, its text, its causes and where it came from.

Texts are kept whole, for it is the projection that cuts them. No line of source and no local value
is kept: they may hold secrets. `traceback.TracebackException` is not used: it looks at objects of
the program for suggestions, and copies a group as often as other groups hold it.
"""

import sys
import traceback
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import cast

from pydantic import JsonValue, ValidationError

from tooltrail.records._argument_problems import text_of_refusal
from tooltrail.records._error_text import full_text, one_line, type_name

MAX_EXCEPTIONS = 1_000
"""Exceptions that are described; the others are counted where they are held."""

MAX_FRAMES = 1_000
"""Frames of one traceback, half of them from each end; the others are counted."""

_REPEATED_FRAMES = 3
"""Times that one frame is listed; of a recursion the others are counted, as Python does it."""


def describe(error: BaseException) -> dict[str, JsonValue]:
    """The details of an exception, and of every other one that it came from or holds.

    Fields, those left out that have nothing to say:

    - `exception`: its type. Its text is the message of the failure, so that `raised`, type and
      text, stands only in a group whose failure is worded by the cancellation that it holds;
    - `notes`: its notes;
    - `causes`: the exceptions that Python would print before it, the nearest first;
    - `members`: the exceptions of a group;
    - `traceback`: its frames as `FILE:LINE FUNCTION`, the innermost last. `[N more times]` stands
      for frames that are the same as the one before;
    - `others`: the exceptions of which there is more to say than type and text, in the order in
      which they were reached: each with its number `n`, from 1, with `raised` and with `notes`,
      `causes`, `members` and `traceback` of its own.

    An entry of `causes` or `members` is `TYPE: TEXT`, or the number of one of the `others`, 0 for
    the exception itself. A number ends the causes, for the one that it names has the next. Each
    exception is described once, however many hold it; no level lies below an entry of `others`.
    `[N more exceptions]` stands for those beyond `MAX_EXCEPTIONS`, `[N more frames]` for those
    beyond `MAX_FRAMES`.
    """
    first, *linked = _reach(error)
    others = [one for one in linked if one.has_parts]
    numbers = {id(one): n for n, one in enumerate([first, *others])}
    details: dict[str, JsonValue] = {"exception": type_name(error)}
    control = control_flow_in(error)
    if control is not None and control is not error:
        details["raised"] = worded(error)
    details |= _parts(first, numbers)
    if others:
        details["others"] = [
            {"n": numbers[id(one)], "raised": worded(one.error), **_parts(one, numbers)}
            for one in others
        ]
    return details


def text_of(error: BaseException) -> str:
    """The text of an exception, of any length; empty when it has none."""
    try:
        return text_of_refusal(error) if isinstance(error, ValidationError) else str(error)
    except Exception:  # noqa: BLE001  a class may define any text
        return "(its text cannot be made)"


def worded(error: BaseException) -> str:
    """The exception as Python words it, `KeyError: 'name'`, with its whole text."""
    name, text = type_name(error), full_text(text_of(error))
    return f"{name}: {text}" if text else name


def control_flow_in(error: BaseException) -> BaseException | None:
    """The part of an exception that nobody may swallow: a cancellation, an interruption.

    `SystemExit` is none: a tool must not be able to end the program.
    """
    waiting = [error]
    seen: set[int] = set()
    while waiting:
        part = waiting.pop()
        members = _members_of(part)
        if not (members or isinstance(part, Exception | SystemExit)):
            return part
        if id(part) not in seen:
            seen.add(id(part))
            waiting += reversed(members)
    return None


def is_cancellation(error: BaseException) -> bool:
    """Whether it is a `CancelledError` of asyncio."""
    if "asyncio" not in sys.modules:  # then nobody can have raised one
        return False
    import asyncio  # noqa: PLC0415  it brings in sockets and processes, which records do without

    return isinstance(error, asyncio.CancelledError)


@dataclass(eq=False, slots=True)
class _Reached:
    """One exception and the exceptions that it holds.

    Attributes:
        error: the exception.
        notes: its notes.
        frames: its traceback.
        cause: the one that Python would print before it.
        members: of a group, in their order.
        left_out: how many causes and members are beyond `MAX_EXCEPTIONS`.
        times: how often others hold it.
        is_member: whether a group holds it.
    """

    error: BaseException
    notes: list[str]
    frames: list[str]
    cause: "_Reached | None" = None
    members: "list[_Reached]" = field(default_factory=list["_Reached"])
    left_out: int = 0
    times: int = 0
    is_member: bool = False

    @property
    def has_parts(self) -> bool:
        """Whether type and text do not say all of it."""
        own = self.notes or self.frames or self.members or self.left_out
        # The causes of a member would stand between the members.
        return bool(own or self.times > 1 or (self.is_member and self.cause))


def _reach(error: BaseException) -> list[_Reached]:
    """The exception, its causes, its members, theirs and so on: each once, the nearest first."""
    every = [_new(error)]
    known = {id(error): every[0]}
    for one in every:  # it grows as it is walked
        cause, members = _cause_of(one.error), _members_of(one.error)
        for other in (*((cause,) if cause is not None else ()), *members):
            reached = known.get(id(other))
            if reached is None:
                if len(every) == MAX_EXCEPTIONS:
                    one.left_out += 1
                    continue
                reached = known[id(other)] = _new(other)
                every.append(reached)
            reached.times += 1
        one.cause = known.get(id(cause))
        one.members = [known[id(member)] for member in members if id(member) in known]
        for member in one.members:
            member.is_member = True
    return every


def _new(error: BaseException) -> _Reached:
    notes = cast("object", getattr(error, "__notes__", None))
    every = cast("list[object]", notes) if isinstance(notes, list) else []
    texts = [full_text(note) for note in every if isinstance(note, str)]
    return _Reached(error, texts, _frames_of(error))


def _cause_of(error: BaseException) -> BaseException | None:
    """The exception that Python would print before this one."""
    if error.__cause__ is not None or error.__suppress_context__:
        return error.__cause__
    return error.__context__


def _members_of(error: BaseException) -> tuple[BaseException, ...]:
    if not isinstance(error, BaseExceptionGroup):
        return ()
    return cast("BaseExceptionGroup[BaseException]", error).exceptions


def _parts(one: _Reached, numbers: dict[int, int]) -> dict[str, JsonValue]:
    """The fields that an exception has whether it is the first or one of the others."""
    members = [_named(member, numbers) for member in one.members]
    causes = [*_iter_causes(one, numbers)]
    if one.left_out:
        left_out = f"[{one.left_out:,} more exceptions]"
        (members if members or _members_of(one.error) else causes).append(left_out)
    parts: dict[str, Iterable[int | str]] = {
        "notes": one.notes,
        "causes": causes,
        "members": members,
        "traceback": one.frames,
    }
    return {name: [*entries] for name, entries in parts.items() if entries}


def _named(one: _Reached, numbers: dict[int, int]) -> int | str:
    return numbers[id(one)] if id(one) in numbers else worded(one.error)


def _iter_causes(one: _Reached, numbers: dict[int, int]) -> Iterator[int | str]:
    cause = one.cause
    while cause is not None:
        yield _named(cause, numbers)
        cause = None if id(cause) in numbers else cause.cause


def _frames_of(error: BaseException) -> list[str]:
    frames: list[str] = []
    places = (
        f"{one_line(frame.f_code.co_filename)}:{line} {one_line(frame.f_code.co_name)}"
        for frame, line in traceback.walk_tb(error.__traceback__)
    )
    for frame, same in groupby(places):
        count = sum(1 for _ in same)
        frames += [frame] * min(count, _REPEATED_FRAMES)
        if count > _REPEATED_FRAMES:
            frames.append(f"[{count - _REPEATED_FRAMES:,} more times]")
    excess = len(frames) - MAX_FRAMES
    if excess > 0:
        half = MAX_FRAMES // 2
        frames[half : half + excess] = [f"[{excess:,} more frames]"]
    return frames
