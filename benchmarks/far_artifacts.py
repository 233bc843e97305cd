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

from benchmarks._calls import Call
from benchmarks._measure import Report, Times, compare, scratch_folder, speed
from benchmarks.importing import record_many
from tooltrail.artifacts import ArtifactArchive
from tooltrail.store import EndedCall, create_store, open_store

ANSWER_MS = 30
"""As of an object store in the same region."""

CALLS = 32
ROUNDS = 3
_BUCKET = "bench-bucket"


def lines(*, is_full: bool) -> Report:
    """Calls whose output becomes an artifact, beside the same without threads."""
    del is_full
    if find_spec("moto") is None:
        yield "record_many into S3: not measured, since moto is not installed"
        return
    with scratch_folder() as folder:
        times = _measure(folder)
    subject = f"record_many into S3, {ANSWER_MS} ms an answer"
    yield speed(subject, "one artifact after the other", times, CALLS)


def _measure(folder: Path) -> Times:
    """Each round opens the store anew, as a program does that imports calls."""
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
            with open_store(database) as store:
                record_many(store, _made(numbers))

        def one_by_one() -> None:
            with patch.object(ArtifactArchive, "concurrent_puts", 1):
                at_once()

        return compare(at_once, one_by_one, ROUNDS)


def _answer_late(_: Exchange) -> None:
    time.sleep(ANSWER_MS / 1000)


def _made(numbers: random.Random) -> list[EndedCall]:
    outputs = (b"%032x\n" % numbers.getrandbits(128) * 1_000 for _ in range(CALLS))
    return [Call({"command": f"cat {n}"}, output).ended() for n, output in enumerate(outputs)]
