"""Importing long outputs into an object store that takes its time to answer."""

import os
import random
import time
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from unittest.mock import patch

from tests.support.http_proxy import Exchange, Proxy
from tests.support.object_stores import S3Admin, s3_environment, s3_server

from benchmarks._measure import Ratio, compare
from benchmarks.recording import Call
from tooltrail.artifacts import ArtifactArchive
from tooltrail.records import ToolCall
from tooltrail.store import EndedCall, create_store, open_store

ANSWER_MS = 30
"""As of an object store in the same region."""

CALLS = 32
ROUNDS = 3
_BUCKET = "bench-bucket"


def has_server() -> bool:
    """Whether the server for S3 is installed."""
    return find_spec("moto") is not None


def measure(folder: Path) -> Ratio:
    """An import of calls whose output becomes an artifact, beside the same without threads.

    Each opens the store anew, as a program does that imports something.
    """
    numbers = random.Random(0)
    server = s3_server()
    server.start()
    with ExitStack() as stack:
        stack.callback(server.kill)
        S3Admin(f"http://127.0.0.1:{server.port}").make_bucket(_BUCKET)
        proxy = stack.enter_context(Proxy(server.port).running())
        proxy.rule = _answer_late
        stack.enter_context(patch.dict(os.environ, s3_environment(proxy.url)))
        database = folder / "trail.db"
        create_store(database, artifacts=f"s3://{_BUCKET}/artifacts").close()

        def at_once() -> None:
            with open_store(database) as store, store.open_session() as session:
                session.record_many(_made(numbers))

        def one_by_one() -> None:
            with patch.object(ArtifactArchive, "concurrent_puts", 1):
                at_once()

        return compare(at_once, one_by_one, ROUNDS)


def _answer_late(_: Exchange) -> None:
    time.sleep(ANSWER_MS / 1000)


def _made(numbers: random.Random) -> list[EndedCall]:
    outputs = (b"%032x\n" % numbers.getrandbits(128) * 1_000 for _ in range(CALLS))
    calls = (Call({"command": f"cat {n}"}, output) for n, output in enumerate(outputs))
    return [EndedCall(ToolCall.of("Bash", c.arguments), c.complete_output()) for c in calls]
