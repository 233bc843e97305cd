"""The shipped sinks pass the contract, and say clearly what is wrong with a place."""

import os
import stat
import subprocess
import sys
import tempfile
import textwrap
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.system_calls import require_strace

from tooltrail.artifacts.fsspec_sink import open_sink
from tooltrail.artifacts.sink import ArtifactSink
from tooltrail.artifacts.testing import SinkContract
from tooltrail.records.errors import (
    DamageError,
    InvalidRecordError,
    MissingArtifactError,
    UnavailableError,
)

PLACES = (Path("/dev/shm"), Path("/var/tmp"))


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def other_device_than(folder: Path) -> Path:
    """A folder on another disk, on which linking is impossible."""
    here = folder.stat().st_dev
    others = [one for one in PLACES if one.is_dir() and one.stat().st_dev != here]
    if not others:
        pytest.skip("there is no second file system")
    return others[0]


class TestLocalSink(SinkContract):
    def make_sink(self, folder: Path) -> ArtifactSink:
        return open_sink(str(folder / "root"), create=True)


class TestLocalSinkOnAnotherDevice(SinkContract):
    @pytest.fixture(autouse=True)
    def _sources(self, tmp_path: Path) -> Iterator[None]:
        self.folder = other_device_than(tmp_path) / f"tooltrail-{uuid.uuid4()}"
        self.folder.mkdir()
        yield
        for source in self.folder.iterdir():
            source.unlink()
        self.folder.rmdir()

    def make_sink(self, folder: Path) -> ArtifactSink:
        return open_sink(f"file://{folder}/root", create=True)

    def make_source(self, folder: Path, data: bytes) -> Path:
        return super().make_source(self.folder, data)

    def test_the_source_is_a_file_of_its_own(self, tmp_path: Path) -> None:
        sink = self.make_sink(tmp_path)
        source = self.make_source(tmp_path, b"bytes")
        source.chmod(0o640)
        sink.put("object", source)
        target = tmp_path / "root" / "object"
        assert not target.samefile(source)
        assert mode_of(target) == 0o400
        assert mode_of(source) == 0o640

    def test_no_part_is_left_behind(self, tmp_path: Path) -> None:
        sink = self.make_sink(tmp_path)
        self.put(sink, tmp_path, "a/object", b"bytes")
        assert [path.name for path in (tmp_path / "root" / "a").iterdir()] == ["object"]


class TestMemorySink(SinkContract):
    def make_sink(self, folder: Path) -> ArtifactSink:
        return open_sink(f"memory://{uuid.uuid4()}", create=True)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "root"


@pytest.fixture
def sink(root: Path) -> ArtifactSink:
    return open_sink(str(root), create=True)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    source = tmp_path / "source"
    source.write_bytes(b"bytes")
    return source


def test_an_object_on_the_same_disk_is_the_source_made_read_only(
    sink: ArtifactSink, root: Path, source: Path
) -> None:
    source.chmod(0o640)
    sink.put("object", source)
    assert (root / "object").samefile(source)
    assert mode_of(source) == 0o400


@pytest.fixture(params=[0o000, 0o022, 0o077])
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


@pytest.mark.usefixtures("umask")
def test_a_root_made_here_and_all_below_it_are_their_owners_alone(
    tmp_path: Path, source: Path
) -> None:
    root = tmp_path / "deeper" / "root"
    open_sink(str(root), create=True).put("a/b/object", source)
    for folder in (root.parent, root, root / "a", root / "a" / "b"):
        assert mode_of(folder) == 0o700
    assert mode_of(root / "a" / "b" / "object") == 0o400


@pytest.mark.usefixtures("umask")
@pytest.mark.parametrize(
    ("mode", "object_mode"), [(0o700, 0o400), (0o2770, 0o440), (0o755, 0o444), (0o711, 0o400)]
)
def test_a_root_that_was_there_says_who_reads_what_is_below_it(
    root: Path, source: Path, mode: int, object_mode: int
) -> None:
    root.mkdir()
    root.chmod(mode)
    open_sink(str(root), create=True).put("a/b/object", source)
    for folder in (root, root / "a", root / "a" / "b"):
        assert mode_of(folder) == mode
    assert mode_of(root / "a" / "b" / "object") == object_mode


