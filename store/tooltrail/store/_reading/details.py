"""Invocations with all their surfaces, in a fixed handful of queries whatever their number."""

from collections import defaultdict
from collections.abc import Iterable
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, select
from sqlalchemy.orm import aliased

from tooltrail.records import Digest, DigestMismatchError, Omission, digest_of
from tooltrail.store._reading.collector import collector_paused
from tooltrail.store._reading.queries import AnyRow, AnySelect, invocation_view, select_invocations
from tooltrail.store._recording.bodies import decode_body
from tooltrail.store.tables import (
    BodyRow,
    CanonicalResultRow,
    CompleteOutputRow,
    InvocationArtifactRow,
    InvocationRow,
    MessageRow,
    OmissionRow,
    OutputStreamRow,
    ReceiptRow,
    SessionRow,
)
from tooltrail.store.views import InvocationDetail, MessageView, ReceiptView, StreamView

Grouped = dict[int, list[AnyRow]]

_SURFACE_COLUMNS = 9
"""What `_details` selects of an invocation behind its small columns."""


def details_of_session(connection: Connection, session_id: UUID) -> list[InvocationDetail]:
    """All invocations of a session in their order."""
    key = select(SessionRow.key).where(SessionRow.id == session_id).scalar_subquery()
    with collector_paused():
        return _details(connection, InvocationRow.session_key == key)


def details_of(connection: Connection, invocation_id: UUID) -> InvocationDetail:
    """One invocation."""
    return _details(connection, InvocationRow.id == invocation_id)[0]


def messages_of(connection: Connection, session_id: UUID) -> list[MessageView]:
    """All messages of a session in their order."""
    query = (
        select(
            MessageRow.id,
            MessageRow.seq,
            MessageRow.role,
            MessageRow.created_at,
            MessageRow.body_digest.label("digest"),
            BodyRow.size,
            BodyRow.encoding,
            BodyRow.data,
        )
        # Outer, so that a lost body is an error and not a message less.
        .outerjoin(BodyRow, BodyRow.digest == MessageRow.body_digest)
        .join(SessionRow, SessionRow.key == MessageRow.session_key)
        .where(SessionRow.id == session_id)
        .order_by(MessageRow.seq)
    )
    return [
        MessageView(row.id, row.seq, row.role, _text(row), row.created_at)
        for row in connection.execute(query)
    ]


def _details(connection: Connection, which: ColumnElement[bool]) -> list[InvocationDetail]:
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
        )
        .outerjoin(arguments, arguments.digest == InvocationRow.arguments_digest)
        .outerjoin(CompleteOutputRow, CompleteOutputRow.invocation_key == InvocationRow.key)
        .outerjoin(CanonicalResultRow, CanonicalResultRow.invocation_key == InvocationRow.key)
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
        policy, *arguments_body, complete, complete_digest, canonical, canonical_digest = row[
            -_SURFACE_COLUMNS:
        ]
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


def _text(row: AnyRow) -> str:
    data = decode_body(row.digest, row.size, row.encoding, row.data)
    return data.decode("utf-8", "surrogatepass")
