"""Checks the pages of an SQLite file. PostgreSQL manages its pages itself."""

from collections.abc import Iterator
from typing import Final

from tooltrail.records.errors import DamageError
from tooltrail.store.engines.connection import Connection
from tooltrail.store.verify.checking import Checking, Finding

_NOT_EVIDENCE: Final = ("search_words", "search_cursors")
"""The tables of the index of words, which is made from the other tables."""


def check_pages(checking: Checking) -> Iterator[list[Finding]]:
    """Report the tables with damaged pages. SQLite may skip rows of such a table without an error.

    Call this before the rows are compared.
    """
    if not checking.connection.is_sqlite:
        return
    for table in _tables(checking.connection):
        if table in _NOT_EVIDENCE:
            continue
        for problem in _problems(checking.connection, table):
            checking.may_skip_bodies |= table == "bodies"
            checking.damage(f"table {table}", table, None, problem)
        yield checking.take()


def damaged_tables(connection: Connection) -> Iterator[tuple[str, str]]:
    """Each problem with the pages of a table or of its indexes: the table, and a sentence."""
    for table in _tables(connection):
        for problem in _problems(connection, table):
            yield table, problem


def _tables(connection: Connection) -> list[str]:
    names = connection.query("SELECT name FROM sqlite_master WHERE type = 'table'")
    return [name for (name,) in names]


def _problems(connection: Connection, table: str) -> list[str]:
    subject, quoted = f"table {table} or an index of it", table.replace('"', '""')
    try:
        problems = run_check(connection, f'PRAGMA quick_check("{quoted}")')
    except DamageError:
        return [f"{subject} is damaged"]
    return [f"{subject}: {problem}" for problem in problems]


def run_check(connection: Connection, pragma: str) -> list[str]:
    """The problems that a check of SQLite names, which stops after a hundred."""
    lines = [line for (answer,) in connection.query(pragma) for line in answer.splitlines()]
    return [line for line in lines if line != "ok" and not line.startswith("*** in database")]
