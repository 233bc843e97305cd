"""Imports files: recognizes the format of each, and records what its reader finds."""

import os
import stat
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from tooltrail.importers import (
    atif,
    claude_code,
    codex,
    copilot_cli,
    gemini_cli,
    inspect,
    mini_swe_agent,
    openai_chat,
    opencode,
    openhands,
    otlp_json,
    pi,
    swe_agent,
)
from tooltrail.importers.cursors import Cursor
from tooltrail.importers.events import Event, FileReader, Line, Skipped
from tooltrail.importers.lines import read_lines
from tooltrail.importers.recording import Recording, Source
from tooltrail.importers.values import object_of, type_name
from tooltrail.journal.log import JournalLog
from tooltrail.records.errors import NotFoundError, TooltrailError, UnavailableError
from tooltrail.redaction import RuleSet

_LINES_TO_RECOGNIZE: Final = 20
"""Lines that are tried, since the first ones may be damaged or say nothing about the format."""

_ZIP: Final = b"PK"
"""The first bytes of a zip file."""

_SUFFIXES: Final = (inspect.SUFFIX, ".json", ".jsonl", ".traj")
"""The names of files that are looked at in folders."""

UNEXPECTED: Final = (
    *(ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError),
)
"""What a reader raises at a value that no version of its agent writes."""


class Format(NamedTuple):
    """What the module of a format has: whether a JSON value is of it, and the reader of a file."""

    recognizes: Callable[[Any], bool]
    reader: Callable[[Path], FileReader]


class Imported(NamedTuple):
    """What was imported from one file.

    Attributes:
        path: the file.
        format: name of its format.
        counts: what was found, by kind; see `Recording.counts`.
        damaged: the lines and parts of lines that cannot be read.
        calls: the calls, each by its session and its id in the file.
        results: the calls with a result.
    """

    path: Path
    format: str
    counts: Mapping[str, int]
    damaged: tuple[Line, ...]
    calls: AbstractSet[tuple[str, str]] = frozenset()
    results: AbstractSet[tuple[str, str]] = frozenset()


ImportResult: TypeAlias = Imported | TooltrailError
"""What was imported from a file, or why nothing was."""

_MODULES: Final = (
    *(claude_code, codex, copilot_cli, gemini_cli, pi, mini_swe_agent, opencode, swe_agent),
    *(atif, openhands, inspect, otlp_json),
    openai_chat,  # the last, since many formats hold messages that look like these
)
FORMATS: Final[dict[str, Format]] = {
    one.NAME: Format(one.recognizes, one.Reader) for one in _MODULES
}
"""Every format, by name."""


class UnknownFormatError(NotFoundError):
    """A file is of no known format, or not of the named one.

    Attributes:
        is_damaged: whether it has a line that is not JSON.
    """

    def __init__(self, path: Path, format_name: str | None = None, *, is_damaged: bool) -> None:
        problem = f"is of no known format; the formats are {', '.join(FORMATS)}"
        if format_name is not None:
            problem = f"has no session of the format {format_name}"
        super().__init__(f"{path} {problem}")
        self.path = path
        self.is_damaged = is_damaged


class Importer:
    """Imports files into one spool.

    Args:
        spool: folder of the spool with the journal.
        rules: the secrets to replace; None for none.
        is_dry_run: whether to read and count only.

    Attributes:
        on_offset: called with the offset of each line, for a progress bar.
    """

    def __init__(self, spool: Path, rules: RuleSet | None, *, is_dry_run: bool = False) -> None:
        self.on_offset: Callable[[int], object] = lambda _: None
        self._spool = spool
        self._log = JournalLog(spool / "journal")
        self._rules = rules
        self._is_dry_run = is_dry_run

    def import_file(self, path: Path, format_name: str | None = None) -> Imported:
        """Record everything in a file that is not recorded yet.

        Args:
            path: the file.
            format_name: name of its format; None to recognize it.

        Raises:
            NotFoundError: the file does not exist, or no format fits.
            UnavailableError: the file cannot be read, or the spool cannot be written.
        """
        try:
            mode = path.stat().st_mode
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):  # a pipe would never end
                raise NotFoundError(f"{path} is not a regular file")
            name = format_name or _recognize(path)
            cursor = Cursor(self._spool, path.resolve(), name)
            with path.open("rb") as file:
                source = Source(name, str(path.resolve()), cursor.read(file))
                reader = FORMATS[name].reader(path)
                imported = self.import_lines(source, reader, map(self._noted, read_lines(file)))
                # The writer may still complete what is cut; at 0, that is the file as a whole.
                cut_at = next((one.offset for one in imported.damaged if one.is_cut), None)
                if not self._is_dry_run:
                    cursor.write(file, cut_at or file.tell(), is_open=cut_at == 0)
        except OSError as error:
            if not path.exists():
                raise NotFoundError(f"no file {path}") from error
            raise UnavailableError(f"{path} cannot be imported: {error.strerror}") from error
        return imported._replace(path=path)

    def _noted(self, line: Line) -> Line:
        self.on_offset(line.offset)
        return line

    def import_lines(self, source: Source, reader: FileReader, lines: Iterable[Line]) -> Imported:
        """Record what a reader finds in lines of a file.

        Raises:
            UnavailableError: the spool cannot be written.
        """
        append = None if self._is_dry_run else self._log.record
        recording = Recording(append, self._spool, source, self._rules)
        damaged = tuple(record_lines(recording, reader, lines))
        recording.finish()
        path, calls = Path(source.path), recording.calls.keys()
        return Imported(path, source.format, recording.counts, damaged, calls, recording.results)


