"""Full, failing and read-only disks: nothing acknowledged is lost, and appends succeed again."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from tests.support.disks import SmallDisk, small_disk
from tests.support.effort import times
from tests.support.journals import (
    Label,
    become_nobody,
    check_acknowledged,
    check_whole,
    entry,
    filled,
    record,
    run_forks,
    seal_at,
)
from tests.support.processes import ROOT
from tests.support.system_calls import require_strace

from tooltrail.journal import JournalLog
from tooltrail.records.errors import DiskFullError, UnavailableError

PAGE = 4096
DISK_BYTES = 2 << 20


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk", DISK_BYTES) as mounted:
        yield mounted


def test_on_a_disk_that_is_full_at_any_page_nothing_acknowledged_is_lost(
    disk: SmallDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    seal_at(monkeypatch, 40_000)
    for begin in range(0, 45, 5):
        folder = disk.folder / f"journal{begin}"
        acknowledged = [("p", 0)]
        journal = filled(folder, 1)
        for pages in range(begin, begin + 5):
            _fill(disk, leave=pages)
            acknowledged += _record_until_full(journal, acknowledged[-1][1] + 1)
            check_acknowledged(folder, acknowledged)
            disk.free()
            number = acknowledged[-1][1] + 2
            record(journal if pages % 2 else JournalLog(folder), "p", [number])
            acknowledged.append(("p", number))
            check_acknowledged(folder, acknowledged)
        journal.close()
        shutil.rmtree(folder)


def _fill(disk: SmallDisk, *, leave: int) -> None:
    """Take all the room of a disk but so many pages."""
    disk.fill()
    filler = disk.folder / "filler"
    os.truncate(filler, filler.stat().st_size - leave * PAGE)


def _record_until_full(journal: JournalLog, number: int) -> list[Label]:
    """Record facts until there is no room for one; give those that were acknowledged."""
    acknowledged: list[Label] = []
    while True:
        try:
            journal.record([entry("p", number, size=900)])
        except DiskFullError as error:
            assert "no room on the disk of journal" in str(error)  # noqa: PT017
            return acknowledged
        acknowledged.append(("p", number))
        number += 1
        if number % 7 == 0:
            journal.close()


def test_a_fact_still_fits_where_the_zeros_behind_it_do_not(disk: SmallDisk) -> None:
    folder = disk.folder / "journal"
    journal = filled(folder, 2)
    _fill(disk, leave=6)
    journal.record([entry("p", 2, size=70_000)])
    assert check_whole(folder) == [("p", 0), ("p", 1), ("p", 2)]


def test_a_read_only_disk_is_unavailable_until_it_is_not(disk: SmallDisk) -> None:
    folder = disk.folder / "journal"
    filled(folder, 2).close()
    for journal in (JournalLog(folder), JournalLog(disk.folder / "new" / "journal")):
        with disk.read_only():
            with pytest.raises(UnavailableError, match="cannot be written: Read-only"):
                record(journal, "q", [0])
            assert check_whole(folder) == [("p", 0), ("p", 1)]
    record(JournalLog(folder), "p", [2])
    assert check_whole(folder) == [("p", 0), ("p", 1), ("p", 2)]


def test_a_folder_without_permission_is_unavailable(tmp_path: Path) -> None:
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)

    def try_to_record() -> None:
        become_nobody()
        with pytest.raises(UnavailableError, match="cannot be written: Permission denied"):
            record(JournalLog(locked / "journal"), "p", [0])

    run_forks([try_to_record])
    assert list(locked.iterdir()) == []


def test_a_file_where_the_folder_should_be_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "spool").write_text("")
    with pytest.raises(UnavailableError, match="cannot be written"):
        record(JournalLog(tmp_path / "spool" / "journal"), "p", [0])
    with pytest.raises(UnavailableError, match="cannot be written"):
        record(JournalLog(tmp_path / "spool"), "p", [0])


def test_a_limit_on_the_size_of_files_loses_nothing_acknowledged(tmp_path: Path) -> None:
    code = f"""
