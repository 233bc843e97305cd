"""An owner lock lives as long as the process that made it, or a child that inherited it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.journals import become_nobody, run_forks
from tests.support.killing import end_of, fork

from tooltrail.journal import Owner, is_alive, remove_owner
from tooltrail.journal.owners import FOLDER_NAME
from tooltrail.records.errors import UnavailableError

UNKNOWN = "0" * 32


def lock_path(spool: Path, name: str) -> Path:
    return spool / FOLDER_NAME / f"{name}.lock"


def test_preparing_an_owner_touches_nothing(tmp_path: Path) -> None:
    owner = Owner(tmp_path / "spool")
    owner.release()
    assert owner.descriptor == -1
    assert list(tmp_path.iterdir()) == []


def test_an_owner_is_alive_until_it_is_released(tmp_path: Path) -> None:
    owner = Owner(tmp_path)
    name = owner.name()
    assert owner.name() == name
    assert [is_alive(tmp_path, name) for _ in range(2)] == [True, True]
    assert lock_path(tmp_path, name).stat().st_mode & 0o777 == 0o600
    owner.release()
    assert not is_alive(tmp_path, name)
    assert not lock_path(tmp_path, name).exists()
    assert owner.name() != name


def test_an_owner_is_dead_after_a_kill_and_its_file_can_be_removed(tmp_path: Path) -> None:
    read, write = os.pipe()

    def own() -> None:
        owner = Owner(tmp_path)
        os.write(write, owner.name().encode())
        signal.pause()

    child = fork(own)
    name = os.read(read, 100).decode()
    assert is_alive(tmp_path, name)
    os.kill(child, signal.SIGKILL)
    assert end_of(child) == -signal.SIGKILL
    assert not is_alive(tmp_path, name)
    assert lock_path(tmp_path, name).exists()
    remove_owner(tmp_path, name)
    remove_owner(tmp_path, name)
    assert not lock_path(tmp_path, name).exists()
    assert not is_alive(tmp_path, name)
    os.close(read)
    os.close(write)


def test_a_command_that_inherits_the_lock_keeps_the_owner_alive(tmp_path: Path) -> None:
    owner = Owner(tmp_path)
    name = owner.name()
    command = subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=[owner.descriptor]
    )
    os.close(os.dup(owner.descriptor))
    # As the end of this process does, without the removal of the file.
    owner.reset()
    assert is_alive(tmp_path, name)
    command.communicate(b"\n")
    assert not is_alive(tmp_path, name)


def test_a_command_that_does_not_inherit_the_lock_does_not(tmp_path: Path) -> None:
    owner = Owner(tmp_path)
    name = owner.name()
    command = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    owner.reset()
    assert not is_alive(tmp_path, name)
    command.communicate(b"\n")


def test_a_forked_child_has_an_owner_of_its_own(tmp_path: Path) -> None:
    owner = Owner(tmp_path)
    name = owner.name()

    def check() -> None:
        assert owner.descriptor == -1
        assert owner.name() != name
        assert is_alive(tmp_path, owner.name())
        owner.release()
        assert is_alive(tmp_path, name)

    run_forks([check])
    assert is_alive(tmp_path, name)


def test_a_forked_child_that_stays_does_not_keep_its_parent_alive(tmp_path: Path) -> None:
    read, write = os.pipe()
    names, name_of = os.pipe()

    def own() -> None:
        os.close(write)
        owner = Owner(tmp_path)
        name = owner.name()

        def stay() -> None:
            os.write(name_of, name.encode())
            os.read(read, 1)

        fork(stay)

    assert end_of(fork(own)) == 0
    assert not is_alive(tmp_path, os.read(names, 100).decode())
    for descriptor in (read, write, names, name_of):
        os.close(descriptor)


@pytest.mark.parametrize("name", ["", "..", "../x", "A" * 32, "0" * 31, "0" * 33, "é" * 32])
def test_what_is_no_name_of_a_lock_is_held_by_nobody_and_never_removed(
    tmp_path: Path, name: str
) -> None:
    file = tmp_path / FOLDER_NAME / f"{name}.lock"
    (tmp_path / FOLDER_NAME).mkdir()
    file.touch()
    assert not is_alive(tmp_path, name)
    remove_owner(tmp_path, name)
    assert file.exists()


def test_a_lock_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / FOLDER_NAME).mkdir()
    lock_path(tmp_path, UNKNOWN).symlink_to(tmp_path / "x")
    with pytest.raises(UnavailableError, match="cannot be opened"):
        is_alive(tmp_path, UNKNOWN)


def test_a_spool_that_cannot_be_written_is_unavailable(tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    spool.mkdir(mode=0o500)

    def own() -> None:
        become_nobody()
        with pytest.raises(UnavailableError, match="cannot be created or written: Permission"):
            Owner(spool).name()

    run_forks([own])
    assert list(spool.iterdir()) == []
