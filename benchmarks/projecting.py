"""From a finished command to its receipt; the baseline is a JSON round trip of the record."""

import json

from benchmarks._calls import Call, documents_of
from benchmarks._measure import Report, compare, consume, speed

REPEATS = 2_000
ROUNDS = 9
_OUTPUT = b"".join(b"tests/test_module_%03d.py::test_something PASSED\n" % n for n in range(45))


def lines() -> Report:
    """Validate, project, render and serialize 2 KB of output."""
    call = Call({"command": "pytest -q"}, _OUTPUT[:2000])
    record = [json.loads(document) for document in documents_of(call)[:2]]

    times = compare(
        lambda: consume(documents_of(call) for _ in range(REPEATS)),
        lambda: consume(json.loads(json.dumps(record)) for _ in range(REPEATS)),
        ROUNDS,
    )
    yield speed("project and render 2 KB", "json.dumps + json.loads of it", times, REPEATS)
