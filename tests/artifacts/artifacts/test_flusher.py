"""Watched captures are flushed soon, by one thread that goes when nobody needs it."""

import threading

import pytest

from tooltrail.artifacts._flusher import Flusher


class Flushed:
    """Counts its flushes."""

    def __init__(self) -> None:
        self.count = 0
        self.event = threading.Event()

    def flush(self) -> None:
        self.count += 1
        self.event.set()


@pytest.fixture
def flusher() -> Flusher:
    return Flusher(0.05)


class Failing(Flushed):
    """Fails as often as it is told to, and is flushed then."""

    def __init__(self, errors: list[BaseException]) -> None:
        super().__init__()
        self._errors = errors

    def flush(self) -> None:
        if self._errors:
            raise self._errors.pop()
        super().flush()


def test_a_flush_that_fails_holds_up_no_other_and_is_tried_again(flusher: Flusher) -> None:
    errors: list[BaseException] = [MemoryError(), SystemExit(), KeyboardInterrupt(), ValueError()]
    failing, other = Failing(errors), Flushed()
    flusher.watch(failing)
    flusher.watch(other)
    for capture in (failing, other):
        assert capture.event.wait(60)
        assert capture.count == 1
    assert errors == []


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_thread_that_is_gone_is_replaced(
    flusher: Flusher, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[None] = []

    def end_the_first() -> None:
        begun.append(None)
        if len(begun) == 1:
            raise MemoryError

    monkeypatch.setattr("tooltrail.artifacts._flusher.leave_signals_to_others", end_the_first)
    before = set(threading.enumerate())
    capture = Flushed()
    flusher.watch(capture)
    for thread in set(threading.enumerate()) - before:
        thread.join(60)
    flusher.watch(capture)
    assert capture.event.wait(60)
    assert len(begun) == 2
