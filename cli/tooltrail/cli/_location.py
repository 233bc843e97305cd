"""The location of the store: options, then the environment, then the user's data folder."""

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tooltrail.cli._output import say
from tooltrail.records.errors import NotFoundError

if TYPE_CHECKING:
    from tooltrail.store import Store
    from tooltrail.store.engines.targets import Target


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
    def open(self, *, create: bool = False, imports: bool = True) -> "Generator[Store]":
        """Open the store, and close it at the end of the block.

        If the store has only a journal, the database is created. If facts could not be ingested,
        a message is printed on stderr, also if the block raises `NotFoundError`: that may be why.

        Args:
            create: whether to create a missing store.
            imports: whether to import the events that hooks have logged.
        """
        from tooltrail.store.opening import open_store  # noqa: PLC0415  not for --help

        if imports and self._has("hooks"):
            from tooltrail.cli._hook_events import import_and_report  # noqa: PLC0415  for few

            import_and_report(self.spool_folder)
        with open_store(
            self.database,
            artifacts=self.artifacts,
            spool=self.spool,
            create=create or self._has("journal") or self._has("hooks"),
        ) as store:
            store.ingesting = _ingestion_bar
            try:
                yield store
            finally:
                if store.lag is not None and isinstance(sys.exception(), NotFoundError | None):
                    say(f"tooltrail: newer facts may wait in {store.spool}: {store.lag}")

    @property
    def spool_folder(self) -> Path:
        """The spool, named or by default."""
        from tooltrail.store.engines.targets import parse_target  # noqa: PLC0415  see `open`
        from tooltrail.store.roots import default_spool  # noqa: PLC0415  see `open`

        return self.spool or default_spool(parse_target(self.database))

    def recording_spool(self) -> Path:
        """The spool of a program that records. Prints a line if a driver is not installed.

        Raises `InvalidRecordError` if the database is a file of another application.
        """
        from tooltrail.store.engines.targets import parse_target  # noqa: PLC0415  see `open`
        from tooltrail.store.opening import refuse_other_file  # noqa: PLC0415  see `open`

        target = parse_target(self.database)
        refuse_other_file(target, self.spool_folder)
        say_missing_driver(target, self.spool_folder)
        return self.spool_folder

    def _has(self, folder: str) -> bool:
        """Whether there is this folder in the spool."""
        try:
            return (self.spool_folder / folder).is_dir()
        except OSError:
            return False  # opening the store reports that the spool cannot be read


def say_missing_driver(target: "Target", spool: Path) -> None:
    """Print a line if a driver is not installed, so that the records cannot be ingested."""
    from tooltrail.store.engines.targets import has_driver  # noqa: PLC0415  see `open`

    if not has_driver(target):
        until = "psycopg is installed: pip install 'tooltrail[postgres]'"
        say(f"tooltrail: records will wait in {spool} until {until}")


@contextmanager
def _ingestion_bar() -> Generator[Callable[[int], None]]:
    """A progress line for one run of ingestion, if the run takes longer than a second.

    A run that waits long for its first facts says so.
    """
    from tooltrail.cli._long_commands import progress_bar  # noqa: PLC0415  not for --help

    with progress_bar("ingesting facts", delay_s=1, may_wait=True) as update:
        yield lambda count: update(count, 0)
