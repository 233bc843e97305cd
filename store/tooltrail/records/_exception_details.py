"""Describes an exception for a record: its type, its text, its causes and its traceback.

Texts are kept complete; the projection cuts them. Source lines and local values are not kept: they
may hold secrets. `traceback.TracebackException` is not used: it inspects objects of the program for
suggestions, and copies a group as often as other groups contain it.
"""

import traceback
from collections.abc import Iterator
from typing import cast

from pydantic import JsonValue, ValidationError

from tooltrail.records._argument_problems import text_of_refusal
from tooltrail.records._error_text import full_text, one_line, type_name

MAX_EXCEPTIONS = 1_000
"""Most causes and members that are described; the others are counted."""

MAX_FRAMES = 1_000
"""Most frames of one traceback, half of them from each end; the others are counted."""


def describe(error: BaseException) -> dict[str, JsonValue]:
    """The details of an exception, and of every exception that Python would print with it.

    The fields, without empty ones:

    - `exception`: the type. The text is already the message of the failure;
    - `notes`: the notes of the exception;
    - `traceback`: the frames as `FILE:LINE FUNCTION`, the innermost last;
    - `related`: causes and members of groups, each once, as objects with their own `notes` and
      `traceback`, with type and text in `raised`, and in `cause_of` and `member_of` the numbers of
      the exceptions that they belong to: 0 is the exception itself, N the Nth of `related`.
    """
    details: dict[str, JsonValue] = {"exception": type_name(error)}
    try:
        first, *others = _reached_from(error)
        details |= {**first[1], **_own_parts(error)}
        related: list[JsonValue] = [
            {"raised": worded(other), **relations, **_own_parts(other)}
            for other, relations in others[:MAX_EXCEPTIONS]
        ]
    except Exception:  # noqa: BLE001  a class may define any attribute
        return details
    if len(others) > MAX_EXCEPTIONS:
        related.append(f"[{len(others) - MAX_EXCEPTIONS:,} more exceptions]")
    return {**details, "related": related} if related else details


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
    waiting, seen = [error], set[int]()
    while waiting:
        part = waiting.pop()
        # A group that holds only exceptions is an `Exception`, too.
        if id(part) in seen or isinstance(part, Exception | SystemExit):
            continue
        seen.add(id(part))
        members = _members_of(part)
        if not members:
            return part
        waiting += reversed(members)
    return None


def _reached_from(
    error: BaseException,
) -> list[tuple[BaseException, dict[str, list[JsonValue]]]]:
    """The exception and all that it leads to, each with the numbers of those it belongs to."""
    reached: dict[int, tuple[BaseException, dict[str, list[JsonValue]]]] = {id(error): (error, {})}
    waiting = [error]
    for number, one in enumerate(waiting):
        for relation, other in _related_to(one):
            if id(other) not in reached:
                reached[id(other)] = (other, {})
                waiting.append(other)
            if number <= MAX_EXCEPTIONS:  # the others are not listed
                reached[id(other)][1].setdefault(relation, []).append(number)
    return [*reached.values()]


def _related_to(error: BaseException) -> Iterator[tuple[str, BaseException]]:
    cause = error.__cause__
    if cause is None and not error.__suppress_context__:
        cause = error.__context__
    if cause is not None:
        yield "cause_of", cause
    for member in _members_of(error):
        yield "member_of", member


def _members_of(error: BaseException) -> tuple[BaseException, ...]:
    if not isinstance(error, BaseExceptionGroup):
        return ()
    return cast("BaseExceptionGroup[BaseException]", error).exceptions


def _own_parts(error: BaseException) -> dict[str, list[JsonValue]]:
    """The notes and the frames of an exception, where it has any."""
    notes = cast("object", getattr(error, "__notes__", None))
    listed = cast("list[object]", notes) if isinstance(notes, list) else []
    parts: dict[str, list[JsonValue]] = {
        "notes": [full_text(note) for note in listed if isinstance(note, str)],
        "traceback": [
            f"{one_line(frame.f_code.co_filename)}:{line} {one_line(frame.f_code.co_name)}"
            for frame, line in traceback.walk_tb(error.__traceback__)
        ],
    }
    excess = len(parts["traceback"]) - MAX_FRAMES
    if excess > 0:
        half = MAX_FRAMES // 2
        parts["traceback"][half : half + excess] = [f"[{excess:,} more frames]"]
    return {name: part for name, part in parts.items() if part}
