"""Checks of a complete store."""

from tests.support.recording import content_of

from tooltrail.records import digest_of
from tooltrail.store import Database, Store, iter_problems
from tooltrail.store.verify import verify


def check_database(database: Database) -> list[str]:
    """Every problem that a check of a database finds."""
    return list(iter_problems(database))


def check_evidence(store: Store, *, is_complete: bool = True) -> None:
    """Check that each record matches its fact, each seq is unique, each stream has its bytes.

    Args:
        store: the store; all facts in its spool are ingested first.
        is_complete: whether to forbid open calls and pending or rejected facts.
    """
    store.ingest()
    assert check_database(store.database) == []
    found = list(verify(store.database, store.archive, families=store.families))
    assert [one for one in found if is_complete or one.kind == "damage"] == []
    reader = store.reader
    for session in reader.sessions():
        _, messages, invocations = reader.conversation(session.id)
        places = [m.seq for m in messages] + [i.summary.seq for i in invocations]
        assert sorted(places) == list(range(1, len(places) + 1))
        for detail in invocations:
            for stream in detail.streams:
                assert digest_of(content_of(reader, stream)) == stream.digest


def problems_of(store: Store) -> list[str]:
    """Ingest pending facts, and return the messages of all differences from the record."""
    store.ingest()
    found = verify(store.database, store.archive, families=store.families)
    return [one.message for one in found]
