"""Filling the index of words, beside ingestion without it; and splitting into words alone."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import islice
from pathlib import Path

from benchmarks._calls import Call, documents_of, made_rounds
from benchmarks._measure import Action, Report, compare_rounds, consume, cost, scratch_folder
from tooltrail.journal.recorder import Recorder
from tooltrail.records import default_families, default_policy
from tooltrail.store import Session, Store, create_store, open_store
from tooltrail.store.search.filling import rebuild_index
from tooltrail.store.search.index import drop_index
from tooltrail.store.search.words import words_of

CALLS = 2_000
ROUNDS = 3


def lines() -> Report:
    """The costs of the whole index, and of its words alone."""
    for name, subject, target in (
        ("fill the index of words", _fill, "≤ 0.15"),
        ("split the texts of the calls into words, alone", _split, "-"),
    ):
        with scratch_folder() as folder:
            times = compare_rounds(_rounds(folder, subject))
        yield cost(name, f"ingest {CALLS:,} calls without an index", times, target)


def _rounds(
    folder: Path, subject: Callable[[Path, Sequence[Call]], Action]
) -> Iterator[tuple[Action, Action]]:
    """For each round, the subject with calls that are ingested, and the ingestion of them."""
    for number, calls in enumerate(islice(made_rounds(CALLS), ROUNDS + 1)):
        ingested, waiting = (folder / f"{number}-{name}.db" for name in ("ingested", "waiting"))
        for path in (ingested, waiting):
            _record(path, calls)
        with open_store(ingested) as store:
            store.ingest()
        yield subject(ingested, calls), partial(_with_store, waiting, Store.ingest)


def _record(path: Path, calls: Sequence[Call]) -> None:
    """Make a store without an index, and record calls that are not ingested yet."""
    with create_store(path) as store, store.database.write() as connection:
        drop_index(connection)
    families = default_families()
    spool = path.with_name(f"{path.name}-spool")
    with closing(Recorder(spool, policy=default_policy(families), families=families)) as recorder:
        consume(Session.open(recorder).record_many([call.ended() for call in calls]))


def _fill(path: Path, _calls: Sequence[Call]) -> Action:
    return partial(
        _with_store, path, lambda store: rebuild_index(store.database, lambda: store.archive)
    )


def _split(_path: Path, calls: Sequence[Call]) -> Action:
    texts = [documents_of(call)[2].decode() for call in calls]
    return lambda: consume(map(words_of, texts))


def _with_store(path: Path, work: Callable[[Store], object]) -> None:
    with open_store(path) as store:
        work(store)
