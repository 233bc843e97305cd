"""The proof of a whole store: every row is compared with the ledger, every result made anew."""

from tooltrail.store import Store, verify


def problems_of(store: Store) -> list[str]:
    """Everything that is not as it was recorded, after everything that waits was ingested."""
    store.ingest()
    found = verify(store.database, store.archive, families=store.families)
    return [one.message for one in found]


def check_evidence(store: Store) -> None:
    """Nothing is damaged, missing or rejected."""
    assert problems_of(store) == []
