"""Compares a store with its ledger: every row, every body and every artifact."""

from collections.abc import Mapping
from typing import Final

from tooltrail.store.verify.findings import Finding, FindingKind, Totals
from tooltrail.store.verify.verifying import verify

__all__ = ["NOT_EVIDENCE", "Finding", "FindingKind", "Totals", "verify"]

_NUMBER: Final = "a number that the database gave; nothing refers to it"
_OWN: Final = "belongs to this database; no fact says it"
_NOTICED: Final = "says what the ingester met, and is in no fact"
_RETENTION: Final = "written by retention, whose facts do not name what they removed"

NOT_EVIDENCE: Final[Mapping[str, str]] = {
    "store_info.id": _OWN,
    "store_info.format": _OWN,
    "store_info.artifact_root": _OWN,
    "store_info.created_at": _OWN,
    "bodies.key": _NUMBER,
    "messages.key": "a number; where rows of other tables refer to it, these are missed",
    "tools.key": _NUMBER,
    "artifacts.key": _NUMBER,
    "artifacts.created_at": "when the artifact was published, which is in no fact",
    "rejected_facts.key": _NUMBER,
    "rejected_facts.segment": _NOTICED,
    "rejected_facts.segment_offset": _NOTICED,
    "rejected_facts.reason": _NOTICED,
    "rejected_facts.rejected_at": _NOTICED,
    "tombstones.key": _NUMBER,
    "tombstones.kind": _RETENTION,
    "tombstones.size": _RETENTION,
    "tombstones.reason": _RETENTION,
    "tombstones.rule": _RETENTION,
    "tombstones.actor": _RETENTION,
    "tombstones.removed_at": _RETENTION,
}
"""Columns of evidence tables that are in no fact, and why. A change of these is not noticed.

Nor is noticed: who alters facts and rows alike, computes all hashes again and alters the kept head;
a body or an artifact that nothing names; a place in the receipt that is removed from the row of a
stream whose bytes are a body, too; the bytes that were kept of a damaged place of a journal.
Of a store with several journals: whether a call is late, and the place in its session, as long as
the order is right.
"""
