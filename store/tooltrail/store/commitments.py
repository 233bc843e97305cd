"""Whether each invocation is still what the ledger committed to when it began and when it ended.

An entry of the ledger commits to small facts and to the digests of documents. Here they are
computed again from the rows and the bytes. The ledger itself, whose entries form a chain, is taken
as it is: who alters a record and its entry alike is not found out here.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import select

from tooltrail.artifacts import artifact_path
from tooltrail.records import (
    CanonicalResult,
    Omission,
    TooltrailError,
    UnavailableError,
    canonical_json,
    digest_of,
)
from tooltrail.records.ledger import EntryKind
from tooltrail.records.tool_calls import storable
from tooltrail.store._reading.committed import (
    MISSING,
    Places,
    committed,
    count_problem,
    difference,
    lost_subjects,
    places_of,
)
from tooltrail.store._reading.listing import Listed, iter_pages
from tooltrail.store._recording.stream_facts import streams_in
from tooltrail.store._recording.verdicts import FAMILY as VERDICTS
from tooltrail.store._recording.verdicts import verdict_row
from tooltrail.store.reader import Reader
from tooltrail.store.tables import (
    AgentLegRow,
    InvocationRow,
    MessageRow,
    SessionRow,
    StructuredOutputRow,
)
from tooltrail.store.views import InvocationDetail

_STARTED: EntryKind = "invocation.started"
_FINISHED: EntryKind = "invocation.finished"

_ORIGIN = frozenset({"message", "position"})
"""What the start commits to where a message asked for the call."""


@dataclass(frozen=True, slots=True)
class RecordCheck:
    """One invocation, or one message, beside what the ledger says of it.

    Attributes:
        name: its id; a description of its row when that has no readable id.
        problem: what is wrong, in one sentence; empty when nothing is.
    """

    name: str
    problem: str


def iter_record_checks(reader: Reader, *, session: UUID | None = None) -> Iterator[RecordCheck]:
    """Compare every invocation with its entries in the ledger, the oldest first.

    Compared are what it was called with, in which session's place, when it began and ended, its
    state, the three surfaces, what was left out between them, and the bytes that the database
    keeps of its input and its streams; of an open invocation only the beginning. At constant
    memory. A record that is damaged does not end it.

    Args:
        reader: of the store.
        session: the invocations of this session alone.

    Raises:
        UnavailableError: the store cannot be reached.
        DamageError: not even the keys of its rows can be read.
    """
    for page in iter_pages(reader.database, session):
        places = _places(reader, page)
        for listed in page:
            yield RecordCheck(listed.name, _problem(reader, listed, places))
    for name in lost_subjects(reader.database, InvocationRow, (_STARTED, _FINISHED), session):
        yield RecordCheck(name, "the ledger has entries of it, but it is gone")


def _places(reader: Reader, page: Sequence[Listed]) -> Mapping[UUID, Places]:
    sessions = {listed.id: listed.session_key for listed in page if listed.id is not None}
    return places_of(reader.database, sessions, (_STARTED, _FINISHED))


def _problem(reader: Reader, listed: Listed, places: Mapping[UUID, Places]) -> str:
    if listed.id is None:
        return "its row has no readable id"
    try:
        detail = reader.invocation(listed.id)
        entries = places.get(listed.id, {})
        if detail.summary.state != "started" and _FINISHED not in entries:
            # It may have ended after its entries were looked for.
            entries = _places(reader, [listed]).get(listed.id, {})
        return _difference(reader, detail, entries)
    except UnavailableError:
        raise
    except TooltrailError as error:  # not found, when an index has lost what is listed
        return str(error)


def _difference(reader: Reader, detail: InvocationDetail, entries: Places) -> str:
    ended = detail.summary.state != "started" or _FINISHED in entries
    for kind in (_STARTED, _FINISHED) if ended else (_STARTED,):
        if problem := count_problem(entries, kind):
            return problem
    facts = _facts_of_start(detail)
    database = reader.database
    promised = committed(database, entries[_STARTED][0], "started_at")
    if detail.message_id is None and not _is_there(reader, promised.get("message")):
        # A message that was never in this store has nothing here to compare with.
        promised = {name: fact for name, fact in promised.items() if name not in _ORIGIN}
    if ended:
        facts |= _facts_of_end(detail)
        promised |= committed(database, entries[_FINISHED][0], "finished_at")
    return (
        difference(facts, promised)
        or _stream_problem(reader, detail)
        or _verdict_problem(reader, detail)
    )


def _facts_of_start(detail: InvocationDetail) -> dict[str, Any]:
    summary = detail.summary
    return {
        "seq": summary.seq,
        "call_id": summary.call_id,
        "tool_name": summary.tool_name,
        "family": summary.family,
        "policy_digest": detail.policy_digest,
        "arguments_digest": digest_of(detail.arguments),
        "started_at": summary.started_at,
        **_origin(detail),
    }


def _origin(detail: InvocationDetail) -> dict[str, Any]:
    """Which message asked for it, where one is known to have done so."""
    if detail.message_id is None:
        return {}
    return {"message": str(detail.message_id), "position": detail.position}


def _is_there(reader: Reader, message: object) -> bool:
    if message is None:
        return False
    try:
        name = UUID(str(message))
    except ValueError:
        return True
    with reader.database.read() as connection:
        return connection.scalar(select(MessageRow.key).where(MessageRow.id == name)) is not None


def _facts_of_end(detail: InvocationDetail) -> dict[str, Any]:
    receipt = detail.receipt
    return {
        "state": detail.summary.state,
        "complete_output": _digest_of_document(detail.complete_json),
        "canonical_result": _digest_of_document(detail.canonical_json),
        "receipt": MISSING if receipt is None else receipt.digest,
        "renderer": receipt and f"{receipt.renderer_name} {receipt.renderer_version}",
        "omissions": digest_of(canonical_json.encode([_omission_row(o) for o in detail.omissions])),
        "finished_at": detail.summary.finished_at,
    }


def _digest_of_document(document: str | None) -> object:
    return MISSING if document is None else digest_of(document.encode())


def _omission_row(omission: Omission) -> dict[str, Any]:
    """As the ledger commits to it."""
    return {
        "stage": omission.stage,
        "field": omission.field,
        "unit": omission.unit,
        "before_count": omission.before,
        "after_count": omission.after,
        "reason": omission.reason,
    }


def _verdict_problem(reader: Reader, detail: InvocationDetail) -> str:
    """Whether the row of a submission is what its canonical result says.

    A store of before revision 0007 has no such rows for what was recorded then, and no legs.
    """
    if detail.summary.family != VERDICTS or detail.canonical_json is None:
        return ""
    row, call = StructuredOutputRow, InvocationRow
    query = (
        select(row.schema_digest, row.attempt, row.valid, row.document)
        .join(call, call.key == row.invocation_key)
        .where(call.id == detail.summary.id)
    )
    with reader.database.read() as connection:
        found = connection.execute(query).one_or_none()
    if found is None:
        return "its verdict is missing" if _is_of_a_leg(reader, detail) else ""
    canonical = CanonicalResult.model_validate(canonical_json.decode(detail.canonical_json))
    wanted = verdict_row(canonical)
    stored = dict(zip(("schema_digest", "attempt", "valid", "document"), found, strict=True))
    is_same = wanted is not None and all(wanted[name] == stored[name] for name in stored)
    return "" if is_same else "its verdict is not what its canonical result says"


def _is_of_a_leg(reader: Reader, detail: InvocationDetail) -> bool:
    """Whether a submission with a verdict is of a session that is the leg of an agent run."""
    if detail.summary.state != "success":
        return False
    leg, session = AgentLegRow, SessionRow
    query = (
        select(leg.message_key)
        .join(session, session.key == leg.session_key)
        .where(session.id == detail.summary.session_id)
    )
    with reader.database.read() as connection:
        return connection.scalar(query.limit(1)) is not None


def _stream_problem(reader: Reader, detail: InvocationDetail) -> str:
    kept = {stream.role for stream in detail.streams}
    for role in _named_roles(detail):
        if role not in kept:
            return f"stream {role} of the complete output has no row"
    for stream in detail.streams:
        if stream.digest not in (detail.complete_json or ""):
            return f"stream {stream.role} is not one that the complete output names"
        if stream.postponed_reason is not None:
            continue  # its bytes wait in a spool, or are verified as an artifact
        if stream.artifact_path is None:
            reader.open_stream(stream).close()  # reads and checks all of it
        elif stream.artifact_path != artifact_path(stream.digest):
            return f"stream {stream.role} is at the path of another digest"
    return ""


def _named_roles(detail: InvocationDetail) -> list[str]:
    """The roles of the streams of the result; details of an error may look like one and be none."""
    match canonical_json.decode(detail.complete_json or "null"):
        case {"result": result}:
            return [storable(facts["role"]) for facts in streams_in(result)]
        case _:
            return []
