"""Recording into a store of very many calls, beside one of few: each must cost the same."""

from collections.abc import Callable, Iterator
from functools import partial

from benchmarks._calls import Call, made_rounds, record
from benchmarks._measure import Action, Report, compare_rounds, speed
from benchmarks._stores import FEW, MANY, MANY_IN_FULL, stored_calls
from benchmarks.importing import record_many
from tooltrail.store import Store, open_store

INVOCATIONS = 320
ROUNDS = 5


def lines(*, is_full: bool) -> Report:
    """One by one, and many calls that ended; each until they are ingested."""
    many = MANY_IN_FULL if is_full else MANY
    with open_store(stored_calls(many)) as large, open_store(stored_calls(FEW)) as few:
        for name, step in (("start + finish", _one_by_one), ("record_many", _together)):
            times = compare_rounds(_rounds(large, few, step))
            subject, baseline = f"{name} among {many:,}, ingested", f"the same among {FEW:,}"
            yield speed(subject, baseline, times, INVOCATIONS, target="≥ 0.8")


def _rounds(
    large: Store, few: Store, step: Callable[[Store, list[Call]], None]
) -> Iterator[tuple[Action, Action]]:
    made = made_rounds(INVOCATIONS)
    for _ in range(ROUNDS + 1):
        yield partial(step, large, next(made)), partial(step, few, next(made))


def _one_by_one(store: Store, calls: list[Call]) -> None:
    with store.open_session() as session:
        record(session, calls)
    store.ingest()


def _together(store: Store, calls: list[Call]) -> None:
    record_many(store, [call.ended() for call in calls])
