"""Imports the events that `tooltrail hook` has logged."""

from collections.abc import Sequence
from pathlib import Path

from tooltrail.cli._failures import say_error
from tooltrail.cli._output import counted, printable, say
from tooltrail.cli._redaction import used_rules
from tooltrail.importers import Imported, ImportResult
from tooltrail.importers.events import Line
from tooltrail.importers.hooks import has_events, import_events, settle
from tooltrail.records.errors import TooltrailError, UnavailableError

_MOST_DAMAGED = 10
"""Damaged parts of a file that are printed."""


def import_hook_events(spool: Path, *, is_waiting: bool = False) -> list[ImportResult]:
    """Import the events that hooks have logged, and print what could not be imported.

    Args:
        spool: folder of the spool.
        is_waiting: whether to wait for the transcripts of the newest events.
    """
    results: list[ImportResult] = []
    try:
        if is_waiting:
            settle(spool)
        if has_events(spool):
            results += import_events(spool, used_rules())
    except OSError as error:
        results.append(UnavailableError(f"{spool} cannot be read: {error.strerror}"))
    except TooltrailError as error:
        results.append(error)
    for one in results:
        if isinstance(one, TooltrailError):
            say_error(one)
    return results


def import_and_report(spool: Path) -> None:
    """Import the events before a command reads, and print what is damaged."""
    for one in import_hook_events(spool):
        if isinstance(one, Imported) and one.damaged:
            name, parts = printable(str(one.path)), counted(len(one.damaged), "damaged part")
            say(f"tooltrail: {name}: {parts} could not be imported")
            say_damage(one.path, one.damaged)


def say_damage(path: Path, parts: Sequence[Line], hint: str = "") -> None:
    """Print what is damaged in a file: the first parts, and how many more with a hint."""
    name = printable(str(path))
    for damaged in parts[:_MOST_DAMAGED]:
        size = counted(len(damaged.data), "byte")
        say(f"{name}:{damaged.number}: {size} at offset {damaged.offset:,}: {damaged.damage}")
    if (more := len(parts) - _MOST_DAMAGED) > 0:
        say(f"{name}: {counted(more, 'more damaged part')}{hint}")