needs_groups = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to any group")


@needs_groups
def test_an_object_for_a_group_belongs_to_the_group_of_the_root(root: Path, source: Path) -> None:
    root.mkdir()
    os.chown(root, -1, 4321)
    root.chmod(0o2770)
    open_sink(str(root)).put("a/object", source)
    assert (root / "a").stat().st_gid == 4321
    assert (root / "a" / "object").stat().st_gid == 4321
    assert mode_of(root / "a" / "object") == 0o440


@needs_groups
def test_an_object_is_for_no_group_when_that_of_the_root_is_out_of_reach(
    foreign: tuple[Path, Path],
) -> None:
    root = foreign[0] / "root"
    sink = open_sink(str(root), create=True)
    os.seteuid(0)
    os.chown(root, -1, 4321)
    root.chmod(0o770)
    os.seteuid(65534)
    assert sink.put("object", foreign[1])
    assert (root / "object").stat().st_gid != 4321
    assert mode_of(root / "object") == 0o400


def test_a_symbolic_link_and_a_folder_are_no_source(
    sink: ArtifactSink, source: Path, tmp_path: Path
) -> None:
    link = tmp_path / "link"
    link.symlink_to(source)
    with pytest.raises(UnavailableError, match="cannot publish object"):
        sink.put("object", link)
    assert not sink.exists("object")
    with pytest.raises(InvalidRecordError, match="there is no file"):
        sink.put("object", tmp_path)


@pytest.fixture
def foreign(tmp_path: Path) -> Iterator[tuple[Path, Path]]:
    """A folder of a user who is not root, and somebody else's file, which may not be linked."""
    if os.geteuid() != 0:
        yield tmp_path, Path("/etc/passwd")
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "own").mkdir()
        os.chown(folder / "own", 65534, 65534)
        (folder / "file").write_bytes(b"bytes of another user")
        os.seteuid(65534)
        try:
            yield folder / "own", folder / "file"
        finally:
            os.seteuid(0)


def test_a_file_that_may_not_be_linked_is_copied(foreign: tuple[Path, Path]) -> None:
    folder, source = foreign
    sink = open_sink(str(folder / "root"), create=True)
    assert sink.put("a/object", source) is True
    assert not (folder / "root" / "a" / "object").samefile(source)
    assert (folder / "root" / "a" / "object").read_bytes() == source.read_bytes()
    assert sink.put("a/object", source) is False


def test_a_folder_that_may_not_be_written_is_unavailable(foreign: tuple[Path, Path]) -> None:
    folder, source = foreign
    sink = open_sink(str(folder / "root"), create=True)
    (folder / "root").chmod(0o555)
    with pytest.raises(UnavailableError, match=r"cannot publish a/object .* Permission denied"):
        sink.put("a/object", source)
    with pytest.raises(UnavailableError, match="Permission denied"):
        open_sink(str(folder / "root" / "new"), create=True)


def test_a_link_inside_the_root_that_leads_out_is_refused(
    sink: ArtifactSink, root: Path, source: Path, tmp_path: Path
) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_bytes(b"secret")
    (root / "object").symlink_to(tmp_path / "outside" / "secret")
    (root / "folder").symlink_to(tmp_path / "outside")
    for path in ("object", "folder/secret"):
        for method in (sink.open, sink.stat, sink.exists, sink.delete):
            with pytest.raises(DamageError, match="symbolic link"):
                method(path)
    with pytest.raises(DamageError):
        sink.put("folder/new", source)
    assert list(sink.list()) == []


def test_a_root_that_is_a_link_is_followed(root: Path, source: Path, tmp_path: Path) -> None:
    root.mkdir()
    link = tmp_path / "link"
    link.symlink_to(root)
    sink = open_sink(str(link))
    assert sink.url == f"file://{link}"
    sink.put("object", source)
    assert (root / "object").read_bytes() == b"bytes"


def test_a_link_inside_the_root_that_stays_inside_is_read(
    sink: ArtifactSink, root: Path, source: Path
) -> None:
    sink.put("a/object", source)
    (root / "b").symlink_to(root / "a")
    with sink.open("b/object") as reader:
        assert reader.read() == b"bytes"


