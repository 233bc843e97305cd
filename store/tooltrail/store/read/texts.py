"""Reads the texts of invocations, byte for byte, and checks them against the facts of the ledger.

A column of `surfaces` holds the exact text, unless no database can store that text. The exact bytes
are then a body, with the digest that the fact names. This digest also shows an altered text.

Facts are canonical JSON: the bytes of a member can only be in one place. So a digest is searched in
the bytes of a fact, and a fact is parsed only if a text is not in its column.
"""

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple
from uuid import UUID

from tooltrail.records.digests import Digest, digest_of, parse_digest
from tooltrail.records.errors import DamageError
from tooltrail.records.facts import RedactionFact, SourceFact
from tooltrail.store.bodies import unpack_fact
from tooltrail.store.engines.connection import Connection
from tooltrail.store.read.bodies import Body, load_bodies
from tooltrail.store.references import expand_canonical, expand_output, refers_to_receipt
from tooltrail.store.views import Erasure


class Surfaces(NamedTuple):
    """The texts of an invocation by name, the erased texts, and what its facts say beside them."""

    texts: Mapping[str, bytes] = MappingProxyType({})
    erased: tuple[Erasure, ...] = ()
    damage: str | None = None
    source: SourceFact | None = None
    redacted: tuple[RedactionFact, ...] = ()


class _Text(NamedTuple):
    """One text.

    Attributes:
        name: name of its column.
        exact: the bytes of the column, if they are correct.
        is_gone: whether the column is NULL.
        digest: digest of the correct bytes; None if no fact names it: only the column counts.
        tombstone: the digest that the tombstone of an erased text has.
    """

    name: str
    exact: bytes | None
    is_gone: bool = False
    digest: Digest | None = None
    tombstone: Digest | None = None


def read_texts(
    connection: Connection, rows: Sequence[Mapping[str, Any]], *, outputs: bool
) -> list[Surfaces]:
    """The exact texts of some invocations. A damaged invocation has no texts.

    Each row has `id`, `state`, the columns of its `surfaces`, and the packed facts `start_fact`,
    `end_fact` and, if the receipt came later, `receipt_fact`. With `outputs`, the complete outputs
    are read, too.
    """
    # If the columns cannot hold the texts that the ingester made, a body has their digests.
    inexact = (row["shown"] for row in rows if row["is_exact"] is False)
    made = load_bodies(connection, (one for one in inexact if one is not None))
    found: list[tuple[list[_Text], Surfaces]] = []
    for row in rows:
        try:
            owner, has_ended = str(row["id"]), row["state"] != "started"
            start = _fact(row["start_fact"], owner, "start", "call.started")
            end = _fact(row["end_fact"], owner, "end", "call.ended") if has_ended else b""
            texts = _texts_of(row, start, end, made, outputs=outputs)
            found.append((texts, _beside(start, end)))
        except (DamageError, ValueError, LookupError, TypeError) as error:
            damage = f"invocation {row['id']} is damaged: a ledger entry of it is no fact: {error}"
            found.append(([], Surfaces(damage=damage)))
    missing = [text for texts, _ in found for text in texts if text.exact is None]
    digests = (one for text in missing for one in (text.digest, text.tombstone) if one is not None)
    bodies = load_bodies(connection, digests)
    return [
        _surfaces(row["id"], texts, bodies, beside)
        for row, (texts, beside) in zip(rows, found, strict=True)
    ]


def _texts_of(
    row: Mapping[str, Any], start: bytes, end: bytes, made: Mapping[Digest, Body], *, outputs: bool
) -> list[_Text]:
    """The texts of a row, each with the digest that a fact names. `end` is empty before the end.

    Raises `ValueError`, `LookupError` or `TypeError` if an entry of the ledger is damaged.
    """
    texts = [_text("arguments", row["arguments"], start)]
    if not end:
        return texts
    if outputs:
        document = row["output"]
        if document is not None:
            document = expand_output(document, json.loads(end).get("streams", ()))
        texts.append(_text("output", document, end))
        if b'"extras":' in end:
            texts.append(_text("extras", None, end))
    shown, tombstone = None, None
    is_imported = b'"source":' in end
    if is_imported:
        # Nothing was rendered. A fact names the text that the model saw, if the model saw one.
        digested = end if b'"receipt":' in end else None
        if row["receipt_fact"] is not None:
            digested = _fact(row["receipt_fact"], str(row["id"]), "receipt", "call.ended")
    else:
        shown = end if b'"shown":' in end else made.get(row["shown"], Body()).data
        digested, tombstone = shown, row["shown"]
    receipt = _text("receipt", row["receipt"], digested, tombstone)
    if digested is not None or not is_imported:
        texts.append(receipt)
    canonical = row["canonical"]
    if canonical is not None and refers_to_receipt(canonical):
        if row["receipt"] is None:
            # The parts of the canonical result in the receipt are erased or lost, too.
            return [*texts, receipt._replace(name="canonical")]
        canonical = expand_canonical(canonical, row["receipt"].encode())
    return [*texts, _text("canonical", canonical, shown, row["shown"])]


def _text(name: str, column: str | None, fact: bytes | None, shown: Digest | None = None) -> _Text:
    """The text of a column, compared with the digest in a fact, if there is one."""
    stored = None if column is None else column.encode()
    if stored is not None and (fact is None or f'"{name}":"{digest_of(stored)}"'.encode() in fact):
        return _Text(name, stored)
    digest: Digest | None = None
    if fact is not None:
        members = json.loads(fact)
        digest = parse_digest({**members, **members.get("shown", {})}[name])
    return _Text(name, None, stored is None, digest, digest or shown)


def _fact(packed: bytes | None, owner: str, which: str, kind: str) -> bytes:
    """The canonical JSON of a fact about the call; raises `DamageError` for any other fact."""
    fact = b"" if packed is None else unpack_fact(packed)
    if f'"id":"{owner}","kind":"{kind}"'.encode() not in fact:
        raise DamageError(f"{which}_entry names no {which} of this call", path=owner)
    return fact


def _beside(start: bytes, end: bytes) -> Surfaces:
    """Where an importer found a call, and the secrets that were replaced."""
    sources = [json.loads(fact)["source"] for fact in (start, end) if b'"source":' in fact]
    lists = [json.loads(fact)["redacted"] for fact in (start, end) if b'"redacted":' in fact]
    secrets = tuple(RedactionFact(**one) for some in lists for one in some)
    return Surfaces(source=SourceFact(**sources[0]) if sources else None, redacted=secrets)


def _surfaces(
    owner: UUID, texts: list[_Text], bodies: Mapping[Digest, Body], beside: Surfaces
) -> Surfaces:
    found: dict[str, bytes] = {}
    erased: list[Erasure] = []
    for text in texts:
        data, erasure = text.exact, None
        if data is None and text.digest is not None:
            data = bodies[text.digest].data
        if text.is_gone and text.tombstone is not None:
            erasure = bodies[text.tombstone].erasure
        if data is not None:
            found[text.name] = data
        elif erasure is not None:
            erased.append(erasure.replaced(name=text.name))
        else:
            words = "is erased or lost" if text.is_gone else "is not the text that was recorded"
            return beside._replace(damage=f"invocation {owner} is damaged: {text.name} {words}")
    return Surfaces(
        found,
        tuple(erased),
        damage=beside.damage,
        source=beside.source,
        redacted=beside.redacted,
    )
