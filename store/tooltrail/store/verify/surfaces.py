"""Compares the texts of a call with the digests that its facts name.

A fact that does not say what was shown names neither canonical result nor receipt. Then
`surfaces.shown` is compared with what the rows say; only `receipts.Receipts` makes both anew.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tooltrail.records.digests import ALGORITHM, EMPTY, Digest, digest_from_hex, digest_of
from tooltrail.records.facts import (
    ArtifactFact,
    CallEnded,
    OmissionFact,
    Shown,
    StreamFact,
    read_shown,
    shown_json,
)
from tooltrail.store.column_groups import OUTCOME
from tooltrail.store.ingest.outcomes import (
    VERDICTS,
    Verdict,
    made_shown,
    text_of,
    verdict_of,
)
from tooltrail.store.references import expand_canonical, expand_output, stream_members
from tooltrail.store.verify.bodies import Needed, Unplaced
from tooltrail.store.verify.checking import Checking
from tooltrail.store.verify.source import Unreadable, Values

SURFACES: Final = ("invocation_key", "arguments", *OUTCOME, "is_exact")
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
    values: dict[str, Any]
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
        omissions: Sequence[Values],
        artifacts: Sequence[Values],
    ) -> Shown:
        """Compare canonical result and receipt with what the caller was shown.

        Returns:
            What was shown, as far as it is known.
        """
        if not self.values:
            return fact.shown or _NOTHING
        if fact.shown is None:
            return self._check_made(checking, omissions, artifacts)
        shown = fact.shown
        # The receipt first: the canonical result refers to it.
        self.check(checking, "receipt", shown.receipt)
        self.check(checking, "canonical", shown.canonical)
        names = ("renderer", "renderer_version", "shown")
        wanted = (checking.connection.text(shown.renderer), shown.renderer_version, None)
        stored = tuple(self.values[one] for one in names)
        checking.compare(self.subject, "surfaces", names, wanted, stored)
        return shown

    def check_exactness(self, checking: Checking) -> None:
        """Compare `is_exact` with the texts; call it when all of them were compared."""
        if self.values and not self.unknown:
            names, wanted = ("is_exact",), (not self.inexact,)
            stored = (self.values["is_exact"],)
            checking.compare(self.subject, "surfaces", names, wanted, stored)

    def check_streams(
        self, checking: Checking, placed: Sequence[tuple[StreamFact, Any]], needed: Needed
    ) -> None:
        """Check that the bytes of every stream are where its row says."""
        receipt = self.exact.get("receipt")
        can_share = receipt is not None and self.inexact <= {"arguments"}
        for stream, offset in placed:
            if offset is None:
                wanted = needed.bodies if stream.spooled is None else needed.artifacts
                wanted.setdefault(stream.digest, self.subject)
                if (
                    can_share
                    and receipt is not None
                    and stream.spooled is None
                    and 0 < stream.size <= len(receipt)
                ):
                    needed.unplaced.append(
                        Unplaced(self.subject, stream.role, stream.digest, receipt)
                    )
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

    def _check_made(
        self, checking: Checking, omissions: Sequence[Values], artifacts: Sequence[Values]
    ) -> Shown:
        """Compare what the ingester made with its digest."""
        stored = self.values["shown"]
        digest = Digest(f"{ALGORITHM}:{stored.hex()}" if isinstance(stored, bytes) else "")
        try:
            found = self._made(omissions, artifacts)
            if checking.connection.sha(digest_of(shown_json(found))) == stored:
                return found
        except (AttributeError, TypeError, ValueError):
            found = None
        self.exact.pop("receipt", None)
        self.exact.pop("canonical", None)
        if isinstance(stored, Unreadable):
            return _NOTHING
        is_removed = self.values["canonical"] is None or self.values["receipt"] is None
        if is_removed and checking.is_removed(digest):
            return found or _NOTHING
        body = checking.body(digest) if digest else None
        if body is not None:
            made = read_shown(body)
            self.check(checking, "receipt", made.receipt)
            self.check(checking, "canonical", made.canonical)
            exact = (self.exact.get("canonical", b""), self.exact.get("receipt", b""))
            try:
                again = self._made(omissions, artifacts, exact)
            except (AttributeError, TypeError, ValueError):
                again = None
            if again == made or len({"receipt", "canonical"} & self.exact.keys()) < len(exact):
                return made
        message = (
            f"the canonical result, receipt, renderer, omissions or artifacts of {self.subject} "
            "are not what was made of its output"
        )
        checking.damage(self.subject, "surfaces", None, message)
        return found or _NOTHING

    def _made(
        self,
        omissions: Sequence[Values],
        artifacts: Sequence[Values],
        exact: tuple[bytes, bytes] | None = None,
    ) -> Shown:
        """What was shown, as the rows say.

        Raises:
            AttributeError, TypeError, ValueError: a row holds what it never held.
        """
        for table in (omissions, artifacts):
            if any(row[1] != n for n, row in enumerate(table)):
                raise ValueError("the rows of a call are numbered from 0")
        if exact is None:
            receipt = self.exact["receipt"] = self._plain("receipt") or b""
            canonical = self.exact["canonical"] = self._plain("canonical") or b""
            exact = (canonical, receipt)
        return made_shown(
            *exact,
            (self.values["renderer"], self.values["renderer_version"]),
            [OmissionFact(**dict(zip(_OMISSION, row[2:], strict=True))) for row in omissions],
            [
                ArtifactFact(role=role, digest=digest_from_hex(bytes(digest).hex()))
                for _, _, role, digest in artifacts
            ],
        )

    def _report(self, checking: Checking, name: str, what: str) -> None:
        message = f"the {_NAMES.get(name, name)} of {self.subject} {what}"
        checking.damage(self.subject, "surfaces", name, message)


_OMISSION: Final = ("stage", "field", "unit", "before", "after", "reason")


def _stands_at(receipt: bytes, offset: Any, stream: StreamFact) -> bool:
    if not isinstance(offset, int) or offset < 0:
        return False
    content = receipt[offset : offset + stream.size]
    return digest_of(content) == stream.digest and receipt.find(content) == offset
