"""Compares each fact of the ledger, in order, with its rows."""

from collections.abc import Sequence
from typing import Any, Final

from tooltrail.records.digests import EMPTY, Digest
from tooltrail.records.fact_spelling import body_digests
from tooltrail.records.facts import (
    AgentLeg,
    AgentOutcome,
    AnswerStarted,
    CallEnded,
    CallStarted,
    Fact,
    Maintenance,
    SessionClosed,
    SessionOpened,
    ToolsOffered,
)
from tooltrail.store.column_groups import CLOSING, OPENING
from tooltrail.store.engines.connection import Row
from tooltrail.store.ingest import rows
from tooltrail.store.ingest.batch import IDENTITY, differing_members
from tooltrail.store.ingest.known import MessageFact
from tooltrail.store.verify.bodies import Needed
from tooltrail.store.verify.calls import load_calls
from tooltrail.store.verify.checking import Checking, SessionState
from tooltrail.store.verify.ledger import AppliedFact, Journal
from tooltrail.store.verify.receipts import Receipts

OF_MESSAGES: Final = ("tool_offers", "agent_legs", "agent_outcomes")
"""Tables with further rows of a message."""


class EntryChecks:
    """Checks the entries of one journal. With `receipts`, receipts are rendered again."""

    def __init__(self, checking: Checking, journal: Journal, receipts: Receipts | None) -> None:
        self._checking = checking
        self._connection = checking.connection
        self._journal = journal
        self._receipts = receipts

    def check(self, entries: Sequence[AppliedFact]) -> None:
        """Read all rows of the next entries at once, compare them, and check all that they name."""
        self._needed = Needed()
        self._load([entry.fact for entry in entries])
        for entry in entries:
            self._check(entry)
        self._needed.check(self._checking, is_damaged=self._journal.gap_count > 0)

    def _load(self, facts: Sequence[Fact]) -> None:
        """Read the rows that the facts name."""
        checking, connection, source = self._checking, self._connection, self._checking.source
        checking.forget_sessions()
        sessions = {
            connection.uuid(one.session)
            for one in facts
            if not isinstance(one, Maintenance | AnswerStarted)
            and one.session not in checking.sessions
        }
        self._sessions = checking.named("sessions", "id", list(sessions))
        messages = [connection.uuid(one.id) for one in facts if isinstance(one, MessageFact)]
        self._messages = checking.named("messages", "id", messages)
        keys = [row["key"] for row in self._messages.values()]
        self._children = {one: source.owned(one, "message_key", keys) for one in OF_MESSAGES}
        tools = {
            connection.sha(one)
            for fact in facts
            if isinstance(fact, ToolsOffered)
            for one in fact.tools
            if not checking.tools.get(one)
        }
        self._tools = checking.named("tools", "digest", list(tools))
        calls = [one.id for one in facts if isinstance(one, CallStarted | CallEnded)]
        self._calls = load_calls(checking, calls)

    def _check(self, entry: AppliedFact) -> None:
        match entry.fact:
            case Maintenance() as fact:
                self._need_bodies(fact, f"maintenance {fact.id}")
            case AnswerStarted():
                pass
            case SessionOpened() as fact:
                self._check_opened(entry, fact)
            case SessionClosed() as fact:
                self._check_closed(entry, fact)
            case CallStarted() as fact:
                self._check_started(entry, fact)
            case CallEnded() as fact:
                self._check_ended(entry, fact)
            case fact:
                self._check_message(entry, fact)

    def _check_opened(self, entry: AppliedFact, fact: SessionOpened) -> None:
        subject, row = f"session {fact.session}", self._session_of(entry, fact).row
        if row is None or self._is_repeated(entry, subject, row["open_journal_key"], row["entry"]):
            return
        expected = rows.opening_columns(self._connection, fact, entry.place)
        self._checking.compare(subject, "sessions", expected, row)
        self._checking.matched["sessions.entry"] += 1
        self._checking.totals.checked["sessions"] += 1
        if fact.environment is not None:
            self._needed.optional.setdefault(fact.environment, subject)

    def _check_closed(self, entry: AppliedFact, fact: SessionClosed) -> None:
        """Compare the end of a session. If several facts close it, the first one counts.

        The first one may be lost. Then the row names the lost entry, but it names some entry.
        """
        session = self._session_of(entry, fact)
        was_closed, session.is_closed = session.is_closed, True
        row = session.row
        if row is None:
            return
        is_named = (row["close_journal_key"], row["close_entry"]) == entry.place
        is_known = self._checking.is_strict and not entry.lost
        if is_named or (not was_closed and (is_known or row["close_entry"] is None)):
            expected = rows.closing_columns(self._connection, fact, entry.place)
            self._checking.compare(f"session {fact.session}", "sessions", expected, row)
            self._checking.matched["sessions.close_entry"] += 1

    def _check_message(self, entry: AppliedFact, fact: MessageFact) -> None:
        subject, row = f"message {fact.id}", self._messages.get(self._connection.uuid(fact.id))
        expected = self._placed(entry, fact, subject, "messages", row)
        if row is None or expected is None:
            return
        self._checking.matched["messages.entry"] += 1
        self._checking.totals.checked["messages"] += fact.kind == "message"
        self._need_bodies(fact, subject)
        if isinstance(fact, ToolsOffered):
            self._check_tools(fact)
        expected |= rows.message_columns(self._connection, fact)
        expected["created_at"] = self._connection.moment(fact.at)
        expected["journal_key"], expected["entry"] = entry.place
        self._checking.compare(subject, "messages", expected, row)
        bodies: dict[Digest, bytes] = {}
        if isinstance(fact, AgentLeg | AgentOutcome):
            bodies[fact.document] = self._checking.body(fact.document) or b""
        try:
            made = rows.message_rows(self._connection, fact, bodies)
        except (LookupError, TypeError, ValueError):
            return  # a missing or damaged body that describes the message is reported elsewhere
        for table, owned in self._children.items():
            owner = {"message_key": row["key"]}
            if table != "tool_offers":
                owner["session_key"] = expected.get("session_key", row["session_key"])
            children = [{**owner, **one} for one in made.children.get(table, ())]
            self._checking.compare_rows(subject, table, children, owned[row["key"]])

    def _check_started(self, entry: AppliedFact, fact: CallStarted) -> None:
        subject, call = f"call {fact.id}", self._calls.get(fact.id)
        row = None if call is None else call.row
        session = self._session_of(entry, fact)
        is_late = session.is_closed
        expected = self._placed(entry, fact, subject, "invocations", row)
        if call is None or expected is None:
            return
        self._checking.matched["invocations.start_entry"] += 1
        self._checking.totals.checked["calls"] += 1
        if self._checking.is_strict and (is_late or not entry.lost):
            expected["is_late"] = is_late
        elif row is not None:
            expected["is_late"] = bool(
                row["is_late"]
            )  # no fact has the order of several journals; only another type is damage
        for digest in (fact.policy, fact.environment):
            if digest is not None and digest != EMPTY:
                self._needed.optional.setdefault(digest, subject)
        call.check_start(fact, entry.place, expected)

    def _check_ended(self, entry: AppliedFact, fact: CallEnded) -> None:
        self._session_of(entry, fact)
        call = self._calls.get(fact.id)
        if call is None:
            return  # reported with its start
        named = (call.row["end_journal_key"], call.row["end_entry"])
        if self._is_repeated(entry, call.subject, *named):
            call.check_repeated_end(fact, entry.place)
        else:
            self._checking.matched["invocations.end_entry"] += 1
            call.check_end(fact, entry.place, self._needed)
            if self._receipts is not None:
                self._receipts.check_end(call, fact)

    def _session_of(self, entry: AppliedFact, fact: Any) -> SessionState:
        """The session of a fact. The first fact of a session determines when it began."""
        checking, journal = self._checking, self._journal.key
        known = checking.sessions.get(fact.session)
        if known is not None:
            return known
        subject = f"session {fact.session}"
        row = self._sessions.get(self._connection.uuid(fact.session))
        if row is None:
            checking.missing(subject, "sessions")
        else:
            expected: Row = {}
            for columns in (OPENING, CLOSING):
                if row[columns[-1]] is None:  # no fact has filled them
                    expected |= dict.fromkeys(columns)
            is_first = row["journal_key"] == journal
            if checking.is_strict or (is_first and not checking.has_forgotten):
                expected["journal_key"] = journal
                at: Any = self._connection.moment(fact.at)
                opened_at = row["opened_at"]
                # A lost entry may have opened the session earlier.
                if not entry.lost or not isinstance(opened_at, type(at)) or opened_at > at:
                    expected["opened_at"] = at
            checking.compare(subject, "sessions", expected, row)
            if row["entry"] is None and is_first:
                checking.totals.checked["sessions"] += 1  # others are counted with their opening
        session = checking.sessions[fact.session] = SessionState(row)
        return session

    def _placed(
        self,
        entry: AppliedFact,
        fact: MessageFact | CallStarted,
        subject: str,
        table: str,
        row: Row | None,
    ) -> Row | None:
        """The position and session that a row must have; None if there is nothing to compare.

        The position is the next one of the session. It may be higher by the number of entries that
        were lost since the fact before, since each may have had a position. Several journals share
        the positions of a session: then any higher position is possible.
        """
        session, checking = self._session_of(entry, fact), self._checking
        column = "start_entry" if table == "invocations" else "entry"
        if row is None:
            checking.missing(subject, table)
            session.next_seq += 1
            return None
        if self._is_repeated(entry, subject, row["journal_key"], row[column]):
            return None
        seq = row["seq"]
        highest = session.next_seq + entry.lost - session.lost
        is_too_low = not isinstance(seq, int) or seq < session.next_seq
        if is_too_low or (checking.is_strict and seq > highest):
            seq = session.next_seq
        session.next_seq, session.lost = seq + 1, entry.lost
        expected: Row = {"seq": seq}
        if session.row is not None:
            expected["session_key"] = session.row["key"]
        return expected

    def _is_repeated(self, entry: AppliedFact, subject: str, journal: Any, n: Any) -> bool:
        """Whether a fact repeats an earlier fact, whose entry the row names.

        A row that names any other entry was altered: the comparison with its fact shows that. If
        the earlier entry cannot be read, there is nothing to compare.
        """
        here = entry.place
        if journal == here.journal_key and (n == here.n or not isinstance(n, int) or n > here.n):
            return False
        stored = self._checking.fact_json(journal, n)
        if stored is None:
            return journal == here.journal_key and entry.lost > 0
        try:
            differing = differing_members(stored, entry.json)
        except (AttributeError, LookupError, ValueError):
            return False
        if IDENTITY & set(differing):
            return False
        if differing:
            name = f"entry {here.n} of the ledger"
            message = f"{name} contradicts {subject}, and is not among the rejected facts"
            self._checking.damage(subject, "ledger_entries", message)
        return True

    def _check_tools(self, fact: ToolsOffered) -> None:
        """Compare the rows of tools with an offer of them, and with their definitions."""
        checking, offered_at = self._checking, self._connection.moment(fact.at)
        for digest in fact.tools:
            row, is_known = self._tools.get(self._connection.sha(digest)), digest in checking.tools
            if not is_known:
                checking.tools[digest] = row is None
                self._check_tool(digest, row)
            is_first = not (is_known and checking.is_strict)
            if row is not None and is_first and row["created_at"] == offered_at:
                checking.tools[digest] = True

    def _check_tool(self, digest: Digest, row: Row | None) -> None:
        subject, document = f"tool {digest}", self._checking.body(digest)
        if row is None:
            self._checking.missing(subject, "tools")
            return
        self._checking.matched["tools.digest"] += 1
        if document is not None:
            name = rows.tool_name(self._connection, digest, {digest: document})
            self._checking.compare(subject, "tools", {"name": name}, row)

    def _need_bodies(self, fact: MessageFact | Maintenance, subject: str) -> None:
        for digest in body_digests(fact):
            if digest != EMPTY:
                self._needed.bodies.setdefault(digest, subject)


def check_tool_times(checking: Checking) -> None:
    """Report tools whose time is not the time of an offer. Call this after all facts."""
    for digest, is_made in checking.tools.items():
        if not is_made:
            message = f"tools.created_at of tool {digest} is not the time of its first offer"
            checking.damage(f"tool {digest}", "tools", message, "created_at")
