"""Checks the pages of an SQLite file. PostgreSQL manages its pages itself."""

from collections.abc import Container, Iterator
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
    for table, problems in check_tables(checking.connection, without=_NOT_EVIDENCE):
        for problem in problems:
            checking.may_skip_bodies |= table == "bodies"
            checking.damage(f"table {table}", table, problem)
        yield checking.take()


def check_tables(
    connection: Connection, *, without: Container[str] = ()
) -> Iterator[tuple[str, list[str]]]:
    """Each table, and the problems with its pages and those of its indexes, as sentences."""
    for (table,) in connection.query("SELECT name FROM sqlite_master WHERE type = 'table'"):
        if table in without:
            continue
        subject, quoted = f"table {table} or an index of it", table.replace('"', '""')
        try:
            problems = run_check(connection, f'PRAGMA quick_check("{quoted}")')
            yield table, [f"{subject}: {problem}" for problem in problems]
        except DamageError:
            yield table, [f"{subject} is damaged"]


def run_check(connection: Connection, pragma: str) -> list[str]:
    """The problems that a check of SQLite names, which stops after a hundred."""
    lines = [line for (answer,) in connection.query(pragma) for line in answer.splitlines()]
    return [line for line in lines if line != "ok" and not line.startswith("*** in database")]
