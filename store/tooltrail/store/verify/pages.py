"""Checks the pages of an SQLite file. PostgreSQL manages its pages itself."""

from collections.abc import Iterator

from tooltrail.records.errors import DamageError
from tooltrail.store.engines.connection import Connection
from tooltrail.store.verify.checking import Checking


def check_pages(checking: Checking) -> None:
    """Report the tables with damaged pages. SQLite may skip rows of such a table without an error.

    Call this before the rows are compared.
    """
    if checking.connection.is_sqlite:
        for table, problem in damaged_tables(checking.connection):
            checking.has_damaged_pages = True
            checking.damage(f"table {table}", table, None, problem)


def damaged_tables(connection: Connection) -> Iterator[tuple[str, str]]:
    """Each problem with the pages of a table or of its indexes: the table, and a sentence."""
    for (table,) in connection.query("SELECT name FROM sqlite_master WHERE type = 'table'"):
        quoted = table.replace('"', '""')
        try:
            for problem in run_check(connection, f'PRAGMA quick_check("{quoted}")'):
                yield table, f"table {table} or an index of it: {problem}"
        except DamageError:
            yield table, f"table {table} or an index of it is damaged"


def run_check(connection: Connection, pragma: str) -> list[str]:
    """The problems that a check of SQLite names, which stops after a hundred."""
    lines = [line for (answer,) in connection.query(pragma) for line in answer.splitlines()]
    return [line for line in lines if line != "ok" and not line.startswith("*** in database")]
