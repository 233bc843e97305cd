"""Imports the events that `tooltrail hook` has logged."""

from pathlib import Path

from tooltrail.cli._failures import say_error
from tooltrail.cli._output import counted, printable, say
from tooltrail.cli._redaction import used_rules
from tooltrail.importers import Imported
from tooltrail.importers.hook_importing import has_events, import_events, settle
from tooltrail.records.errors import TooltrailError, UnavailableError


def import_hook_events(
    spool: Path, *, is_waiting: bool = False
) -> tuple[list[Imported], TooltrailError | None]:
    """Import the events that hooks have logged, and print what could not be imported.

    Args:
        spool: folder of the spool.
        is_waiting: whether to wait for the transcripts of the newest events.

    Returns:
        What was imported, and the last error.
    """
    imported: list[Imported] = []
    failures: list[TooltrailError] = []
    try:
        if is_waiting:
            settle(spool)
        if has_events(spool):
            imported, failures = import_events(spool, used_rules())
    except OSError as error:
        failures = [UnavailableError(f"{spool} cannot be read: {error.strerror}")]
    except TooltrailError as error:
        failures = [error]
    for failure in failures:
        say_error(failure)
    return imported, failures[-1] if failures else None


def import_and_report(spool: Path) -> None:
    """Import the events before a command reads, and print what is damaged."""
    for one in import_hook_events(spool)[0]:
        if one.damaged:
            name, parts = printable(str(one.path)), counted(len(one.damaged), "damaged part")
            say(f"tooltrail: {name}: {parts} could not be imported")
