"""Which store a command means: flags, then the environment, then the user's data folder."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tooltrail.cli._output import say
from tooltrail.records.errors import InvalidRecordError

if TYPE_CHECKING:
    from tooltrail.store import Store


class Location(NamedTuple):
    """Where the store is.

    Attributes:
        database: a file path or a URL.
        artifacts: the artifact root if it was named; else the store remembers it.
        spool: the spool folder if it was named.
    """

    database: str
    artifacts: str | None = None
    spool: Path | None = None

    @contextmanager
    def open(self, *, create: bool = False) -> "Generator[Store]":
        """The store, closed at the end of the block.

        A store that has only a journal yet gets its database. Facts that could not be ingested are
        said on stderr.

        Args:
            create: whether a missing store is created.
        """
        from tooltrail.store.opening import open_store  # noqa: PLC0415  not every command needs it

        with open_store(
            self.database,
            artifacts=self.artifacts,
            spool=self.spool,
            create=create or self._has_journal(),
        ) as store:
            yield store
            if store.lag is not None:
                say(f"tooltrail: the newest facts wait in {store.spool}: {store.lag}")

    def _has_journal(self) -> bool:
        from tooltrail.store.engines.targets import parse_target  # noqa: PLC0415  see `open`
        from tooltrail.store.roots import default_spool  # noqa: PLC0415  see `open`

        spool = self.spool or default_spool(parse_target(self.database))
        try:
            return (spool / "journal").is_dir()
        except OSError:
            return False  # the reader says that the spool cannot be read


def default_database() -> str:
    """The database file in the user's data folder (XDG Base Directory Specification).

    Raises:
        InvalidRecordError: the user has no home folder.
    """
    home = os.environ.get("XDG_DATA_HOME", "")
    # The specification wants a relative value ignored.
    folder = Path(home) if Path(home).is_absolute() else _home() / ".local" / "share"
    return str(folder / "tooltrail" / "tooltrail.db")


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError as error:
        raise InvalidRecordError("there is no home folder; name the store with --db") from error
