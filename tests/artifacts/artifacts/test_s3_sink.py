"""Sinks on S3, against a real server, with a proxy in between where something has to go wrong."""

import asyncio
import gc
import os
import signal
import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import fsspec.asyn
import pytest
from tests.support import object_stores
from tests.support.effort import times
from tests.support.http_proxy import Cut, Exchange, Proxy
from tests.support.object_stores import S3Admin, ServerProcess
from tests.support.processes import run_python
from tests.support.sinks import put_bytes

from tooltrail.artifacts import ArtifactArchive, Capture, CapturedStream, open_sink
from tooltrail.artifacts._object_backend import PART_SIZE
from tooltrail.artifacts._s3 import MOST_PARTS, part_size_of
from tooltrail.artifacts.sink import ArtifactSink
from tooltrail.artifacts.testing import SinkContract
from tooltrail.records import StreamRecord
from tooltrail.records.errors import InvalidRecordError, MissingArtifactError, UnavailableError

LARGE = os.urandom(PART_SIZE + 1_000_000)
"""Two parts, of which the last is short."""

SLICE = 4096


class TestS3Sink(SinkContract):
    racers = times(2)

    @pytest.fixture(autouse=True)
    def _place(self, proxy: Proxy, s3_bucket: str) -> None:
        self.bucket = s3_bucket
        turn, puts = threading.Lock(), list[Exchange]()

        def one_by_one(exchange: Exchange) -> None:
            if exchange.method == "PUT":
                with turn:
                    for before in puts:
                        before.done.wait(60)
                    puts[:] = [exchange]

        # This server looks for an object and creates it in two steps.
        proxy.rule = one_by_one

    def make_sink(self, folder: Path) -> ArtifactSink:
        return open_sink(f"s3://{self.bucket}/a folder/{uuid.uuid4()}")


@pytest.fixture
def admin(s3_admin: S3Admin) -> S3Admin:
    return s3_admin


@pytest.fixture
def proxy(
    s3_server: ServerProcess, s3_bucket: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Proxy]:
    with Proxy(s3_server.port).running() as running:
        monkeypatch.setenv("AWS_ENDPOINT_URL", running.url)
        yield running


@pytest.fixture
def sink(proxy: Proxy, s3_bucket: str) -> ArtifactSink:
    """A sink whose requests go through the proxy; those that opened it are not in the log."""
    opened = open_sink(f"s3://{s3_bucket}/root")
    proxy.log.clear()
    return opened


def methods(proxy: Proxy) -> list[str]:
    return [exchange.method for exchange in proxy.log]


def is_part(exchange: Exchange) -> bool:
    return exchange.method == "PUT" and "partNumber=" in exchange.target


def is_completion(exchange: Exchange) -> bool:
    return exchange.method == "POST" and "uploadId=" in exchange.target


def test_objects_stand_below_the_prefix_under_their_own_names(
    sink: ArtifactSink, admin: S3Admin, s3_bucket: str
) -> None:
    put_bytes(sink, "a/é +%2B#", b"bytes")
    assert admin.keys(s3_bucket) == ["root/a/é +%2B#"]
    assert sink.url == f"s3://{s3_bucket}/root"
    assert open_sink(f"s3://{s3_bucket}/root/").url == sink.url


def test_a_task_that_lost_its_connection_prints_nothing(
    sink: ArtifactSink, caplog: pytest.LogCaptureFixture
) -> None:
    assert sink.url
    loop = fsspec.asyn.get_loop()
    for error in (ConnectionResetError("lost"), ValueError("other")):
        left = asyncio.run_coroutine_threadsafe(_leave_a_task(error), loop)
        left.result(timeout=10)
    assert [str(one.exc_info[1]) for one in caplog.records if one.exc_info] == ["other"]


async def _leave_a_task(error: Exception) -> None:
    async def fail() -> None:
        raise error

    task = asyncio.ensure_future(fail())
    await asyncio.wait([task])
    del task
    gc.collect()


