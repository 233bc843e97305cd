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
        # The payload goes past pydantic, whose JSON mode alters lone surrogates in keys.
        fields = self.model_dump(mode="json", exclude={"payload"})
        return canonical_json.encode(fields | {"payload": self.payload})

    @property
    def digest(self) -> Digest:
        """The digest of this entry, which the next one commits to."""
        return digest_of(self.to_json())
