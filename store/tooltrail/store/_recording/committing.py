"""Commits that can be asked for and never be answered."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TypeVar

from sqlalchemy import Connection

from tooltrail.records import UnavailableError
from tooltrail.store._engines.database import Database
from tooltrail.store._recording.group_commit import GroupCommit, Write, is_refusal

T = TypeVar("T")


def _nothing() -> None:
    """What there is to do where nothing was written but the database."""


def commit(
    writes: GroupCommit,
    job: Callable[[Connection], T],
    uncertain: Callable[[str], UnavailableError],
    on_nothing: Callable[[], None] = _nothing,
) -> T:
    """Write something, and tell a commit that was refused from one that nobody answered.

    A server can commit and be gone before it says so.

    Args:
        writes: of the store.
        job: see `Write`.
        uncertain: makes the error of a commit without an answer, of what else is to be said.
        on_nothing: called where the write has come to nothing for sure.

    Raises:
        UnavailableError: see `Database.write`; what `uncertain` makes when it may be committed.
        DamageError, InvalidRecordError: see `Database.write`.
    """
    write = Write(job)
    try:
        return writes.run(write)
    except BaseException as error:
        if not write.is_uncertain:
            on_nothing()
        elif isinstance(error, UnavailableError):
            raise uncertain(str(error)) from error
        raise


@contextmanager
def answered_commit(
    database: Database, uncertain: Callable[[str], UnavailableError]
) -> Generator[Connection]:
    """The same for a transaction that is not to be shared, since it takes long.

    Raises:
        UnavailableError: see `Database.write`; what `uncertain` makes when it may be committed.
        DamageError, InvalidRecordError: see `Database.write`.
    """
    is_committing = False
    try:
        with database.write() as connection:
            yield connection
            is_committing = True
    except UnavailableError as error:
        if is_committing and not is_refusal(error):
            raise uncertain(str(error)) from error
        raise