def test_a_whole_bucket_is_a_place(s3_bucket: str, admin: S3Admin) -> None:
    sink = open_sink(f"s3://{s3_bucket}/")
    assert sink.url == f"s3://{s3_bucket}"
    assert list(sink.list()) == []
    put_bytes(sink, "a/object", b"bytes")
    assert admin.keys(s3_bucket) == ["a/object"]
    assert [stat.path for stat in sink.list()] == ["a/object"]
    assert sink.read("a/object", 0) == b"bytes"
    sink.delete("a/object")
    assert not sink.exists("a/object")


def test_a_small_artifact_takes_one_request_and_one_that_is_there_is_compared(
    sink: ArtifactSink, proxy: Proxy, tmp_path: Path
) -> None:
    archive = ArtifactArchive(sink)
    content = CapturedStream(StreamRecord.from_bytes("content", b"some text"), staged=None)
    stored = archive.publish(content, scratch=tmp_path / "scratch")
    assert methods(proxy) == ["PUT"]
    assert stored.stored_size == sink.stat(stored.path).stored_size
    again = archive.publish(content, scratch=tmp_path / "scratch")
    assert again == stored
    assert list((tmp_path / "scratch").iterdir()) == []


def test_a_range_takes_one_request_and_its_own_bytes(sink: ArtifactSink, proxy: Proxy) -> None:
    put_bytes(sink, "object", LARGE)
    for start, stop in ((5_000_000, 5_000_000 + SLICE), (-SLICE, None)):
        proxy.log.clear()
        assert sink.read("object", start, stop) == LARGE[start:stop]
        assert [(seen.method, seen.answered_bytes) for seen in proxy.log] == [("GET", SLICE)]


def test_opening_and_reading_the_beginning_fetches_less_than_two_megabytes(
    sink: ArtifactSink, proxy: Proxy
) -> None:
    put_bytes(sink, "object", LARGE)
    proxy.log.clear()
    with sink.open("object") as reader:
        assert reader.read(SLICE) == LARGE[:SLICE]
    assert methods(proxy) == ["HEAD", "GET"]
    assert proxy.log[1].answered_bytes < 2_000_000


def test_reading_through_takes_few_requests_and_every_byte_once(
    sink: ArtifactSink, proxy: Proxy
) -> None:
    put_bytes(sink, "object", LARGE)
    proxy.log.clear()
    with sink.open("object") as reader:
        while reader.read(100_000):
            pass
    # Blocks of 1, 2 and 4 MiB, and the rest.
    assert methods(proxy) == ["HEAD", "GET", "GET", "GET", "GET"]
    assert sum(seen.answered_bytes for seen in proxy.log) == len(LARGE)


def test_a_large_object_goes_up_in_parts(
    sink: ArtifactSink, proxy: Proxy, admin: S3Admin, s3_bucket: str
) -> None:
    assert put_bytes(sink, "object", LARGE) is True
    assert sum(map(is_part, proxy.log)) == 2
    assert admin.get(s3_bucket, "root/object") == LARGE
    assert admin.uploads(s3_bucket) == []


def test_a_large_object_that_is_there_is_not_sent(sink: ArtifactSink, proxy: Proxy) -> None:
    put_bytes(sink, "object", LARGE)
    proxy.log.clear()
    assert put_bytes(sink, "object", LARGE) is False
    assert "POST" not in methods(proxy)
    assert "PUT" not in methods(proxy)


def test_a_large_object_that_appears_meanwhile_stays_and_the_upload_is_aborted(
    sink: ArtifactSink, proxy: Proxy, admin: S3Admin, s3_bucket: str
) -> None:
    def put_first(exchange: Exchange) -> None:
        if is_completion(exchange):
            admin.put(s3_bucket, "root/object", b"the winner's")

    proxy.rule = put_first
    assert put_bytes(sink, "object", LARGE) is False
    assert admin.get(s3_bucket, "root/object") == b"the winner's"
    assert admin.uploads(s3_bucket) == []


def test_of_two_large_uploads_at_once_one_creates_the_object(
    sink: ArtifactSink, proxy: Proxy, admin: S3Admin, s3_bucket: str
) -> None:
    both_sent = threading.Barrier(2)
    completions: list[Exchange] = []

    def hold(exchange: Exchange) -> None:
        if not is_completion(exchange) or len(completions) == 2:
            return
        completions.append(exchange)
        both_sent.wait(60)
        # This server looks and completes in two steps, so it is asked one after the other.
        if exchange is completions[1]:
            completions[0].done.wait(60)

    proxy.rule = hold
    contents = [b"0" + LARGE, b"1" + LARGE]
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(partial(put_bytes, sink, "object"), contents))
    assert sorted(answers) == [False, True]
    assert admin.get(s3_bucket, "root/object") == contents[answers.index(True)]
    assert admin.uploads(s3_bucket) == []


