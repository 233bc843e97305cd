"""Imports the events that hooks logged, each after the transcript that it names.

The transcript of a session says more than its events: what the model saw, messages, the exit
status. So an event adds only what the transcript does not have: a call that still runs, one whose
result was never written, a denied one, or a complete session whose transcript is gone.

An agent writes its transcript after its events. So an event waits for two seconds.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final, NamedTuple

from tooltrail.importers.cursors import Cursor
from tooltrail.importers.events import Line
from tooltrail.importers.hook_log import FOLDER, read_name
from tooltrail.importers.hooks import Reader
from tooltrail.importers.importing import Importer, Outcome
from tooltrail.importers.lines import DamagedLine, read_lines
from tooltrail.importers.recording import Source
from tooltrail.importers.values import object_of
from tooltrail.records.errors import TooltrailError, UnavailableError
from tooltrail.redaction import RuleSet

_SETTLE_S: Final = 2.0
_COARSE_S: Final = 0.1
"""Seconds by which the times of a file system may be behind."""
_KEPT_S: Final = 2 * 24 * 3600.0
"""Seconds after its last event at which a log that was imported is deleted."""


class _Log(NamedTuple):
    """One log: its file, its agent, whether it is without secrets, and how far it was imported."""

    path: Path
    agent: str
    is_redacted: bool
    cursor: Cursor


def has_events(spool: Path) -> bool:
    """Whether a spool holds events that are not imported yet."""
    return any(log.path.stat().st_size > log.cursor.offset for log in _logs(spool))


def settle(spool: Path) -> None:
    """Wait until `import_events` imports the newest event, some two seconds at most."""
    newest = max((log.path.stat().st_mtime for log in _logs(spool)), default=0.0)
    waits = _SETTLE_S + _COARSE_S
    time.sleep(min(max(newest + waits - time.time(), 0.0), waits))


def import_events(spool: Path, rules: RuleSet) -> Iterator[Outcome]:
    """Import what was logged with the transcripts, and delete logs that were imported days ago.

    Args:
        spool: folder of the spool.
        rules: the secrets to replace.
    """
    for log in _logs(spool):
        try:
            with log.path.open("rb") as file:
                lines, end = _settled(log, file)
                if lines:
                    yield from _import_lines(spool, rules, log, lines)
                    log.cursor.write(file, end)
                is_done = log.cursor.offset == file.seek(0, 2)
            if is_done and log.path.stat().st_mtime < time.time() - _KEPT_S:
                log.path.unlink(missing_ok=True)
        except OSError as error:
            yield UnavailableError(f"{log.path} cannot be imported: {error.strerror}")
        except TooltrailError as error:
            yield error


def _import_lines(
    spool: Path, rules: RuleSet, log: _Log, lines: list[Line | DamagedLine]
) -> Iterator[Outcome]:
    importer = Importer(spool, rules if log.is_redacted else None)
    reader = Reader(log.path, log.agent)
    for path in reader.transcripts(line for line in lines if isinstance(line, Line)):
        try:
            imported = importer.import_file(path, log.agent)
            reader.begun |= imported.calls
            reader.ended |= imported.results
            yield imported
        except TooltrailError as error:
            yield error
    # What a mark stands for was replaced before the event was logged.
    importer = Importer(spool, rules.with_marks() if log.is_redacted else None)
    yield importer.import_lines(Source(log.agent, str(log.path.resolve())), reader, lines)


def _logs(spool: Path) -> Iterator[_Log]:
    for path in sorted((spool / FOLDER).glob("*.jsonl")):
        if (named := read_name(path.name)) is not None:
            yield _Log(path, *named, Cursor(spool, path.resolve(), FOLDER))


def _settled(log: _Log, file: IO[bytes]) -> tuple[list[Line | DamagedLine], int]:
    """The lines that are not imported yet, up to the first one that is too young, and their end."""
    file.seek(log.cursor.read(file))
    lines: list[Line | DamagedLine] = []
    for line in read_lines(file):
        if line.is_last if isinstance(line, DamagedLine) else _is_young(line):
            return lines, line.offset
        lines.append(line)
    return lines, file.tell()


def _is_young(line: Line) -> bool:
    """Whether an event came in the last two seconds. A clock that was ahead does not count."""
    at, now = object_of(line.value).get("at"), time.time()
    return isinstance(at, int | float) and now - _SETTLE_S < at <= now
