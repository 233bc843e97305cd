"""Hints to the planner of SQLite, which keeps no statistics of a store."""

from typing import Any

from sqlalchemy import ColumnElement
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.visitors import InternalTraversal


class unindexed(ColumnElement[Any]):  # noqa: N801  reads as a function of SQL
    """A column for whose condition or order SQLite is to use no index; PostgreSQL knows better.

    Args:
        column: of a table.
    """

    inherit_cache = True
    __visit_name__ = "unindexed"
    _traverse_internals = [("column", InternalTraversal.dp_clauseelement)]  # noqa: RUF012

    def __init__(self, column: ColumnElement[Any]) -> None:
        self.column = column
        self.type = column.type


@compiles(unindexed)
def _compile(element: unindexed, compiler: SQLCompiler, **options: Any) -> str:
    return compiler.process(element.column, **options)


@compiles(unindexed, "sqlite")
def _compile_for_sqlite(element: unindexed, compiler: SQLCompiler, **options: Any) -> str:
    return f"+{compiler.process(element.column, **options)}"