def test_an_upload_whose_part_fails_is_aborted_after_all_parts_have_ended(
    sink: ArtifactSink, proxy: Proxy, admin: S3Admin, s3_bucket: str
) -> None:
    first_failed = threading.Event()

    def fail(exchange: Exchange) -> None:
        if is_part(exchange) and "partNumber=1&" in exchange.target + "&":
            first_failed.set()
            raise Cut
        if is_part(exchange):
            first_failed.wait(60)

    proxy.rule = fail
    with pytest.raises(UnavailableError, match=r"cannot publish object in s3://.*: the store"):
        put_bytes(sink, "object", LARGE)
    assert methods(proxy)[-1] == "DELETE"
    assert admin.uploads(s3_bucket) == []
    assert admin.keys(s3_bucket) == []


def test_an_upload_that_is_interrupted_is_aborted(
    sink: ArtifactSink, proxy: Proxy, admin: S3Admin, s3_bucket: str
) -> None:
    """A handler of a signal raises in the main thread, here when the second part arrives."""

    def interrupt(exchange: Exchange) -> None:
        if is_part(exchange) and "partNumber=2&" in exchange.target + "&":
            signal.raise_signal(signal.SIGINT)

    proxy.rule = interrupt
    with pytest.raises(KeyboardInterrupt):
        put_bytes(sink, "object", LARGE)
    assert admin.uploads(s3_bucket) == []
    assert admin.keys(s3_bucket) == []


def test_parts_that_could_not_be_aborted_are_removed_by_the_next_put(
    sink: ArtifactSink, proxy: Proxy, admin: S3Admin, s3_bucket: str
) -> None:
    sent = 0

    def go_away(exchange: Exchange) -> None:
        nonlocal sent
        sent += is_part(exchange)
        if sent > 1:
            raise Cut

    proxy.rule = go_away
    with pytest.raises(UnavailableError, match="the store cannot be reached"):
        put_bytes(sink, "object", LARGE)
    assert admin.uploads(s3_bucket) == ["root/object"]
    admin.begin_upload(s3_bucket, "root/object too")

    proxy.rule = lambda exchange: None
    assert put_bytes(sink, "object", LARGE) is True
    assert admin.get(s3_bucket, "root/object") == LARGE
    assert admin.uploads(s3_bucket) == ["root/object too"]


def test_a_server_that_dies_in_an_upload_and_comes_back_is_published_to_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with object_stores.s3_server().running() as server, Proxy(server.port).running() as proxy:
        for name, value in object_stores.s3_environment(proxy.url).items():
            monkeypatch.setenv(name, value)
        admin = S3Admin(server.url)
        admin.make_bucket("a-bucket")
        sink = open_sink("s3://a-bucket")

        def die(exchange: Exchange) -> None:
            if is_part(exchange):
                server.kill()

        proxy.rule = die
        with pytest.raises(UnavailableError, match="the store cannot be reached"):
            put_bytes(sink, "object", LARGE)
        with pytest.raises(UnavailableError, match="the store cannot be reached"):
            sink.exists("object")

        proxy.rule = lambda exchange: None
        server.start()
        admin.make_bucket("a-bucket")  # it kept everything in memory
        assert list(sink.list()) == []
        assert put_bytes(sink, "object", LARGE) is True
        assert sink.read("object", 0) == LARGE
        assert admin.uploads("a-bucket") == []


def test_more_than_a_thousand_objects_are_listed_in_order(
    sink: ArtifactSink, proxy: Proxy, admin: S3Admin, s3_bucket: str
) -> None:
    names = sorted(f"sha256/ab/{number}" for number in range(1001))
    admin.put_many(s3_bucket, [f"root/{name}" for name in names])
    assert [stat.path for stat in sink.list()] == names
    proxy.log.clear()
    assert [stat.path for stat in sink.list("sha256/ab/9")] == [
        name for name in names if name.startswith("sha256/ab/9")
    ]
    assert methods(proxy) == ["GET", "GET"]  # the one folder, in two pages


