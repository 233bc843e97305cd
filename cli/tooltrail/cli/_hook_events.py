"""Imports the events that `tooltrail hook` has logged."""

from pathlib import Path

from tooltrail.cli._failures import say_error
from tooltrail.cli._redaction import used_rules
from tooltrail.importers import Imported
from tooltrail.importers.hook_importing import HookImporter, has_events, settle
from tooltrail.records.errors import TooltrailError


def import_hook_events(
    spool: Path, *, is_waiting: bool = False
) -> tuple[list[Imported], TooltrailError | None]:
    """Import the events that hooks have logged, and the transcripts that they name.

    A failure is reported: what could be imported is recorded.

    Args:
        spool: folder of the spool.
        is_waiting: whether to wait for the transcripts of the newest events.

    Returns:
        What was imported, and the last error.
    """
    imported: list[Imported] = []
    importer = HookImporter(spool, used_rules())
    try:
        if is_waiting:
            settle(spool)
        if has_events(spool):
            imported = importer.import_events()
    except TooltrailError as error:
        importer.failures.append(error)
    for failure in importer.failures:
        say_error(failure)
    return imported, importer.failures[-1] if importer.failures else None
