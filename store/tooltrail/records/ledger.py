"""The hash chain of a session: every entry commits to the one before it.

An entry commits to digests of bodies, never to bodies, so that a body can be erased and the chain
still verifies. The chain of a session starts from `GENESIS`.
"""

from datetime import UTC, datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import AfterValidator, AwareDatetime, JsonValue

from tooltrail.records import canonical_json
from tooltrail.records._digest_field import DigestField
from tooltrail.records._model import Record
from tooltrail.records.digests import EMPTY, Digest, digest_of
from tooltrail.records.streams import Count

GENESIS = EMPTY
"""What the first entry of a session commits to as its predecessor."""

EntryKind = Literal[
    "session.opened", "session.closed", "message", "invocation.started", "invocation.finished"
]


def _in_utc(moment: datetime) -> datetime:
    # The digest is taken of the spelling, which differs from zone to zone.
    return moment.astimezone(UTC)


class LedgerEntry(Record):
    """One link of a session's chain.

    Attributes:
        session_id: whose chain it is.
        n: position in the chain, from 0 and without gaps.
        kind: what happened.
        subject_id: the session, message or invocation that it happened to.
        happened_at: when; aware, and turned into UTC.
        payload: digests and other facts of what happened, the same forever.
        previous: digest of the entry before, `GENESIS` for the first.
    """

    session_id: UUID
    n: Count
    kind: EntryKind
    subject_id: UUID
    happened_at: Annotated[AwareDatetime, AfterValidator(_in_utc)]
    payload: dict[str, JsonValue]
    previous: DigestField

    def to_json(self) -> bytes:
        """The canonical JSON that the digest is taken of."""
        return entry_json(
            session_id=self.session_id,
            n=self.n,
            kind=self.kind,
            subject_id=self.subject_id,
            happened_at=self.happened_at,
            payload=canonical_json.encode(self.payload),
            previous=self.previous,
        )

    @property
    def digest(self) -> Digest:
        """The digest of this entry, which the next one commits to."""
        return digest_of(self.to_json())


def entry_json(
    *,
    session_id: UUID,
    n: int,
    kind: EntryKind,
    subject_id: UUID,
    happened_at: datetime,
    payload: bytes,
    previous: str,
) -> bytes:
    """The canonical JSON of an entry whose payload is canonical JSON already.

    It is put together here, since an entry is made for each start and each end: nothing but the
    payload holds anything that JSON would write in another way.

    Args:
        session_id: and the others: see `LedgerEntry`.
        n: see there.
        kind: see there.
        subject_id: see there.
        happened_at: aware, of any zone.
        payload: canonical JSON of an object.
        previous: see there.
    """
    moment = happened_at.astimezone(UTC).isoformat().removesuffix("+00:00")
    return (
        b'{"happened_at":"%bZ","kind":"%b","n":%d,"payload":%b,"previous":"%b","session_id":"%b",'
        b'"subject_id":"%b"}'
        % (
            moment.encode(),
            kind.encode(),
            n,
            payload,
            previous.encode(),
            str(session_id).encode(),
            str(subject_id).encode(),
        )
    )