def test_what_others_left_in_the_bucket_is_not_listed(
    sink: ArtifactSink, admin: S3Admin, s3_bucket: str
) -> None:
    put_bytes(sink, "a/object", b"bytes")
    for key in ("root/", "root/a/", "root//x", "root/a//y", "root/b/../c", "rooted", "root/d.part"):
        admin.put(s3_bucket, key, b"")
    assert [stat.path for stat in sink.list()] == ["a/object"]


def test_an_object_and_a_folder_of_one_name_are_told_apart(sink: ArtifactSink) -> None:
    put_bytes(sink, "a/b", b"1")
    put_bytes(sink, "a", b"2")
    assert [stat.path for stat in sink.list()] == ["a", "a/b"]
    sink.delete("a/b")
    assert [stat.path for stat in sink.list("a/")] == []
    assert sink.read("a", 0) == b"2"


def test_a_path_that_the_client_would_cut_is_refused(sink: ArtifactSink) -> None:
    with pytest.raises(InvalidRecordError, match="versionId"):
        put_bytes(sink, "a?versionId=1", b"")


def test_a_conflict_without_an_object_is_unavailable(sink: ArtifactSink, proxy: Proxy) -> None:
    conflict = b"<Error><Code>ConditionalRequestConflict</Code><Message>m</Message></Error>"
    proxy.rule = lambda exchange: (409, conflict) if exchange.method == "PUT" else None
    with pytest.raises(UnavailableError, match=r"is being changed \(ConditionalRequestConflict\)"):
        put_bytes(sink, "object", b"bytes")


def test_a_refusal_that_names_no_condition_is_a_refusal_too(
    sink: ArtifactSink, proxy: Proxy
) -> None:
    """s3fs takes it for an invalid argument."""
    put_bytes(sink, "object", LARGE)
    bare = b"<Error><Code>PreconditionFailed</Code><Message>m</Message></Error>"
    proxy.rule = lambda exchange: (412, bare) if exchange.method == "PUT" else None
    assert put_bytes(sink, "object", LARGE) is False


def test_a_bucket_that_is_not_there_is_unavailable(s3_bucket: str) -> None:
    for create in (False, True):
        with pytest.raises(
            UnavailableError, match=r"artifacts: there is no bucket nobodys-bucket$"
        ):
            open_sink("s3://nobodys-bucket/x", create=create)


def test_a_bucket_that_went_away_is_unavailable_and_nothing_is_missing(
    sink: ArtifactSink, admin: S3Admin, s3_bucket: str
) -> None:
    admin.delete_bucket(s3_bucket)
    calls: list[Callable[[], object]] = [
        lambda: put_bytes(sink, "object", LARGE),
        lambda: sink.stat("object"),
        lambda: sink.exists("object"),
        lambda: sink.read("object", 0, 1),
        lambda: sink.open("object"),
        lambda: sink.delete("object"),
        lambda: list(sink.list()),
        lambda: list(sink.list("a/b")),
    ]
    for call in calls:
        with pytest.raises(UnavailableError, match=f": there is no bucket {s3_bucket}$"):
            call()


def test_refused_access_is_unavailable_and_says_so(proxy: Proxy, s3_bucket: str) -> None:
    refusal = b"<Error><Code>AccessDenied</Code><Message>m</Message></Error>"
    proxy.rule = lambda exchange: (403, refusal)
    with pytest.raises(UnavailableError, match=r"access was refused \(AccessDenied\)"):
        open_sink(f"s3://{s3_bucket}")


def test_uploads_that_may_not_be_listed_are_left(sink: ArtifactSink, proxy: Proxy) -> None:
    refusal = b"<Error><Code>AccessDenied</Code><Message>m</Message></Error>"

    def refuse_list(exchange: Exchange) -> tuple[int, bytes] | None:
        is_list = exchange.method == "GET" and "uploads" in exchange.target
        return (403, refusal) if is_list else None

    proxy.rule = refuse_list
    assert put_bytes(sink, "object", LARGE) is True


