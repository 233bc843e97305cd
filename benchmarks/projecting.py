"""From a finished command to its receipt, beside plain JSON there and back of the same record."""

import json

from benchmarks._measure import Report, Times, compare, speed
from tooltrail.records import (
    DEFAULT_POLICY,
    ArtifactReference,
    CanonicalResult,
    CommandOutput,
    CompleteOutput,
    StreamRecord,
    default_families,
    project,
    render,
)

REPEATS = 2_000
ROUNDS = 15
_OUTPUT = b"".join(b"tests/test_module_%03d.py::test_something PASSED\n" % n for n in range(45))[
    :2000
]


class _NoPublisher:
    """Nothing of 2 KB is published."""

    def publish(self, stream: StreamRecord) -> ArtifactReference:
        raise NotImplementedError


def lines(*, is_full: bool) -> Report:
    """One line."""
    del is_full
    baseline = "json.dumps + json.loads of the record"
    yield speed("project + render 2 KB, validated", baseline, _measure(), REPEATS)


def _measure() -> Times:
    """Validate, project and render 2 KB of output, whose streams the capture has described."""
    family = default_families().of_tool("Bash")
    stdout = StreamRecord.from_bytes("stdout", _OUTPUT)
    stderr = StreamRecord.from_bytes("stderr", b"")
    publisher = _NoPublisher()

    def surfaces() -> CanonicalResult:
        result = CommandOutput(
            command="pytest -q", cwd="/src", exit_status=0, stdout=stdout, stderr=stderr
        )
        output = CompleteOutput.success("Bash", result)
        projection = project(output, family, DEFAULT_POLICY, publisher)
        render(projection.canonical, family, DEFAULT_POLICY)
        return projection.canonical

    record = json.loads(surfaces().to_json())

    def subject() -> None:
        for _ in range(REPEATS):
            surfaces()

    def baseline() -> None:
        for _ in range(REPEATS):
            json.loads(json.dumps(record))

    return compare(subject, baseline, ROUNDS)
