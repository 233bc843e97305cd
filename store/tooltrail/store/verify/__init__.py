"""Compares a store with its ledger: every row, every body and every artifact.

`verify` does not notice:

- a change of values that no fact contains: unused keys of the database, times of publication and
  rejection, the details of tombstones;
- facts and rows that were altered consistently, with all hashes and the stored head recomputed;
- a body or an artifact that nothing refers to;
- a removed `receipt_offset` of a stream whose bytes are also a body;
- altered bytes of a damaged place of a journal;
- in a store with several journals, a change of `is_late` or of the exact position in a session.
"""

from tooltrail.store.verify.checking import Finding, FindingKind, Totals
from tooltrail.store.verify.verifying import verify

__all__ = ["Finding", "FindingKind", "Totals", "verify"]
