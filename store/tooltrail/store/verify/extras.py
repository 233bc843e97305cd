"""Finds rows without a fact."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from tooltrail.records.errors import DamageError, InvalidRecordError
from tooltrail.store.engines.values import uuid_from
from tooltrail.store.ingest.known import FIRST_SEQ
from tooltrail.store.verify.calls import OF_CALLS
from tooltrail.store.verify.checking import Checking, Finding
from tooltrail.store.verify.entries import OF_MESSAGES

_AT_ONCE: Final = 200
"""Most extra rows that a rule reports; a last finding says that there may be more."""


class _Rule(NamedTuple):
    """Selects the rows of a table that have no fact.

    Attributes:
        subject: the kind of thing in a row, such as `call`.
        extra: condition of rows without a fact; `t` is the table.
        column: column that names a fact. Rows are only searched if more rows name a fact than
            were compared. None: rows are always searched.
        may_be_null: whether a row without a value in this column names no fact.
        names: columns that identify the row.
    """

    table: str
    subject: str
    extra: str
    column: str | None = None
    names: str = "t.id"
    may_be_null: bool = False


def _of_fact(
    table: str, column: str, kinds: str, journal: str = "journal_key", *, may_be_null: bool = False
) -> _Rule:
    """Rows that name an entry which is not their fact."""
    extra = (
        "NOT EXISTS (SELECT 1 FROM ledger_entries AS l"
        f" WHERE l.journal_key = t.{journal} AND l.n = t.{column} AND l.kind IN ({kinds})"
        " AND l.subject_id = t.id)"
    )
    if may_be_null:
        extra = f"t.{column} IS NOT NULL AND {extra}"
    subject = "call" if table == "invocations" else table.removesuffix("s")
    return _Rule(table, subject, extra, column, may_be_null=may_be_null)


def _of_owner(table: str, owner: str, what: str) -> _Rule:
    """Rows whose call or message is missing."""
    column = f"t.{owner}_key"
    extra = f"NOT EXISTS (SELECT 1 FROM {owner}s AS o WHERE o.key = {column})"
    return _Rule(table, f"row of {table} of {what}", extra, names=column)


_MESSAGES: Final = "'message', 'tool.offered', 'agent.leg', 'agent.outcome'"
_UNKNOWN_SESSION: Final = (
    "NOT EXISTS (SELECT 1 FROM ledger_entries AS l WHERE l.journal_key = t.journal_key)"
    " OR (t.entry IS NULL AND t.close_entry IS NULL"
    " AND NOT EXISTS (SELECT 1 FROM invocations AS o WHERE o.session_key = t.key)"
    " AND NOT EXISTS (SELECT 1 FROM messages AS o WHERE o.session_key = t.key))"
)
_UNKNOWN_ENTRY: Final = (
    "(t.n IS NULL AND t.journal_key NOT IN (SELECT key FROM journals)) OR (t.n IS NOT NULL AND"
    " NOT EXISTS (SELECT 1 FROM ledger_entries AS l"
    " WHERE l.journal_key = t.journal_key AND l.n = t.n))"
)
_UNKNOWN_TOOL: Final = "NOT EXISTS (SELECT 1 FROM tool_offers AS o WHERE o.tool = t.digest)"

_RULES: Final = (
    _of_fact("invocations", "start_entry", "'call.started'"),
    _of_fact("invocations", "end_entry", "'call.ended'", "end_journal_key", may_be_null=True),
    _of_fact("messages", "entry", _MESSAGES),
    _of_fact("sessions", "entry", "'session.opened'", "open_journal_key", may_be_null=True),
    _of_fact("sessions", "close_entry", "'session.closed'", "close_journal_key", may_be_null=True),
    _Rule("sessions", "session", _UNKNOWN_SESSION),
    _Rule("rejected_facts", "rejected fact", _UNKNOWN_ENTRY, names="t.journal_key, t.n"),
    _Rule("tools", "tool", _UNKNOWN_TOOL, "digest", "t.digest"),
    *(_of_owner(table, "invocation", "call") for table in ("surfaces", *OF_CALLS)),
    *(_of_owner(table, "message", "message") for table in OF_MESSAGES),
)


_WITH_HOLES: Final = """
SELECT sessions.id FROM sessions JOIN (
    SELECT session_key, count(*) AS places, min(seq) AS first, max(seq) AS last FROM (
        SELECT session_key, seq FROM invocations UNION ALL SELECT session_key, seq FROM messages
    ) AS entries GROUP BY session_key
) AS taken ON taken.session_key = sessions.key
WHERE taken.first <> ? OR taken.last - taken.first + 1 <> taken.places LIMIT ?"""


def check_extras(checking: Checking) -> Iterator[list[Finding]]:
    """Report the rows without a fact. Call this after all facts were compared."""
    for rule in _RULES:
        table = rule.table
        try:
            if rule.column is not None:
                counted = rule.column if rule.may_be_null else "*"
                sql = f"SELECT count({counted}) FROM {table}"
                ((count,),) = checking.source.query(sql)
                if count <= checking.matched[f"{table}.{rule.column}"]:
                    continue
            sql = f"SELECT {rule.names} FROM {table} AS t WHERE {rule.extra} LIMIT ?"
            found = checking.source.query(sql, (_AT_ONCE,))
        except (DamageError, InvalidRecordError) as error:
            message = f"the rows of {table} cannot be counted: {error}"
            checking.damage(f"table {table}", table, message)
            found = []
        for row in found:
            subject = f"{rule.subject} {' entry '.join(_spelled(checking, one) for one in row)}"
            what = f"{table}.{rule.column} of {subject}" if rule.column else subject
            checking.damage(subject, table, f"{what} has no entry in the ledger", rule.column)
        if len(found) == _AT_ONCE:
            message = f"{table} may have more than {_AT_ONCE} rows without an entry in the ledger"
            checking.damage(f"table {table}", table, message)
        yield checking.take()


def check_positions(checking: Checking) -> Iterator[list[Finding]]:
    """Report sessions whose positions have a hole. Call this after all facts were compared.

    If one journal determines all positions, they were compared one by one.
    """
    if not checking.is_strict:
        for (name,) in checking.source.read("sessions", _WITH_HOLES, (FIRST_SEQ, _AT_ONCE)) or ():
            subject = f"session {_spelled(checking, name)}"
            message = f"the positions in {subject} have a hole: a row was moved, removed or added"
            checking.damage(subject, "sessions", message)
    yield checking.take()


def _spelled(checking: Checking, value: object) -> str:
    """A value that identifies a row, as text."""
    if not isinstance(value, bytes):
        return str(value)
    return str(uuid_from(value)) if len(value) == 16 else checking.digest(value)
