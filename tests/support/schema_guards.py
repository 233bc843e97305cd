"""Triggers that make the evidence tables append-only.

These rows may change:

- an invocation and its surfaces, when the call ends;
- a session, when it is opened after its first record and when it is closed;
- a body, when retention removes its bytes: the tombstone must be there first;
- a text of the surfaces, when retention removes it: no trigger asks for the tombstone, `verify`
  does;
- the row of the store itself, but for its id, format and time of creation.
"""

from typing import Final

from tests.support import schema

from tooltrail.store.column_groups import CLOSING, OPENING, OUTCOME

_SESSION: Final = ("id", "opened_at", "journal_key")
_TEXTS: Final = ("arguments", *OUTCOME)
_START: Final = (
    *(one.name for one in schema.invocations.columns if not one.nullable and one.name != "state"),
    "call_id",
    "message_id",
    "environment",
    "owner",
    "title",
)


def guard_ddl(dialect: str) -> list[str]:
    """Statements that make the evidence tables append-only, but for what a life must change.

    Args:
        dialect: `sqlite` or `postgresql`.
    """
    differs = "IS NOT" if dialect == "sqlite" else "IS DISTINCT FROM"
    rules = _update_rules(differs)
    make = _sqlite_guard if dialect == "sqlite" else _postgresql_guard
    statements = [] if dialect == "sqlite" else [_REFUSE]
    for table in schema.EVIDENCE:
        statements += make(table.name, rules.get(table.name))
    if dialect == "sqlite":
        return [*statements, _SQLITE_ERASURE]
    return [*statements, _REFUSE_ERASURE, _POSTGRESQL_ERASURE]


def _update_rules(differs: str) -> dict[str, str]:
    """When an update of a table is refused; a table without a rule takes none."""

    def changes(names: tuple[str, ...]) -> str:
        return " OR ".join(f"NEW.{name} {differs} OLD.{name}" for name in names)

    return {
        "invocations": f"OLD.state <> 'started' OR {changes(_START)}",
        # Texts are written at the start and at the end, each once; retention may remove one.
        "surfaces": " OR ".join(
            f"(OLD.{name} IS NOT NULL AND NEW.{name} IS NOT NULL AND {changes((name,))})"
            for name in _TEXTS
        )
        + f" OR {changes(('invocation_key',))}",
        "sessions": f"{changes(_SESSION)}"
        f" OR (OLD.closed_at IS NOT NULL AND ({changes(CLOSING)}))"
        f" OR (OLD.entry IS NOT NULL AND ({changes(OPENING)}))",
        "bodies": f"{changes(('key', 'digest', 'size'))}"
        " OR (OLD.data IS NOT NULL AND NEW.data IS NOT NULL)",
        "store_info": changes(("key", "id", "format", "created_at")),
    }


_REFUSE: Final = (
    "CREATE FUNCTION tooltrail_refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
    "RAISE EXCEPTION '% is append-only', TG_TABLE_NAME; END $$"
)


_UNBURIED: Final = (
    "OLD.data IS NOT NULL AND NEW.data IS NULL AND NOT EXISTS"
    " (SELECT 1 FROM tombstones WHERE kind = 'body' AND digest = OLD.digest)"
)
_SQLITE_ERASURE: Final = (
    f"CREATE TRIGGER bodies_no_erasure BEFORE UPDATE ON bodies WHEN {_UNBURIED}"
    " BEGIN SELECT RAISE(ABORT, 'bodies is append-only without a tombstone'); END"
)
# A condition of a trigger of PostgreSQL takes no subquery.
_REFUSE_ERASURE: Final = (
    "CREATE FUNCTION tooltrail_refuse_erasure() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
    f" IF {_UNBURIED} THEN RAISE EXCEPTION 'bodies is append-only without a tombstone'; END IF;"
    " RETURN NEW; END $$"
)
_POSTGRESQL_ERASURE: Final = (
    "CREATE TRIGGER bodies_no_erasure BEFORE UPDATE ON bodies FOR EACH ROW"
    " EXECUTE FUNCTION tooltrail_refuse_erasure()"
)


def _sqlite_guard(table: str, rule: str | None) -> list[str]:
    refuse = f"BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
    when = "" if rule is None else f"WHEN {rule} "
    return [
        f"CREATE TRIGGER {table}_no_delete BEFORE DELETE ON {table} {refuse}",
        f"CREATE TRIGGER {table}_no_update BEFORE UPDATE ON {table} {when}{refuse}",
    ]


def _postgresql_guard(table: str, rule: str | None) -> list[str]:
    refuse = "EXECUTE FUNCTION tooltrail_refuse()"
    when = "" if rule is None else f"WHEN ({rule}) "
    make = f"CREATE TRIGGER {table}_no"
    return [
        f"{make}_delete BEFORE DELETE ON {table} FOR EACH ROW {refuse}",
        f"{make}_truncate BEFORE TRUNCATE ON {table} FOR EACH STATEMENT {refuse}",
        f"{make}_update BEFORE UPDATE ON {table} FOR EACH ROW {when}{refuse}",
    ]
