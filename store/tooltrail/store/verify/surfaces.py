"""Compares the texts of a call with the digests that its facts name.

A fact that does not say what was shown names neither canonical result nor receipt. Then the rows
are compared with the digest in `surfaces.shown`; only `Receipts` makes both texts again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tooltrail.artifacts import ArtifactArchive, artifact_path
from tooltrail.records import FamilyRegistry, StreamRecord
from tooltrail.records.digests import EMPTY, Digest, digest_from_hex, digest_of
from tooltrail.records.errors import InvalidRecordError, TooltrailError
from tooltrail.records.fact_spelling import read_shown, shown_json
from tooltrail.records.facts import ArtifactFact, CallEnded, OmissionFact, Shown, StreamFact
from tooltrail.store.engines.connection import Row
from tooltrail.store.engines.values import uuid_from
from tooltrail.store.ingest import rows
from tooltrail.store.ingest.outcomes import (
    NOT_RENDERED,
    Outcome,
    OutcomeMaker,
    is_body,
    made_shown,
    renderer_of,
    text_of,
)
from tooltrail.store.references import (
    expand_canonical,
    expand_output,
    has_references,
    stream_members,
)
from tooltrail.store.verify.checking import Checking
from tooltrail.store.verify.source import Unreadable


@dataclass
class Call:
    """The stored rows of one call, and the state of its texts.

    Attributes:
        subject: name of the call in findings.
        texts: row of `surfaces`; empty if it is missing, which is reported.
        children: the other rows, by table.
        streams: the streams in the fact of the end.
        exact: the exact bytes of each compared text; None if the text is damaged or removed.
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
            if name in {"output", "canonical"} and has_references(plain.decode()):
                self.inexact.add(name)  # text of a tool that looks like a reference
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
        checking.damage(self.subject, "surfaces", message, name)

    def check_exactness(self, checking: Checking) -> None:
        """Compare `is_exact` with the texts. Call this after all texts were compared.

        If only the arguments are inexact, the check of the start compares `is_exact`.
        """
        if self.texts and None not in self.exact.values() and self.inexact != {"arguments"}:
            expected = {"is_exact": not self.inexact}
            checking.compare(self.subject, "surfaces", expected, self.texts)

    def plain(self, name: str) -> bytes | None:
        """The bytes of a text, with its references expanded."""
        stored = self.texts[name]
        if not isinstance(stored, str):
            return None
        if name == "canonical":
            stored = expand_canonical(stored, self.exact.get("receipt") or b"")
        if name == "output":
            stored = expand_output(stored, [stream_members(one) for one in self.streams])
        return stored.encode("utf-8", "surrogateescape")


def check_shown(checking: Checking, call: Call, fact: CallEnded) -> Shown:
    """Compare canonical result and receipt with what was shown; return that, as far as known."""
    if not call.texts:
        return fact.shown or NOT_RENDERED
    shown = fact.shown or _kept_shown(checking, call)
    if fact.source is None or fact.receipt is not None or not _came_later(call):
        none: Row = {"receipt_journal_key": None, "receipt_entry": None}
        checking.compare(call.subject, "surfaces", none, call.texts)
    # The receipt first: the canonical result may refer to it.
    if fact.source is not None:
        _check_seen(checking, call, fact)
    if shown is None:
        return _check_made(checking, call, fact)
    connection, key = checking.connection, call.row["key"]
    if fact.source is None:
        call.check(checking, "receipt", shown.receipt)
        expected: Row = {
            "renderer": connection.text(shown.renderer),
            "renderer_version": shown.renderer_version,
        }
        if fact.shown is not None:
            expected["shown"] = None
        checking.compare(call.subject, "surfaces", expected, call.texts)
    call.check(checking, "canonical", shown.canonical)
    for table, wanted in (
        ("omissions", rows.omission_rows(connection, key, shown.omissions)),
        ("invocation_artifacts", rows.artifact_rows(connection, key, shown.artifacts)),
    ):
        checking.compare_rows(call.subject, table, wanted, call.children[table])
    return shown


def _check_seen(checking: Checking, call: Call, fact: CallEnded) -> None:
    """Compare the receipt of an imported call with the text that the model saw."""
    came_later = fact.receipt is None and _came_later(call)
    if came_later:
        fact = _later_end(checking, call) or fact
    renderer = renderer_of(fact, NOT_RENDERED)
    expected: Row = {"renderer": renderer, "renderer_version": None if renderer is None else 0}
    if fact.receipt is None:
        expected["receipt"] = None
    else:
        call.check(checking, "receipt", fact.receipt)
    checking.compare(call.subject, "surfaces", expected, call.texts)
    if came_later:
        call.inexact.discard("receipt")  # `is_exact` is about the texts of the first end


def _came_later(call: Call) -> bool:
    """Whether the row says that another fact than that of the end brought the receipt."""
    return call.texts["receipt_entry"] is not None


def _later_end(checking: Checking, call: Call) -> CallEnded | None:
    """The later end of a call that brought its receipt; None if the row names no such fact."""
    found = checking.fact(call.texts["receipt_journal_key"], call.texts["receipt_entry"])
    is_end = isinstance(found, CallEnded) and found.id == uuid_from(call.row["id"])
    return found if is_end else None


def _kept_shown(checking: Checking, call: Call) -> Shown | None:
    """The `Shown` that the ingester made of inexact texts, from a body; None if there is none."""
    stored = call.texts["shown"]
    if call.texts["is_exact"] or not isinstance(stored, bytes):
        return None
    body = checking.body(checking.digest(stored))
    return None if body is None else read_shown(body)


