"""Transactions whose commit can be asked for and never be answered."""

from collections.abc import Callable, Generator
from contextlib import contextmanager

from sqlalchemy import Connection

from tooltrail.records import DiskFullError, TooltrailError, UnavailableError
from tooltrail.store._database import Database


def _nothing() -> None:
    """What there is to do where nothing was written but the database."""


@contextmanager
def answered_commit(
    database: Database,
    uncertain: Callable[[str], UnavailableError],
    on_nothing: Callable[[], None] = _nothing,
) -> Generator[Connection]:
    """A write transaction that tells a commit that was refused from one that nobody answered.

    A server can commit and be gone before it says so.

    Args:
        database: where to.
        uncertain: makes the error of a commit without an answer, of what else is to be said.
        on_nothing: called where the transaction has come to nothing for sure.

    Raises:
        UnavailableError: see `Database.write`; what `uncertain` makes when it may be committed.
        DamageError, InvalidRecordError: see `Database.write`.
    """
    is_committing = False
    try:
        with database.write() as connection:
            yield connection
            is_committing = True
    except BaseException as error:
        if not is_committing or _is_refusal(error):
            on_nothing()
        elif isinstance(error, UnavailableError):
            raise uncertain(str(error)) from error
        raise


def _is_refusal(error: BaseException) -> bool:
    """Whether a commit that failed so has come to nothing for sure."""
    is_away = isinstance(error, UnavailableError) and not isinstance(error, DiskFullError)
    return isinstance(error, TooltrailError) and not is_away