def test_a_store_that_never_answers_is_unavailable_after_its_timeout(
    proxy: Proxy, s3_bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "sinks.toml"
    config.write_text("[s3.config_kwargs]\nread_timeout = 0.2\n")
    monkeypatch.setenv("TOOLTRAIL_SINK_CONFIG", str(config))
    over = threading.Event()

    def keep_waiting(exchange: Exchange) -> None:
        over.wait(60)

    proxy.rule = keep_waiting
    try:
        with pytest.raises(UnavailableError, match=r"did not answer in time \(ReadTimeoutError\)"):
            open_sink(f"s3://{s3_bucket}")
    finally:
        over.set()


def test_a_reader_whose_store_goes_away_raises_as_a_file_does(
    sink: ArtifactSink, proxy: Proxy
) -> None:
    def cut(exchange: Exchange) -> None:
        raise Cut

    put_bytes(sink, "object", LARGE)
    with sink.open("object") as reader:
        reader.read(1)
        proxy.rule = cut
        with pytest.raises(OSError, match="the store cannot be reached"):
            reader.read(PART_SIZE)


def test_an_object_deleted_under_its_reader_is_not_the_end_of_it(sink: ArtifactSink) -> None:
    put_bytes(sink, "object", LARGE)
    with sink.open("object") as reader:
        reader.read(1)
        sink.delete("object")
        with pytest.raises(FileNotFoundError):
            reader.read()


def test_an_archive_keeps_artifacts_in_a_bucket(
    sink: ArtifactSink, tmp_path: Path, s3_bucket: str, admin: S3Admin
) -> None:
    archive = ArtifactArchive(sink)
    capture = Capture("log", tmp_path / "log.zst", edge_bytes=100)
    capture.write(LARGE)
    captured = capture.close()
    stored = archive.publish(captured)
    assert archive.publish(captured) == stored
    with archive.open(stored.path, size=stored.size) as reader:
        assert reader.read() == LARGE
    admin.put(s3_bucket, f"root/{stored.path}", b"damaged")
    assert archive.publish(captured) == stored
    assert archive.verify(stored.path, size=stored.size) == len(LARGE)
    admin.delete(s3_bucket, f"root/{stored.path}")
    with pytest.raises(MissingArtifactError):
        archive.open(stored.path)


MEMORY = r"""
import re, sys
from pathlib import Path
from tooltrail.artifacts import open_sink

def peak_after(name):
    assert sink.put(name, Path(sys.argv[2], name))
    with sink.open(name) as reader:
        while reader.read(1 << 20):
            pass
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) * 1024

sink = open_sink(sys.argv[1])
print(-peak_after("large") + peak_after("nearly twice as large"))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs the proc file system")
def test_a_larger_object_takes_no_more_memory_to_upload_and_to_read(
    s3_bucket: str, tmp_path: Path
) -> None:
    for name, parts in (("large", 4), ("nearly twice as large", 7)):
        with (tmp_path / name).open("wb") as sparse:
            sparse.truncate(parts * PART_SIZE)
    grown, _ = run_python(MEMORY, f"s3://{s3_bucket}", str(tmp_path))
    assert int(grown) < 2 * PART_SIZE


def test_the_largest_object_fits_into_the_parts_that_there_may_be() -> None:
    assert part_size_of(PART_SIZE + 1) == PART_SIZE
    assert part_size_of(MOST_PARTS * PART_SIZE) == PART_SIZE
    for size in (6 * 2**30, MOST_PARTS * PART_SIZE + 1, 5 * 2**40):
        assert part_size_of(size) * MOST_PARTS >= size


FORK = """
import os, sys
from tooltrail.artifacts import open_sink

sink = open_sink(sys.argv[1])
assert sink.read("object", 0) == b"bytes"
child = os.fork()
if child == 0:
    os._exit(0 if sink.read("object", 1, 3) == b"yt" else 1)
assert os.waitpid(child, 0)[1] == 0
print(sink.read("object", -1))
"""


def test_a_sink_goes_on_in_a_forked_child_and_in_its_parent(s3_bucket: str, admin: S3Admin) -> None:
    admin.put(s3_bucket, "object", b"bytes")
    assert run_python(FORK, f"s3://{s3_bucket}")[0] == "b's'\n"
