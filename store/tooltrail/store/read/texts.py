"""The texts of an invocation, byte for byte, checked against the facts of its ledger entries.

A column of `surfaces` holds the exact text, unless no database can store it. The exact bytes are
then a body, by the digest that the fact names. The same digest shows a text that was altered.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple
from uuid import UUID

from tooltrail.records.digests import Digest, digest_of
from tooltrail.records.errors import DamageError, InvalidRecordError
from tooltrail.records.facts import CallEnded, CallStarted, read_fact, read_shown
from tooltrail.store.engines.connection import Connection
from tooltrail.store.read.bodies import Body, load_bodies
from tooltrail.store.receipt_references import RECEIPT_MARK, whole_canonical
from tooltrail.store.views import Erasure


class Surfaces(NamedTuple):
    """The texts of an invocation; of one that has not ended, the arguments alone.

    Attributes:
        erased: the texts that retention removed, by name.
        damage: what is wrong; None when all texts are right.
    """

    arguments: bytes | None = None
    output: bytes | None = None
    canonical: bytes | None = None
    receipt: bytes | None = None
    erased: tuple[Erasure, ...] = ()
    damage: str | None = None


class StoredTexts(NamedTuple):
    """The texts of one invocation as its row of `surfaces` has them, and its two facts.

    Attributes:
        id: of the invocation.
        has_ended: whether the row of the invocation says so.
        arguments: column of the row; None where it is erased or lost.
        output: likewise, and None until the call has ended.
        canonical: likewise, with references into the receipt.
        receipt: likewise.
        shown: digest of what the ingester made, where the fact does not say what was shown.
        is_exact: whether the columns hold the exact texts; None where the row is lost.
        start_fact: JSON of the fact that started the call; None where its ledger entry is lost.
        end_fact: JSON of the fact that ended it.
    """

    id: UUID
    has_ended: bool
    arguments: str | None
    output: str | None
    canonical: str | None
    receipt: str | None
    shown: Digest | None
    is_exact: bool | None
    start_fact: str | None
    end_fact: str | None

    @property
    def made(self) -> Digest | None:
        """The body that names what the ingester made, where the columns do not have that."""
        return self.shown if self.is_exact is False else None


class _Text(NamedTuple):
    """One text.

    Attributes:
        name: of its column.
        stored: what the column holds.
        digest: of the exact bytes; None where no fact names it, and the column is all there is.
        tombstone: the digest by which retention says that it removed the text.
    """

    name: str
    stored: bytes | None
    digest: Digest | None
    tombstone: Digest | None

    @property
    def is_exact(self) -> bool:
        if self.stored is None:
            return False
        return self.digest is None or digest_of(self.stored) == self.digest


def read_texts(connection: Connection, rows: Sequence[StoredTexts]) -> list[Surfaces]:
    """The exact texts of some invocations; of a damaged one, none."""
    made = load_bodies(connection, (one.made for one in rows if one.made is not None))
    found = [_found(one, made) for one in rows]
    bodies = load_bodies(
        connection,
        {
            digest
            for texts in found
            if not isinstance(texts, DamageError)
            for text in texts
            if not text.is_exact
            for digest in (text.digest, text.tombstone)
            if digest is not None
        },
    )
    return [_surfaces(row, texts, bodies) for row, texts in zip(rows, found, strict=True)]


def text_from(data: bytes) -> str:
    """A text behind its bytes, whatever they are: lone surrogates and other bytes survive."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        pass
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("utf-8", "surrogateescape")


def _found(row: StoredTexts, made: Mapping[Digest, Body]) -> list[_Text] | DamageError:
    """The texts of a row, each with the digest that a fact names."""
    try:
        start = _fact(row, row.start_fact)
        if not isinstance(start, CallStarted):
            return _damage(row, "start_entry names no start of this call")
        texts = [_text("arguments", row.arguments, start.arguments)]
        return texts + _ended_texts(row, made) if row.has_ended else texts
    except InvalidRecordError as error:
        return _damage(row, f"a ledger entry of it is no fact: {error}")
    except DamageError as error:
        return error


def _ended_texts(row: StoredTexts, made: Mapping[Digest, Body]) -> list[_Text]:
    end = _fact(row, row.end_fact)
    if not isinstance(end, CallEnded):
        raise _damage(row, "end_entry names no end of this call")
    shown = end.shown
    if shown is None and row.made is not None and made[row.made].data is not None:
        shown = read_shown(made[row.made].read())
    output = _text("output", row.output, end.output)
    if shown is not None:
        receipt = _text("receipt", row.receipt, shown.receipt)
        canonical = _text("canonical", row.canonical, shown.canonical)
    else:
        receipt = _text("receipt", row.receipt, None, row.shown)
        canonical = _text("canonical", row.canonical, None, row.shown)
    if row.canonical is not None and RECEIPT_MARK in row.canonical:
        if receipt.stored is None:
            # A part of the canonical result is erased or lost with the receipt.
            canonical = receipt._replace(name="canonical")
        else:
            whole = whole_canonical(row.canonical, receipt.stored)
            canonical = canonical._replace(stored=whole.encode())
    return [output, receipt, canonical]


def _fact(row: StoredTexts, document: str | None) -> object:
    if document is None:
        return None
    fact = read_fact(document.encode())
    return fact if isinstance(fact, CallStarted | CallEnded) and fact.id == row.id else None


def _text(
    name: str, column: str | None, digest: Digest | None, tombstone: Digest | None = None
) -> _Text:
    return _Text(name, None if column is None else column.encode(), digest, digest or tombstone)


def _surfaces(
    row: StoredTexts, texts: Sequence[_Text] | DamageError, bodies: Mapping[Digest, Body]
) -> Surfaces:
    if isinstance(texts, DamageError):
        return Surfaces(damage=str(texts))
    found: dict[str, bytes] = {}
    erased: list[Erasure] = []
    for text in texts:
        body = _exact(text, bodies)
        if body.data is not None:
            found[text.name] = body.data
        elif body.erasure is not None and text.stored is None:
            erased.append(replace(body.erasure, name=text.name))
        elif text.stored is None:
            return Surfaces(damage=str(_damage(row, f"{text.name} is erased or lost")))
        else:
            words = f"{text.name} is not the text that was recorded"
            return Surfaces(damage=str(_damage(row, words)))
    return Surfaces(**found, erased=tuple(erased))


def _exact(text: _Text, bodies: Mapping[Digest, Body]) -> Body:
    if text.is_exact:
        return Body(text.stored)
    if text.digest is not None:
        return bodies[text.digest]
    return Body() if text.tombstone is None else bodies[text.tombstone]._replace(data=None)


def _damage(row: StoredTexts, problem: str) -> DamageError:
    return DamageError(f"invocation {row.id} is damaged: {problem}", path=str(row.id))
