"""A recorded call, projected and rendered as by a store."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from tests.records.support import MemoryPublisher
from tests.support.corpus.calls import RecordedCall, complete, encoded

from tooltrail.records import (
    DEFAULT_POLICY,
    CompleteOutput,
    Family,
    FamilyRegistry,
    Projection,
    Receipt,
    default_families,
    project,
    render,
)


@dataclass(frozen=True, slots=True)
class Replayed:
    """The projection and the receipt of a call under the default policy."""

    call: RecordedCall
    family: Family
    output: CompleteOutput
    projection: Projection
    receipt: Receipt
    publisher: MemoryPublisher

    @property
    def given_bytes(self) -> int:
        """Bytes of the tool's output: of all streams, or of its texts if it has no streams."""
        streams = self.output.streams
        if streams:
            return sum(stream.produced_size for stream in streams)
        return sum(len(encoded(text)) for text in self.call.texts)

    @property
    def cut_previews(self) -> int:
        """The number of streams that the model does not see completely."""
        omissions = self.projection.omissions
        return len({omission.field for omission in omissions if omission.unit == "bytes"})


def serving(calls: Iterable[RecordedCall]) -> FamilyRegistry:
    """The built-in families, extended by the tools of these calls whose results fit them."""
    families = default_families()
    fallback = families.named("generic")
    names: dict[type, set[str]] = defaultdict(set)
    for call in calls:
        if families.of_tool(call.tool_name) is fallback:
            names[type(call.typed)].add(call.tool_name)
    return FamilyRegistry(fallback, *(_widened(f, names) for f in families if f is not fallback))


def _widened(family: Family, names: Mapping[type, set[str]]) -> Family:
    more = (names.get(kind, set()) for kind in family.result_types)
    return replace(family, tool_names=family.tool_names.union(*more))


def replay(call: RecordedCall, families: FamilyRegistry) -> Replayed:
    """Project and render a call."""
    family, output = complete(call, families)
    publisher = MemoryPublisher()
    projection = project(output, family, DEFAULT_POLICY, publisher)
    receipt = render(projection.canonical, family, DEFAULT_POLICY)
    return Replayed(call, family, output, projection, receipt, publisher)
