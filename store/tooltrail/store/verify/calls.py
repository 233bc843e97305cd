"""Compares calls with their facts: the row, the texts, and every row that belongs to a call."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Table

from tooltrail.records.digests import EMPTY
from tooltrail.records.facts import CallEnded, CallStarted
from tooltrail.store import schema
from tooltrail.store.column_groups import ENDING, OUTCOME
from tooltrail.store.engines.connection import Row
from tooltrail.store.ingest import rows
from tooltrail.store.ingest.batch import subject_of
from tooltrail.store.ingest.known import Entry
from tooltrail.store.verify.bodies import Needed
from tooltrail.store.verify.checking import Checking, Place, Repeat
from tooltrail.store.verify.ledger import Entry as Applied
from tooltrail.store.verify.source import Values
from tooltrail.store.verify.surfaces import SURFACES, Texts

_OWN: Final = ("key", "session_key", "seq", "is_late")
_START: Final = (
    "id",
    "tool_name",
    "family",
    "call_id",
    "message_id",
    "position",
    "policy",
    "environment",
    "title",
    "started_at",
    "journal_key",
    "start_entry",
    "owner",
)
CALL: Final = (*_OWN, *_START, *ENDING)
"""Columns that are read of a call."""

_STARTED: Final = slice(len(_OWN), len(_OWN) + len(_START))
_ENDED: Final = slice(_STARTED.stop, len(CALL))
_END: Final = slice(CALL.index("end_journal_key"), CALL.index("end_entry") + 1)
_END_ENTRY: Final = CALL.index("end_entry")
_JOURNAL: Final = CALL.index("journal_key")
_START_ENTRY: Final = CALL.index("start_entry")
_OPEN: Final = ("started", *(None for _ in rows.NO_END))
_NO_TEXTS: Final = (None,) * len(OUTCOME)

CHILDREN: Final[Mapping[Table, tuple[str, ...]]] = {
    table: tuple(one.name for one in table.columns)
    for table in (
        schema.streams,
        schema.omissions,
        schema.invocation_artifacts,
        schema.structured_outputs,
    )
}
"""Rows of a call besides its texts. They are there once the call has ended."""


@dataclass(frozen=True, slots=True)
class Call:
    """The stored rows of one call, and what its end is compared with.

    Attributes:
        subject: in words.
        row: of `invocations`; its columns are those of `CALL`.
        texts: of `surfaces`.
        children: the other rows.
    """

    subject: str
    row: Values
    texts: Texts
    children: Mapping[Table, Sequence[Values]]


class Rerun:
    """What is done with the end of a call besides: nothing. See `receipts.Receipts`."""

    def check_end(self, checking: Checking, call: Call, fact: CallEnded) -> None:
        """Check the end of a call further."""


NO_RERUN: Final = Rerun()


def check_calls(
    checking: Checking, journal: int, entries: Sequence[Applied], needed: Needed, rerun: Rerun
) -> list[Place]:
    """Compare the calls of a batch.

    Returns:
        Their places, for `Checking.check_places`.
    """
    facts = [one for one in entries if isinstance(one.fact, CallStarted | CallEnded)]
    calls = _load(checking, facts)
    places = list[Place]()
    for entry in facts:
        fact = entry.fact
        if isinstance(fact, CallStarted):
            call = calls.get(checking.connection.uuid(fact.id))
            seq = _check_start(checking, journal, entry, fact, call, needed)
            places += [] if seq is None else [seq]
        elif isinstance(fact, CallEnded):
            call = calls.get(checking.connection.uuid(fact.id))
            if call is None:
                continue  # reported with its start
            place = call.row[_END]
            if place == (journal, entry.n):
                checking.matched["invocations.end_entry"] += 1
                _check_end(checking, call, fact, needed, rerun)
            else:
                column = "end_entry" if place[0] == journal else "end_journal_key"
                here = (journal, entry.n)
                checking.repeats.append(
                    Repeat(call.subject, "invocations", column, place, here, entry.json)
                )
    return places


def _load(checking: Checking, entries: Iterable[Applied]) -> dict[Any, Call]:
    """The rows of all calls that some facts name."""
    ids = list(dict.fromkeys(checking.connection.uuid(subject_of(one.fact)) for one in entries))
    source = checking.source
    found = {row[len(_OWN)]: row for row in source.rows(schema.invocations, CALL, "id", ids)}
    keys = sorted(row[0] for row in found.values())
    texts = {row[0]: row for row in source.rows(schema.surfaces, SURFACES, "invocation_key", keys)}
    children = dict[Table, dict[Any, list[Values]]]()
    for table, names in CHILDREN.items():
        owned = children.setdefault(table, {})
        for row in source.rows(table, names, "invocation_key", keys):
            owned.setdefault(row[0], []).append(row)
    calls = dict[Any, Call]()
    for call_id, row in found.items():
        key, subject = row[0], f"call {checking.connection.read_uuid(call_id)}"
        values: dict[str, Any] = dict(zip(SURFACES, texts.get(key, ()), strict=False))
        its = {table: owned.get(key, []) for table, owned in children.items()}
        calls[call_id] = Call(subject, row, Texts(subject, values), its)
    return calls


def _check_start(  # noqa: PLR0917  each is a thing of its own
    checking: Checking,
    journal: int,
    entry: Applied,
    fact: CallStarted,
    call: Call | None,
    needed: Needed,
) -> Place | None:
    """Compare what is known of a call when it starts."""
    n = entry.n
    if call is None:
        subject = f"call {fact.id}"
        checking.damage(subject, "invocations", None, f"{subject} is missing")
        return Place(n, subject, "invocations", fact.session, None)
    row, subject = call.row, call.subject
    if row[_START_ENTRY] != n or row[_JOURNAL] != journal:
        column = "start_entry" if row[_JOURNAL] == journal else "journal_key"
        place = (row[_JOURNAL], row[_START_ENTRY])
        seq = Place(n, subject, "invocations", fact.session, row[2])
        checking.repeats.append(
            Repeat(subject, "invocations", column, place, (journal, n), entry.json, seq)
        )
        return None
    checking.matched[schema.invocations] += 1
    if call.texts.values:
        checking.matched[schema.surfaces] += 1
    else:
        checking.damage(subject, "surfaces", None, f"the texts of {subject} are missing")
    made = rows.start_row(checking.connection, fact, Entry(journal, n))
    expected = tuple(made[name] for name in _START)
    checking.compare(subject, "invocations", _START, expected, row[_STARTED])
    session = checking.session(fact.session)
    if session is not None:
        checking.compare(subject, "invocations", ("session_key",), session[:1], row[1:2])
        is_late = checking.is_late(fact.session, n)
        if is_late is not None:
            checking.compare(subject, "invocations", ("is_late",), (is_late,), row[3:4])
    for digest in (fact.policy, fact.environment):
        if digest is not None and digest != EMPTY:
            needed.optional.setdefault(digest, subject)
    _check_open(checking, call, fact)
    return Place(n, subject, "invocations", fact.session, row[2])


def _check_open(checking: Checking, call: Call, fact: CallStarted) -> None:
    """Compare the texts that a start writes, and all that must not be there without an end."""
    texts, subject = call.texts, call.subject
    texts.check(checking, "arguments", fact.arguments)
    for table, children in call.children.items():
        checking.matched[table] += len(children)
    if call.row[_END_ENTRY] is not None:
        return
    checking.incomplete(subject, "invocations", "state", f"{subject} has not ended")
    checking.compare(subject, "invocations", ENDING, _OPEN, call.row[_ENDED])
    if texts.values:
        stored = tuple(texts.values[one] for one in OUTCOME)
        checking.compare(subject, "surfaces", OUTCOME, _NO_TEXTS, stored)
        texts.check_exactness(checking)
    for table, children in call.children.items():
        checking.compare_rows(subject, table, [], children, CHILDREN[table])


def _check_arguments(checking: Checking, call: Call) -> None:
    """Compare the arguments of a call that an earlier batch started, if that tells anything.

    They were compared with its start, but then a false `is_exact` did not show.
    """
    if call.texts.values.get("is_exact") == 1:
        return
    start = checking.fact_at(call.row[_JOURNAL], call.row[_START_ENTRY])
    if isinstance(start, CallStarted):
        call.texts.check(checking, "arguments", start.arguments)
    else:
        call.texts.unknown.add("arguments")


def _check_end(
    checking: Checking, call: Call, fact: CallEnded, needed: Needed, rerun: Rerun
) -> None:
    """Compare what is known of a call when it has ended."""
    connection, subject, key = checking.connection, call.subject, call.row[0]
    texts, children = call.texts, call.children
    texts.streams = fact.streams
    texts.check(checking, "output", fact.output)
    shown = texts.check_shown(
        checking, fact, children[schema.omissions], children[schema.invocation_artifacts]
    )
    expected = rows.end_columns(connection, fact, shown.omissions, Entry(*call.row[_END]))
    wanted = tuple(expected[name] for name in ENDING)
    checking.compare(subject, "invocations", ENDING, wanted, call.row[_ENDED])
    offsets = [row[-1] for row in children[schema.streams]]
    placed = [(one, offsets[n] if n < len(offsets) else None) for n, one in enumerate(fact.streams)]
    made: dict[Table, list[Row]] = {schema.streams: rows.stream_rows(connection, key, placed)}
    if fact.shown is not None:
        made[schema.omissions] = rows.omission_rows(connection, key, shown.omissions)
        made[schema.invocation_artifacts] = rows.artifact_rows(connection, key, shown.artifacts)
    is_known, verdict = texts.verdict(shown)
    if is_known:
        found = [] if verdict is None else [rows.verdict_row(connection, key, verdict)]
        made[schema.structured_outputs] = found
    for table, expected_rows in made.items():
        names = CHILDREN[table]
        checking.compare_rows(subject, table, expected_rows, children[table], names)
    if "arguments" not in texts.exact and not texts.unknown and not texts.inexact:
        _check_arguments(checking, call)
    texts.check_exactness(checking)
    texts.check_streams(checking, placed, needed)
    for artifact in shown.artifacts:
        needed.artifacts.setdefault(artifact.digest, subject)
    rerun.check_end(checking, call, fact)
