"""Recording into a store of very many invocations, beside one of few: each must cost the same."""

from collections.abc import Callable
from pathlib import Path

from tests.support.large_store import make_large_store

from benchmarks._measure import Ratio, compare
from benchmarks.recording import Call, made_rounds, record
from tooltrail.records import ToolCall
from tooltrail.store import EndedCall, Session, open_store

FEW = 10_000
ROUNDS = 5


def measure_one_by_one(large: Path, few: Path) -> Ratio:
    """Start and finish one by one."""
    return _measure(large, few, record)


def measure_import(large: Path, few: Path) -> Ratio:
    """Many calls that have ended."""
    return _measure(large, few, _import)


def make_few(folder: Path) -> Path:
    """The store of few."""
    folder.mkdir()
    make_large_store(folder / "tooltrail.db", FEW)
    return folder / "tooltrail.db"


def _measure(large: Path, few: Path, step: Callable[[Session, list[Call]], object]) -> Ratio:
    ours, theirs = iter(made_rounds()), iter(made_rounds(seed=1))
    with (
        open_store(large) as one,
        open_store(few) as other,
        one.open_session() as into_many,
        other.open_session() as into_few,
    ):

        def subject() -> None:
            step(into_many, next(ours))

        def baseline() -> None:
            step(into_few, next(theirs))

        return compare(subject, baseline, ROUNDS)


def _import(session: Session, calls: list[Call]) -> None:
    session.record_many(
        EndedCall(ToolCall.of("Bash", call.arguments), call.complete_output()) for call in calls
    )
