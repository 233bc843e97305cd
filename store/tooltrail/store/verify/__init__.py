"""Compares a store with its ledger: every row, every body and every artifact.

Not noticed is a change of what no fact says: numbers that the database gave and to which nothing
refers, when something was published or rejected, and what a tombstone says of retention. Nor is
noticed: who alters facts and rows alike, computes all hashes again and alters the kept head; a body
or an artifact that nothing names; a place in the receipt that is removed from the row of a stream
whose bytes are a body, too; the bytes that were kept of a damaged place of a journal. Of a store
with several journals: whether a call is late, and the place in its session, as long as the order is
right.
"""

from tooltrail.store.verify.checking import Finding, FindingKind, Totals
from tooltrail.store.verify.verifying import verify

__all__ = ["Finding", "FindingKind", "Totals", "verify"]
