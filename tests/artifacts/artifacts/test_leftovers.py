"""Parts that a killed publication left: found, told from all else, and removed one by one."""

import tempfile
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.support.processes import NOBODY, run_python

from tooltrail.artifacts import open_sink
from tooltrail.artifacts.leftovers import iter_leftovers, remove_leftover
from tooltrail.artifacts.sink import ArtifactSink
from tooltrail.records import InvalidRecordError, UnavailableError

OBJECT = f"sha256/ab/{'ab' * 32}.zst"
LIST = """
from tooltrail.artifacts import open_sink
from tooltrail.artifacts.leftovers import iter_leftovers
from tooltrail.records import UnavailableError
try:
    list(iter_leftovers(open_sink(sys.argv[1])))
except UnavailableError as error:
    print(error)
"""
PART = f"{OBJECT}.0123456789abcdef.part"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "artifacts"


@pytest.fixture
def sink(root: Path) -> ArtifactSink:
    return open_sink(str(root), create=True)


def put(root: Path, path: str, data: bytes = b"part") -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_bytes(data)


def test_parts_are_found_with_their_size_and_the_time_they_were_written(
    sink: ArtifactSink, root: Path
) -> None:
    evidence = f"damaged/{'ab' * 32}-00112233.zst.fedcba9876543210.part"
    put(root, PART, b"12345")
    put(root, evidence)
    before = datetime.now(UTC)
    found = {stat.path: stat for stat in iter_leftovers(sink)}
    assert found.keys() == {PART, evidence}
    assert found[PART].stored_size == 5
    assert 0 <= (before - found[PART].modified_at).total_seconds() < 60


def test_nothing_else_is_taken_for_a_part(sink: ArtifactSink, root: Path) -> None:
    others = (
        OBJECT,
        f"{OBJECT}.part",
        f"{OBJECT}.0123.part",
        f"{OBJECT}.0123456789ABCDEF.part",
        f"notes/{'ab' * 32}.zst.0123456789abcdef.part",
        "sha256/ab/deeper/x.zst.0123456789abcdef.part",
        "x.zst.0123456789abcdef.part",
    )
    for path in others:
        put(root, path)
    assert list(iter_leftovers(sink)) == []
    for path in others:
        with pytest.raises(InvalidRecordError, match="not a part"):
            remove_leftover(sink, path)
        assert (root / path).exists()


def test_a_part_is_removed_once(sink: ArtifactSink, root: Path) -> None:
    put(root, PART)
    assert remove_leftover(sink, PART)
    assert not (root / PART).exists()
    assert not remove_leftover(sink, PART)


def test_a_real_publication_that_is_under_way_is_seen_as_one_part(
    tmp_path: Path, sink: ArtifactSink, root: Path
) -> None:
    """Parts are looked for while objects come and go; none of that breaks the list."""
    stopped = threading.Event()
    put(root, PART)

    def come_and_go() -> None:
        number = 0
        while not stopped.is_set():
            number += 1
            path = f"{OBJECT}.{number:016x}.part"
            put(root, path)
            (root / path).unlink()

    thread = threading.Thread(target=come_and_go)
    thread.start()
    try:
        for _ in range(200):
            assert PART in {stat.path for stat in iter_leftovers(sink)}
    finally:
        stopped.set()
        thread.join()


def test_a_sink_in_memory_has_no_parts() -> None:
    sink = open_sink("memory://without-parts", create=True)
    assert list(iter_leftovers(sink)) == []
    with pytest.raises(InvalidRecordError):
        remove_leftover(sink, PART)


def test_what_cannot_be_removed_is_said(sink: ArtifactSink, root: Path) -> None:
    (root / PART).mkdir(parents=True)
    with pytest.raises(UnavailableError, match="cannot delete"):
        remove_leftover(sink, PART)


def test_a_folder_that_cannot_be_read_is_said() -> None:
    # Not in a folder of pytest's, which lets nobody else in.
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        put(root, PART)
        root.chmod(0o755)
        (root / "sha256").chmod(0o755)
        (root / "sha256" / "ab").chmod(0)
        said, _ = run_python(LIST, str(root), user=NOBODY)
        (root / "sha256" / "ab").chmod(0o755)
    assert said == f"cannot list file://{root}: Permission denied\n"
