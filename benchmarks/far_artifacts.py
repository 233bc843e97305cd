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
from tooltrail.records import ToolCall
from tooltrail.store import EndedCall, create_store

ANSWER_MS = 30
"""As of an object store in the same region."""

CALLS = 32
ROUNDS = 3
_BUCKET = "bench-bucket"


def has_server() -> bool:
    """Whether the server for S3 is installed."""
    return find_spec("moto") is not None


def measure(folder: Path) -> Ratio:
    """`record_many` beside `record` one by one, of calls whose output becomes an artifact."""
    numbers = random.Random(0)
    server = s3_server()
    server.start()
    with ExitStack() as stack:
        stack.callback(server.kill)
        S3Admin(f"http://127.0.0.1:{server.port}").make_bucket(_BUCKET)
        proxy = stack.enter_context(Proxy(server.port).running())
        proxy.rule = _answer_late
        stack.enter_context(patch.dict(os.environ, s3_environment(proxy.url)))
        store = stack.enter_context(
            create_store(folder / "trail.db", artifacts=f"s3://{_BUCKET}/artifacts")
        )
        session = stack.enter_context(store.open_session())

        def one_by_one() -> None:
            for call in _made(numbers):
                session.record(call.call, call.output)

        return compare(lambda: _nothing(session.record_many(_made(numbers))), one_by_one, ROUNDS)


def _answer_late(_: Exchange) -> None:
    time.sleep(ANSWER_MS / 1000)


def _nothing(_: object) -> None:
    """What is measured gives nothing back."""


def _made(numbers: random.Random) -> list[EndedCall]:
    outputs = (b"%032x\n" % numbers.getrandbits(128) * 1_000 for _ in range(CALLS))
    calls = (Call({"command": f"cat {n}"}, output) for n, output in enumerate(outputs))
    return [EndedCall(ToolCall.of("Bash", c.arguments), c.complete_output()) for c in calls]