@pytest.mark.parametrize("place", ["file", "memory"])
def test_an_object_below_an_object_cannot_be_put(root: Path, source: Path, place: str) -> None:
    sink = open_sink(f"{place}://{root}", create=True)
    sink.put("a", source)
    with pytest.raises(UnavailableError, match=f"cannot publish a/b in {place}://"):
        sink.put("a/b", source)


def test_an_object_cannot_take_the_place_of_a_folder(sink: ArtifactSink, source: Path) -> None:
    sink.put("a/b", source)
    with pytest.raises(UnavailableError, match="File exists"):
        sink.put("a", source)


def test_a_root_that_went_away_is_unavailable_and_is_not_made_again(
    sink: ArtifactSink, root: Path, source: Path
) -> None:
    root.rmdir()
    with pytest.raises(UnavailableError, match="No such file or directory"):
        sink.put("a/object", source)
    with pytest.raises(UnavailableError):
        sink.stat("a/object")
    with pytest.raises(UnavailableError):
        list(sink.list())
    assert not root.exists()


def test_a_folder_that_went_away_is_made_again(
    sink: ArtifactSink, root: Path, source: Path
) -> None:
    sink.put("a/object", source)
    sink.delete("a/object")
    (root / "a").rmdir()
    assert sink.put("a/object", source) is True


def test_a_folder_that_goes_away_during_a_list_is_passed_over(
    sink: ArtifactSink, root: Path, source: Path
) -> None:
    sink.put("a/object", source)
    sink.put("b/object", source)
    listing = sink.list()
    assert next(listing).path == "a/object"
    sink.delete("b/object")
    (root / "b").rmdir()
    assert list(listing) == []


def test_a_path_that_loops_is_damaged(sink: ArtifactSink, root: Path) -> None:
    (root / "a").symlink_to(root / "a")
    with pytest.raises(DamageError, match="artifact a is damaged: a link or a pipe is in its"):
        sink.stat("a")


def test_opening_needs_the_folder_unless_told_to_create(root: Path) -> None:
    with pytest.raises(UnavailableError, match=rf"cannot use {root} for artifacts: No such file"):
        open_sink(str(root))
    assert not root.exists()
    open_sink(f"{root}/deeper/still", create=True)
    assert open_sink(f"{root}/deeper/still").url == f"file://{root}/deeper/still"


def test_opening_a_file_is_unavailable(source: Path) -> None:
    with pytest.raises(UnavailableError, match="Not a directory"):
        open_sink(str(source))
    with pytest.raises(UnavailableError, match="Not a directory"):
        open_sink(f"{source}/root", create=True)


def test_a_relative_folder_is_taken_from_the_current_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert open_sink("a/../b c", create=True).url == f"file://{tmp_path}/b c"
    assert open_sink(f"file://{tmp_path}/b c").url == f"file://{tmp_path}/b c"


def test_memory_is_found_again_by_its_url_in_the_same_process(source: Path) -> None:
    url = f"memory://{uuid.uuid4()}"
    with pytest.raises(UnavailableError, match="there is no folder for artifacts at memory://"):
        open_sink(url)
    sink = open_sink(url, create=True)
    sink.put("object", source)
    assert sink.url == url
    assert open_sink(url).exists("object")
    assert not sink.capabilities.durable


@pytest.mark.parametrize("url", ["", "file://", "memory://", "file://relative", "memory://../x"])
def test_places_that_name_nothing_are_invalid(url: str) -> None:
    with pytest.raises(InvalidRecordError):
        open_sink(url)


def test_an_unknown_kind_of_place_is_invalid_and_its_secret_is_not_repeated() -> None:
    with pytest.raises(InvalidRecordError, match="cannot be kept at gopher://") as caught:
        open_sink("gopher://user:hunter2@host/path")
    assert "hunter2" not in str(caught.value)


def test_missing_objects_name_the_sink(sink: ArtifactSink) -> None:
    with pytest.raises(MissingArtifactError, match=r"artifact a/b is missing from file:///"):
        sink.open("a/b")


