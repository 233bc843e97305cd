"""The location of the store: options, then the environment, then the user's data folder."""

import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tooltrail.cli._output import say
from tooltrail.records.errors import InvalidRecordError

if TYPE_CHECKING:
    from tooltrail.store import Store


class Location(NamedTuple):
    """The location of a store.

    Attributes:
        database: file path or URL of the database.
        artifacts: artifact root; None for the root that the store remembers.
        spool: spool folder; None for the default of the store.
    """

    database: str
    artifacts: str | None = None
    spool: Path | None = None

    @contextmanager
    def open(self, *, create: bool = False) -> "Generator[Store]":
        """Open the store, and close it at the end of the block.

        If the store has only a journal, the database is created. If facts could not be ingested,
        a message is printed on stderr.

        Args:
            create: whether to create a missing store.
        """
        from tooltrail.store.opening import open_store  # noqa: PLC0415  not for --help

        self._import_hook_events()
        with open_store(
            self.database,
            artifacts=self.artifacts,
            spool=self.spool,
            create=create or self._has_journal(),
        ) as store:
            yield store
            if store.lag is not None:
                say(f"tooltrail: the newest facts wait in {store.spool}: {store.lag}")

    def _import_hook_events(self) -> None:
        """Import the events that hooks have logged; a failure is printed."""
        with suppress(OSError):  # opening the store reports that the spool cannot be read
            if (self.spool_folder / "hooks").is_dir():
                from tooltrail.cli._hook_events import import_hook_events  # noqa: PLC0415  for few

                import_hook_events(self.spool_folder)

    @property
    def spool_folder(self) -> Path:
        """The spool, named or by default."""
        from tooltrail.store.engines.targets import parse_target  # noqa: PLC0415  see `open`
        from tooltrail.store.roots import default_spool  # noqa: PLC0415  see `open`

        return self.spool or default_spool(parse_target(self.database))

    def _has_journal(self) -> bool:
        try:
            return (self.spool_folder / "journal").is_dir()
        except OSError:
            return False  # opening the store reports that the spool cannot be read


def default_database() -> str:
    """The database file in the user's data folder (XDG Base Directory Specification).

    Raises:
        InvalidRecordError: the user has no home folder.
    """
    home = os.environ.get("XDG_DATA_HOME", "")
    # The specification requires that a relative value is ignored.
    folder = Path(home) if Path(home).is_absolute() else _home() / ".local" / "share"
    return str(folder / "tooltrail" / "tooltrail.db")


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError as error:
        raise InvalidRecordError("there is no home folder; name the store with --db") from error
