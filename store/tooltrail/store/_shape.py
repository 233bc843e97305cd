"""The shape of a schema: tables, columns, constraints, indexes, triggers, as an engine tells them.

What a revision makes of an empty database stands beside the revisions, in `schema/`, one file for
each engine, so that a store can be compared with it at the price of one query. Tables of other
programs in the same database are nobody's business here.
"""

import json
import re
from collections.abc import Generator, Mapping
from importlib.resources import files

from sqlalchemy import Connection, inspect, text

Shape = dict[str, dict[str, str]]
"""For each table, and for the functions of triggers under no name: what belongs to it, each with
its definition."""

_LABELS = {"trigger": "append-only trigger"}
"""What is said of a part that is missing, where its kind is not clear enough."""


def read_shape(connection: Connection, tables: frozenset[str]) -> Shape:
    """The shape of those of some tables that are there."""
    shape: Shape = {}
    asked = _SQLITE if connection.dialect.name == "sqlite" else _POSTGRESQL
    for table, kind, name, definition in connection.execute(text(asked)):
        if table in tables or (not table and name.startswith("tooltrail_")):
            shape.setdefault(table, {})[f"{kind} {name}".rstrip()] = " ".join(definition.split())
    if connection.dialect.name == "sqlite":
        # No pragma tells them.
        found = inspect(connection)
        for table, parts in shape.items():
            for check in found.get_check_constraints(table):
                parts[f"constraint {check['name']}"] = " ".join(check["sqltext"].split())
    return shape


def shape_of_head(dialect: str) -> Shape:
    """What the newest revision makes."""
    file = files("tooltrail.migrations") / "schema" / f"{dialect}.json"
    shape: Shape = json.loads(file.read_text())
    return shape


def differences(found: Shape, wanted: Shape, dialect: str) -> Generator[str]:
    """One sentence for each part that is missing, that is another, or that no revision makes."""
    same = _same_text if dialect == "sqlite" else _same_words
    for table, parts in wanted.items():
        if table not in found and table:
            yield f"table {table} is missing"
            continue
        there = found.get(table, {})
        for part, definition in parts.items():
            if part not in there:
                yield f"{_named(part, table, _LABELS)} is missing"
            elif not same(there[part], definition):
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


def _same_text(one: str, other: str) -> bool:
    return one == other


def _same_words(one: str, other: str) -> bool:
    """PostgreSQL words definitions anew, and not every version sets the same casts and brackets."""
    return _WORDING.sub("", one).lower() == _WORDING.sub("", other).lower()


_WORDING = re.compile(r"::[a-z ]+\b(\[\])?|[()\s]")

_SQLITE = """
SELECT name, 'table', '', CASE WHEN sql LIKE '%WITHOUT ROWID%' THEN 'without rowid' ELSE '' END
FROM sqlite_master WHERE type = 'table'
UNION ALL
SELECT m.name, 'column', c.name, lower(c.type)
    || CASE WHEN c."notnull" THEN ' not null' ELSE '' END
    || CASE WHEN c.pk THEN ' primary key ' || c.pk ELSE '' END
    || coalesce(' default ' || c.dflt_value, '')
FROM sqlite_master m JOIN pragma_table_xinfo(m.name) c WHERE m.type = 'table'
UNION ALL
SELECT m.name, 'foreign key', f."from", f."table" || '.' || coalesce(f."to", '')
FROM sqlite_master m JOIN pragma_foreign_key_list(m.name) f WHERE m.type = 'table'
UNION ALL
SELECT m.name, 'unique', (SELECT group_concat(name) FROM pragma_index_info(i.name)), ''
FROM sqlite_master m JOIN pragma_index_list(m.name) i WHERE m.type = 'table' AND i.origin = 'u'
UNION ALL
SELECT tbl_name, type, name, sql FROM sqlite_master
WHERE type IN ('index', 'trigger') AND sql IS NOT NULL
"""

_POSTGRESQL = """
WITH ours AS (
    SELECT oid, relname FROM pg_class
    WHERE relkind IN ('r', 'p') AND relpersistence <> 't' AND pg_table_is_visible(oid)
        AND relnamespace NOT IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)
)
SELECT relname, 'table', '', '' FROM ours
UNION ALL
SELECT o.relname, 'column', a.attname, format_type(a.atttypid, a.atttypmod)
    || CASE WHEN a.attnotnull THEN ' not null' ELSE '' END
    || coalesce(' default ' || pg_get_expr(d.adbin, d.adrelid, true), '')
FROM ours o JOIN pg_attribute a ON a.attrelid = o.oid
LEFT JOIN pg_attrdef d ON d.adrelid = o.oid AND d.adnum = a.attnum
WHERE a.attnum > 0 AND NOT a.attisdropped
UNION ALL
SELECT o.relname, 'constraint', c.conname, pg_get_constraintdef(c.oid, true)
    || CASE WHEN EXISTS (
        SELECT FROM pg_trigger t WHERE t.tgconstraint = c.oid AND t.tgenabled NOT IN ('O', 'A')
    ) THEN ' switched off' ELSE '' END
FROM ours o JOIN pg_constraint c ON c.conrelid = o.oid WHERE c.contype IN ('c', 'f', 'p', 'u')
UNION ALL
SELECT o.relname, 'index', i.relname, pg_get_indexdef(x.indexrelid, 0, true)
    || CASE WHEN x.indisvalid THEN '' ELSE ' invalid' END
FROM ours o JOIN pg_index x ON x.indrelid = o.oid JOIN pg_class i ON i.oid = x.indexrelid
WHERE NOT EXISTS (SELECT FROM pg_constraint c WHERE c.conindid = i.oid AND c.conrelid = o.oid)
UNION ALL
SELECT o.relname, 'trigger', t.tgname, pg_get_triggerdef(t.oid, true)
FROM ours o JOIN pg_trigger t ON t.tgrelid = o.oid
WHERE NOT t.tgisinternal AND t.tgenabled IN ('O', 'A')
UNION ALL
SELECT '', 'function', p.proname, p.prosrc FROM pg_proc p
WHERE p.oid IN (SELECT t.tgfoid FROM ours o JOIN pg_trigger t ON t.tgrelid = o.oid)
"""
"""A trigger that is switched off is none, and a reference that nothing enforces is another."""
