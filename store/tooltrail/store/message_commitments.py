"""Whether each message is still what the ledger committed to when it was recorded.

Besides what stands in its row that is its text, the whole of it where the text is not all, what its
provider sent, and the tools that it offers: all of their bytes are read. See `commitments` for what
is not found out here.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, cast
from uuid import UUID

from sqlalchemy import Connection, select

from tooltrail.records import LegStarted, TooltrailError, UnavailableError, digest_of
from tooltrail.records.ledger import EntryKind
from tooltrail.store._reading.committed import (
    MISSING,
    Places,
    committed,
    count_problem,
    difference,
    lost_subjects,
    places_of,
)
from tooltrail.store._reading.legs import agent_problem, fact_of, leg_row_of
from tooltrail.store._reading.listing import Listed, iter_pages
from tooltrail.store._reading.offers import offers_of
from tooltrail.store._recording.bodies import decode_body
from tooltrail.store._recording.legs import leg_columns, outcome_columns
from tooltrail.store.commitments import RecordCheck
from tooltrail.store.reader import Reader
from tooltrail.store.tables import (
    BodyRow,
    MessageDocumentRow,
    MessageRow,
)

_MESSAGE: EntryKind = "message"


def iter_message_checks(reader: Reader, *, session: UUID | None = None) -> Iterator[RecordCheck]:
    """Compare every message with its entry in the ledger, the oldest first.

    At constant memory. A message that is damaged does not end it.

    Args:
        reader: of the store.
        session: the messages of this session alone.

    Raises:
        UnavailableError: the store cannot be reached.
        DamageError: not even the keys of its rows can be read.
    """
    for page in iter_pages(reader.database, session, MessageRow):
        sessions = {listed.id: listed.session_key for listed in page if listed.id is not None}
        places = places_of(reader.database, sessions, (_MESSAGE,))
        for listed in page:
            yield RecordCheck(listed.name, _problem(reader, listed, places))
    for name in lost_subjects(reader.database, MessageRow, (_MESSAGE,), session):
        yield RecordCheck(name, "the ledger has an entry of it, but it is gone")


def _problem(reader: Reader, listed: Listed, places: Mapping[UUID, Places]) -> str:
    if listed.id is None:
        return "its row has no readable id"
    entries = places.get(listed.id, {})
    if problem := count_problem(entries, _MESSAGE):
        return problem
    try:
        promised = committed(reader.database, entries[_MESSAGE][0], "created_at")
        with reader.database.read() as connection:
            facts, offers = _facts(connection, listed.key)
            leg = leg_row_of(connection, listed.key)
            if problem := agent_problem(connection, leg):
                return problem
        if leg is not None or "leg" in promised:
            facts["leg"] = _leg_digest(leg, facts["created_at"])
        if offers or "tools" in promised:
            # An offer of nothing has no row; a text in the role of offers offers nothing.
            facts["tools"] = offers
        return difference(facts, promised)
    except UnavailableError:
        raise
    except TooltrailError as error:
        return str(error)


def _facts(connection: Connection, key: int) -> tuple[dict[str, Any], list[str]]:
    """What is stored of a message, and the tools that it offers; its bodies are read.

    Raises:
        DamageError: something of it cannot be read, or is not what its digest names.
    """
    row, whole = MessageRow, MessageDocumentRow
    query = (
        select(
            row.seq,
            row.role,
            row.created_at,
            row.body_digest,
            whole.document_digest,
            whole.payload_digest,
            whole.wire_format,
        )
        .outerjoin(whole, whole.message_key == row.key)
        .where(row.key == key)
    )
    seq, role, created_at, text, whole_digest, payload, wire_format = connection.execute(
        query
    ).one()
    # Of a message whose text is all of it there is none.
    document = cast("str | None", whole_digest)
    facts: dict[str, Any] = {
        "seq": seq,
        "role": role,
        "created_at": created_at,
        "body_digest": text,
    }
    if document is not None:
        facts |= {"document_digest": document, "payload_digest": payload}
        facts["wire_format"] = wire_format
    for digest in filter(None, (text, document, payload)):
        _read_body(connection, digest)
    return facts, [tool.digest for tool in offers_of(connection, key)]


def _leg_digest(row: Mapping[str, object] | None, told_at: datetime) -> object:
    """What the ledger commits to of a fact about a leg; nothing that it could if columns differ."""
    if row is None:
        return MISSING
    fact = fact_of(row["document"])
    columns = leg_columns(fact, told_at) if isinstance(fact, LegStarted) else outcome_columns(fact)
    altered = [name for name, value in columns.items() if row[name] != value]
    return f"altered: {altered}" if altered else digest_of(str(row["document"]).encode())


def _read_body(connection: Connection, digest: str) -> None:
    """Read a body through.

    Raises:
        DamageError: it is gone, or is not what its digest names.
    """
    row = BodyRow
    found = connection.execute(
        select(row.size, row.encoding, row.data).where(row.digest == digest)
    ).one_or_none()
    size, encoding, data = (0, "", None) if found is None else found
    decode_body(digest, size, encoding, data)
