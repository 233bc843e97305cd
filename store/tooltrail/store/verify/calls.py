"""Compares calls with their facts: the row, the texts, and every row that belongs to a call."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from sqlalchemy import Table

from tooltrail.records.digests import EMPTY
from tooltrail.records.facts import CallEnded, CallStarted
from tooltrail.store import schema
from tooltrail.store.engines.connection import Row
from tooltrail.store.ingest import rows
from tooltrail.store.ingest.batch import subject_of
from tooltrail.store.ingest.known import Entry
from tooltrail.store.verify.bodies import Needed
from tooltrail.store.verify.checking import Checking, Place
from tooltrail.store.verify.ledger import Entry as Applied
from tooltrail.store.verify.surfaces import Texts

CHILDREN: Final = (
    schema.streams,
    schema.omissions,
    schema.invocation_artifacts,
    schema.structured_outputs,
)
"""Rows of a call besides its texts. They are there once the call has ended."""


@dataclass(frozen=True, slots=True)
class Call:
    """The stored rows of one call, and what its end is compared with.

    Attributes:
        subject: in words.
        row: of `invocations`.
        texts: of `surfaces`.
        children: the other rows.
    """

    subject: str
    row: Row
    texts: Texts
    children: Mapping[Table, Sequence[Row]]


Rerun: TypeAlias = Callable[[Checking, Call, CallEnded], None]
"""Checks the end of a call further; see `Receipts.check_end`."""


def check_calls(
    checking: Checking,
    journal: int,
    entries: Sequence[Applied],
    needed: Needed,
    rerun: Rerun | None,
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
            columns, here = ("end_journal_key", "end_entry"), (journal, entry.n)
            if checking.is_source(call.subject, "invocations", columns, call.row, here, entry.json):
                checking.matched["invocations.end_entry"] += 1
                _check_end(checking, call, fact, needed, rerun)
    return places


def _load(checking: Checking, entries: Iterable[Applied]) -> dict[Any, Call]:
    """The rows of all calls that some facts name."""
    ids = list(dict.fromkeys(checking.connection.uuid(subject_of(one.fact)) for one in entries))
    found = {row["id"]: row for row in checking.source.rows(schema.invocations, "id", ids)}
    keys = sorted(row["key"] for row in found.values())
    texts = checking.rows_by_owner(schema.surfaces, "invocation_key", keys)
    children = {table: checking.rows_by_owner(table, "invocation_key", keys) for table in CHILDREN}
    calls = dict[Any, Call]()
    for call_id, row in found.items():
        key, subject = row["key"], f"call {checking.connection.read_uuid(call_id)}"
        values = texts[key][0] if texts[key] else {}
        its = {table: owned[key] for table, owned in children.items()}
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
    columns, here = ("journal_key", "start_entry"), (journal, n)
    seq = Place(n, subject, "invocations", fact.session, row["seq"])
    if not checking.is_source(subject, "invocations", columns, row, here, entry.json, seq):
        return None
    checking.matched[schema.invocations] += 1
    if call.texts.values:
        checking.matched[schema.surfaces] += 1
    else:
        checking.damage(subject, "surfaces", None, f"the texts of {subject} are missing")
    expected = rows.start_row(checking.connection, fact, Entry(journal, n))
    if row["end_entry"] is None:
        expected |= rows.NO_END
    else:
        del expected["state"]
    session = checking.session(fact.session)
    if session is not None:
        expected["session_key"] = session["key"]
        is_late = checking.is_late(fact.session, n)
        if is_late is not None:
            expected["is_late"] = is_late
    checking.compare(subject, "invocations", expected, row)
    for digest in (fact.policy, fact.environment):
        if digest is not None and digest != EMPTY:
            needed.optional.setdefault(digest, subject)
    _check_open(checking, call, fact)
    return seq


def _check_open(checking: Checking, call: Call, fact: CallStarted) -> None:
    """Compare the texts that a start writes, and all that must not be there without an end."""
    texts, subject = call.texts, call.subject
    texts.check(checking, "arguments", fact.arguments)
    for table, children in call.children.items():
        checking.matched[table] += len(children)
    if call.row["end_entry"] is not None:
        return
    checking.incomplete(subject, "invocations", "state", f"{subject} has not ended")
    if texts.values:
        checking.compare(subject, "surfaces", rows.NO_OUTCOME, texts.values)
        texts.check_exactness(checking)
    for table, children in call.children.items():
        checking.compare_rows(subject, table, [], children)


def _check_arguments(checking: Checking, call: Call) -> None:
    """Compare the arguments of a call that an earlier batch started, if that tells anything.

    They were compared with its start, but then a false `is_exact` did not show.
    """
    if call.texts.values.get("is_exact") == 1:
        return
    start = checking.fact_at(call.row["journal_key"], call.row["start_entry"])
    if isinstance(start, CallStarted):
        call.texts.check(checking, "arguments", start.arguments)
    else:
        call.texts.unknown.add("arguments")


def _check_end(
    checking: Checking, call: Call, fact: CallEnded, needed: Needed, rerun: Rerun | None
) -> None:
    """Compare what is known of a call when it has ended."""
    connection, subject, key = checking.connection, call.subject, call.row["key"]
    texts, children = call.texts, call.children
    texts.streams = fact.streams
    texts.check(checking, "output", fact.output)
    shown = texts.check_shown(
        checking, fact, children[schema.omissions], children[schema.invocation_artifacts]
    )
    entry = Entry(call.row["end_journal_key"], call.row["end_entry"])
    expected = rows.end_columns(connection, fact, shown.omissions, entry)
    checking.compare(subject, "invocations", expected, call.row)
    offsets = [row["receipt_offset"] for row in children[schema.streams]]
    placed = [(one, offsets[n] if n < len(offsets) else None) for n, one in enumerate(fact.streams)]
    made: dict[Table, list[Row]] = {schema.streams: rows.stream_rows(connection, key, placed)}
    is_known, verdict = texts.verdict(shown)
    if is_known:
        found = [] if verdict is None else [rows.verdict_row(connection, key, verdict)]
        made[schema.structured_outputs] = found
    for table, expected_rows in made.items():
        checking.compare_rows(subject, table, expected_rows, children[table])
    if "arguments" not in texts.exact and not texts.unknown and not texts.inexact:
        _check_arguments(checking, call)
    texts.check_exactness(checking)
    artifacts = {one.digest for one in shown.artifacts}
    texts.check_streams(checking, placed, artifacts, needed)
    for artifact in shown.artifacts:
        needed.artifacts.setdefault(artifact.digest, subject)
    if rerun is not None:
        rerun(checking, call, fact)
