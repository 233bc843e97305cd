"""The shape of a schema: tables, columns, constraints, indexes, triggers, as an engine tells them.

What a revision makes of an empty database stands beside the revisions, in `schema/`, one file for
each engine, so that a store can be compared with it at the price of one query. Tables of other
programs in the same database are nobody's business here.
"""

import json
from collections.abc import Generator, Mapping
from importlib.resources import files

from sqlalchemy import Connection

from tooltrail.store._schema.postgresql_shape import iter_postgresql_parts
from tooltrail.store._schema.sqlite_shape import iter_sqlite_parts

Shape = dict[str, dict[str, str]]
"""For each table, and for the functions of triggers under no name: what belongs to it, each with
its definition."""

_LABELS = {"trigger": "append-only trigger"}
"""What is said of a part that is missing, where its kind is not clear enough."""


def read_shape(connection: Connection, tables: frozenset[str], *, temporary: bool = False) -> Shape:
    """The shape of those of some tables that are there.

    Args:
        connection: to either engine.
        tables: their names.
        temporary: ask for those that this connection to PostgreSQL has made for itself.
    """
    shape: Shape = {}
    if connection.dialect.name == "sqlite":
        parts = iter_sqlite_parts(connection)
    else:
        parts = iter_postgresql_parts(connection, temporary=temporary)
    for table, kind, name, definition in parts:
        if table in tables or (not table and name.startswith("tooltrail_")):
            there = shape.setdefault(table, {})
            part = f"{kind} {name}".rstrip()
            # SQLite takes two constraints of one name, of which neither may hide the other.
            there[part] = f"{there[part]}; {definition}" if part in there else definition
    return shape


def shape_of_head(dialect: str) -> Shape:
    """What the newest revision makes."""
    file = files("tooltrail.migrations") / "schema" / f"{dialect}.json"
    shape: Shape = json.loads(file.read_text())
    return shape


def differences(found: Shape, wanted: Shape) -> Generator[str]:
    """One sentence for each part that is missing, that is another, or that no revision makes."""
    for table, parts in wanted.items():
        if table not in found and table:
            yield f"table {table} is missing"
            continue
        there = found.get(table, {})
        for part, definition in parts.items():
            if part not in there:
                yield f"{_named(part, table, _LABELS)} is missing"
            elif there[part] != definition:
                yield f"{_named(part, table, _LABELS)} is not what it was made as"
        for part in sorted(there.keys() - parts.keys()):
            where = "" if part.startswith("column ") else f" of table {table}"
            yield f"{_named(part, table, {})}{where} is no part of the schema"


def _named(part: str, table: str, labels: Mapping[str, str]) -> str:
    kind, _, name = part.partition(" ")
    if kind == "column":
        return f"column {table}.{name}"
    if not name:
        return f"{kind} {table}"
    return f"{labels.get(kind, kind)} {name}"
