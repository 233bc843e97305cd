"""A sink that opens when it is first used is a sink like others, and waits for one that is away."""

import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from tooltrail.artifacts import ArtifactSink, defer_sink, open_sink
from tooltrail.artifacts.testing import SinkContract
from tooltrail.records import InvalidRecordError, MissingArtifactError, UnavailableError

MARK = "whose root this is"


class TestDeferredLocalSink(SinkContract):
    def make_sink(self, folder: Path) -> ArtifactSink:
        open_sink(str(folder / "root"), create=True)
        return defer_sink(str(folder / "root"))


class TestDeferredMemorySink(SinkContract):
    def make_sink(self, folder: Path) -> ArtifactSink:
        url = f"memory://{uuid.uuid4()}"
        open_sink(url, create=True)
        return defer_sink(url)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    source = tmp_path / "source"
    source.write_bytes(b"bytes")
    return source


def read_through(sink: ArtifactSink) -> bytes:
    with sink.open("object") as file:
        return file.read()


METHODS: dict[str, Callable[[ArtifactSink, Path], object]] = {
    "put": lambda sink, source: sink.put("object", source),
    "open": lambda sink, _: read_through(sink),
    "read": lambda sink, _: sink.read("object", 0),
    "stat": lambda sink, _: sink.stat("object"),
    "exists": lambda sink, _: sink.exists("object"),
    "delete": lambda sink, _: sink.delete("object"),
    "list": lambda sink, _: list(sink.list()),
}


@pytest.mark.parametrize("method", METHODS)
def test_every_method_waits_for_a_root_that_is_away(
    method: str, tmp_path: Path, source: Path
) -> None:
    root = tmp_path / "root"
    sink = defer_sink(str(root))
    for _ in range(2):
        with pytest.raises(UnavailableError, match="root for artifacts: No such file"):
            METHODS[method](sink, source)
    assert not root.exists()
    if method != "put":
        open_sink(str(root), create=True).put("object", source)
    else:
        root.mkdir()
    METHODS[method](sink, source)


def test_what_is_known_without_opening_is_that_of_the_opened_sink(tmp_path: Path) -> None:
    deferred = defer_sink(f"{tmp_path}/a/../root")
    opened = open_sink(f"{tmp_path}/root", create=True)
    assert (deferred.url, deferred.capabilities) == (opened.url, opened.capabilities)


@pytest.mark.parametrize("url", ["", "gopher://host", "file://relative", "s3://user:pw@bucket"])
def test_a_place_that_cannot_be_one_is_refused_at_once(url: str) -> None:
    with pytest.raises(InvalidRecordError):
        defer_sink(url)


def test_options_that_turn_out_to_be_wrong_make_a_sink_unavailable(
    s3_bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: Path
) -> None:
    config = tmp_path / "sinks.toml"
    config.write_text('[s3]\nendpont_url = "hunter2"')
    monkeypatch.setenv("TOOLTRAIL_SINK_CONFIG", str(config))
    sink = defer_sink(f"s3://{s3_bucket}")
    with pytest.raises(UnavailableError, match="options for s3:// are not understood") as caught:
        sink.put("object", source)
    assert "hunter2" not in str(caught.value)


@pytest.fixture(params=["disk", "memory", "s3"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A root that is there and has no mark."""
    if request.param == "s3":
        return f"s3://{request.getfixturevalue('s3_bucket')}/{uuid.uuid4()}"
    place = str(tmp_path / "root") if request.param == "disk" else f"memory://{uuid.uuid4()}"
    open_sink(place, create=True)
    return place


def test_nothing_is_put_where_the_mark_is_missing(url: str, source: Path) -> None:
    sink = defer_sink(url, mark=MARK)
    for _ in range(2):
        with pytest.raises(UnavailableError, match=f"its file {MARK} is missing"):
            sink.put("object", source)
    assert list(open_sink(url).list()) == []
    open_sink(url).put(MARK, source)
    assert sink.put("object", source)


@pytest.mark.parametrize("taken", ["mark", "root"])
def test_a_disk_that_is_unmounted_later_is_noticed_by_the_next_put(
    taken: str, tmp_path: Path, source: Path
) -> None:
    root = tmp_path / "root"
    open_sink(str(root), create=True).put(MARK, source)
    sink = defer_sink(str(root), mark=MARK)
    assert sink.put("first", source)
    root.rename(tmp_path / "unmounted")
    if taken == "mark":
        root.mkdir()
    with pytest.raises(UnavailableError):
        sink.put("second", source)
    assert taken == "root" or list(root.iterdir()) == []
    if taken == "mark":
        root.rmdir()
    (tmp_path / "unmounted").rename(root)
    assert sink.put("second", source)


def test_an_object_is_missing_only_where_the_mark_is_not(url: str, source: Path) -> None:
    sink = defer_sink(url, mark=MARK)
    for ask in (METHODS["read"], METHODS["exists"], METHODS["delete"]):
        with pytest.raises(UnavailableError, match="is a disk not mounted"):
            ask(sink, source)
    open_sink(url).put(MARK, source)
    with pytest.raises(MissingArtifactError):
        sink.read("object", 0)
    assert not sink.exists("object")


def test_what_is_there_is_read_without_a_mark(url: str, source: Path) -> None:
    open_sink(url).put("object", source)
    sink = defer_sink(url, mark=MARK)
    assert sink.read("object", 0) == b"bytes"
    assert [stat.path for stat in sink.list()] == ["object"]
