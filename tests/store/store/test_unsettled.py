"""What is said to be unsettled beside those who record is so, whatever they do meanwhile."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.recording import command_output, run_command, stream_of

from tooltrail.artifacts import SpoolFolder, iter_spool_folders
from tooltrail.records import ToolCall, UnavailableError
from tooltrail.store import (
    Repairable,
    Store,
    Unended,
    find_repairable,
    find_unended,
    recovering,
    repair,
    unsettled,
)
from tooltrail.store.invocation import Invocation

BASH = ToolCall(tool_name="Bash")
NOBODY = Unended(running=0, elsewhere=0, unknown=0)


def finish(invocation: Invocation) -> None:
    invocation.finish(command_output(invocation, b"done\n"))


@pytest.fixture
def meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[[Callable[[], object], Callable[[], object]], None]:
    """Has something done just before the folders of a spool are listed, and something after."""

    def place(before: Callable[[], object], after: Callable[[], object]) -> None:
        def listing(spool: Path) -> Iterator[SpoolFolder]:
            before()
            folders = list(iter_spool_folders(spool))
            after()
            return iter(folders)

        # Wherever they are listed.
        for module in (unsettled, recovering):
            monkeypatch.setattr(module, "iter_spool_folders", listing, raising=False)

    return place


def elsewhere(store: Store) -> set[int]:
    """How many invocations are said to run elsewhere, by whoever says so."""
    return {find_unended(store).elsewhere, repair(store, dry_run=True).elsewhere_count}


def test_what_begins_while_a_spool_is_read_does_not_run_elsewhere(
    store: Store, meanwhile: Callable[..., None]
) -> None:
    session = store.open_session()
    finish(session.start(BASH))
    meanwhile(lambda: None, lambda: session.start(BASH))
    assert elsewhere(store) == {0}


def test_what_ends_before_a_spool_is_read_does_not_run_elsewhere(
    store: Store, meanwhile: Callable[..., None]
) -> None:
    session = store.open_session()
    finish(session.start(BASH))
    running = [session.start(BASH), session.start(BASH)]
    meanwhile(lambda: finish(running.pop()), lambda: session.start(BASH))
    assert elsewhere(store) == {0}


def test_what_another_repair_clears_meanwhile_is_not_left_over(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    invocation = store.open_session().start(BASH)
    finish(invocation)
    left = store.spool / str(invocation.id)
    left.mkdir()

    def listing(spool: Path) -> Iterator[SpoolFolder]:
        folders = list(iter_spool_folders(spool))
        with monkeypatch.context() as patched:  # a repair lists them too
            patched.setattr(unsettled, "iter_spool_folders", iter_spool_folders)
            repair(store)
        return iter(folders)

    assert find_repairable(store) == Repairable(leftover=(invocation.id,))
    monkeypatch.setattr(unsettled, "iter_spool_folders", listing)
    assert find_repairable(store) == Repairable()
    assert find_unended(store) == NOBODY
    assert not left.exists()


def test_where_nobody_can_tell_whether_output_waits_it_is_said(
    store: Store, tmp_path: Path
) -> None:
    root = tmp_path / "artifacts"
    root.rename(tmp_path / "away")
    finished = run_command(store.open_session(), b"a line of a long output\n" * 5_000)
    (tmp_path / "away").rename(root)
    (waiting,) = store.reader.waiting_streams()
    assert (waiting.is_in(store.spool), waiting.may_be_in(store.spool)) == (True, True)
    folder = store.spool / str(finished.invocation_id)
    aside = folder.rename(tmp_path / "aside")
    assert (waiting.is_in(store.spool), waiting.may_be_in(store.spool)) == (False, False)
    # As unreadable for everybody as one without rights is for others.
    folder.symlink_to(folder)
    why = f"{folder} cannot be read: Too many levels of symbolic links"
    with pytest.raises(UnavailableError, match=why):
        find_repairable(store)
    with pytest.raises(UnavailableError, match=why):
        waiting.is_in(store.spool)
    assert waiting.may_be_in(store.spool)
    assert waiting.sentence(store.spool).endswith(f"and whether it waits is not known: {why}")
    stdout = stream_of(store.reader.invocation(finished.invocation_id), "stdout")
    with pytest.raises(UnavailableError, match=f"stdout is not stored yet .*: {why}"):
        store.reader.open_stream(stdout)
    folder.unlink()
    aside.rename(folder)
    assert repair(store).folders[0].outcome == "stored"
