"""Compares the texts of a call with the digests that its facts name.

A fact that does not say what was shown names neither canonical result nor receipt. Then
`surfaces.shown` is compared with what the rows say; only `receipts.Receipts` makes both anew.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

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
from tooltrail.store.engines.connection import Row
from tooltrail.store.ingest import rows
from tooltrail.store.ingest.outcomes import made_shown, text_of
from tooltrail.store.references import expand_canonical, expand_output, stream_members
from tooltrail.store.verify.checking import Checking
from tooltrail.store.verify.source import Unreadable

_NOTHING: Final = Shown(canonical=EMPTY, receipt=EMPTY, renderer="", renderer_version=0)


@dataclass
class Call:
    """The stored rows of one call, and what is known of its texts.

    Attributes:
        subject: in words.
        row: of `invocations`.
        texts: of `surfaces`; empty where the row is missing, which is reported.
        children: the other rows, by table.
        streams: what the fact of the end says of the streams.
        exact: the exact bytes of each text that was compared; None where it is damaged or removed.
        inexact: the texts whose columns hold substitutes.
    """

    subject: str
    row: Row
    texts: Row
    children: Mapping[str, Sequence[Row]]
    streams: Sequence[StreamFact] = ()
    exact: dict[str, bytes | None] = field(default_factory=dict[str, bytes | None])
    inexact: set[str] = field(default_factory=set[str])

    def check(self, checking: Checking, name: str, digest: Digest) -> None:
        """Compare a text with its digest."""
        stored = self.texts.get(name)
        if not self.texts or isinstance(stored, Unreadable):
            return
        plain = self.plain(name)
        if plain is not None and digest_of(plain) == digest:
            self.exact[name] = plain
            return
        self.exact[name], problem = None, "is not what its fact says"
        if stored is None:
            if checking.is_removed(digest):
                return
            problem = "is missing, and no tombstone says why"
        else:
            body = checking.body(digest)
            if body is not None and text_of(body)[0] == stored:
                self.exact[name] = body
                self.inexact.add(name)
                return
        words = "complete output" if name == "output" else name
        message = f"the {words} of {self.subject} {problem}"
        checking.damage(self.subject, "surfaces", name, message)

    def check_exactness(self, checking: Checking) -> None:
        """Compare `is_exact` with the texts; call it when all of them were compared.

        That it is false because of the arguments alone is compared with the start of the call.
        """
        if self.texts and None not in self.exact.values() and self.inexact != {"arguments"}:
            expected = {"is_exact": not self.inexact}
            checking.compare(self.subject, "surfaces", expected, self.texts)

    def plain(self, name: str) -> bytes | None:
        """The bytes of a text, with the parts that stand elsewhere."""
        stored = self.texts[name]
        if not isinstance(stored, str):
            return None
        if name == "canonical":
            stored = expand_canonical(stored, self.exact.get("receipt") or b"")
        if name == "output":
            stored = expand_output(stored, [stream_members(one) for one in self.streams])
        return stored.encode("utf-8", "surrogateescape")


def check_shown(checking: Checking, call: Call, fact: CallEnded) -> Shown:
    """Compare canonical result and receipt with what the caller was shown.

    Returns:
        What was shown, as far as it is known.
    """
    if not call.texts:
        return fact.shown or _NOTHING
    shown = fact.shown or _kept_shown(checking, call)
    if shown is None:
        return _check_made(checking, call)
    # The receipt first: the canonical result refers to it.
    call.check(checking, "receipt", shown.receipt)
    call.check(checking, "canonical", shown.canonical)
    connection, key = checking.connection, call.row["key"]
    expected: Row = {
        "renderer": connection.text(shown.renderer),
        "renderer_version": shown.renderer_version,
    }
    if fact.shown is not None:
        expected["shown"] = None
    checking.compare(call.subject, "surfaces", expected, call.texts)
    for table, wanted in (
        ("omissions", rows.omission_rows(connection, key, shown.omissions)),
        ("invocation_artifacts", rows.artifact_rows(connection, key, shown.artifacts)),
    ):
        checking.compare_rows(call.subject, table, wanted, call.children[table])
    return shown


def _kept_shown(checking: Checking, call: Call) -> Shown | None:
    """What the ingester made, where the columns cannot hold that and a body does."""
    stored = call.texts["shown"]
    if call.texts["is_exact"] or not isinstance(stored, bytes):
        return None
    body = checking.body(checking.digest(stored))
    return None if body is None else read_shown(body)


def _check_made(checking: Checking, call: Call) -> Shown:
    """Compare what the ingester made with its digest."""
    stored, texts, found = call.texts["shown"], call.texts, None
    try:
        found = _made(call)
        if checking.connection.sha(digest_of(shown_json(found))) == stored:
            return found
    except (AttributeError, TypeError, ValueError):
        pass
    call.exact |= {"receipt": None, "canonical": None}
    if isinstance(stored, Unreadable):
        return _NOTHING
    is_gone = texts["canonical"] is None or texts["receipt"] is None
    can_be_removed = is_gone and isinstance(stored, bytes)
    if not can_be_removed or not checking.is_removed(checking.digest(stored)):
        message = (
            f"the canonical result, receipt, renderer, omissions or artifacts of {call.subject}"
            " are not what was made of its output"
        )
        checking.damage(call.subject, "surfaces", None, message)
    return found or _NOTHING


def _made(call: Call) -> Shown:
    """What was shown, as the rows say.

    Raises:
        AttributeError, TypeError, ValueError: a row holds what it never held.
    """
    omissions, artifacts = call.children["omissions"], call.children["invocation_artifacts"]
    for table in (omissions, artifacts):
        if any(row["n"] != n for n, row in enumerate(table)):
            raise ValueError("the rows of a call are numbered from 0")
    receipt = call.exact["receipt"] = call.plain("receipt") or b""
    canonical = call.exact["canonical"] = call.plain("canonical") or b""
    return made_shown(
        canonical,
        receipt,
        (call.texts["renderer"], call.texts["renderer_version"]),
        [_omission(row) for row in omissions],
        [
            ArtifactFact(role=row["role"], digest=digest_from_hex(bytes(row["digest"]).hex()))
            for row in artifacts
        ],
    )


def _omission(row: Row) -> OmissionFact:
    members = {name: row[name] for name in ("stage", "field", "unit", "reason")}
    return OmissionFact(**members, before=row["before_count"], after=row["after_count"])
