"""Tool calls of real agents through the families: what holds for each result holds for these."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import pytest
from tests.records.support import omitted
from tests.support.corpus.calls import as_list, as_object
from tests.support.corpus.formats import CORPUS, READERS, recorded_calls
from tests.support.corpus.replay import Replayed, replay, serving
from tests.support.corpus_report import table
from tests.support.shown_streams import shown_bytes, slots_of

from tooltrail.records import (
    DEFAULT_POLICY,
    SUMMARY_CHARS,
    CanonicalResult,
    FamilyOutput,
    canonical_json,
    default_families,
)

pytestmark = pytest.mark.skipif(
    not CORPUS.is_dir(),
    reason="the corpus, a folder shared/corpus beside the repository, is absent",
)

Json = Mapping[str, Any]

FLOORS = {
    "claude_code": 530,
    "codex": 740,
    "opencode": 160,
    "pi": 580,
    "swe_agent_traj": 225,
    "mini_swe_agent": 450,
}
"""Fewer calls than these mean that a reader has lost some."""

TYPED = {
    "claude_code": {
        "CommandOutput": 190,
        "FileReadOutput": 100,
        "FileMutationOutput": 100,
        "SearchOutput": 50,
        "TaskOutput": 16,
        "WorkItemOutput": 10,
        "ChildAgentOutput": 9,
    },
    "codex": {"CommandOutput": 650, "PromotedCommand": 5, "FileMutationOutput": 60},
    "opencode": {"FileReadOutput": 55, "FileMutationOutput": 30, "SearchOutput": 28},
    "pi": {"CommandOutput": 270, "FileMutationOutput": 170, "FileReadOutput": 100},
    "swe_agent_traj": {"FileReadOutput": 15, "SearchOutput": 10},
    "mini_swe_agent": {"CommandOutput": 440},
}
"""Fewer typed results than these mean that a reader takes everything for text."""

formats = pytest.mark.parametrize("name", READERS)
served = pytest.mark.parametrize("served", ["by_default", "by_result"])
"""As the names of the tools say, or each result by the family that could take it."""


@cache
def replayed(name: str, served: str = "by_default") -> tuple[Replayed, ...]:
    calls = tuple(recorded_calls(name))
    families = default_families() if served == "by_default" else serving(calls)
    return tuple(replay(call, families) for call in calls)


def results(name: str, served: str) -> Iterator[tuple[Replayed, FamilyOutput, Json]]:
    for each in replayed(name, served):
        if each.output.result is not None and each.projection.canonical.result is not None:
            yield each, each.output.result, each.projection.canonical.result


@formats
def test_the_log_is_read_to_its_end(name: str) -> None:
    assert len(replayed(name)) >= FLOORS[name]


@formats
def test_the_readers_tell_what_a_result_is(name: str) -> None:
    kinds = [type(each.output.result).__name__ for each in replayed(name, "by_result")]
    for kind, floor in TYPED[name].items():
        assert kinds.count(kind) >= floor, kind


@formats
@served
def test_the_canonical_json_comes_back_as_it_was(name: str, served: str) -> None:
    for each in replayed(name, served):
        canonical = each.projection.canonical
        data = canonical.to_json()
        assert CanonicalResult.from_json(data) == canonical
        assert CanonicalResult.from_json(data).to_json() == data
        assert 0 < len(canonical.summary_text) <= SUMMARY_CHARS


@formats
def test_a_failure_is_worded_within_the_budget_of_errors(name: str) -> None:
    bounds = DEFAULT_POLICY.error
    for each in replayed(name):
        error = each.projection.canonical.error
        if error is not None:
            first = error.message.partition("\n")[0].rstrip("\r")
            assert each.receipt.text.startswith(f"Error ({error.kind}): {first}\n")
            assert len(error.message) <= 10_000
            whole = canonical_json.encode_text(error.details)
            details = as_object(error.details) or {}
            shown = details["preview"] if "omitted" in details else whole
            assert len(shown) <= bounds.details_chars


@formats
@served
def test_a_result_keeps_to_its_budget_and_accounts_for_every_byte(name: str, served: str) -> None:
    for each, output, result in results(name, served):
        budget = DEFAULT_POLICY.budget_of(each.family, each.output.tool_name)
        assert 0 < len(each.receipt.text) <= budget.receipt_chars
        assert each.receipt.omissions == ()
        omissions = each.projection.omissions
        fields = {omission.field for omission in omissions} - {"summary_text"}
        assert any(flags(result)) is bool(fields)
        slots = slots_of(output, result)
        assert sum(len(slots[one.role].text or "") for one in each.output.streams) <= (
            budget.preview_chars
        )
        for stream in each.output.streams:
            slot = slots[stream.role]
            shown = shown_bytes(stream, slot.text)
            missing = omitted(omissions, stream.role, "bytes")
            assert shown + missing == stream.produced_size
            assert slot.truncated is (missing > 0)
            if slot.path is not None:
                assert each.publisher.published[slot.path].digest == stream.digest
            else:
                assert shown == stream.size
        for index, artifacts in indices(result):
            assert 0 <= index < len(artifacts)


def test_the_table_has_a_line_for_each_format_and_one_for_all() -> None:
    heading, rule, *lines = table()
    assert heading.count("|") == rule.count("|") == 8
    assert [line.split(" | ")[0] for line in lines] == [*(f"| `{n}`" for n in READERS), "| all"]
    counts = [int(line.split(" | ")[1].replace(",", "")) for line in lines]
    assert counts[:-1] == [len(replayed(name)) for name in READERS]
    assert counts[-1] == sum(counts[:-1])


def objects(value: Any, artifacts: Sequence[Any] = ()) -> Iterator[tuple[Json, Sequence[Any]]]:
    """All objects of a result, each with the list of artifacts that belongs to it."""
    members = as_object(value)
    if members is not None:
        artifacts = members.get("artifacts", artifacts)
        yield members, artifacts
    for name, member in [*enumerate(as_list(value)), *(members or {}).items()]:
        if name != "structured":
            yield from objects(member, artifacts)


def flags(result: Json) -> Iterator[bool]:
    """All truncation flags in a result."""
    for members, _ in objects(result):
        for name, member in members.items():
            if name == "truncated" or name.endswith("_truncated"):
                yield member


def indices(result: Json) -> Iterator[tuple[int, Sequence[Any]]]:
    """All artifact indices in a result, each with the list that it points into."""
    for members, artifacts in objects(result):
        for name, member in members.items():
            if name == "artifact" or name.endswith("_artifact"):
                yield member, artifacts
