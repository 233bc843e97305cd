"""Imports the events that `tooltrail hook` has logged."""

from pathlib import Path

from tooltrail.cli._failures import say_error
from tooltrail.cli._output import counted, printable, say
from tooltrail.cli._redaction import used_rules
from tooltrail.importers import Imported
from tooltrail.importers.hook_importing import HookImporter, has_events, settle
from tooltrail.records.errors import TooltrailError, UnavailableError


def import_hook_events(
    spool: Path, *, is_waiting: bool = False
) -> tuple[list[Imported], list[TooltrailError]]:
    """Import the events that hooks have logged, and the transcripts that they name.

    Args:
        spool: folder of the spool.
        is_waiting: whether to wait for the transcripts of the newest events.

    Returns:
        What was imported, and why the rest was not.
    """
    try:
        if is_waiting:
            settle(spool)
        if not has_events(spool):
            return [], []
        importer = HookImporter(spool, used_rules())
        return importer.import_events(), importer.failures
    except OSError as error:
        return [], [UnavailableError(f"{spool} cannot be read: {error.strerror}")]
    except TooltrailError as error:
        return [], [error]


def import_and_report(spool: Path) -> None:
    """Import the events before a command reads, and print what could not be imported."""
    imported, failures = import_hook_events(spool)
    for failure in failures:
        say_error(failure)
    for one in imported:
        if one.damaged:
            name, parts = printable(str(one.path)), counted(len(one.damaged), "damaged part")
            say(f"tooltrail: {name}: {parts} could not be imported")
