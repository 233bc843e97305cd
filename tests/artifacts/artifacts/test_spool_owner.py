"""A spool folder tells whether its process lives, however that process ended."""

import errno
import fcntl
import gc
import os
import signal
import subprocess
import sys
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from tests.support.processes import ROOT

from tooltrail.artifacts import (
    SpoolOwner,
    exclusive_spool,
    is_in_use,
    is_reachable_spool,
    is_spool,
    is_spooled,
    is_stream_spooled,
    iter_spool_folders,
    remove_dead_owners,
    remove_spool_folder,
    spool_folders,
    spooled_streams,
)
from tooltrail.artifacts.spool_owner import is_held
from tooltrail.records.errors import UnavailableError

CLAIM = """
import os, signal, sys
from pathlib import Path
from uuid import UUID
from tooltrail.artifacts import SpoolOwner
owner = SpoolOwner(Path(sys.argv[1]), "store-1")
owner.claim(UUID(sys.argv[2]))
"""


def owners_in(spool: Path) -> list[str]:
    return [path.name for path in spool.iterdir() if path.name.startswith("owner-")]


def claim_and(spool: Path, then: str, *, expected: int = 0) -> Path:
    """Let a process claim a folder, and do something more."""
    name = uuid4()
    command = [sys.executable, "-c", CLAIM + then, str(spool), str(name)]
    assert subprocess.run(command, cwd=ROOT, check=False).returncode == expected
    return spool / str(name)


def test_a_folder_is_in_use_as_long_as_its_owner_is_there(tmp_path: Path) -> None:
    spool = tmp_path / "state" / "spool"
    owner = SpoolOwner(spool, "store-1")
    folder = owner.claim(uuid4())
    assert is_in_use(folder)
    assert folder.parent == spool
    del owner
    assert not is_in_use(folder)
    assert owners_in(spool) == []


def test_to_claim_a_folder_again_changes_nothing(tmp_path: Path) -> None:
    owner = SpoolOwner(tmp_path, "store-1")
    name = uuid4()
    assert owner.claim(name) == owner.claim(name)
    assert is_in_use(tmp_path / str(name))
    assert len(owners_in(tmp_path)) == 1


def test_many_folders_of_one_process_share_one_lock(tmp_path: Path) -> None:
    owner = SpoolOwner(tmp_path, "store-1")
    names = sorted((uuid4() for _ in range(50)), key=str)
    gc.collect()  # what other tests left open is closed whenever the collector comes by
    before = len(list(Path("/proc/self/fd").iterdir()))
    for name in names:
        owner.claim(name)
    assert len(list(Path("/proc/self/fd").iterdir())) == before + 1
    found = list(iter_spool_folders(tmp_path))
    assert [folder.invocation_id for folder in found] == names
    assert {(folder.store_id, folder.is_running) for folder in found} == {("store-1", True)}


def test_what_goes_while_a_spool_is_read_is_not_left_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    owners = [SpoolOwner(tmp_path, "store-1") for _ in range(3)]
    names = sorted((uuid4() for _ in owners), key=str)
    stays, ends, exits = map(SpoolOwner.claim, owners, names)
    spool = iter_spool_folders(tmp_path)
    assert next(spool).path == stays
    remove_spool_folder(ends)
    assert [(folder.path, folder.is_running) for folder in spool] == [(exits, True)]

    its_owner = exits.with_name(f"{exits.name}.owner").readlink()

    def exit_when_asked(path: Path) -> bool:
        if path.name == str(its_owner):
            remove_spool_folder(exits)
            path.unlink()
        return is_held(path)

    monkeypatch.setattr(spool_folders, "is_held", exit_when_asked)
    assert [folder.path for folder in iter_spool_folders(tmp_path)] == [stays]


def test_what_cannot_be_asked_for_any_more_is_not_taken_for_gone(tmp_path: Path) -> None:
    spool, names = tmp_path / "spool", sorted((uuid4() for _ in range(2)), key=str)
    owner = SpoolOwner(spool, "store-1")
    for name in names:
        owner.claim(name)
    found = iter_spool_folders(spool)
    assert next(found).is_running
    spool.rename(tmp_path / "away")
    spool.write_text("in the way")
    assert [(folder.invocation_id, folder.is_running) for folder in found] == [(names[1], False)]


