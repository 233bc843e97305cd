"""The sessions that were dropped when they were to be opened, as the files of drops tell of them.

Who records may ask for each record, and the files only grow, by whichever process: what was read of
one is remembered, and read is what was appended since.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from tooltrail.records.canonical_json import decode
from tooltrail.store._outbox.journal_lines import DIGEST_BYTES, parts_of
from tooltrail.store._outbox.put_away import PutAway


class DroppedSessions:
    """What one process knows of the drops of an outbox.

    Safe to share between threads and forks without a lock: of two that read at once both remember
    the same, and what is remembered of a file lags behind what was read of it at most.
    """

    def __init__(self, put_away: PutAway) -> None:
        self._put_away = put_away
        self._files: dict[Path, _File] = {}

    def has(self, session: str) -> bool:
        """Whether a session was dropped, also one of which somebody has said to know.

        Raises:
            OSError: that cannot be read.
        """
        return any(session in self._sessions_in(path) for path in self._put_away.dropped_files())

    def _sessions_in(self, path: Path) -> set[str]:
        try:
            with path.open("rb") as file:
                known = self._files.get(path)
                identity = _identity(file)
                if known is None or known.identity != identity or known.end > _size(file):
                    known = self._files[path] = _File(identity)
                known.read_on(file)
                return known.sessions
        except FileNotFoundError:
            self._files.pop(path, None)
            return set()


class _File:
    """What was read of a file.

    Attributes:
        identity: which file it was.
        end: up to where it was read.
        sessions: that were dropped up to there.
    """

    def __init__(self, identity: tuple[int | bytes, ...]) -> None:
        self.identity = identity
        self.end = 0
        self.sessions: set[str] = set()

    def read_on(self, file: BinaryIO) -> None:
        for parts, end in iter_appended(file, self.end):
            for data in parts:
                told: Any = decode(data or b"{}")
                if told.get("kind") == "session.opened":
                    self.sessions.add(told["id"])
            self.end = end


def iter_appended(file: BinaryIO, begin: int) -> Iterator[tuple[list[bytes | None], int]]:
    """What stands behind a place of a file that others append to, line by line.

    Args:
        file: that was opened to read it.
        begin: where a line begins.

    Returns:
        For each line what is whole in it, and where to go on when it is asked again: behind it,
        unless it, or one before it, may not stay as it was read.

    Raises:
        OSError: it cannot be read.
    """
    file.seek(begin)
    end = place = begin
    for line in file:
        parts = [data for _, data in parts_of(line)]
        # Without a newline it may be torn, and what was torn is written over: also while it is
        # read, which then gives the beginning of one line with the end of another.
        is_final = line.endswith(b"\n") and (
            None not in parts or os.pread(file.fileno(), len(line), place) == line
        )
        if is_final and end == place:
            end += len(line)
        place += len(line)
        yield parts, end


def _identity(file: BinaryIO) -> tuple[int | bytes, ...]:
    """Another file may get the inode of one that is gone, and not its first line."""
    found = os.fstat(file.fileno())
    return found.st_dev, found.st_ino, os.pread(file.fileno(), DIGEST_BYTES, 0)


def _size(file: BinaryIO) -> int:
    return os.fstat(file.fileno()).st_size
