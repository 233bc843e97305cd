"""The tests that every sink must pass, for authors of sinks.

Subclass `SinkContract` in a test module and define `make_sink`. Then pytest runs all tests:

    class TestMySink(SinkContract):
        def make_sink(self, folder: Path) -> ArtifactSink:
            return MySink(folder / "root")

pytest passes a new `tmp_path` to every test. This module does not import pytest.
"""

import multiprocessing
import threading
import time
import unittest
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tooltrail.artifacts._range_contract import BIG, RangeContract, raises
from tooltrail.artifacts.fsspec_sink import open_sink
from tooltrail.artifacts.sink import ArtifactSink, ObjectStat
from tooltrail.records.errors import (
    InvalidRecordError,
    MissingArtifactError,
    PathEscapeError,
)

RACES = 40
"""Paths per race; puts to a single path would seldom collide."""

AWKWARD = ("a b", "a%20b", "a+b", "a&b=c;d", "é/ü", "a#1", "a?b=1", "~'{}", "x.")
"""Names that fail if a client builds URLs from them and quotes too little, or twice."""

ESCAPES = ("", "/etc/passwd", "../x", "a/../../x", "a/./b", "a//b", "a/", "a\\b", "a\0b", ".", "..")
"""Paths that every method refuses."""

START_TIMEOUT_S = 60.0
"""Seconds that racing processes wait for each other to start."""


