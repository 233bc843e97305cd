"""The collector of cycles rests where much is made, and never for longer."""

import gc
import os
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.support.recording import run_command

from tooltrail.store import Store
from tooltrail.store._reading.collector import collector_paused
from tooltrail.store._recording.bodies import decode_body


@pytest.fixture(autouse=True)
def enabled() -> Iterator[None]:
    gc.enable()
    yield
    gc.enable()


def test_it_rests_within_the_block_and_goes_on_after_it() -> None:
    with collector_paused():
        assert not gc.isenabled()
        with collector_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_it_goes_on_after_an_error_that_somebody_keeps() -> None:
    with pytest.raises(KeyboardInterrupt) as kept, collector_paused():
        raise KeyboardInterrupt
    assert kept.tb is not None
    assert gc.isenabled()


def test_who_has_switched_it_off_finds_it_so() -> None:
    gc.disable()
    with collector_paused():
        pass
    assert not gc.isenabled()


@contextmanager
def paused_by_another_thread() -> Generator[None]:
    is_paused, may_end = threading.Event(), threading.Event()

    def pause() -> None:
        with collector_paused():
            is_paused.set()
            may_end.wait(30)

    thread = threading.Thread(target=pause)
    thread.start()
    try:
        assert is_paused.wait(30)
        yield
    finally:
        may_end.set()
        thread.join()


def test_it_goes_on_when_the_first_of_two_threads_has_made_its_own() -> None:
    with paused_by_another_thread():
        with collector_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_a_child_of_a_process_in_which_another_thread_has_paused_it_has_it_going() -> None:
    with paused_by_another_thread():
        child = os.fork()
        if child == 0:
            os._exit(0 if gc.isenabled() else 1)
        _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


def test_a_transcript_is_read_while_it_rests(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    session = store.open_session()
    run_command(session, b"one\n")
    seen: list[bool] = []

    def look(*stored: Any) -> bytes:
        seen.append(gc.isenabled())
        return decode_body(*stored)

    monkeypatch.setattr("tooltrail.store._reading.details.decode_body", look)
    store.reader.conversation(session.id)
    assert set(seen) == {False}
    assert gc.isenabled()
