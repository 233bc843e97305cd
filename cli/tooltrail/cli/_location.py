"""Which store a command means: flags, then the environment, then the user's data folder."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from tooltrail.store import Durability, OnUnavailable, Store, StoreLimits


@dataclass(frozen=True, slots=True)
class Location:
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
    def open(
        self,
        *,
        limits: "StoreLimits | None" = None,
        durability: "Durability" = "full",
        on_unavailable: "OnUnavailable" = "raise",
        announce: bool = True,
    ) -> "Generator[Store]":
        """The store, closed at the end of the block.

        Args:
            limits: how much of what tools print is kept.
            durability: what records survive.
            on_unavailable: what becomes of them while the database is away; who only reads is told.
            announce: say on stderr when the spool holds output of killed programs.
        """
        from tooltrail.store import open_store  # noqa: PLC0415  heavy, and not every command needs it

        with open_store(
            self.database,
            artifacts=self.artifacts,
            spool=self.spool,
            limits=limits,
            durability=durability,
            on_unavailable=on_unavailable,
        ) as store:
            if announce:
                from tooltrail.cli._repairing import say_recoverable  # noqa: PLC0415  the same

                say_recoverable(store, self.other_spools())
            yield store

    def other_spools(self) -> list[Path]:
        """Where `exec` sets records aside that the spool of the store cannot take."""
        from tooltrail.store import user_spools  # noqa: PLC0415  heavy

        return user_spools()

    def spool_folders(self) -> list[Path]:
        """Where captured output can wait when the store is away: its spool, then the user's own.

        Raises:
            InvalidRecordError: none was named, and the user has no home folder for one.
        """
        from tooltrail.store import spool_folder  # noqa: PLC0415  heavy

        return [self.spool or spool_folder(self.database), *_user_spools()]


def _user_spools() -> list[Path]:
    """The user's own spool; none where the user has no home folder."""
    from tooltrail.records import InvalidRecordError  # noqa: PLC0415  heavy
    from tooltrail.store import user_spool  # noqa: PLC0415  heavy

    try:
        return [user_spool()]
    except InvalidRecordError:
        return []


def default_database() -> str:
    """The database file in the user's data folder (XDG Base Directory Specification).

    Raises:
        click.UsageError: the user has no home folder.
    """
    home = os.environ.get("XDG_DATA_HOME", "")
    # The specification wants a relative value ignored.
    folder = Path(home) if Path(home).is_absolute() else _home() / ".local" / "share"
    return str(folder / "tooltrail" / "tooltrail.db")


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError as error:
        raise click.UsageError("there is no home folder; name the store with --db") from error