def record_lines(recording: Recording, reader: FileReader, lines: Iterable[Line]) -> list[Line]:
    """Record what a reader finds in lines, and return those that cannot be read.

    Raises:
        UnavailableError: the spool cannot be written.
    """
    damaged: list[Line] = []
    for line in lines:
        if line.damage:
            damaged.append(line)
            continue
        what = object_of(line.value).get("type") or type_name(line.value)
        unknown: Event = Skipped(str(what), is_known=False)
        try:
            for event in reader.read(line):
                unknown = None
                if event is not None:
                    recording.add(event, line)
            if unknown is not None:
                recording.add(unknown, line)
        except UNEXPECTED as error:
            why = f"a value of an unexpected type ({error})"
            damaged.append(line._replace(value=None, damage=why))
    return damaged


def session_files(path: Path) -> list[Path]:
    """A file, or the files in a folder that may be sessions by their names.

    A folder that cannot be read is among them: its import reports that.
    """
    if not path.is_dir():
        return [path]
    unread: list[Path] = []
    walk = os.walk(path, onerror=lambda error: unread.append(Path(error.filename)))
    found = (Path(folder, name) for folder, _, names in walk for name in names)
    return sorted([one for one in found if one.suffix in _SUFFIXES and not _is_empty(one)] + unread)


def _is_empty(path: Path) -> bool:
    with suppress(OSError):  # the import says why
        return path.stat().st_size == 0
    return False


def claude_projects(environment: Mapping[str, str], home: Path) -> Path:
    """The folder in which Claude Code writes its transcripts."""
    return Path(environment.get("CLAUDE_CONFIG_DIR") or home / ".claude") / "projects"


def usual_folders(environment: Mapping[str, str], home: Path) -> list[Path]:
    """The existing folders in which agents leave their sessions."""
    codex_home = Path(environment.get("CODEX_HOME") or home / ".codex")
    pi_home = Path(environment.get("PI_CODING_AGENT_DIR") or home / ".pi" / "agent")
    folders = [
        claude_projects(environment, home),
        codex_home / "sessions",
        codex_home / "archived_sessions",
        Path(environment.get("COPILOT_HOME") or home / ".copilot") / "session-state",
        Path(environment.get("GEMINI_CLI_HOME") or home) / ".gemini" / "tmp",
        Path(environment.get("PI_CODING_AGENT_SESSION_DIR") or pi_home / "sessions"),
        Path(environment.get("MSWEA_GLOBAL_CONFIG_DIR") or home / ".config" / "mini-swe-agent"),
    ]
    return [folder for folder in folders if folder.is_dir()]


def _recognize(path: Path) -> str:
    """The name of the format of a file."""
    is_damaged = False
    try:
        with path.open("rb") as file:
            for line in islice(read_lines(file), _LINES_TO_RECOGNIZE):
                is_damaged |= bool(line.damage)
                for name, one in FORMATS.items():
                    if not line.damage and one.recognizes(line.value):
                        return name
            file.seek(0)
            if is_damaged and path.suffix == inspect.SUFFIX and file.read(2) == _ZIP:
                return inspect.NAME
    except OSError as error:
        raise UnavailableError(f"{path} cannot be read: {error.strerror}") from error
    raise UnknownFormatError(path, is_damaged=is_damaged)
