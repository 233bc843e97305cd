"""Compares the texts of a call with the digests that its facts name.

A fact that does not say what was shown names neither canonical result nor receipt. Then
`surfaces.shown` is compared with what the rows say; only `receipts.Receipts` makes both anew.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tooltrail.records.digests import EMPTY, Digest, digest_from_hex, digest_of
from tooltrail.records.facts import (
    ArtifactFact,
    CallEnded,
    OmissionFact,
    Shown,
    StreamFact,
    read_shown,
    shown_json,
)
from tooltrail.store import schema
from tooltrail.store.engines.connection import Row
from tooltrail.store.ingest import rows
from tooltrail.store.ingest.outcomes import (
    VERDICTS,
    Verdict,
    made_shown,
    text_of,
    verdict_of,
)
from tooltrail.store.references import expand_canonical, expand_output, stream_members
from tooltrail.store.verify.bodies import Needed
from tooltrail.store.verify.checking import Checking
from tooltrail.store.verify.source import Unreadable

_NOTHING: Final = Shown(canonical=EMPTY, receipt=EMPTY, renderer="", renderer_version=0)
_NAMES: Final = {"arguments": "arguments", "output": "complete output", "canonical": "canonical"}


@dataclass
class Texts:
    """The texts of one call.

    Attributes:
        subject: the call, in words.
        values: the columns of its row; empty where the row is missing, which is reported.
        exact: the exact bytes of each text that is right.
        inexact: the texts whose columns hold substitutes.
        unknown: the texts that are damaged or removed.
        streams: what the fact of the end says of the streams.
    """

    subject: str
    values: Row
    exact: dict[str, bytes] = field(default_factory=dict[str, bytes])
    inexact: set[str] = field(default_factory=set[str])
    unknown: set[str] = field(default_factory=set[str])
    streams: Sequence[StreamFact] = ()

    def check(self, checking: Checking, name: str, digest: Digest) -> None:
        """Compare a text with its digest."""
        stored = self.values.get(name)
        if not self.values or isinstance(stored, Unreadable):
            return
        data = self._plain(name)
        if data is not None and digest_of(data) == digest:
            self.exact[name] = data
            return
        self.unknown.add(name)
        if stored is None:
            if not checking.is_removed(digest):
                self._report(checking, name, "is missing, and no tombstone says why")
            return
        body = checking.body(digest)
        if body is None or text_of(body)[0] != stored:
            self._report(checking, name, "is not what its fact says")
            return
        self.exact[name] = body
        self.unknown.discard(name)
        self.inexact.add(name)

    def check_shown(
        self,
        checking: Checking,
        fact: CallEnded,
        omissions: Sequence[Row],
        artifacts: Sequence[Row],
    ) -> Shown:
        """Compare canonical result and receipt with what the caller was shown.

        Returns:
            What was shown, as far as it is known.
        """
        if not self.values:
            return fact.shown or _NOTHING
        shown = fact.shown or self._kept_shown(checking)
        if shown is None:
            return self._check_made(checking, omissions, artifacts)
        # The receipt first: the canonical result refers to it.
        self.check(checking, "receipt", shown.receipt)
        self.check(checking, "canonical", shown.canonical)
        connection, key = checking.connection, self.values["invocation_key"]
        expected: Row = {
            "renderer": connection.text(shown.renderer),
            "renderer_version": shown.renderer_version,
        }
        if fact.shown is not None:
            expected["shown"] = None
        checking.compare(self.subject, "surfaces", expected, self.values)
        for table, wanted, stored in (
            (schema.omissions, rows.omission_rows(connection, key, shown.omissions), omissions),
            (
                schema.invocation_artifacts,
                rows.artifact_rows(connection, key, shown.artifacts),
                artifacts,
            ),
        ):
            checking.compare_rows(self.subject, table, wanted, stored)
        return shown

    def check_exactness(self, checking: Checking) -> None:
        """Compare `is_exact` with the texts; call it when all of them were compared."""
        if self.values and not self.unknown:
            expected = {"is_exact": not self.inexact}
            checking.compare(self.subject, "surfaces", expected, self.values)

    def check_streams(
        self,
        checking: Checking,
        placed: Sequence[tuple[StreamFact, Any]],
        artifacts: Collection[Digest],
        needed: Needed,
    ) -> None:
        """Check that the bytes of every stream are where its row says."""
        receipt = self.exact.get("receipt")
        can_share = receipt is not None and self.inexact <= {"arguments"}
        for stream, offset in placed:
            if offset is None:
                is_body = stream.spooled is None and stream.digest not in artifacts
                wanted = needed.bodies if is_body else needed.artifacts
                wanted.setdefault(stream.digest, self.subject)
            elif (
                receipt is not None
                and not isinstance(offset, Unreadable)
                and not (can_share and _stands_at(receipt, offset, stream))
            ):
                message = f"stream {stream.role} of {self.subject} is not where its row says"
                checking.damage(self.subject, "streams", "receipt_offset", message)

    def verdict(self, shown: Shown) -> tuple[bool, Verdict | None]:
        """Whether the canonical result can be read, and the verdict in it."""
        canonical = self.exact.get("canonical")
        if canonical is None or shown.renderer != VERDICTS:
            return bool(shown.renderer) and shown.renderer != VERDICTS, None
        try:
            return True, verdict_of(canonical)
        except (LookupError, TypeError, ValueError):
            return False, None

    def _plain(self, name: str) -> bytes | None:
        """The bytes of a column; of a canonical result, with the texts that the receipt holds."""
        stored = self.values[name]
        if not isinstance(stored, str):
            return None
        if name == "canonical":
            receipt = self.exact.get("receipt")
            stored = expand_canonical(stored, receipt if receipt is not None else b"")
        if name == "output":
            stored = expand_output(stored, [stream_members(one) for one in self.streams])
        return stored.encode("utf-8", "surrogateescape")

    def _kept_shown(self, checking: Checking) -> Shown | None:
        """What the ingester made, where the columns cannot hold that and a body does."""
        stored = self.values["shown"]
        if self.values["is_exact"] or not isinstance(stored, bytes):
            return None
        body = checking.body(checking.digest(stored))
        return None if body is None else read_shown(body)

    def _check_made(
        self, checking: Checking, omissions: Sequence[Row], artifacts: Sequence[Row]
    ) -> Shown:
        """Compare what the ingester made with its digest."""
        stored, found = self.values["shown"], None
        try:
            found = self._made(omissions, artifacts)
            if checking.connection.sha(digest_of(shown_json(found))) == stored:
                return found
        except (AttributeError, TypeError, ValueError):
            pass
        self.exact.pop("receipt", None)
        self.exact.pop("canonical", None)
        if isinstance(stored, Unreadable):
            return _NOTHING
        is_gone = self.values["canonical"] is None or self.values["receipt"] is None
        can_be_removed = is_gone and isinstance(stored, bytes)
        if not can_be_removed or not checking.is_removed(checking.digest(stored)):
            message = (
                f"the canonical result, receipt, renderer, omissions or artifacts of {self.subject}"
                " are not what was made of its output"
            )
            checking.damage(self.subject, "surfaces", None, message)
        return found or _NOTHING

    def _made(self, omissions: Sequence[Row], artifacts: Sequence[Row]) -> Shown:
        """What was shown, as the rows say.

        Raises:
            AttributeError, TypeError, ValueError: a row holds what it never held.
        """
        for table in (omissions, artifacts):
            if any(row["n"] != n for n, row in enumerate(table)):
                raise ValueError("the rows of a call are numbered from 0")
        receipt = self.exact["receipt"] = self._plain("receipt") or b""
        canonical = self.exact["canonical"] = self._plain("canonical") or b""
        return made_shown(
            canonical,
            receipt,
            (self.values["renderer"], self.values["renderer_version"]),
            [_omission(row) for row in omissions],
            [
                ArtifactFact(role=row["role"], digest=digest_from_hex(bytes(row["digest"]).hex()))
                for row in artifacts
            ],
        )

    def _report(self, checking: Checking, name: str, what: str) -> None:
        message = f"the {_NAMES.get(name, name)} of {self.subject} {what}"
        checking.damage(self.subject, "surfaces", name, message)


def _omission(row: Row) -> OmissionFact:
    members = {name: row[name] for name in ("stage", "field", "unit", "reason")}
    return OmissionFact(**members, before=row["before_count"], after=row["after_count"])


def _stands_at(receipt: bytes, offset: Any, stream: StreamFact) -> bool:
    if not isinstance(offset, int) or offset < 0:
        return False
    content = receipt[offset : offset + stream.size]
    return digest_of(content) == stream.digest and receipt.find(content) == offset
