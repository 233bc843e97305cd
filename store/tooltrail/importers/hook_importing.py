"""Imports the events that hooks logged, each after the transcript that it names.

The transcript of a session says more than its events: what the model saw, messages, the exit
status. So an event adds only what the transcript does not have: a call that still runs, one whose
result was never written, a denied one, or a complete session whose transcript is gone.

An agent writes its transcript after its events. So an event waits for two seconds, and the end of a
call until the transcript has it, its session is over, or an hour has passed.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final, NamedTuple

from tooltrail.importers.cursors import Cursor
from tooltrail.importers.events import Line, object_of
from tooltrail.importers.hook_log import FOLDER, UNREDACTED
from tooltrail.importers.hooks import AGENTS, Reader
from tooltrail.importers.importing import Imported, Importer
from tooltrail.importers.lines import DamagedLine, read_lines
from tooltrail.importers.recording import Source
from tooltrail.records.errors import TooltrailError, UnavailableError
from tooltrail.redaction import RuleSet

_SETTLE_S: Final = 2.0
_PATIENCE_S: Final = 3600.0

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
    """Wait until `import_events` imports the newest event, at most two seconds."""
    newest = max((log.path.stat().st_mtime for log in _logs(spool)), default=0.0)
    time.sleep(min(max(newest + _SETTLE_S - time.time(), 0.0), _SETTLE_S))


class HookImporter:
    """Imports the logged events and their transcripts into one spool.

    Args:
        spool: folder of the spool.
        rules: the secrets to replace.

    Attributes:
        failures: why transcripts could not be imported.
    """

    def __init__(self, spool: Path, rules: RuleSet) -> None:
        self.failures: list[TooltrailError] = []
        self._spool = spool
        self._rules = rules

    def import_events(self) -> list[Imported]:
        """Import what was logged, and delete logs that were imported days ago.

        Raises:
            UnavailableError: the spool cannot be read or written.
        """
        imported: list[Imported] = []
        for log in _logs(self._spool):
            try:
                with log.path.open("rb") as file:
                    lines, end = _settled(log, file)
                    if lines:
                        done, end = self._import_lines(log, lines, end)
                        imported += done
                        log.cursor.write(file, end)
                    is_done = log.cursor.offset == file.seek(0, 2)
                if is_done and log.path.stat().st_mtime < time.time() - _KEPT_S:
                    log.path.unlink(missing_ok=True)
            except OSError as error:
                why = f"{log.path} cannot be imported: {error.strerror}"
                raise UnavailableError(why) from error
        return imported

    def _import_lines(
        self, log: _Log, lines: list[Line | DamagedLine], end: int
    ) -> tuple[list[Imported], int]:
        """Import lines that end at an offset; return what is done, and the offset of the rest."""
        whole = [line for line in lines if isinstance(line, Line)]
        imported = self._import_transcripts(log, Reader(log.agent).transcripts(whole))
        reader = Reader(
            log.agent,
            begun={call for one in imported for call in one.calls},
            ended={call for one in imported for call in one.results},
        )
        waiting = reader.waiting(whole, since=time.time() - _PATIENCE_S)
        # What a mark stands for was replaced before the event was logged.
        importer = Importer(self._spool, self._rules.with_marks() if log.is_redacted else None)
        source = Source(log.agent, str(log.path.resolve()))
        held = {line.offset for line in waiting}
        chosen = [line for line in lines if line.offset not in held]
        imported.append(importer.import_lines(source, reader, chosen))
        return imported, waiting[0].offset if waiting else end

    def _import_transcripts(self, log: _Log, paths: list[Path]) -> list[Imported]:
        importer = Importer(self._spool, self._rules if log.is_redacted else None)
        imported: list[Imported] = []
        for path in paths:
            try:
                imported.append(importer.import_file(path, log.agent))
            except TooltrailError as error:
                self.failures.append(error)
        return imported


def _logs(spool: Path) -> Iterator[_Log]:
    for path in sorted((spool / FOLDER).glob("*.jsonl")):
        agent = next((one for one in AGENTS if path.name.startswith(f"{one}-")), None)
        if agent is not None:
            is_redacted = UNREDACTED not in path.name
            yield _Log(path, agent, is_redacted, Cursor(spool, path.resolve(), FOLDER))


def _settled(log: _Log, file: IO[bytes]) -> tuple[list[Line | DamagedLine], int]:
    """The lines that are not imported yet, up to the first one that is too young, and their end."""
    file.seek(log.cursor.read(file))
    until = time.time() - _SETTLE_S
    lines: list[Line | DamagedLine] = []
    for line in read_lines(file):
        if isinstance(line, DamagedLine):
            is_early = line.is_last
        else:
            is_early = object_of(line.value).get("at", 0) > until
        if is_early:
            return lines, line.offset
        lines.append(line)
    return lines, file.tell()
