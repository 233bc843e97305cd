"""Recording small invocations, beside raw drivers that write the same bytes as durably."""

import json
import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks._measure import Ratio, compare
from benchmarks._raw_postgres import RawServer
from benchmarks._raw_recording import Documents, RawStore
from tooltrail.records import (
    DEFAULT_POLICY,
    ArtifactReference,
    CommandOutput,
    CompleteOutput,
    StreamRecord,
    ToolCall,
    default_families,
    project,
    render,
)
from tooltrail.store import Session, Store, create_store

INVOCATIONS = 320
ROUNDS = 5
RECORDERS = 64
FEW_RECORDERS = 16
_SIZES = ((0.5, 20, 400), (0.9, 400, 5_000), (0.99, 5_000, 33_000), (1.0, 33_000, 60_000))
"""Bytes of outputs by quantile, as of real tools: half have up to 400, nine tenths up to 5,000."""

_LINE = "tests/store/test_%05d.py::test_case[%d-%08x] PASSED\n"
_LINE_BYTES = 48


class Call(NamedTuple):
    """A call with its output, made before anything is measured."""

    arguments: dict[str, Any]
    output: bytes

    def complete_output(self) -> CompleteOutput:
        """As a runtime makes it of what a command printed."""
        result = CommandOutput(
            command=self.arguments["command"],
            exit_status=0,
            stdout=StreamRecord.from_bytes("stdout", self.output),
            stderr=StreamRecord.from_bytes("stderr", b""),
        )
        return CompleteOutput.success("Bash", result)


class _NamingPublisher:
    """Names what is published, and keeps nothing."""

    def publish(self, stream: StreamRecord) -> ArtifactReference:
        return ArtifactReference(path=stream.digest.replace(":", "/"))


def measure_recording(folder: Path) -> Ratio:
    """Start and finish one by one, each durable, beside two raw transactions of the same bytes."""
    with create_store(folder / "one" / "tooltrail.db") as store:
        return _beside_raw(store, RawStore(folder / "raw.db"))


def measure_on_server(url: str, folder: Path) -> Ratio:
    """The same on a PostgreSQL server."""
    spool = folder / "spool"
    with create_store(url, artifacts=str(folder / "artifacts"), spool=spool) as store:
        return _beside_raw(store, RawServer(url))


def measure_many_on_server(url: str, folder: Path) -> Ratio:
    """`FEW_RECORDERS` at once on a PostgreSQL server, beside one recorder."""
    spool = folder / "spool"
    with create_store(url, artifacts=str(folder / "artifacts"), spool=spool) as store:
        return _beside_one(store, FEW_RECORDERS)


def _beside_raw(store: Store, raw: RawStore | RawServer) -> Ratio:
    rounds = made_rounds()
    ours, theirs = iter(rounds), iter([with_documents(calls) for calls in rounds])
    try:
        with store.open_session() as session:

            def baseline() -> None:
                for call, documents in next(theirs):
                    raw.record(json.dumps(call.arguments), call.output, documents)

            return compare(lambda: record(session, next(ours)), baseline, ROUNDS)
    finally:
        raw.close()


def measure_many_recorders(folder: Path) -> Ratio:
    """The same calls by `RECORDERS` at once, each in a session of its own, beside one recorder."""
    with create_store(folder / "many" / "tooltrail.db") as store:
        return _beside_one(store, RECORDERS)


def _beside_one(store: Store, count: int) -> Ratio:
    ours, theirs = iter(made_rounds()), iter(made_rounds(seed=1))
    sessions = [store.open_session() for _ in range(count)]
    with ThreadPoolExecutor(count) as pool, store.open_session() as session:

        def at_once() -> None:
            calls = next(ours)
            list(pool.map(record, sessions, (calls[n::count] for n in range(count))))

        return compare(at_once, lambda: record(session, next(theirs)), ROUNDS)


def made_rounds(seed: int = 0) -> list[list[Call]]:
    """The calls of each round, none of which prints what another one does."""
    numbers = random.Random(seed)
    return [
        [Call({"command": f"pytest -k {n}"}, _output(numbers, n)) for n in range(INVOCATIONS)]
        for _ in range(ROUNDS + 1)
    ]


def _output(numbers: random.Random, number: int) -> bytes:
    share = numbers.random()
    size = next(numbers.randint(low, high) for most, low, high in _SIZES if share <= most)
    lines = (_LINE % (number, n, numbers.getrandbits(32)) for n in range(size // _LINE_BYTES + 1))
    return "".join(lines).encode()[:size]


def record(session: Session, calls: Sequence[Call]) -> None:
    """Start and finish calls one by one."""
    for call in calls:
        session.start(ToolCall.of("Bash", call.arguments)).finish(call.complete_output())


def with_documents(calls: Sequence[Call]) -> list[tuple[Call, Documents]]:
    """Calls with the documents that a raw writer is given ready-made."""
    return list(zip(calls, map(_documents, calls), strict=True))


def _documents(call: Call) -> Documents:
    output = call.complete_output()
    family = default_families().of_tool("Bash")
    canonical = project(output, family, DEFAULT_POLICY, _NamingPublisher()).canonical
    receipt = render(canonical, family, DEFAULT_POLICY)
    return output.to_json().decode(), canonical.to_json().decode(), receipt.to_bytes()
