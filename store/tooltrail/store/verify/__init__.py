"""Compares a store with its ledger: every row, every body and every artifact.

`verify` does not notice:

- a change of what no fact says: unused keys of the database, when something was published or
  rejected, what a tombstone says of retention;
- facts and rows that were altered alike, with all hashes and the kept head computed again;
- a body or an artifact that nothing names;
- a removed `receipt_offset` of a stream whose bytes are a body, too;
- the bytes that were kept of a damaged place of a journal;
- in a store with several journals, whether a call is late, and its exact place in its session.
"""

from tooltrail.store.verify.checking import Finding, FindingKind, Totals
from tooltrail.store.verify.verifying import verify

__all__ = ["Finding", "FindingKind", "Totals", "verify"]
