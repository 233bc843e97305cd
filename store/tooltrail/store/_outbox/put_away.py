"""What an outbox does not deliver: drops, which are counted, and lines that nobody could deliver.

    <spool>/outbox-<store id>/
    ├── dropped             a line for each record that was dropped and counted
    ├── kept/               lines that cannot be delivered, each with the reason beside it
    └── acknowledged/<id>/  both, of which somebody has said to know

Nothing here is ever deleted but what goes back to be delivered.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from tooltrail.artifacts._local import make_durable_folders, sync_folder
from tooltrail.journal.clock import new_id
from tooltrail.records.digests import digest_of
from tooltrail.store._outbox.journal_lines import iter_lines
from tooltrail.store._outbox.locked_files import append_line, locked, write_durably

_REASON = ".reason"


class PutAway:
    """What is put away of one outbox. Safe to share between threads, processes and their forks.

    Attributes:
        folder: of the outbox.
        dropped: the file of drops.
        kept: the folder of lines that cannot be delivered.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.dropped = folder / "dropped"
        self.kept = folder / "kept"
        self._acknowledged = folder / "acknowledged"

    def count_dropped(self, data: bytes) -> None:
        """Add a line to the count of what was dropped; durable when this returns.

        Raises:
            OSError: whatever the file system says.
        """
        with locked(self.dropped) as descriptor:
            append_line(descriptor, self.dropped, data)

    def dropped_files(self) -> Iterator[Path]:
        """The files of all drops, those too that were acknowledged; any of them may not be there.

        One that is acknowledged while it is asked for is among them twice rather than not at all.
        """
        yield self.dropped
        yield from sorted(self._acknowledged.glob(f"*/{self.dropped.name}"))

    def dropped_count(self) -> int:
        """How many records were dropped and counted, and not acknowledged.

        Raises:
            OSError: the file cannot be read.
        """
        with suppress(FileNotFoundError):
            return sum(1 for _ in iter_lines(self.dropped))
        return 0

    def keep(self, raw: bytes, reason: str) -> Path:
        """Put a line away that cannot be delivered, durably; the file it is in.

        Raises:
            OSError: whatever the file system says.
        """
        make_durable_folders(self.kept)
        # Named by its content: a delivery that was killed puts it into the same place again.
        path = self.kept / digest_of(raw).removeprefix("sha256:")[:32]
        told = reason.encode("utf-8", "backslashreplace") + b"\n"
        write_durably(path.with_suffix(_REASON), told)
        write_durably(path, raw + b"\n")
        sync_folder(self.kept)
        return path

    def kept_count(self) -> int:
        """How many lines were put away, and not acknowledged.

        Raises:
            OSError: the folder cannot be read.
        """
        return len(self._kept_files())

    def retry(self, append: Callable[[bytes], None]) -> int:
        """Let everything wait again that can be read, behind what waits; how many that is.

        One that is killed lets something wait that is here still. It is delivered once. Nothing may
        be delivered meanwhile.

        Args:
            append: makes a line of an entry that waits.

        Raises:
            OSError: whatever the file system says.
        """
        count = 0
        for path in self._kept_files():
            lines = [line.data for line in iter_lines(path)]
            whole = [data for data in lines if data is not None]
            if len(whole) == len(lines):
                for data in whole:
                    append(data)
                path.unlink()
                path.with_suffix(_REASON).unlink(missing_ok=True)
                count += len(whole)
        return count

    def acknowledge(self) -> Path | None:
        """Count nothing of this any more; the folder that it was moved to, None without any.

        Raises:
            OSError: whatever the file system says.
        """
        if not self.kept_count() and not self.dropped_count():
            return None
        folder = self._acknowledged / str(new_id())
        make_durable_folders(folder)
        for path in (self.dropped, self.kept):
            with suppress(FileNotFoundError):
                path.rename(folder / path.name)
        sync_folder(folder)
        sync_folder(self.folder)
        return folder

    def _kept_files(self) -> list[Path]:
        """In the order in which they were put away."""
        try:
            names = os.listdir(self.kept)  # noqa: PTH208  names are all that is wanted
        except FileNotFoundError:
            return []
        files = [self.kept / name for name in names if "." not in name]
        return sorted(files, key=lambda path: (path.stat().st_mtime_ns, path.name))
