"""Invocations with all their surfaces, in a fixed handful of queries whatever their number."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, ScalarSelect, case, select
from sqlalchemy.orm import InstrumentedAttribute, aliased

from tooltrail.records import Digest, DigestMismatchError, Omission, digest_of
from tooltrail.store._reading.collector import collector_paused
from tooltrail.store._reading.legs import with_legs
from tooltrail.store._reading.offers import with_offers
from tooltrail.store._reading.queries import AnyRow, AnySelect, invocation_view, select_invocations
from tooltrail.store._recording.bodies import decode_body
from tooltrail.store.tables import (
    BodyRow,
    CallOriginRow,
    CanonicalResultRow,
    CompleteOutputRow,
    InvocationArtifactRow,
    InvocationRow,
    LedgerEntryRow,
    MessageDocumentRow,
    MessageRow,
    OmissionRow,
    OutputStreamRow,
    ReceiptRow,
    SessionRow,
)
from tooltrail.store.views import InvocationDetail, MessageView, ReceiptView, StreamView

AnyColumn = InstrumentedAttribute[Any]
Grouped = dict[int, list[AnyRow]]

_SURFACE_COLUMNS = 11
"""What `_details` selects of an invocation behind its small columns."""


def details_of_session(connection: Connection, session_id: UUID) -> list[InvocationDetail]:
    """All invocations of a session in their order."""
    key = select(SessionRow.key).where(SessionRow.id == session_id).scalar_subquery()
    with collector_paused():
        ends = _ends(connection, key)
        return _details(connection, InvocationRow.session_key == key, ends)


def _ends(connection: Connection, session_key: ScalarSelect[int]) -> dict[UUID, int]:
    """How many entries of the session had begun when each of its invocations ended.

    By the order of the ledger, in which nothing is moved; clocks of several machines differ.
    """
    row, finished, begun = LedgerEntryRow, "invocation.finished", 0
    ended = case((row.kind == finished, row.subject_id))
    query = select(ended).where(
        row.session_key == session_key, row.kind.in_((finished, "invocation.started", "message"))
    )
    ends: dict[UUID, int] = {}
    for subject in connection.scalars(query.order_by(row.n)):
        if subject is None:
            begun += 1
        else:
            ends[subject] = begun
    return ends


def details_of(connection: Connection, invocation_id: UUID) -> InvocationDetail:
    """One invocation."""
    return _details(connection, InvocationRow.id == invocation_id)[0]


def messages_of(
    connection: Connection, session_id: UUID, *, payloads: bool = False
) -> list[MessageView]:
    """All messages of a session in their order, with what providers sent of them if asked for."""
    text, document, payload = aliased(BodyRow), aliased(BodyRow), aliased(BodyRow)
    whole = MessageDocumentRow
    query = (
        select(
            MessageRow.id,
            MessageRow.seq,
            MessageRow.role,
            MessageRow.created_at,
            whole.wire_format,
            *_body_columns(MessageRow.body_digest, text),
            *_body_columns(whole.document_digest, document),
            *(_body_columns(whole.payload_digest, payload) if payloads else ()),
        )
        # Outer, so that a lost body is an error and not a message less.
        .outerjoin(text, text.digest == MessageRow.body_digest)
        .outerjoin(whole, whole.message_key == MessageRow.key)
        .outerjoin(document, document.digest == whole.document_digest)
        .join(SessionRow, SessionRow.key == MessageRow.session_key)
        .where(SessionRow.id == session_id)
        .order_by(MessageRow.seq)
    )
    if payloads:
        query = query.outerjoin(payload, payload.digest == whole.payload_digest)
    messages = [_message_view(row) for row in connection.execute(query)]
    offering = with_offers(connection, session_id, messages)
    return with_legs(connection, session_id, offering)


_BODY_COLUMNS = 4
_SMALL_COLUMNS = 5
"""What `messages_of` selects of a message in front of its bodies."""


def _body_columns(digest: AnyColumn, body: type[BodyRow]) -> tuple[AnyColumn, ...]:
    return (digest, body.size, body.encoding, body.data)


def _message_view(row: AnyRow) -> MessageView:
    message_id, seq, role, created_at, wire_format = row[:_SMALL_COLUMNS]
    bodies = [row[at : at + _BODY_COLUMNS] for at in range(_SMALL_COLUMNS, len(row), _BODY_COLUMNS)]
    text, document, payload = (
        None if body is None or body[0] is None else decode_body(*body)
        for body in (*bodies, *[None] * (3 - len(bodies)))
    )
    return MessageView(
        message_id,
        seq,
        role,
        (text or b"").decode("utf-8", "surrogatepass"),
        created_at,
        document,
        payload,
        wire_format,
    )


def _details(
    connection: Connection, which: ColumnElement[bool], ends: Mapping[UUID, int] | None = None
) -> list[InvocationDetail]:
    arguments = aliased(BodyRow)
    query = (
        select_invocations(
            InvocationRow.policy_digest,
            InvocationRow.arguments_digest.label("digest"),
            arguments.size,
            arguments.encoding,
            arguments.data,
            CompleteOutputRow.document.label("complete"),
            CompleteOutputRow.digest.label("complete_digest"),
            CanonicalResultRow.document.label("canonical"),
            CanonicalResultRow.digest.label("canonical_digest"),
            MessageRow.id.label("message_id"),
            CallOriginRow.position.label("position"),
        )
        .outerjoin(arguments, arguments.digest == InvocationRow.arguments_digest)
        .outerjoin(CompleteOutputRow, CompleteOutputRow.invocation_key == InvocationRow.key)
        .outerjoin(CanonicalResultRow, CanonicalResultRow.invocation_key == InvocationRow.key)
        .outerjoin(CallOriginRow, CallOriginRow.invocation_key == InvocationRow.key)
        .outerjoin(MessageRow, MessageRow.key == CallOriginRow.message_key)
        .where(which)
        .order_by(InvocationRow.session_key, InvocationRow.seq)
    )
    rows = connection.execute(query).all()
    receipts = _grouped(connection, _receipts(which))
    streams = _children(connection, OutputStreamRow, which)
    artifacts = _children(connection, InvocationArtifactRow, which)
    omissions = _children(connection, OmissionRow, which)
    details: list[InvocationDetail] = []
    for row in rows:
        key, summary = row[0], invocation_view(row)
        policy, *columns = row[-_SURFACE_COLUMNS:]
        arguments_body, (complete, complete_digest) = columns[:4], columns[4:6]
        canonical, canonical_digest, message_id, position = columns[6:]
        details.append(
            InvocationDetail(
                summary,
                decode_body(*arguments_body),
                Digest(policy),
                _checked(complete, complete_digest, summary.id),
                tuple([_stream_view(child) for child in streams.get(key, ())]),
                _checked(canonical, canonical_digest, summary.id),
                tuple([(child.role, child.path) for child in artifacts.get(key, ())]),
                _receipt_view(receipts.get(key, ())),
                tuple([_omission(child) for child in omissions.get(key, ())]),
                message_id,
                position,
                None if ends is None else ends.get(summary.id),
            )
        )
    return details


def _children(
    connection: Connection,
    table: type[OutputStreamRow | InvocationArtifactRow | OmissionRow],
    which: ColumnElement[bool],
) -> Grouped:
    query = (
        select(*table.__table__.columns)
        .join(InvocationRow, InvocationRow.key == table.invocation_key)
        .where(which)
        .order_by(table.invocation_key, table.n)
    )
    return _grouped(connection, query)


def _receipts(which: ColumnElement[bool]) -> AnySelect:
    return (
        select(
            ReceiptRow.invocation_key,
            ReceiptRow.renderer_name,
            ReceiptRow.renderer_version,
            ReceiptRow.policy_digest,
            ReceiptRow.body_digest.label("digest"),
            BodyRow.size,
            BodyRow.encoding,
            BodyRow.data,
        )
        .outerjoin(BodyRow, BodyRow.digest == ReceiptRow.body_digest)
        .join(InvocationRow, InvocationRow.key == ReceiptRow.invocation_key)
        .where(which, ReceiptRow.n == 0)
    )


def _grouped(connection: Connection, query: AnySelect) -> Grouped:
    groups: Grouped = defaultdict(list)
    # All at once: to fetch row by row takes several times as long.
    for row in connection.execute(query).all():
        groups[row[0]].append(row)
    return groups


def _stream_view(row: AnyRow) -> StreamView:
    # Behind the key and `n`, the columns of the table are in the order of the view.
    return StreamView(*row[2:])


def _receipt_view(rows: Iterable[AnyRow]) -> ReceiptView | None:
    for _, name, version, policy, digest, *body in rows:
        text = decode_body(digest, *body).decode("utf-8", "surrogatepass")
        return ReceiptView(text, Digest(digest), name, version, Digest(policy))
    return None


def _omission(row: AnyRow) -> Omission:
    return Omission(
        stage=row.stage,
        field=row.field,
        unit=row.unit,
        before=row.before_count,
        after=row.after_count,
        reason=row.reason,
    )


def _checked(document: str | None, digest: str | None, owner: UUID) -> str | None:
    if document is not None and digest_of(document.encode()) != digest:
        raise DigestMismatchError(
            f"a document of invocation {owner} is damaged: it has another digest", path=str(owner)
        )
    return document