class SinkContract(RangeContract):
    """Tests of the promises of `ArtifactSink`."""

    open_in_process: Callable[[str], ArtifactSink] = staticmethod(open_sink)
    """Opens the sink's URL in another process. A function in an importable module."""

    racers = 4
    """Threads or processes that put to the same path at once."""

    def test_a_new_sink_is_empty(self, tmp_path: Path) -> None:
        assert list(self.make_sink(tmp_path).list()) == []

    def test_what_was_put_is_read_back(self, tmp_path: Path) -> None:
        sink = self.make_sink(tmp_path)
        assert self.put(sink, tmp_path, "a/b/object.zst", b"some bytes") is True
        assert sink.exists("a/b/object.zst")
        assert _read(sink, "a/b/object.zst") == b"some bytes"

    def test_the_source_is_left_and_may_be_deleted(self, tmp_path: Path) -> None:
        sink = self.make_sink(tmp_path)
        source = self.make_source(tmp_path, b"bytes")
        sink.put("object", source)
        assert source.read_bytes() == b"bytes"
        source.unlink()
        assert _read(sink, "object") == b"bytes"

    def test_putting_twice_stores_one_object_and_says_so(self, tmp_path: Path) -> None:
        sink = self.make_sink(tmp_path)
        assert self.put(sink, tmp_path, "object", b"first") is True
        assert self.put(sink, tmp_path, "object", b"first") is False
        assert [stat.path for stat in sink.list()] == ["object"]

    def test_the_loser_never_changes_the_object(self, tmp_path: Path) -> None:
        sink = self.make_sink(tmp_path)
        self.put(sink, tmp_path, "object", b"first")
        before = sink.stat("object")
        assert self.put(sink, tmp_path, "object", b"second, and longer") is False
        assert _read(sink, "object") == b"first"
        assert sink.stat("object") == before

    def test_nothing_is_below_an_object(self, tmp_path: Path) -> None:
        sink = self.make_sink(tmp_path)
        self.put(sink, tmp_path, "object", b"first")
        assert not sink.exists("object/below")
        assert raises(MissingArtifactError, sink.open, "object/below")

    def test_a_source_that_is_not_there_is_an_invalid_record(self, tmp_path: Path) -> None:
        sink = self.make_sink(tmp_path)
        assert raises(InvalidRecordError, sink.put, "object", tmp_path / "nowhere")
        assert not sink.exists("object")

    def test_what_is_not_there_is_missing(self, tmp_path: Path) -> None:
        sink = self.make_sink(tmp_path)
        self.put(sink, tmp_path, "folder/object", b"bytes")
        for path in ("nothing", "folder", "folder/other", "other/object"):
            assert not sink.exists(path)
            for method in (sink.open, sink.stat, sink.delete):
                error = raises(MissingArtifactError, method, path)
                assert error.path == path

    def test_a_deleted_object_is_gone_and_can_be_put_again(self, tmp_path: Path) -> None:
        sink = self.make_sink(tmp_path)
        self.put(sink, tmp_path, "a/object", b"first")
        self.put(sink, tmp_path, "a/other", b"other")
        sink.delete("a/object")
        assert not sink.exists("a/object")
        assert [stat.path for stat in sink.list()] == ["a/other"]
        assert self.put(sink, tmp_path, "a/object", b"second") is True
        assert _read(sink, "a/object") == b"second"

    def test_an_empty_object_is_an_object(self, tmp_path: Path) -> None:
        sink = self.make_sink(tmp_path)
        assert self.put(sink, tmp_path, "empty", b"") is True
        assert self.put(sink, tmp_path, "empty", b"") is False
        assert sink.stat("empty").stored_size == 0
        assert _read(sink, "empty") == b""

    def test_a_big_object_is_read_back(self, tmp_path: Path) -> None:
        sink = self.make_sink(tmp_path)
        self.put(sink, tmp_path, "big", BIG)
        assert sink.stat("big").stored_size == len(BIG)
        assert _read(sink, "big") == BIG

    def test_every_reader_starts_at_the_beginning(self, tmp_path: Path) -> None:
        sink = self.make_sink(tmp_path)
        self.put(sink, tmp_path, "object", b"0123456789")
        with sink.open("object") as one, sink.open("object") as other:
            assert one.read(4) == b"0123"
            assert other.read(6) == b"012345"
            assert one.read() == b"456789"
            assert one.read() == b""

    def test_awkward_names_are_kept(self, tmp_path: Path) -> None:
        sink = self.make_sink(tmp_path)
        for path in AWKWARD:
            assert self.put(sink, tmp_path, path, path.encode()) is True
            assert self.put(sink, tmp_path, path, b"other bytes") is False
        assert [stat.path for stat in sink.list()] == sorted(AWKWARD)
        for path in AWKWARD:
            assert sink.stat(path).stored_size == len(path.encode())
            assert _read(sink, path) == path.encode()
            assert sink.read(path, 0) == path.encode()
            assert [stat.path for stat in sink.list(path)] == [path]
            sink.delete(path)
            assert not sink.exists(path)

    def test_a_frame_size_is_known(self, tmp_path: Path) -> None:
        assert self.make_sink(tmp_path).capabilities.frame_size > 0

    def test_stat_tells_size_and_time(self, tmp_path: Path) -> None:
        sink = self.make_sink(tmp_path)
        earliest = datetime.now(UTC) - timedelta(minutes=1)
        self.put(sink, tmp_path, "a/object", b"12345")
        stat = sink.stat("a/object")
        assert (stat.path, stat.stored_size) == ("a/object", 5)
        assert stat.modified_at.utcoffset() == timedelta(0)
        assert earliest < stat.modified_at < datetime.now(UTC) + timedelta(minutes=1)

    def test_the_list_is_sorted_by_path(self, tmp_path: Path) -> None:
        sink = self.make_sink(tmp_path)
        paths = ["b/2", "b/10", "a", "b.c", "b/1/x", "b-c", "z/y/x", "é/ü"]
        for path in paths:
            self.put(sink, tmp_path, path, path.encode())
        stats = list(sink.list())
        assert [stat.path for stat in stats] == sorted(paths)
        assert stats == [sink.stat(path) for path in sorted(paths)]

    def test_the_list_is_narrowed_by_a_prefix(self, tmp_path: Path) -> None:
        sink = self.make_sink(tmp_path)
        paths = ["a/1", "a/2", "ab/1", "ab/2/x", "b/1"]
        for path in paths:
            self.put(sink, tmp_path, path, b"")
        for prefix in ("a", "a/", "a/1", "ab", "ab/", "ab/2/", "b", "c", "a/1/x"):
            found = [stat.path for stat in sink.list(prefix)]
            assert found == [path for path in paths if path.startswith(prefix)], prefix

    def test_paths_that_escape_are_refused_by_every_method(self, tmp_path: Path) -> None:
        sink = self.make_sink(tmp_path)
        source = self.make_source(tmp_path, b"bytes")
        for path in ESCAPES:
            assert raises(PathEscapeError, sink.put, path, source)
            assert raises(PathEscapeError, sink.read, path, 0, 1)
            for method in (sink.open, sink.stat, sink.exists, sink.delete):
                assert raises(PathEscapeError, method, path)
        for prefix in ("/", "../", "a/../", "a//", "a\\", "a\0"):
            assert raises(PathEscapeError, _list, sink, prefix)

    def test_the_url_names_no_secret_and_stays_the_same(self, tmp_path: Path) -> None:
        sink = self.make_sink(tmp_path)
        assert "@" not in sink.url
        assert sink.url == sink.url
        assert "://" in sink.url

    def test_one_of_many_threads_creates_an_object(self, tmp_path: Path) -> None:
        sink = self.make_sink(tmp_path)
        barrier = threading.Barrier(self.racers)
        sources = [self.make_source(tmp_path, _payload(racer)) for racer in range(self.racers)]

        def race(racer: int) -> list[bool]:
            barrier.wait()
            return [sink.put(path, sources[racer]) for path in _race_paths()]

        with ThreadPoolExecutor(self.racers) as pool:
            _check_race(sink, list(pool.map(race, range(self.racers))))

    def test_one_of_many_processes_creates_an_object(self, tmp_path: Path) -> None:
        sink = self.make_sink(tmp_path)
        if not sink.capabilities.cross_process:
            raise unittest.SkipTest("this sink belongs to one process")
        tasks = [
            (
                type(self).open_in_process,
                sink.url,
                self.make_source(tmp_path, _payload(racer)),
                tmp_path / f"ready-{racer}",
                [tmp_path / f"ready-{other}" for other in range(self.racers)],
            )
            for racer in range(self.racers)
        ]
        with ProcessPoolExecutor(self.racers, multiprocessing.get_context("spawn")) as pool:
            _check_race(sink, list(pool.map(_race_in_process, tasks)))

    def test_a_list_meanwhile_shows_only_whole_objects(self, tmp_path: Path) -> None:
        sink = self.make_sink(tmp_path)
        paths = [f"a/{number}" for number in range(8)]
        sources = [self.make_source(tmp_path, BIG) for _ in paths]
        with ThreadPoolExecutor(2) as pool:
            puts = [pool.submit(sink.put, *pair) for pair in zip(paths, sources, strict=True)]
            while True:
                done = all(put.done() for put in puts)
                stats = list(sink.list())
                assert {stat.stored_size for stat in stats} <= {len(BIG)}
                assert {stat.path for stat in stats} <= set(paths)
                if done:
                    break
        assert [put.result() for put in puts] == [True] * len(paths)
        assert [stat.path for stat in stats] == paths