def test_a_disk_that_takes_no_more_is_unavailable_and_leaves_no_part(tmp_path: Path) -> None:
    """The limit on file sizes stands for a full disk: it works everywhere and for every user."""
    other = other_device_than(tmp_path)
    script = textwrap.dedent(
        """
        import resource, signal, sys, tempfile
        from pathlib import Path
        from tooltrail.artifacts import open_sink
        from tooltrail.records.errors import UnavailableError
        sink = open_sink(sys.argv[1], create=True)
        with tempfile.NamedTemporaryFile(dir=sys.argv[2]) as source:
            source.write(bytes(100_000))
            source.flush()
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            limits = resource.getrlimit(resource.RLIMIT_FSIZE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, limits[1]))
            try:
                sink.put("a/object", Path(source.name))
            except UnavailableError as error:
                print(error)
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        print([stat.path for stat in sink.list()])
        """
    )
    root = tmp_path / "root"
    done = subprocess.run(
        [sys.executable, "-c", script, str(root), str(other)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"cannot publish a/object in file://{root}: File too large\n[]\n"
    assert list((root / "a").iterdir()) == []


def test_a_failing_disk_of_the_source_is_not_said_to_be_that_of_the_root(
    tmp_path: Path, source: Path
) -> None:
    require_strace()
    script = textwrap.dedent(
        """
        import sys
        from pathlib import Path
        from tooltrail.artifacts import open_sink
        try:
            open_sink(sys.argv[1], create=True).put("a/object", Path(sys.argv[2]))
        except Exception as error:
            print(error)
        """
    )
    root = tmp_path / "root"
    inject = ["-P", str(source), "-e", "inject=fsync:error=EIO"]
    done = subprocess.run(
        ["strace", "-f", "-o", os.devnull, *inject, sys.executable, "-c", script, root, source],
        capture_output=True,
        text=True,
        check=True,
    )
    said = f"cannot publish a/object in file://{root}: Input/output error: {source}\n"
    assert done.stdout == said


def test_a_link_to_a_folder_and_what_no_sink_has_put_are_not_listed(
    sink: ArtifactSink, root: Path, source: Path, tmp_path: Path
) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_bytes(b"secret")
    sink.put("a/object", source)
    (root / "out").symlink_to(tmp_path / "outside")
    (root / "in").symlink_to(root / "a")
    for name in ("object.0123456789abcdef.part", "back\\slash", "x" * 201):
        (root / "a" / name).write_bytes(b"by")
    assert [found.path for found in sink.list()] == ["a/object"]
    for prefix in ("out/", "in/ob", "a/object/below", "nowhere/at/all"):
        assert list(sink.list(prefix)) == []


def test_a_root_that_the_encoding_of_the_system_cannot_spell_is_unavailable(tmp_path: Path) -> None:
    body = """
        from tooltrail.artifacts.fsspec_sink import open_sink
        try:
            open_sink("/\\u65e5").exists("sha256/x")
        except Exception as error:
            print(type(error).__name__, ascii(str(error)))
    """
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(body)],
        env={**os.environ, **ascii_only},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.startswith("UnavailableError ")
    assert "set LC_ALL to a locale with UTF-8" in done.stdout


def test_a_root_in_memory_that_went_away_is_unavailable() -> None:
    import fsspec

    name = str(uuid.uuid4())
    sink = open_sink(f"memory://{name}", create=True)
    untyped: Any = fsspec
    untyped.filesystem("memory").rm(f"/{name}", recursive=True)
    with pytest.raises(UnavailableError, match=rf"cannot read object in memory://{name}: No such"):
        sink.read("object", 0)
    with pytest.raises(UnavailableError, match="No such file or directory"):
        list(sink.list())


def test_folders_are_read_best_in_small_frames_and_buckets_in_large_ones(
    sink: ArtifactSink, s3_bucket: str
) -> None:
    assert sink.capabilities.frame_size == 256 * 1024
    assert open_sink(f"s3://{s3_bucket}").capabilities.frame_size == 1024 * 1024


def test_local_objects_are_published_read_and_listed_without_importing_fsspec(
    tmp_path: Path, source: Path
) -> None:
    code = """
import sys
from pathlib import Path
from tooltrail.artifacts import open_sink
sink = open_sink(sys.argv[1], create=True)
sink.put("object", Path(sys.argv[2]))
assert sink.exists("object") and sink.read("object", 0) == b"bytes"
print([one.path for one in sink.list()], "fsspec" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "root"), str(source)],
        capture_output=True,
        check=True,
        text=True,
    )
    assert done.stdout == "['object'] False\n"
