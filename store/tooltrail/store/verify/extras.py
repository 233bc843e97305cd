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
        extra: which rows have no fact; `t` is the table.
        column: that names a fact; all rows have one where that is None.
        names: columns that name the row.
    """

    table: Table
    subject: str
    extra: str
    column: str | None = None
    names: tuple[str, ...] = ("id",)

    @property
    def matched(self) -> object:
        """Under which name compared rows are counted."""
        return self.table if self.column is None else f"{self.table.name}.{self.column}"


def _entry(column: str, kinds: str, journal: str = "journal_key") -> str:
    return (
        f"t.{column} IS NOT NULL AND NOT EXISTS (SELECT 1 FROM ledger_entries AS l"
        f" WHERE l.journal_key = t.{journal} AND l.n = t.{column} AND l.kind IN ({kinds})"
        " AND l.subject_id = t.id)"
    )


def _orphans(table: Table, owner: str, owners: str) -> _Rule:
    column = f"{owner}_key"
    extra = f"NOT EXISTS (SELECT 1 FROM {owners} AS o WHERE o.key = t.{column})"
    what = "message" if owner == "message" else "call"
    return _Rule(table, f"row of {table.name} of {what}", extra, names=(column,))


_MESSAGES: Final = "'message', 'tool.offered', 'agent.leg', 'agent.outcome'"
_UNKNOWN_SESSION: Final = "t.entry IS NULL AND t.close_entry IS NULL" + "".join(
    f" AND NOT EXISTS (SELECT 1 FROM {table} AS o WHERE o.session_key = t.key)"
    for table in ("invocations", "messages")
)
_CLOSED: Final = _entry("close_entry", "'session.closed'", "close_journal_key")

_RULES: Final = (
    _Rule(schema.invocations, "call", _entry("start_entry", "'call.started'")),
    _Rule(
        schema.invocations,
        "call",
        _entry("end_entry", "'call.ended'", "end_journal_key"),
        "end_entry",
    ),
    _Rule(schema.messages, "message", _entry("entry", _MESSAGES)),
    _Rule(
        schema.sessions, "session", _entry("entry", "'session.opened'", "open_journal_key"), "entry"
    ),
    _Rule(schema.sessions, "session", _CLOSED, "close_entry"),
    _Rule(schema.sessions, "session", _UNKNOWN_SESSION),
    _Rule(
        schema.rejected_facts,
        "rejected fact",
        "(t.n IS NULL AND t.journal_key NOT IN (SELECT key FROM journals)) OR (t.n IS NOT NULL AND"
        " NOT EXISTS (SELECT 1 FROM ledger_entries AS l"
        " WHERE l.journal_key = t.journal_key AND l.n = t.n))",
        names=("journal_key", "n"),
    ),
    _Rule(
        schema.tools,
        "tool",
        "NOT EXISTS (SELECT 1 FROM tool_offers AS o WHERE o.tool = t.digest)",
        names=("digest",),
    ),
    _orphans(schema.surfaces, "invocation", "invocations"),
    _orphans(schema.streams, "invocation", "invocations"),
    _orphans(schema.omissions, "invocation", "invocations"),
    _orphans(schema.invocation_artifacts, "invocation", "invocations"),
    _orphans(schema.structured_outputs, "invocation", "invocations"),
    _orphans(schema.tool_offers, "message", "messages"),
    _orphans(schema.agent_legs, "message", "messages"),
    _orphans(schema.agent_outcomes, "message", "messages"),
)


def check_extras(checking: Checking) -> Iterator[list[Finding]]:
    """Report the rows that no fact explains. Call it when all facts were compared."""
    for rule in _RULES:
        try:
            sql = f"SELECT count({rule.column or '*'}) FROM {rule.table.name}"
            ((count,),) = checking.source.query(sql)
            if count > checking.matched[rule.matched]:
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
        what = f"{table}.{rule.column} of {subject}" if rule.column else subject
        checking.damage(subject, table, rule.column, f"{what} has no entry in the ledger")
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