def _check_made(checking: Checking, call: Call, fact: CallEnded) -> Shown:
    """Compare the rows that the ingester made with the digest `shown`."""
    stored, texts, found = call.texts["shown"], call.texts, None
    try:
        found = _made(call, fact)
        if checking.connection.sha(digest_of(shown_json(found))) == stored:
            return found
    except (AttributeError, TypeError, ValueError):
        pass
    call.exact |= {"receipt": None, "canonical": None}
    if isinstance(stored, Unreadable):
        return NOT_RENDERED
    is_gone = texts["canonical"] is None or texts["receipt"] is None
    can_be_removed = is_gone and isinstance(stored, bytes)
    if not can_be_removed or not checking.is_removed(checking.digest(stored)):
        message = (
            f"the canonical result, receipt, renderer, omissions or artifacts of {call.subject}"
            " are not what was made of its output; `tooltrail verify --receipts` compares each"
        )
        checking.damage(call.subject, "surfaces", message)
    return found or NOT_RENDERED


def _made(call: Call, fact: CallEnded) -> Shown:
    """What was shown, computed from the rows.

    Raises `AttributeError`, `TypeError` or `ValueError` if a row holds an impossible value.
    """
    omissions, artifacts = call.children["omissions"], call.children["invocation_artifacts"]
    for table in (omissions, artifacts):
        if any(row["n"] != n for n, row in enumerate(table)):
            raise ValueError("the rows of a call are numbered from 0")
    receipt = call.exact["receipt"] = call.plain("receipt") or b""
    canonical = call.exact["canonical"] = call.plain("canonical") or b""
    is_made = fact.source is None
    shown = Shown(
        canonical=digest_of(canonical),
        receipt=digest_of(receipt) if is_made else EMPTY,
        renderer=call.texts["renderer"] if is_made else "",
        renderer_version=call.texts["renderer_version"] if is_made else 0,
        omissions=tuple(map(_omission, omissions)),
        artifacts=tuple(
            ArtifactFact(role=row["role"], digest=digest_from_hex(bytes(row["digest"]).hex()))
            for row in artifacts
        ),
    )
    return made_shown(shown)


def _omission(row: Row) -> OmissionFact:
    members = {name: row[name] for name in ("stage", "field", "unit", "reason")}
    return OmissionFact(**members, before=row["before_count"], after=row["after_count"])


class Receipts:
    """Compares the stored outcome of an output with the outcome that this program makes."""

    def __init__(self, families: FamilyRegistry, archive: ArtifactArchive) -> None:
        self._maker = OutcomeMaker(families, self.read_spooled)
        self._archive = archive
        self._families = families

    def check_end(self, checking: Checking, call: Call, fact: CallEnded) -> None:
        """Make the outcome of a call again and compare it, unless the caller made it."""
        document = call.exact.get("output")
        if fact.shown is not None or document is None:
            return
        policy, family = checking.digest(call.row["policy"]), call.row["family"]
        try:
            if self._families.find(family) is None:
                raise InvalidRecordError(f"family {family} is not known to this program")
            if policy not in self._maker.policies:
                self._maker.learn_policy(policy, checking.body(policy) or b"")
            bodies = {fact.output: document}
            if fact.receipt is not None:
                bodies[fact.receipt] = call.exact.get("receipt") or b""
            for stream in fact.streams:
                if is_body(fact, stream):
                    bodies[stream.digest] = self._content(checking, call, stream)
            made = self._maker.outcome(fact, bodies, family, policy)
        except (TooltrailError, LookupError, TypeError, ValueError) as error:
            message = f"the receipt of {call.subject} cannot be made anew: {error}"
            checking.incomplete(call.subject, "surfaces", message)
            return
        checking.totals.checked["receipts"] += 1
        _compare(checking, call, made)

    def read_spooled(self, stream: StreamFact, edge_bytes: int) -> StreamRecord:
        """The record of a stream that is an artifact by now; see `OutcomeMaker`."""
        reader = self._archive.reader(artifact_path(stream.digest), size=stream.size)
        head = reader.read_bytes(0, edge_bytes)
        tail = reader.read_bytes(max(len(head), stream.size - edge_bytes), stream.size)
        return StreamRecord(**stream_members(stream), head=head, tail=tail)

    def _content(self, checking: Checking, call: Call, stream: StreamFact) -> bytes:
        receipt = call.exact.get("receipt") or call.plain("receipt") or b""
        for row in call.children["streams"]:
            offset = row["receipt_offset"]
            if row["digest"] == checking.connection.sha(stream.digest) and isinstance(offset, int):
                return receipt[offset : offset + stream.size]
        found = checking.body(stream.digest)
        if found is not None:
            return found
        with self._archive.open(artifact_path(stream.digest)) as stored:
            return stored.read()


def _compare(checking: Checking, call: Call, made: Outcome) -> None:
    connection, subject, key = checking.connection, call.subject, call.row["key"]
    expected = rows.surface_columns(connection, made, None)  # `cut_size` was compared before
    if made.receipt is None and _came_later(call):
        later = ("receipt", "renderer", "renderer_version")  # compared with its fact
        expected |= {name: call.texts[name] for name in later}
    if any(call.texts[name] != expected[name] for name in ("renderer", "renderer_version")):
        renderer = f"{made.shown.renderer} {made.shown.renderer_version}"
        message = f"the receipt of {subject} is of another renderer; this program has {renderer}"
        checking.incomplete(subject, "surfaces", message, "renderer")
        return
    for name in ("canonical", "receipt"):
        if expected[name] != call.texts[name]:
            message = f"the {name} of {subject} is not what its output gives"
            checking.damage(subject, "surfaces", message, name)
    for table, children in rows.outcome_rows(connection, key, made).items():
        checking.compare_rows(subject, table, children, call.children[table])