@pytest.mark.parametrize("how", ["os.kill(os.getpid(), signal.SIGKILL)", "os._exit(0)", "pass"])
def test_a_folder_is_free_when_its_process_has_ended(tmp_path: Path, how: str) -> None:
    folder = claim_and(tmp_path, how, expected=-signal.SIGKILL if "kill" in how else 0)
    assert not is_in_use(folder)
    (found,) = iter_spool_folders(tmp_path)
    assert (found.path, found.store_id, found.is_running) == (folder, "store-1", False)
    # Who is killed leaves its file, which a clean-up takes away.
    assert len(owners_in(tmp_path)) == (how != "pass")
    remove_dead_owners(tmp_path)
    assert owners_in(tmp_path) == []


def test_neither_a_fork_nor_a_program_that_it_runs_keeps_the_folder(tmp_path: Path) -> None:
    then = """
import subprocess
read, write = os.pipe()
os.set_inheritable(read, True)
command = [sys.executable, "-I", "-S", "-c", f"import os; os.read({read}, 1)"]
subprocess.Popen(command, pass_fds=[read], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
if os.fork() == 0:
    os.close(write)
    print("ready", flush=True)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 1), os.dup2(null, 2)
    signal.pause()
"""
    name = uuid4()
    with _started(CLAIM + then, tmp_path, name) as process:
        assert process.stdout
        assert process.stdout.readline() == b"ready\n"
        folder = tmp_path / str(name)
        assert is_in_use(folder)
        process.kill()
        process.wait()
        assert not is_in_use(folder)
        os.killpg(process.pid, signal.SIGKILL)


def _started(code: str, spool: Path, name: UUID) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", f"{code}signal.pause()", str(spool), str(name)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )


def test_a_fork_claims_for_itself(tmp_path: Path) -> None:
    owner = SpoolOwner(tmp_path, "store-1")
    ours, theirs = uuid4(), uuid4()
    owner.claim(ours)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            owner.claim(theirs)
            os.write(write, b".")
            signal.pause()
        finally:
            os._exit(1)
    assert os.read(read, 1) == b"."
    os.close(read)
    os.close(write)
    assert is_in_use(tmp_path / str(theirs))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert not is_in_use(tmp_path / str(theirs))
    assert is_in_use(tmp_path / str(ours))


def test_an_owner_whose_file_was_taken_away_makes_another(tmp_path: Path) -> None:
    owner = SpoolOwner(tmp_path, "store-1")
    owner.claim(uuid4())
    (name,) = owners_in(tmp_path)
    (tmp_path / name).unlink()
    assert is_in_use(owner.claim(uuid4()))
    assert owners_in(tmp_path) != [name]


def test_a_living_owner_survives_the_clean_up(tmp_path: Path) -> None:
    owner = SpoolOwner(tmp_path, "store-1")
    folder = owner.claim(uuid4())
    remove_dead_owners(tmp_path)
    assert is_in_use(folder)


def test_a_folder_without_an_owner_or_with_a_foreign_link_is_of_nobody(tmp_path: Path) -> None:
    bare, linked = sorted((tmp_path / str(uuid4()) for _ in range(2)), key=str)
    bare.mkdir()
    Path(f"{linked}.owner").symlink_to("/etc/passwd")
    assert [(f.path, f.store_id, f.is_running) for f in iter_spool_folders(tmp_path)] == [
        (bare, None, False),
        (linked, None, False),
    ]
    assert not is_in_use(bare)
    assert not is_in_use(linked)


def test_only_folders_of_invocations_are_listed(tmp_path: Path) -> None:
    for name in ("aside-1", "kept", "recovering-x", str(uuid4()).upper()):
        (tmp_path / name).mkdir()
    assert list(iter_spool_folders(tmp_path)) == []
    assert list(iter_spool_folders(tmp_path / "nowhere")) == []


def test_a_spool_that_is_a_file_is_unavailable(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(UnavailableError, match="cannot be read: Not a directory"):
        list(iter_spool_folders(file))
    with pytest.raises(UnavailableError, match="cannot be opened: Not a directory"):
        exclusive_spool(file).__enter__()
    with pytest.raises(OSError, match=r"Not a directory|File exists"):
        SpoolOwner(file, "store-1").claim(uuid4())


def test_two_that_want_a_spool_for_themselves_take_turns(tmp_path: Path) -> None:
    code = """
import sys
from pathlib import Path
from tooltrail.artifacts import exclusive_spool
print("waits", flush=True)
with exclusive_spool(Path(sys.argv[1])):
    print((Path(sys.argv[1]) / "done").exists(), flush=True)
"""
    with exclusive_spool(tmp_path):
        other = subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE
        )
        assert other.stdout
        assert other.stdout.readline() == b"waits\n"
        (tmp_path / "done").touch()
    out, _ = other.communicate()
    assert out == b"True\n"


