"""Compares calls with their facts: the row, the texts, and every child row.

A fact that does not say what was shown names neither canonical result nor receipt. Then the rows
are compared with the digest in `surfaces.shown`; only `Receipts` makes both texts again.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from tooltrail.journal.invocation import SEEN
from tooltrail.records.command_documents import stream_members
from tooltrail.records.digests import EMPTY, Digest, digest_from_hex, digest_of
from tooltrail.records.fact_spelling import read_shown, shown_json
from tooltrail.records.facts import (
    ArtifactFact,
    CallEnded,
    CallStarted,
    OmissionFact,
    Shown,
    StreamFact,
)
from tooltrail.store.engines.connection import Row
from tooltrail.store.engines.values import uuid_from
from tooltrail.store.ingest import rows
from tooltrail.store.ingest.known import Entry
from tooltrail.store.ingest.outcomes import (
    NOT_RENDERED,
    is_body,
    made_shown,
    renderer_of,
    text_of,
)
from tooltrail.store.references import (
    expand_canonical,
    expand_output,
    has_references,
)
from tooltrail.store.verify.bodies import Needed
from tooltrail.store.verify.checking import Checking

OF_CALLS: Final = ("streams", "omissions", "invocation_artifacts")
"""Tables with further rows of a call besides its texts. The rows exist once the call has ended."""


def load_calls(checking: Checking, ids: Sequence[UUID]) -> dict[UUID, "Call"]:
    """The rows of some calls."""
    source, connection = checking.source, checking.connection
    names = list(dict.fromkeys(map(connection.uuid, ids)))
    found = checking.named("invocations", "id", names).values()
    keys = sorted(row["key"] for row in found if isinstance(row["key"], int))
    texts = source.owned("surfaces", "invocation_key", keys)
    children = {table: source.owned(table, "invocation_key", keys) for table in OF_CALLS}
    calls = dict[UUID, Call]()
    for row in found:
        key, call_id = row["key"], uuid_from(row["id"])
        of_call = {table: owned[key] for table, owned in children.items()}
        surfaces = texts[key][0] if texts[key] else {}
        subject = f"call {call_id}"
        if len(texts[key]) > 1:
            checking.damage(subject, "surfaces", f"{subject} has several rows of surfaces")
        calls[call_id] = Call(checking, subject, row, surfaces, of_call)
    return calls


@dataclass
class Call:
    """The stored rows of one call, and the state of its texts.

    Attributes:
        subject: name of the call in findings.
        row: row of `invocations`.
        texts: row of `surfaces`; empty if it is missing, which is reported.
        children: the other rows, by table.
        streams: the streams in the fact of the end.
        exact: the exact bytes of each compared text; None if the text is damaged or removed.
        inexact: the texts whose columns hold substitutes.
    """

    checking: Checking
    subject: str
    row: Row
    texts: Row
    children: Mapping[str, Sequence[Row]]
    streams: Sequence[StreamFact] = ()
    exact: dict[str, bytes | None] = field(default_factory=dict[str, bytes | None])
    inexact: set[str] = field(default_factory=set[str])

    @property
    def came_later(self) -> bool:
        """Whether the row says that another fact than that of the end brought the receipt."""
        return self.texts["receipt_entry"] is not None

    def check_start(self, fact: CallStarted, entry: Entry, expected: Row) -> None:
        """Compare the values of a start; `expected` has the values that follow from the session."""
        checking, has_ended = self.checking, self.row["end_entry"] is not None
        expected |= rows.start_row(checking.connection, fact, entry)
        if has_ended:
            del expected["state"]
        else:
            expected |= rows.NO_END
            expected["outcome"] = "unfinished" if expected["owner"] is None else "running"
        checking.compare(self.subject, "invocations", expected, self.row)
        if not self.texts:
            self._damage(f"the texts of {self.subject} are missing or cannot be read")
        self._check_text("arguments", fact.arguments)
        if self.inexact:
            self._compare_texts({"is_exact": False})
        if has_ended:
            return
        message = f"{self.subject} has not ended"
        checking.incomplete(self.subject, "invocations", message, "state")
        if self.texts:
            self._compare_texts(rows.NO_OUTCOME)
            self._check_exactness()
        for table in self.children:
            self.compare_rows(table, [])

    def check_end(self, fact: CallEnded, entry: Entry, needed: Needed) -> None:
        """Compare the values of the end of a call."""
        checking, connection = self.checking, self.checking.connection
        self.streams = fact.streams
        self._check_text("output", fact.output)
        if fact.extras is not None:
            needed.optional.setdefault(fact.extras, self.subject)
        shown = self._check_shown(fact)
        expected = rows.end_columns(connection, fact, shown.omissions, entry)
        expected["outcome"] = _outcome_of(fact)
        checking.compare(self.subject, "invocations", expected, self.row)
        self._check_cut_size(shown, expected["output_size"])
        offsets = [row["receipt_offset"] for row in self.children["streams"]]
        offsets += [None] * (len(fact.streams) - len(offsets))
        placed = list(zip(fact.streams, offsets, strict=False))
        self.compare_rows("streams", rows.stream_rows(connection, self.row["key"], placed))
        if "arguments" not in self.exact and not self.inexact and self.texts.get("is_exact") != 1:
            # The call began in an earlier batch. Its arguments may be inexact.
            start = checking.fact(self.row["journal_key"], self.row["start_entry"])
            if isinstance(start, CallStarted):
                self._check_text("arguments", start.arguments)
            else:
                self.exact["arguments"] = None
        self._check_exactness()
        artifacts = {one.digest for one in shown.artifacts}
        bodies = {one.digest for one in fact.streams if is_body(fact, one)} - artifacts
        for stream, offset in placed:
            if offset is None:
                wanted = needed.bodies if stream.digest in bodies else needed.artifacts
                wanted.setdefault(stream.digest, self.subject)
            else:
                self._check_shared(stream, offset)
        for artifact in shown.artifacts:
            needed.artifacts.setdefault(artifact.digest, self.subject)

    def check_repeated_end(self, fact: CallEnded, entry: Entry) -> None:
        """Check that the row has the receipt of a repeated end, if the first end had none."""
        if fact.source is None or fact.receipt is None or not self.texts:
            return
        first = self.checking.fact(self.row["end_journal_key"], self.row["end_entry"])
        if not isinstance(first, CallEnded) or first.source is None or first.receipt is not None:
            return
        journal, n = (self.texts[name] for name in ("receipt_journal_key", "receipt_entry"))
        if n is None or (journal == entry.journal_key and isinstance(n, int) and n > entry.n):
            self._compare_texts(
                {"receipt_journal_key": entry.journal_key, "receipt_entry": entry.n}
            )

    def compare_rows(self, table: str, expected: Sequence[Row]) -> None:
        """Compare the rows of one table with the rows from the fact, in order."""
        self.checking.compare_rows(self.subject, table, expected, self.children[table])

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

    def _damage(self, message: str, column: str | None = None) -> None:
        self.checking.damage(self.subject, "surfaces", message, column)

    def _compare_texts(self, expected: Row) -> None:
        self.checking.compare(self.subject, "surfaces", expected, self.texts)

    def _check_text(self, name: str, digest: Digest) -> None:
        """Compare a text with its digest."""
        stored = self.texts.get(name)
        if not self.texts:
            return
        plain = self.plain(name)
        if plain is not None and digest_of(plain) == digest:
            self.exact[name] = plain
            if name in {"output", "canonical"} and has_references(plain.decode()):
                self.inexact.add(name)  # text of a tool that looks like a reference
            return
        self.exact[name], problem = None, "is not what its fact says"
        if stored is None:
            if self.checking.is_removed(digest):
                return
            problem = "is missing, and no tombstone says why"
        else:
            body = self.checking.body(digest)
            if body is not None and text_of(body)[0] == stored:
                self.exact[name] = body
                self.inexact.add(name)
                return
        words = "complete output" if name == "output" else name
        self._damage(f"the {words} of {self.subject} {problem}", name)

    def _check_exactness(self) -> None:
        """Compare `is_exact` with the texts. Call this after all texts were compared.

        If only the arguments are inexact, the check of the start compares `is_exact`.
        """
        if self.texts and None not in self.exact.values() and self.inexact != {"arguments"}:
            self._compare_texts({"is_exact": not self.inexact})

    def _check_cut_size(self, shown: Shown, output_size: int | None) -> None:
        """Compare how much of the output was cut, unless the erased receipt would say it."""
        renderer, receipt = self.texts.get("renderer"), self.texts.get("receipt")
        if not self.texts or (renderer == SEEN and not isinstance(receipt, str)):
            return
        with suppress(TypeError):  # a damaged omission, which is reported
            size = rows.cut_size(output_size, shown.omissions, renderer, receipt)
            self._compare_texts({"cut_size": size})

    def _check_shared(self, stream: StreamFact, offset: Any) -> None:
        """Check that the receipt first has the bytes of a stream at the offset in the row."""
        receipt = self.exact.get("receipt")
        if receipt is None:
            return
        is_found = isinstance(offset, int) and offset >= 0 and self.inexact <= {"arguments"}
        content = receipt[offset : offset + stream.size] if is_found else b""
        if not is_found or digest_of(content) != stream.digest or receipt.find(content) != offset:
            message = f"stream {stream.role} of {self.subject} is not where its row says"
            self.checking.damage(self.subject, "streams", message, "receipt_offset")

    def _check_shown(self, fact: CallEnded) -> Shown:
        """Compare canonical result and receipt with what was shown, and return the `Shown`."""
        if not self.texts:
            return fact.shown or NOT_RENDERED
        shown = fact.shown or self._kept_shown()
        if fact.source is None or fact.receipt is not None or not self.came_later:
            self._compare_texts({"receipt_journal_key": None, "receipt_entry": None})
        # The receipt first: the canonical result may refer to it.
        if fact.source is not None:
            self._check_seen(fact)
        if shown is None:
            return self._check_made(fact)
        connection, key = self.checking.connection, self.row["key"]
        if fact.source is None:
            self._check_text("receipt", shown.receipt)
            renderer = connection.text(shown.renderer)
            self._compare_texts({"renderer": renderer, "renderer_version": shown.renderer_version})
        if fact.source is None and fact.shown is not None:
            self._compare_texts({"shown": None})
        self._check_text("canonical", shown.canonical)
        self.compare_rows("omissions", rows.omission_rows(connection, key, shown.omissions))
        artifacts = rows.artifact_rows(connection, key, shown.artifacts)
        self.compare_rows("invocation_artifacts", artifacts)
        return shown

    def _check_seen(self, fact: CallEnded) -> None:
        """Compare the receipt of an imported call with the text that the model saw."""
        came_later = fact.receipt is None and self.came_later
        if came_later:
            place = (self.texts["receipt_journal_key"], self.texts["receipt_entry"])
            later = self.checking.fact(*place)
            if isinstance(later, CallEnded) and later.id == uuid_from(self.row["id"]):
                fact = later  # else the row names no such fact
        renderer = renderer_of(fact, NOT_RENDERED)
        expected: Row = {"renderer": renderer, "renderer_version": None if renderer is None else 0}
        if fact.receipt is None:
            expected["receipt"] = None
        else:
            self._check_text("receipt", fact.receipt)
        self._compare_texts(expected)
        if came_later:
            self.inexact.discard("receipt")  # `is_exact` is about the texts of the first end

    def _kept_shown(self) -> Shown | None:
        """The `Shown` that the ingester made of inexact texts; None if no body has it."""
        stored = self.texts["shown"]
        if self.texts["is_exact"] or not isinstance(stored, bytes):
            return None
        body = self.checking.body(self.checking.digest(stored))
        return None if body is None else read_shown(body)

    def _check_made(self, fact: CallEnded) -> Shown:
        """Compare the rows that the ingester made with the digest `shown`."""
        stored, texts, found = self.texts["shown"], self.texts, None
        try:
            found = self._made(fact)
            if self.checking.connection.sha(digest_of(shown_json(found))) == stored:
                return found
        except (AttributeError, TypeError, ValueError):
            pass
        self.exact |= {"receipt": None, "canonical": None}
        is_gone = texts["canonical"] is None or texts["receipt"] is None
        can_be_removed = is_gone and isinstance(stored, bytes)
        if not can_be_removed or not self.checking.is_removed(self.checking.digest(stored)):
            self._damage(
                f"the canonical result, receipt, renderer, omissions or artifacts of {self.subject}"
                " are not what was made of its output; `tooltrail verify --receipts` compares each"
            )
        return found or NOT_RENDERED

    def _made(self, fact: CallEnded) -> Shown:
        """What was shown, computed from the rows.

        Raises `AttributeError`, `TypeError` or `ValueError` if a row holds an impossible value.
        """
        omissions, artifacts = self.children["omissions"], self.children["invocation_artifacts"]
        for table in (omissions, artifacts):
            if any(row["n"] != n for n, row in enumerate(table)):
                raise ValueError("the rows of a call are numbered from 0")
        receipt = self.exact["receipt"] = self.plain("receipt") or b""
        canonical = self.exact["canonical"] = self.plain("canonical") or b""
        is_made = fact.source is None
        shown = Shown(
            canonical=digest_of(canonical),
            receipt=digest_of(receipt) if is_made else EMPTY,
            renderer=self.texts["renderer"] if is_made else "",
            renderer_version=self.texts["renderer_version"] if is_made else 0,
            omissions=tuple(map(_omission, omissions)),
            artifacts=tuple(
                ArtifactFact(role=row["role"], digest=digest_from_hex(bytes(row["digest"]).hex()))
                for row in artifacts
            ),
        )
        return made_shown(shown)


def _outcome_of(fact: CallEnded) -> str:
    """The generated column `outcome` of a call that ended, as in revision 0001."""
    if fact.timed_out or fact.error_kind == "tool_timed_out":
        return "timeout"
    if fact.state != "success":
        return fact.state
    if fact.signal is not None and fact.signal > 0:
        return "signal"
    return "exit" if fact.exit_status else "ok"


def _omission(row: Row) -> OmissionFact:
    members = {name: row[name] for name in ("stage", "field", "unit", "reason")}
    return OmissionFact(**members, before=row["before_count"], after=row["after_count"])
