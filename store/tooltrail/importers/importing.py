"""Imports files: recognizes the format of each, and records what its reader finds."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from tooltrail.importers import claude_code, codex
from tooltrail.importers.events import Event, Line
from tooltrail.importers.lines import DamagedLine, read_lines
from tooltrail.importers.recording import Recording
from tooltrail.records.errors import NotFoundError
from tooltrail.redaction import RuleSet

_LINES_TO_RECOGNIZE: Final = 20
"""Lines that are tried, since the first ones may be damaged or say nothing about the format."""


class Reader(Protocol):
    """Reads the lines of one file, in order."""

    def events(self, line: Line) -> Iterable[Event]:
        """The events of one line."""
        ...


class Format(Protocol):
    """A module that reads one format."""

    NAME: str

    def recognizes(self, value: Any) -> bool: ...
    def Reader(self, path: Path) -> Reader: ...


class Imported(NamedTuple):
    """What was imported from one file.

    Attributes:
        path: the file.
        format: name of its format.
        counts: what was found, by kind.
        damaged: the parts that are not JSON.
    """

    path: Path
    format: str
    counts: Mapping[str, int]
    damaged: tuple[DamagedLine, ...]


FORMATS: Final[Mapping[str, Any]] = {one.NAME: one for one in (claude_code, codex)}
"""The module of each format."""


def import_file(
    path: Path, spool: Path, *, named: str | None = None, rules: RuleSet | None
) -> Imported:
    """Record everything in a file.

    Args:
        path: the file.
        spool: folder of the spool with the journal.
        named: name of the format; None to recognize it.
        rules: the secrets to replace; None for none.

    Raises:
        NotFoundError: the file does not exist, or no format fits.
        UnavailableError: the spool cannot be written.
    """
    chosen = FORMATS[named or recognize(path)]
    reader = chosen.Reader(path)
    recording = Recording(spool, chosen.NAME, str(path), rules)
    damaged: list[DamagedLine] = []
    with path.open("rb") as file:
        for line in read_lines(file):
            if isinstance(line, DamagedLine):
                damaged.append(line)
                continue
            for event in reader.events(line):
                recording.add(event, line)
    recording.finish()
    return Imported(path, chosen.NAME, recording.counts, tuple(damaged))


def recognize(path: Path) -> str:
    """The name of the format of a file.

    Raises:
        NotFoundError: the file does not exist, or no format fits.
    """
    try:
        with path.open("rb") as file:
            for number, line in enumerate(read_lines(file)):
                if number == _LINES_TO_RECOGNIZE:
                    break
                for name, one in FORMATS.items():
                    if isinstance(line, Line) and one.recognizes(line.value):
                        return name
    except FileNotFoundError as error:
        raise NotFoundError(f"no file {path}") from error
    known = ", ".join(FORMATS)
    raise NotFoundError(f"{path} is of no known format; the formats are {known}")