def _read(sink: ArtifactSink, path: str) -> bytes:
    with sink.open(path) as reader:
        return reader.read()


def _list(sink: ArtifactSink, prefix: str) -> list[ObjectStat]:
    return list(sink.list(prefix))


def _payload(racer: int) -> bytes:
    return b"%d" % racer * 10_000


def _race_paths() -> list[str]:
    return [f"race/{number}" for number in range(RACES)]


def _race_in_process(
    task: tuple[Callable[[str], ArtifactSink], str, Path, Path, Sequence[Path]],
) -> list[bool]:
    opener, url, source, ready, all_ready = task
    sink = opener(url)
    ready.touch()
    deadline = time.monotonic() + START_TIMEOUT_S
    while not all(path.exists() for path in all_ready):
        assert time.monotonic() < deadline, "the other processes did not start"
    return [sink.put(path, source) for path in _race_paths()]


def _check_race(sink: ArtifactSink, results: Sequence[Sequence[bool]]) -> None:
    """Check that each path has one winner, and the bytes of the winner."""
    for path, answers in zip(_race_paths(), zip(*results, strict=True), strict=True):
        assert sum(answers) == 1, f"{path} has {sum(answers)} winners"
        assert _read(sink, path) == _payload(answers.index(True))
    assert [stat.path for stat in sink.list("race/")] == sorted(_race_paths())
