"""The parts of a schema of PostgreSQL, from its catalogue."""

from collections.abc import Generator

from sqlalchemy import Connection, text

Part = tuple[str, str, str, str]
"""Table, kind, name, definition."""


def iter_postgresql_parts(connection: Connection, *, temporary: bool = False) -> Generator[Part]:
    """Every part of every table that is visible, or of those that this connection made for itself.

    A trigger that is switched off is none, and a reference that nothing enforces is another.
    """
    which = _OF_THIS_CONNECTION if temporary else _OF_ALL
    yield from connection.execute(text(_ASKED.format(which=which)))


_OF_ALL = (
    "relpersistence <> 't' AND relnamespace NOT IN "
    "('pg_catalog'::regnamespace, 'information_schema'::regnamespace)"
)
_OF_THIS_CONNECTION = "relnamespace = pg_my_temp_schema()"

_ASKED = """
WITH ours AS (
    SELECT * FROM pg_class
    WHERE relkind IN ('r', 'p') AND pg_table_is_visible(oid) AND {which}
)
SELECT relname, 'table', '', concat_ws(' ',
    CASE WHEN relkind = 'p' THEN 'partitioned' END,
    CASE WHEN relpersistence = 'u' THEN 'unlogged' END,
    CASE WHEN relrowsecurity THEN 'row security' END,
    CASE WHEN relforcerowsecurity THEN 'forced row security' END,
    CASE WHEN EXISTS (SELECT FROM pg_inherits i WHERE oid IN (i.inhrelid, i.inhparent))
        THEN 'inherited' END)
FROM ours
UNION ALL
SELECT o.relname, 'column', a.attname, format_type(a.atttypid, a.atttypmod)
    || CASE WHEN a.attcollation = t.typcollation THEN ''
        ELSE ' collate ' || (SELECT collname FROM pg_collation n WHERE n.oid = a.attcollation) END
    || CASE WHEN a.attnotnull THEN ' not null' ELSE '' END
    || CASE WHEN a.attidentity = '' THEN '' ELSE ' identity' END
    || CASE WHEN a.attgenerated = '' THEN '' ELSE ' generated' END
    || coalesce(' default ' || pg_get_expr(d.adbin, d.adrelid, true), '')
FROM ours o JOIN pg_attribute a ON a.attrelid = o.oid JOIN pg_type t ON t.oid = a.atttypid
LEFT JOIN pg_attrdef d ON d.adrelid = o.oid AND d.adnum = a.attnum
WHERE a.attnum > 0 AND NOT a.attisdropped
UNION ALL
SELECT o.relname, 'constraint', c.conname, pg_get_constraintdef(c.oid, true)
    || CASE WHEN EXISTS (
        SELECT FROM pg_trigger t WHERE t.tgconstraint = c.oid AND t.tgenabled NOT IN ('O', 'A')
    ) THEN ' switched off' ELSE '' END
FROM ours o JOIN pg_constraint c ON c.conrelid = o.oid WHERE c.contype IN ('c', 'f', 'p', 'u', 'x')
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
SELECT o.relname, 'rule', r.rulename, pg_get_ruledef(r.oid, true)
FROM ours o JOIN pg_rewrite r ON r.ev_class = o.oid
UNION ALL
SELECT o.relname, 'policy', p.polname, p.polcmd::text
FROM ours o JOIN pg_policy p ON p.polrelid = o.oid
UNION ALL
SELECT '', 'function',
    CASE WHEN pg_function_is_visible(p.oid) THEN ''
        ELSE p.pronamespace::regnamespace::text || '.' END || p.proname,
    concat_ws(' ', l.lanname, CASE WHEN p.prosecdef THEN 'security definer' END,
        p.proconfig::text, p.prosrc)
FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
WHERE p.oid IN (SELECT t.tgfoid FROM ours o JOIN pg_trigger t ON t.tgrelid = o.oid)
"""