def test_the_folder_of_an_invocation_goes_with_all_that_is_in_it(tmp_path: Path) -> None:
    folder = SpoolOwner(tmp_path, "store-1").claim(uuid4())
    assert is_spooled(folder)
    folder.mkdir()
    (folder / "stdout.zst").write_bytes(b"x")
    (folder / "tooltrail-abc").mkdir()
    (folder / "tooltrail-abc" / "object.zst").write_bytes(b"x")
    (folder / "nested").mkdir()
    (folder / "nested" / "role.zst").write_bytes(b"x")
    assert sorted(spooled_streams(folder)) == ["nested/role", "stdout"]
    remove_spool_folder(folder)
    assert not is_spooled(folder)
    assert list(tmp_path.iterdir()) == []
    remove_spool_folder(folder)
    assert spooled_streams(folder) == {}


def test_whether_a_stream_is_in_a_spool_is_known_or_said_to_be_unknown(tmp_path: Path) -> None:
    folder = tmp_path / str(uuid4())
    assert not is_stream_spooled(folder, "stdout")
    (folder / "stderr.zst").mkdir(parents=True)
    (folder / "stdout.zst").write_bytes(b"x")
    assert is_stream_spooled(folder, "stdout")
    assert not is_stream_spooled(folder, "stderr")
    assert not is_stream_spooled(folder / "stdout.zst", "stdout")
    remove_spool_folder(folder)
    # As unreadable for everybody as one without rights is for others.
    folder.symlink_to(folder)
    why = f"{folder} cannot be read: Too many levels"
    with pytest.raises(UnavailableError, match=why):
        is_spool(folder)
    with pytest.raises(UnavailableError, match=why):
        is_spooled(folder)
    with pytest.raises(UnavailableError, match=why):
        is_stream_spooled(folder, "stdout")
    assert not is_reachable_spool(folder)
    assert is_reachable_spool(tmp_path)


def test_a_fork_leaves_what_its_parent_holds(tmp_path: Path) -> None:
    owner = SpoolOwner(tmp_path, "store-1")
    owner.claim(uuid4())
    (before,) = owners_in(tmp_path)
    owner.begin_anew()  # as a fork does; here there is no parent that would keep the lock
    assert owners_in(tmp_path) == [before]
    owner.claim(uuid4())
    assert len(owners_in(tmp_path)) == 2
    SpoolOwner(tmp_path, "store-1").begin_anew()  # nothing is held yet


@pytest.mark.parametrize(("times", "made"), [(1, True), (1_000, False)])
def test_an_owner_whose_file_is_cleaned_away_before_it_is_locked_makes_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int, made: bool
) -> None:
    lock, cleaned = fcntl.flock, 0

    def lock_too_late(descriptor: int, operation: int) -> None:
        nonlocal cleaned
        if operation == fcntl.LOCK_EX and cleaned < times:
            cleaned += 1
            remove_dead_owners(tmp_path)
        lock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", lock_too_late)
    owner = SpoolOwner(tmp_path, "store-1")
    if made:
        assert is_in_use(owner.claim(uuid4()))
    else:
        with pytest.raises(OSError, match="Device or resource busy"):
            owner.claim(uuid4())
    assert len(owners_in(tmp_path)) == made


def test_where_nothing_can_be_locked_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(OSError, match="No locks available"):
        SpoolOwner(tmp_path, "store-1").claim(uuid4())
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(UnavailableError, match="cannot be locked: No locks available"):
        exclusive_spool(tmp_path).__enter__()


def test_who_cannot_be_asked_is_taken_for_living(tmp_path: Path) -> None:
    owner = f"owner-store-1-{'0' * 16}"
    (tmp_path / owner).symlink_to(owner)  # cannot be opened, and is there
    folder = tmp_path / str(uuid4())
    Path(f"{folder}.owner").symlink_to(owner)
    assert is_in_use(folder)


def test_a_folder_that_cannot_be_read_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert spooled_streams(tmp_path / "file") == {}
    remove_spool_folder(tmp_path / "file" / "below")
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(UnavailableError, match="cannot be read: Too many levels of symbolic"):
        spooled_streams(tmp_path / "loop")
