"""Proofs over a whole store, computed from its rows and not from what the program says of them."""

from uuid import UUID

from sqlalchemy import select
from tests.support.recording import content_of

from tooltrail.records import GENESIS, LedgerEntry, canonical_json, digest_of
from tooltrail.store import Store, check_database
from tooltrail.store.tables import (
    CanonicalResultRow,
    CompleteOutputRow,
    InvocationRow,
    LedgerEntryRow,
    LedgerHeadRow,
    MessageRow,
    ReceiptRow,
    SessionRow,
)


def ledger_of(store: Store, session_id: UUID) -> list[LedgerEntry]:
    """The entries of a session, rebuilt from their rows; every digest and the head must agree."""
    columns = LedgerEntryRow.__table__.columns
    mine = select(SessionRow.key).where(SessionRow.id == session_id).scalar_subquery()
    with store.database.read() as connection:
        rows = connection.execute(
            select(*columns).where(columns.session_key == mine).order_by(columns.n)
        ).all()
        head = connection.execute(
            select(LedgerHeadRow.entry_count, LedgerHeadRow.digest).where(
                LedgerHeadRow.session_key == mine
            )
        ).one()
    entries: list[LedgerEntry] = []
    end = str(GENESIS)
    for n, row in enumerate(rows):
        entry = LedgerEntry.model_validate(
            {
                "session_id": session_id,
                "n": row.n,
                "kind": row.kind,
                "subject_id": row.subject_id,
                "happened_at": row.happened_at,
                "payload": canonical_json.decode(row.payload),
                "previous": row.previous,
            }
        )
        assert (row.n, row.previous, entry.digest) == (n, end, row.digest)
        end = row.digest
        entries.append(entry)
    assert (head.entry_count, head.digest) == (len(entries), end)
    return entries


def check_payloads(store: Store, session_id: UUID) -> None:
    """The digests in the ledger are those of the stored documents."""
    for entry in ledger_of(store, session_id):
        if entry.kind == "invocation.finished":
            _check_surfaces(store, entry)
        elif entry.kind == "message":
            _check_message(store, entry)


def check_evidence(store: Store) -> None:
    """Every chain verifies, every seq is used once, every reference resolves to its bytes."""
    assert check_database(store.database) == []
    reader = store.reader
    for session in reader.sessions():
        check_payloads(store, session.id)
        _, messages, invocations = reader.conversation(session.id)
        places = [m.seq for m in messages] + [i.summary.seq for i in invocations]
        assert sorted(places) == list(range(len(places)))
        for detail in invocations:
            for stream in detail.streams:
                assert digest_of(content_of(reader, stream)) == stream.digest
    for artifact in reader.artifacts():
        assert store.archive.verify(artifact.path, size=artifact.size) == artifact.size


def assert_only_started(store: Store, invocation_id: UUID) -> None:
    """An invocation has begun, and nothing of its end is there."""
    detail = store.reader.invocation(invocation_id)
    assert detail.summary.state == "started"
    assert detail.summary.finished_at is None
    assert (detail.complete_json, detail.canonical_json, detail.receipt) == (None, None, None)
    assert (detail.streams, detail.artifacts, detail.omissions) == ((), (), ())


def _check_surfaces(store: Store, entry: LedgerEntry) -> None:
    key = select(InvocationRow.key).where(InvocationRow.id == entry.subject_id).scalar_subquery()
    with store.database.read() as connection:
        complete = connection.execute(
            select(CompleteOutputRow.document, CompleteOutputRow.digest).where(
                CompleteOutputRow.invocation_key == key
            )
        ).one()
        canonical = connection.execute(
            select(CanonicalResultRow.document, CanonicalResultRow.digest).where(
                CanonicalResultRow.invocation_key == key
            )
        ).one()
        receipt = connection.scalar(
            select(ReceiptRow.body_digest).where(ReceiptRow.invocation_key == key)
        )
        state = connection.scalar(
            select(InvocationRow.state).where(InvocationRow.id == entry.subject_id)
        )
    assert digest_of(complete.document.encode()) == complete.digest
    assert digest_of(canonical.document.encode()) == canonical.digest
    detail = store.reader.invocation(entry.subject_id)
    assert detail.receipt is not None
    assert digest_of(detail.receipt.text.encode()) == receipt
    assert entry.payload == {
        "state": state,
        "complete_output": complete.digest,
        "canonical_result": canonical.digest,
        "receipt": receipt,
        "renderer": f"{detail.receipt.renderer_name} {detail.receipt.renderer_version}",
        "omissions": digest_of(
            canonical_json.encode(
                [
                    {
                        "stage": o.stage,
                        "field": o.field,
                        "unit": o.unit,
                        "before_count": o.before,
                        "after_count": o.after,
                        "reason": o.reason,
                    }
                    for o in detail.omissions
                ]
            )
        ),
    }


def _check_message(store: Store, entry: LedgerEntry) -> None:
    _, messages, _ = store.reader.conversation(entry.session_id)
    message = next(m for m in messages if m.id == entry.subject_id)
    with store.database.read() as connection:
        body = connection.scalar(
            select(MessageRow.body_digest).where(MessageRow.id == entry.subject_id)
        )
    assert digest_of(message.text.encode("utf-8", "surrogatepass")) == body
    assert entry.payload["body_digest"] == body
    assert entry.payload["seq"] == message.seq
