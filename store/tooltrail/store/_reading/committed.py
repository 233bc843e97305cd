"""What the ledger commits to of one subject, and in which words it is said that something differs.

Entries are found without what might be damaged, by their subject as the database spells it.
"""

from collections.abc import Collection, Mapping
from typing import Any, Final, cast
from uuid import UUID

from sqlalchemy import exists, select

from tooltrail.records import DamageError, canonical_json
from tooltrail.records.ledger import EntryKind
from tooltrail.records.tool_calls import storable
from tooltrail.store._engines.database import Database
from tooltrail.store._reading.listing import ListedRow, id_of, key_of, spelled
from tooltrail.store.tables import LedgerEntryRow

MISSING: Final = object()
"""Stands for a part that is not there."""

Place = tuple[int, int]
"""Where an entry is: the key of its session and its `n`."""

Places = Mapping[str, list[Place]]
"""Where the entries about a subject are, by their kind."""


def places_of(
    database: Database, subjects: Mapping[UUID, int], kinds: Collection[EntryKind]
) -> Mapping[UUID, Places]:
    """Where the entries of these kinds are.

    Args:
        database: of the store.
        subjects: the key of the session of each.
        kinds: of entries.
    """
    row = LedgerEntryRow
    # By session and not by subject: an entry is found by its place in its chain alone.
    query = select(
        row.session_key, row.n, row.kind, spelled(database, row.subject_id).label("digits")
    ).where(
        row.session_key.in_(set(subjects.values())),
        row.kind.in_(kinds),
        row.subject_id.in_(list(subjects)),
    )
    found: dict[UUID, dict[str, list[Place]]] = {}
    with database.read() as connection:
        for entry in connection.execute(query):
            subject = UUID(entry.digits)
            if subjects.get(subject) == entry.session_key:
                of_kind = found.setdefault(subject, {}).setdefault(entry.kind, [])
                of_kind.append((entry.session_key, entry.n))
    return found


def lost_subjects(
    database: Database, row: ListedRow, kinds: Collection[EntryKind], session: UUID | None
) -> list[str]:
    """The subjects of entries that have no row: their ids, or what stands in the place of one.

    Args:
        database: of the store.
        row: of the table that they are to be in.
        kinds: of the entries.
        session: that the entries are of; all when None.
    """
    entry = LedgerEntryRow
    digits = spelled(database, entry.subject_id).label("digits")
    there = exists().where(row.id == entry.subject_id)
    query = select(digits).distinct().order_by(digits).where(entry.kind.in_(kinds), ~there)
    if session is not None:
        query = query.where(entry.session_key.in_(key_of(session)))
    with database.read() as connection:
        return [str(id_of(name) or name) for name in connection.scalars(query)]


def committed(database: Database, place: Place, moment: str) -> dict[str, Any]:
    """What an entry commits to, texts as the tables spell them, and when it happened.

    Args:
        database: of the store.
        place: of the entry.
        moment: the name that the time gets.

    Raises:
        DamageError: the entry cannot be read.
    """
    session_key, n = place
    row = LedgerEntryRow
    query = select(row.payload, row.happened_at).where(row.session_key == session_key, row.n == n)
    with database.read() as connection:
        payload, happened_at = connection.execute(query).one()
    text = cast("object", payload)  # SQLite keeps a blob where text belongs
    members = canonical_json.decode(text) if isinstance(text, str) else None
    if not isinstance(members, dict):
        raise DamageError(f"entry {n} of its ledger is damaged", path="ledger_entries")
    spelled_out = {k: storable(v) if isinstance(v, str) else v for k, v in members.items()}
    return {**spelled_out, moment: happened_at}


def difference(facts: Mapping[str, Any], promised: Mapping[str, Any]) -> str:
    """How what is stored differs from what an entry commits to, in a sentence; empty if not."""
    names = sorted({*facts, *promised})
    missing = [_words(name) for name in names if facts.get(name) is MISSING]
    if missing:
        return f"missing: {', '.join(missing)}"
    altered = [_words(name) for name in names if facts.get(name) != promised.get(name)]
    return f"not what the ledger commits to: {', '.join(altered)}" if altered else ""


def count_problem(places: Places, kind: EntryKind) -> str:
    """What is wrong with the number of entries of a kind, of which there is to be one."""
    found = places.get(kind, [])
    if not found:
        return f"the ledger has no entry {kind} of it"
    return f"the ledger has {len(found)} entries {kind} of it" if len(found) > 1 else ""


def _words(name: str) -> str:
    return name.replace("_", " ")
