"""Sinks on Azure Blob Storage, against Azurite where it is installed."""

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support import object_stores
from tests.support.effort import times
from tests.support.http_proxy import Proxy
from tests.support.object_stores import ServerProcess
from tests.support.sinks import put_bytes

from tooltrail.artifacts import open_sink
from tooltrail.artifacts._object_backend import PART_SIZE
from tooltrail.artifacts.sink import ArtifactSink
from tooltrail.artifacts.testing import SinkContract
from tooltrail.records.errors import InvalidRecordError, UnavailableError

pytestmark = [
    pytest.mark.skipif(
        object_stores.AZURITE is None,
        reason="Azurite comes by npm: put azurite-blob into the path or name it by"
        " $TOOLTRAIL_TEST_AZURITE",
    ),
    # Azure's client gives aiohttp bodies that aiohttp would rather have as files.
    pytest.mark.filterwarnings("ignore:Sending a large body directly:ResourceWarning"),
]

LARGE = os.urandom(9 * PART_SIZE)
"""More than the 64 MiB up to which Azure's client sends a file at once."""


@pytest.fixture(scope="module")
def azure_server() -> Iterator[ServerProcess]:
    with object_stores.azure_server().running() as server:
        yield server


@pytest.fixture
def azure_container(azure_server: ServerProcess, monkeypatch: pytest.MonkeyPatch) -> str:
    for name, value in object_stores.azure_environment(azure_server.url).items():
        monkeypatch.setenv(name, value)
    container = f"container-{uuid.uuid4()}"
    object_stores.make_azure_container(container)
    return container


class TestAzureSink(SinkContract):
    racers = times(2)

    @pytest.fixture(autouse=True)
    def _place(self, azure_container: str) -> None:
        self.container = azure_container

    def make_sink(self, folder: Path) -> ArtifactSink:
        return open_sink(f"az://{self.container}/a folder/{uuid.uuid4()}")


@pytest.fixture
def sink(azure_container: str) -> ArtifactSink:
    return open_sink(f"az://{azure_container}/root")


def test_a_range_takes_one_request_and_one_from_the_end_two(
    azure_server: ServerProcess, azure_container: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Proxy(azure_server.port).running() as proxy:
        for name, value in object_stores.azure_environment(proxy.url).items():
            monkeypatch.setenv(name, value)
        sink = open_sink(f"az://{azure_container}/root")
        put_bytes(sink, "object", b"0123456789")
        proxy.log.clear()
        assert sink.read("object", 3, 7) == b"3456"
        assert [(seen.method, seen.answered_bytes) for seen in proxy.log] == [("GET", 4)]
        proxy.log.clear()
        assert sink.read("object", -3) == b"789"
        assert [(seen.method, seen.answered_bytes) for seen in proxy.log] == [
            ("HEAD", 0),
            ("GET", 3),
        ]


def test_a_large_object_goes_up_in_blocks_and_stays(sink: ArtifactSink) -> None:
    assert put_bytes(sink, "object", LARGE) is True
    assert put_bytes(sink, "object", LARGE + b"!") is False
    with sink.open("object") as reader:
        assert reader.read() == LARGE


def test_a_container_that_is_not_there_is_unavailable(azure_container: str) -> None:
    with pytest.raises(UnavailableError, match=r"artifacts: there is no bucket nobodys$"):
        open_sink("az://nobodys", create=True)


def test_a_path_that_the_client_would_change_is_refused(sink: ArtifactSink) -> None:
    with pytest.raises(InvalidRecordError, match="cannot contain both"):
        put_bytes(sink, "a?b#c", b"")