import resource, signal, sys
from pathlib import Path
from tests.support.journal_worker import record, say
from tooltrail.journal import JournalLog
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (70_000, 70_000))
record(JournalLog(Path({str(tmp_path)!r})), "p", 200, say)
"""
    said = _run([sys.executable, "-c", code])
    acknowledged = [(word[1], int(word[2])) for word in said if word[0] == "acked"]
    assert any(word[0] == "failed" for word in said)
    check_acknowledged(tmp_path, acknowledged)
    record(JournalLog(tmp_path), "q", [0])
    check_acknowledged(tmp_path, [*acknowledged, ("q", 0)])


FAILING = [
    *(("fdatasync", "EIO", nth) for nth in (1, 2, 3, 5, 9)),
    *(("fdatasync", "ENOSPC", nth) for nth in (2, 4)),
    *(("fsync", "EIO", nth) for nth in (1, 2, 3, 4, 9, 10, 11)),
    *(("pwrite64", "ENOSPC", nth) for nth in (1, 2, 3, 4, 5, 6, 7, 23, 24, 25, 26, 27)),
    *(("pwrite64", "EIO", nth) for nth in (3, 4, 12)),
    *(("ftruncate", "EIO", nth) for nth in (1, 2)),
    *(("rename", "ENOSPC", nth) for nth in (1, 2)),
    *(("pread64", "EIO", nth) for nth in (20, 21, 22)),
]
"""Which call fails, with which error, at which time."""


@pytest.mark.parametrize(("call", "error", "nth"), FAILING[:: 1 if times(1) > 1 else 3])
def test_a_disk_that_fails_once_costs_no_acknowledged_fact(
    tmp_path: Path, call: str, error: str, nth: int
) -> None:
    require_strace()
    said = _run(_failing(tmp_path, call, error, f"{nth}"))
    acknowledged = [(word[1], int(word[2])) for word in said if word[0] == "acked"]
    check_acknowledged(tmp_path, acknowledged)
    assert acknowledged[-1] == ("p0", 23), "appends succeed again"
    if call != "pwrite64":
        assert any(word[0] == "failed" for word in said)
    record(JournalLog(tmp_path), "q", [0])
    check_acknowledged(tmp_path, [*acknowledged, ("q", 0)])


def test_behind_a_sync_that_failed_the_next_fact_is_in_a_new_segment(tmp_path: Path) -> None:
    require_strace()
    said = _run(_failing(tmp_path, "fdatasync", "EIO", "3"))
    (failed,) = (word for word in said if word[0] == "failed")
    assert failed[3] == "UnavailableError"
    segments = {int(word[2]): int(word[3]) for word in said if word[0] == "acked"}
    number = int(failed[2])
    assert segments[number + 1] == segments[number - 1] + 1


def test_a_disk_that_fails_all_syncs_acknowledges_nothing(tmp_path: Path) -> None:
    require_strace()
    said = _run(_failing(tmp_path, "fdatasync", "EIO", "1+"))
    assert {word[0] for word in said} == {"begun", "failed"}
    record(JournalLog(tmp_path), "q", [0])
    assert ("q", 0) in check_whole(tmp_path)


def test_threads_that_share_a_failed_sync_all_get_the_error() -> None:
    require_strace()
    # In memory a sync takes no time, so that a thread may be done before the others begin.
    with TemporaryDirectory(dir="/var/tmp") as folder:
        said = _run(_failing(Path(folder), "fdatasync", "EIO", "4+", threads=4))
        acknowledged = [(word[1], int(word[2])) for word in said if word[0] == "acked"]
        failed = {word[1] for word in said if word[0] == "failed"}
        assert failed == {"p0", "p1", "p2", "p3"}
        check_acknowledged(Path(folder), acknowledged)


def _failing(folder: Path, call: str, error: str, when: str, *, threads: int = 1) -> list[str]:
    """The command of a worker of which some calls fail."""
    strace = ["strace", "-f", "--seccomp-bpf", "-qq", "-o", "/dev/null", "-e", f"trace={call}"]
    inject = ["-P", str(folder), *_paths(folder), "-e", f"inject={call}:error={error}:when={when}"]
    module = [sys.executable, "-m", "tests.support.journal_worker", "append", str(folder)]
    return [*strace, *inject, *module, "p", str(threads), "24", "4000"]


def _paths(folder: Path) -> list[str]:
    """Only what is done to the files of the journal fails."""
    names = ["end", *(f"{n:08d}.{kind}" for n in range(1, 30) for kind in ("seg", "part"))]
    return [word for name in names for word in ("-P", str(folder / name))]


def _run(command: list[str]) -> list[list[str]]:
    """What a worker said; it must end well."""
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [line.split() for line in done.stdout.splitlines()]
