"""Calls with the output sizes of real tools, made before the measurement."""

import random
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

from tests.records.support import MemoryPublisher

from tooltrail.records import (
    DEFAULT_POLICY,
    CommandOutput,
    CompleteOutput,
    StreamRecord,
    ToolCall,
    default_families,
    project,
    render,
)
from tooltrail.store import EndedCall, Session

_SIZES = ((0.5, 20, 400), (0.9, 400, 5_000), (0.99, 5_000, 33_000), (1.0, 33_000, 60_000))
"""Output bytes of real tools by quantile: half have up to 400, nine tenths up to 5,000."""

_FAMILIES = default_families()
_LINE = "tests/store/test_%05d.py::test_case[%d-%08x] PASSED\n"
_LINE_BYTES = 48

Documents: TypeAlias = tuple[str, str, bytes]
"""The complete output and the canonical result as JSON, and the receipt."""


class Call(NamedTuple):
    """A call of a command, with its output."""

    arguments: dict[str, Any]
    output: bytes
    exit_status: int = 0

    def tool_call(self) -> ToolCall:
        """The call that the model asked for."""
        return ToolCall.of("Bash", self.arguments)

    def complete_output(self) -> CompleteOutput:
        """The complete output, as a runtime makes it from the output of the command."""
        result = CommandOutput(
            command=self.arguments["command"],
            exit_status=self.exit_status,
            stdout=StreamRecord.from_bytes("stdout", self.output),
            stderr=StreamRecord.from_bytes("stderr", b""),
        )
        return CompleteOutput.success("Bash", result)

    def ended(self) -> EndedCall:
        """The call in the form of a call that ended before it is recorded."""
        return EndedCall(self.tool_call(), self.complete_output())


def made_rounds(count: int, seed: int = 0) -> Iterator[list[Call]]:
    """The calls of each round, without end. No two calls have the same output."""
    numbers = random.Random(seed)
    while True:
        yield [Call({"command": f"pytest -k {n}"}, _output(numbers, n)) for n in range(count)]


def record(session: Session, calls: Sequence[Call]) -> None:
    """Start and finish calls one by one."""
    for call in calls:
        session.start(call.tool_call()).finish(call.complete_output())


def documents_of(call: Call) -> Documents:
    """The ready-made documents for a raw writer."""
    output = call.complete_output()
    family = _FAMILIES.of_tool("Bash")
    canonical = project(output, family, DEFAULT_POLICY, MemoryPublisher()).canonical
    receipt = render(canonical, family, DEFAULT_POLICY)
    return output.to_json().decode(), canonical.to_json().decode(), receipt.to_bytes()


def _output(numbers: random.Random, number: int) -> bytes:
    share = numbers.random()
    size = next(numbers.randint(low, high) for most, low, high in _SIZES if share <= most)
    lines = (_LINE % (number, n, numbers.getrandbits(32)) for n in range(size // _LINE_BYTES + 1))
    return "".join(lines).encode()[:size]
