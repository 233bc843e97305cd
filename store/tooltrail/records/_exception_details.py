"""Describes an exception for a record: its type, its text, its causes and its traceback.

Texts are kept complete; the projection cuts them. Source lines and local values are not kept: they
may hold secrets. `traceback.TracebackException` is not used: it inspects objects of the program for
suggestions, and copies a group as often as other groups contain it.
"""

import sys
import traceback
from collections.abc import Sequence
from itertools import groupby
from typing import cast

from pydantic import JsonValue, ValidationError

from tooltrail.records._argument_problems import text_of_refusal
from tooltrail.records._error_text import full_text, one_line, type_name
from tooltrail.records._text_cuts import shorten

MAX_EXCEPTIONS = 1_000
"""Most exceptions that are described."""

MAX_FRAMES = 1_000
"""Most frames of one traceback, half of them from each end; the others are counted."""

_LEVELS = 50
"""Most levels of nested groups whose members are described."""

_NAMED_CHARS = 200
"""Most characters of the text that refers to an exception described elsewhere."""

_REPEATED_FRAMES = 3
"""Most times that a repeated frame is listed; further repeats are counted, as Python does."""


def describe(error: BaseException) -> dict[str, JsonValue]:
    """The details of an exception, of its causes, and of the members of a group.

    The fields, without empty ones:

    - `exception`: the type. The text is already the message of the failure;
    - `raised`: type and text; only for a group whose message is that of the cancellation in it;
    - `notes`: the notes of the exception;
    - `causes`: the exceptions that Python would print before this one, the nearest first;
    - `members`: the exceptions of a group;
    - `traceback`: the frames as `FILE:LINE FUNCTION`, the innermost last. `[N more times]` replaces
      repeats of the frame before, `[N more frames]` replaces frames beyond `MAX_FRAMES`.

    An entry of `causes` or `members` is `TYPE: TEXT`, or an object with that text in `raised` and
    with fields of its own. For an exception that was already described, the entry is only the
    beginning of that text, and `causes` ends there. `[N more exceptions]` (`[more exceptions]`
    among causes) replaces those beyond `MAX_EXCEPTIONS`.
    """
    details: dict[str, JsonValue] = {"exception": type_name(error)}
    control = control_flow_in(error)
    if control is not None and control is not error:
        details["raised"] = worded(error)
    try:
        return details | _Description().parts(error, _LEVELS)
    except Exception:  # noqa: BLE001  a class may define any attribute
        return details


def text_of(error: BaseException) -> str:
    """The text of an exception, of any length; empty if it has none."""
    try:
        return text_of_refusal(error) if isinstance(error, ValidationError) else str(error)
    except Exception:  # noqa: BLE001  a class may define any `__str__`
        return "(its text cannot be made)"


def worded(error: BaseException) -> str:
    """The exception as Python prints it, `KeyError: 'name'`, with its complete text."""
    name, text = type_name(error), full_text(text_of(error))
    return f"{name}: {text}" if text else name


def control_flow_in(error: BaseException) -> BaseException | None:
    """The part of an exception that must not be swallowed: a cancellation or an interruption.

    `SystemExit` does not count: a tool must not be able to end the program.
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
    """Whether an exception is a `CancelledError` of asyncio."""
    if "asyncio" not in sys.modules:  # then no code can have raised one
        return False
    import asyncio  # noqa: PLC0415  it brings in sockets and processes, which records do without

    return isinstance(error, asyncio.CancelledError)


class _Description:
    """Describes each exception once."""

    def __init__(self) -> None:
        self._described: set[int] = set()

    def parts(self, error: BaseException, levels: int) -> dict[str, JsonValue]:
        """The fields of an exception, including its causes."""
        own = self._own_parts(error, levels)
        causes: list[JsonValue] = []
        cause, is_new = _cause_of(error), True
        while cause is not None and is_new:
            if len(self._described) >= MAX_EXCEPTIONS:
                causes.append("[more exceptions]")
                break
            is_new = id(cause) not in self._described
            causes.append(_entry(cause, self._own_parts(cause, levels) if is_new else None))
            cause = _cause_of(cause)
        return {**own, "causes": causes} if causes else own

    def _own_parts(self, error: BaseException, levels: int) -> dict[str, JsonValue]:
        self._described.add(id(error))
        notes = cast("object", getattr(error, "__notes__", None))
        listed = cast("list[object]", notes) if isinstance(notes, list) else []
        parts: dict[str, Sequence[JsonValue]] = {
            "notes": [full_text(note) for note in listed if isinstance(note, str)],
            "members": self._members(_members_of(error), levels - 1),
            "traceback": _frames_of(error),
        }
        return {name: [*entries] for name, entries in parts.items() if entries}

    def _members(self, members: tuple[BaseException, ...], levels: int) -> list[JsonValue]:
        entries: list[JsonValue] = []
        for n, member in enumerate(members):
            if len(self._described) >= MAX_EXCEPTIONS:
                entries.append(f"[{len(members) - n:,} more exceptions]")
                break
            is_new = levels > 0 and id(member) not in self._described
            entries.append(_entry(member, self.parts(member, levels) if is_new else None))
        return entries


def _entry(error: BaseException, parts: dict[str, JsonValue] | None) -> JsonValue:
    if parts is None:
        return shorten(worded(error), _NAMED_CHARS)
    return {"raised": worded(error), **parts} if parts else worded(error)


def _cause_of(error: BaseException) -> BaseException | None:
    """The exception that Python would print before this one."""
    if error.__cause__ is not None or error.__suppress_context__:
        return error.__cause__
    return error.__context__


def _members_of(error: BaseException) -> tuple[BaseException, ...]:
    if not isinstance(error, BaseExceptionGroup):
        return ()
    return cast("BaseExceptionGroup[BaseException]", error).exceptions


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
