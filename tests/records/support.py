"""What the tests of the records share: a publisher in memory, and streams of every kind."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tooltrail.records import (
    DEFAULT_POLICY,
    ArtifactReference,
    CompleteOutput,
    FamilyOutput,
    FamilyRegistry,
    Omission,
    Policy,
    Projection,
    Receipt,
    StreamRecord,
    count_lines,
    default_families,
    digest_of,
    hex_of,
    project,
    render,
)
from tooltrail.records.facts import OmissionFact

GOLDEN = Path(__file__).parent / "golden"

FAMILY_OF = {kind: family.name for family in default_families() for kind in family.result_types}

TOOL = "ExecCommandBatch"
"""The tool of `run`: the receipt of a batch begins with this name, and no other receipt has one."""

MARKER = re.compile(
    r"\[output truncated: showing first (?P<first>[\d,]+)"
    r"(?= (?:and last [\d,]+ )?(?P<first_unit>lines|characters))"
    r"(?P<named> lines| characters)?"
    r"(?: and last (?P<last>[\d,]+) (?(named)(?!(?P=first_unit)))(?P<last_unit>lines|characters))?;"
    r" (?P<lines>[\d,]+) lines, (?P<bytes>[\d,]+) bytes omitted(?:; full output: (?P<path>.*))?\]"
)
"""What says that a text is cut. A unit of both ends stands once; without an end, `last` is None."""


@dataclass
class MemoryPublisher:
    """Keeps what was published, under the path that a real sink would give it."""

    published: dict[str, StreamRecord] = field(default_factory=dict)

    def publish(self, stream: StreamRecord) -> ArtifactReference:
        path = artifact_path(stream)
        self.published[path] = stream
        return ArtifactReference(path=path)


def artifact_path(stream: StreamRecord) -> str:
    """The content-addressed path of a stream."""
    digits = hex_of(stream.digest)
    return f"sha256/{digits[:2]}/{digits}.zst"


def whole(data: bytes, role: str = "stdout") -> StreamRecord:
    """A stream that is carried completely."""
    return StreamRecord.from_bytes(role, data)


def edged(data: bytes, head: int, tail: int, role: str = "stdout") -> StreamRecord:
    """A stream of which only the two ends are known."""
    head = min(head, len(data))
    tail = min(tail, len(data) - head)
    return StreamRecord(
        role=role,
        digest=digest_of(data),
        size=len(data),
        line_count=count_lines(data),
        head=data[:head],
        tail=data[len(data) - tail :],
        produced_size=len(data),
        produced_line_count=count_lines(data),
    )


def captured(data: bytes, policy: Policy, role: str = "stdout") -> StreamRecord:
    """A stream as a capture hands it over that may not carry it along."""
    return edged(data, policy.edge_bytes, policy.edge_bytes, role)


def lossy(
    kept: bytes, lost: int, role: str = "stdout", reason: str = "the spool is full"
) -> StreamRecord:
    """A stream whose capture could not keep the last `lost` bytes, one of them a line."""
    return StreamRecord.from_bytes(role, kept).model_copy(
        update={
            "produced_size": len(kept) + lost,
            "produced_line_count": count_lines(kept) + 1,
            "loss_reason": reason,
        }
    )


def surfaces(
    output: CompleteOutput,
    family: str,
    policy: Policy | None = None,
    families: FamilyRegistry | None = None,
) -> tuple[Projection, Receipt, MemoryPublisher]:
    """Both steps, as a store takes them."""
    policy = DEFAULT_POLICY if policy is None else policy
    chosen = (default_families() if families is None else families).named(family)
    publisher = MemoryPublisher()
    projection = project(output, chosen, policy, publisher)
    return projection, render(projection.canonical, chosen, policy), publisher


def run(output: FamilyOutput, policy: Policy | None = None) -> tuple[Projection, Receipt]:
    """Both steps for the result of a built-in family, which publishes what it refers to."""
    complete = CompleteOutput.success(TOOL, output)
    projection, receipt, publisher = surfaces(complete, FAMILY_OF[type(output)], policy)
    assert set(publisher.published) == {reference.path for _, reference in projection.artifacts}
    return projection, receipt


def result_of(projection: Projection) -> dict[str, Any]:
    """The canonical result of a success."""
    assert projection.canonical.result is not None
    return projection.canonical.result


def run_result(output: FamilyOutput, policy: Policy | None = None) -> dict[str, Any]:
    """The canonical result of a built-in family."""
    return result_of(run(output, policy)[0])


def omitted(
    omissions: Sequence[Omission] | Sequence[OmissionFact], field_name: str, unit: str
) -> int:
    """The sum of what all stages left out of a field."""
    return sum(o.before - o.after for o in omissions if (o.field, o.unit) == (field_name, unit))


def golden(name: str) -> str:
    """The receipt that stands in a golden file."""
    return (GOLDEN / f"{name}.txt").read_bytes().decode()


def check_golden(
    renderer: tuple[str, int], **outputs: FamilyOutput | tuple[FamilyOutput, Policy]
) -> None:
    """Check that the receipt of each output, of this renderer, is that of its golden file."""
    given = {name: one if isinstance(one, tuple) else (one, None) for name, one in outputs.items()}
    receipts = {name: run(*one)[1] for name, one in given.items()}
    assert {name: one.text for name, one in receipts.items()} == {n: golden(n) for n in receipts}
    named = {(one.renderer_name, one.renderer_version) for one in receipts.values()}
    assert named == {renderer}


def number(text: str) -> int:
    """A number with its thousands separated."""
    return int(text.replace(",", ""))
