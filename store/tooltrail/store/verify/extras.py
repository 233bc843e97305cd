"""Finds rows that no fact explains.

The checks count the rows that they compared. Only where a table has more is each row looked at.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Table

from tooltrail.records.errors import DamageError, InvalidRecordError
from tooltrail.store import schema
from tooltrail.store.verify.checking import Checking
from tooltrail.store.verify.findings import Finding

_AT_ONCE: Final = 200
"""Extra rows that are named of one table; more are counted."""


@dataclass(frozen=True, slots=True)
class _Rule:
    """Which rows of a table a fact explains.

    Attributes:
        table: whose rows are counted.
        subject: what a row is about, in words.
        names: columns that name the row.
        matched: under which name compared rows are counted.
        counted: which rows are counted; all where empty.
        extra: which rows have no fact; `t` is the table.
    """

    table: Table
    subject: str
    names: tuple[str, ...]
    extra: str
    matched: object = None
    counted: str = ""


def _entry(column: str, kind: str, journal: str = "journal_key") -> str:
    return (
        f"t.{column} IS NOT NULL AND NOT EXISTS (SELECT 1 FROM ledger_entries AS l"
        f" WHERE l.journal_key = t.{journal} AND l.n = t.{column} AND {kind}"
        " AND l.subject_id = t.id)"
    )


def _orphan(column: str, owner: str) -> str:
    return f"NOT EXISTS (SELECT 1 FROM {owner} AS o WHERE o.key = t.{column})"


_MESSAGES: Final = "l.kind IN ('message', 'tool.offered', 'agent.leg', 'agent.outcome')"
_OF_SESSION: Final = "WHERE o.session_key = t.key"
_UNKNOWN_SESSION: Final = (
    "t.entry IS NULL AND t.close_entry IS NULL"
    f" AND NOT EXISTS (SELECT 1 FROM invocations AS o {_OF_SESSION})"
    f" AND NOT EXISTS (SELECT 1 FROM messages AS o {_OF_SESSION})"
)

_RULES: Final = (
    _Rule(schema.invocations, "call", ("id",), _entry("start_entry", "l.kind = 'call.started'")),
    _Rule(
        schema.invocations,
        "call",
        ("id",),
        _entry("end_entry", "l.kind = 'call.ended'", "end_journal_key"),
        "invocations.end_entry",
        "WHERE end_entry IS NOT NULL",
    ),
    _Rule(schema.messages, "message", ("id",), _entry("entry", _MESSAGES)),
    _Rule(
        schema.sessions,
        "session",
        ("id",),
        _entry("entry", "l.kind = 'session.opened'", "open_journal_key"),
        "sessions.entry",
        "WHERE entry IS NOT NULL",
    ),
    _Rule(
        schema.sessions,
        "session",
        ("id",),
        _entry("close_entry", "l.kind = 'session.closed'", "close_journal_key"),
        "sessions.close_entry",
        "WHERE close_entry IS NOT NULL",
    ),
    _Rule(schema.sessions, "session", ("id",), _UNKNOWN_SESSION, "sessions.unknown"),
    _Rule(
        schema.rejected_facts,
        "rejected fact",
        ("journal_key", "n"),
        "(t.n IS NULL AND t.journal_key NOT IN (SELECT key FROM journals)) OR (t.n IS NOT NULL AND"
        " NOT EXISTS (SELECT 1 FROM ledger_entries AS l"
        " WHERE l.journal_key = t.journal_key AND l.n = t.n))",
    ),
    _Rule(
        schema.tools,
        "tool",
        ("digest",),
        "NOT EXISTS (SELECT 1 FROM tool_offers AS o WHERE o.tool = t.digest)",
    ),
    *(
        _Rule(table, f"row of {table.name} of call", (column,), _orphan(column, "invocations"))
        for table, column in (
            (schema.surfaces, "invocation_key"),
            (schema.streams, "invocation_key"),
            (schema.omissions, "invocation_key"),
            (schema.invocation_artifacts, "invocation_key"),
            (schema.structured_outputs, "invocation_key"),
        )
    ),
    *(
        _Rule(
            table,
            f"row of {table.name} of message",
            ("message_key",),
            _orphan("message_key", "messages"),
        )
        for table in (schema.tool_offers, schema.agent_legs, schema.agent_outcomes)
    ),
)


def check_extras(checking: Checking) -> Iterator[list[Finding]]:
    """Report the rows that no fact explains. Call it when all facts were compared."""
    for rule in _RULES:
        matched = checking.matched[rule.matched or rule.table]
        try:
            sql = f"SELECT count(*) FROM {rule.table.name} {rule.counted}"
            ((count,),) = checking.source.query(sql)
            if count > matched:
                _name_extras(checking, rule)
        except (DamageError, InvalidRecordError) as error:
            table = rule.table.name
            message = f"the rows of {table} cannot be counted: {error}"
            checking.damage(f"table {table}", table, None, message)
        yield checking.take()


def _name_extras(checking: Checking, rule: _Rule) -> None:
    table = rule.table.name
    names = ", ".join(f"t.{name}" for name in rule.names)
    sql = f"SELECT {names} FROM {table} AS t WHERE {rule.extra} LIMIT ?"
    found = checking.source.query(sql, (_AT_ONCE,))
    for row in found:
        subject = f"{rule.subject} {_words(checking, row)}"
        column = rule.counted.split()[1] if rule.counted else None
        what = f"{table}.{column} of {subject}" if column else subject
        checking.damage(subject, table, column, f"{what} has no entry in the ledger")
    if len(found) == _AT_ONCE:
        message = f"{table} may have more than {_AT_ONCE} rows without an entry in the ledger"
        checking.damage(f"table {table}", table, None, message)


def _words(checking: Checking, row: Sequence[object]) -> str:
    if len(row) > 1:
        return " entry ".join(str(one) for one in row)
    (value,) = row
    if isinstance(value, bytes):
        is_id = len(value) == 16
        return str(checking.connection.read_uuid(value)) if is_id else str(checking.digest(value))
    return str(value)
