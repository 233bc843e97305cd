"""Compares sessions and messages with their facts."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Table

from tooltrail.records.digests import EMPTY, Digest
from tooltrail.records.facts import (
    AgentLeg,
    AgentOutcome,
    AnswerStarted,
    Maintenance,
    SessionClosed,
    SessionOpened,
    ToolsOffered,
    body_digests,
)
from tooltrail.store import schema
from tooltrail.store.column_groups import CLOSING
from tooltrail.store.engines.connection import Row
from tooltrail.store.ingest import known, rows
from tooltrail.store.ingest.known import MessageFact
from tooltrail.store.verify.bodies import Needed
from tooltrail.store.verify.checking import Checking, Place
from tooltrail.store.verify.ledger import Entry

_CHILDREN: Final = (schema.tool_offers, schema.agent_legs, schema.agent_outcomes)
"""Rows that say what a message is besides."""


def check_sessions(
    checking: Checking, journal: int, entries: Iterable[Entry], needed: Needed
) -> None:
    """Compare the sessions that facts name: what they are, and when they began and ended."""
    for n, fact, json in entries:
        if isinstance(fact, Maintenance | AnswerStarted):
            continue
        subject = f"session {fact.session}"
        row = checking.session(fact.session)
        if checking.is_new(fact.session):
            _check_beginning(checking, journal, subject, fact.at, row)
        if row is None:
            continue
        if isinstance(fact, SessionOpened):
            columns = ("open_journal_key", "entry")
            if checking.is_source(subject, "sessions", columns, row, (journal, n), json):
                expected = rows.opening_columns(checking.connection, fact, known.Entry(journal, n))
                checking.compare(subject, "sessions", expected, row)
                checking.matched["sessions.entry"] += 1
                if fact.environment is not None:
                    needed.optional.setdefault(fact.environment, subject)
        elif isinstance(fact, SessionClosed):
            _check_closing(checking, subject, fact, known.Entry(journal, n), row)


def _check_beginning(
    checking: Checking, journal: int, subject: str, at: Any, row: Row | None
) -> None:
    """Check what the first fact of a session in a journal says."""
    if row is None:
        checking.damage(subject, "sessions", None, f"{subject} is missing")
        return
    is_first = row["journal_key"] == journal
    if checking.is_strict and not is_first:
        message = f"sessions.journal_key of {subject} is not the journal of its facts"
        checking.damage(subject, "sessions", "journal_key", message)
    if is_first and not checking.has_forgotten:
        moment = checking.connection.moment(at)
        checking.compare(subject, "sessions", {"opened_at": moment}, row)


def _check_closing(
    checking: Checking, subject: str, fact: SessionClosed, entry: known.Entry, row: Row
) -> None:
    is_first = checking.close(fact.session, entry.n)
    journal = row["close_journal_key"]
    if journal == entry.journal_key and row["close_entry"] == entry.n:
        values = rows.closing_values(checking.connection, fact, entry)
        checking.compare(subject, "sessions", dict(zip(CLOSING, values, strict=True)), row)
        checking.matched["sessions.close_entry"] += 1
    elif checking.is_strict and is_first:
        column = "close_entry" if journal == entry.journal_key else "close_journal_key"
        message = f"sessions.{column} of {subject} is not that of its fact"
        checking.damage(subject, "sessions", column, message)


def check_messages(
    checking: Checking, journal: int, entries: Sequence[Entry], needed: Needed
) -> list[Place]:
    """Compare the messages of a batch, and the rows that say what they are besides.

    Returns:
        Their places, for `Checking.check_places`.
    """
    places = list[Place]()
    connection = checking.connection
    facts = [(n, one, json) for n, one, json in entries if isinstance(one, MessageFact)]
    ids = [connection.uuid(one.id) for _, one, _ in facts]
    found = {row["id"]: row for row in checking.source.rows(schema.messages, "id", ids)}
    keys = [row["key"] for row in found.values()]
    children = {table: checking.rows_by_owner(table, "message_key", keys) for table in _CHILDREN}
    for table, by_key in children.items():
        checking.matched[table] += sum(map(len, by_key.values()))
    _check_tools(checking, [one for _, one, _ in facts if isinstance(one, ToolsOffered)])
    for n, fact, json in facts:
        subject = f"message {fact.id}"
        row = found.get(connection.uuid(fact.id))
        if row is None:
            checking.damage(subject, "messages", None, f"{subject} is missing")
            places.append(Place(n, subject, "messages", fact.session, None))
            continue
        seq = Place(n, subject, "messages", fact.session, row["seq"])
        columns = ("journal_key", "entry")
        if not checking.is_source(subject, "messages", columns, row, (journal, n), json, seq):
            continue
        checking.matched[schema.messages] += 1
        for digest in body_digests(fact):
            if digest != EMPTY:
                needed.bodies.setdefault(digest, subject)
        rows_of_it = {table: by_key[row["key"]] for table, by_key in children.items()}
        places.append(seq)
        _check_message(checking, subject, fact, row, rows_of_it)
    return places


def _check_message(
    checking: Checking,
    subject: str,
    fact: MessageFact,
    row: Row,
    children: Mapping[Table, Sequence[Row]],
) -> None:
    connection = checking.connection
    session = checking.session(fact.session)
    session_key = None if session is None else session["key"]
    expected = _rows_of(checking, fact)
    if expected is None:
        return  # a body that describes the message is missing or damaged, and is reported
    wanted = {**expected.columns, "created_at": connection.moment(fact.at)}
    if session is not None:
        wanted["session_key"] = session_key
    checking.compare(subject, "messages", wanted, row)
    for table in _CHILDREN:
        owner = {"message_key": row["key"]}
        if "session_key" in table.columns:
            owner["session_key"] = session_key
        made = [{**owner, **one} for one in expected.children.get(table.name, ())]
        checking.compare_rows(subject, table, made, children[table])


def _rows_of(checking: Checking, fact: MessageFact) -> rows.MessageRows | None:
    """The rows that a fact makes; None where a body that says so is missing."""
    connection = checking.connection
    bodies: dict[Digest, bytes] = {}
    if isinstance(fact, ToolsOffered):
        made = rows.message_rows(connection, fact.replaced(tools=()), bodies)
        offers = [{"position": n, "tool": connection.sha(one)} for n, one in enumerate(fact.tools)]
        return rows.MessageRows(made.columns, {"tool_offers": offers}, [])
    if isinstance(fact, AgentLeg | AgentOutcome):
        document = checking.body(fact.document)
        if document is None:
            return None
        bodies[fact.document] = document
    try:
        return rows.message_rows(connection, fact, bodies)
    except (LookupError, TypeError, ValueError):
        return None


def _check_tools(checking: Checking, offers: Sequence[ToolsOffered]) -> None:
    """Compare the rows of tools with the offers that name them, and with their definitions."""
    connection = checking.connection
    times: dict[Digest, list[object]] = {}
    for fact in offers:
        for digest in fact.tools:
            times.setdefault(digest, []).append(connection.moment(fact.at))
    new = [
        connection.sha(one) for one in times if one not in checking.tools or not checking.is_strict
    ]
    found = {row["digest"]: row for row in checking.source.rows(schema.tools, "digest", new)}
    for digest, moments in times.items():
        row = found.get(connection.sha(digest))
        is_known = digest in checking.tools
        if row is not None:
            is_made = row["created_at"] in (moments[:1] if checking.is_strict else moments)
            checking.tools[digest] = checking.tools.get(digest, False) or is_made
        if is_known:
            continue
        checking.matched[schema.tools] += row is not None
        subject = f"tool {digest}"
        if row is None:
            checking.tools[digest] = True
            checking.damage(subject, "tools", None, f"{subject} is missing")
            continue
        document = checking.body(digest)
        if document is not None:
            name = rows.tool_name(connection, digest, {digest: document})
            checking.compare(subject, "tools", {"name": name}, row)


def check_tool_times(checking: Checking) -> None:
    """Report the tools whose time is not that of an offer."""
    for digest, is_made in checking.tools.items():
        if not is_made:
            message = f"tools.created_at of tool {digest} is not the time of its first offer"
            checking.damage(f"tool {digest}", "tools", "created_at", message)
