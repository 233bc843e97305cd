"""Ids and names on the wire are legal, different where they were, and always the same."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.cases import each_case

from tooltrail.records import ToolCall
from tooltrail.wire._identifiers import CallIds, ToolNames
from tooltrail.wire.capabilities import COMMON_NAME, Capabilities
from tooltrail.wire.exports import ExportReport

NARROW = Capabilities(call_id=re.compile(r"[a-zA-Z0-9_-]+"), call_id_length=40)
NINE = Capabilities(call_id=re.compile(r"[a-zA-Z0-9]{9}"), call_id_length=9)
ids = st.text(max_size=6) | st.sampled_from(["call_0", "a/b", "x" * 90, "\ud800", "", "REDACTED1"])


@pytest.mark.parametrize("able", [NARROW, NINE, Capabilities()])
@given(st.lists(ids, max_size=8))
def test_every_call_of_a_request_has_a_legal_id_of_its_own(
    able: Capabilities, call_ids: list[str]
) -> None:
    report = ExportReport()
    given_out = CallIds(able, report)
    wire_ids = [given_out.given(one, n, f"calls[{n}]") for n, one in enumerate(call_ids)]
    again = CallIds(able, ExportReport())
    assert wire_ids == [again.given(one, n, "") for n, one in enumerate(call_ids)]
    assert len(set(wire_ids)) == len(call_ids)
    for wire_id in wire_ids:
        assert able.call_id.fullmatch(wire_id)
        assert len(wire_id) <= able.call_id_length
    changed = [n for n, one in enumerate(call_ids) if wire_ids[n] != one]
    assert [change.where for change in report.of_kind("id_renamed")] == [
        f"calls[{n}]" for n in changed
    ]


def test_an_id_that_was_made_is_not_taken_by_one_that_is_legal_by_chance() -> None:
    made = CallIds(NARROW, ExportReport()).given("a/b", 0, "")
    given_out = CallIds(NARROW, ExportReport())
    assert given_out.given("a/b", 0, "") == made
    assert given_out.given(made, 1, "") != made


@pytest.mark.parametrize(
    ("scope", "repeats"), [("request", False), ("batch", True), ("none", True)]
)
def test_ids_may_repeat_where_they_need_only_differ_within_a_batch(
    scope: str, repeats: bool
) -> None:
    given_out = CallIds(_scoped(scope), ExportReport())
    wire_ids: list[str] = []
    for batch in range(2):
        given_out.begin_batch()
        wire_ids.append(given_out.given("call_0", batch, ""))
    assert (wire_ids[0] == wire_ids[1]) is repeats


@pytest.mark.parametrize(
    ("scope", "repeats"), [("request", False), ("batch", False), ("none", True)]
)
def test_ids_repeat_within_a_batch_only_where_they_mean_nothing(scope: str, repeats: bool) -> None:
    given_out = CallIds(_scoped(scope), ExportReport())
    given_out.begin_batch()
    assert (given_out.given("a", 0, "") == given_out.given("a", 0, "")) is repeats


def _scoped(scope: str) -> Capabilities:
    scopes: dict[str, Capabilities] = {
        "request": Capabilities(call_id_scope="request"),
        "batch": Capabilities(call_id_scope="batch"),
        "none": Capabilities(call_id_scope="none"),
    }
    return scopes[scope]


@given(st.integers(0, 50), st.integers(1, 4))
def test_calls_without_ids_get_different_ones_in_every_batch(first: int, count: int) -> None:
    report = ExportReport()
    given_out = CallIds(NARROW, report)
    wire_ids = [
        given_out.synthesised(batch, position, f"{batch}.{position}")
        for batch in (first, first + 1)
        for position in range(count)
    ]
    # Positions may all be 0, where a reader did not count.
    wire_ids += [given_out.synthesised(first, 0, "uncounted") for _ in range(2)]
    assert len(set(wire_ids)) == len(wire_ids)
    assert len(report.of_kind("id_synthesised")) >= 2 * count
    again = CallIds(NARROW, ExportReport())
    assert again.synthesised(first, 0, "") == wire_ids[0]


names = st.text(max_size=5) | st.sampled_from(
    ["now", "read file", "read_file", "x" * 65, "x" * 66, "\u00e9t\u00e9", "7up", "-a", ""]
)


@given(st.lists(names, max_size=10))
def test_names_are_legal_and_differ_where_the_tools_do(tools: list[str]) -> None:
    report = ExportReport()
    named = ToolNames(Capabilities(), report)
    wire_names = [named.of(tool, "tools") for tool in tools]
    for wire_name in wire_names:
        assert COMMON_NAME.fullmatch(wire_name)
    # Names that a record spells alike are of one tool.
    assert len(set(wire_names)) == len({ToolCall(tool_name=tool).tool_name for tool in tools})
    assert [named.of(tool, "again") for tool in tools] == wire_names
    changed = {tool: wire for tool, wire in zip(tools, wire_names, strict=True) if tool != wire}
    # Of such names the first stands for all.
    assert named.renamed.items() <= changed.items()
    assert set(named.renamed.values()) == set(changed.values())
    assert len(report.of_kind("name_renamed")) == len(named.renamed)


def test_what_becomes_of_a_name_is_told_by_the_name_alone() -> None:
    named = ToolNames(Capabilities(), ExportReport())
    assert named.of("read file", "") == "read_file_1214148e"  # echo -n 'read file' | sha256sum
    for legal in ("query_20240101", "read_file_ff63f51e"):
        assert named.of(legal, "") == legal
    assert set(named.renamed) == {"read file"}


@pytest.mark.parametrize("order", [0, 1])
def test_a_legal_name_stays_and_what_is_made_keeps_away_from_it(order: int) -> None:
    tools = ["read file", "read_file_1214148e"]
    named = ToolNames(Capabilities(), ExportReport())
    named.reserve((None, name) for name in tools)
    wire = {name: named.of(name, "") for name in (tools if order else tools[::-1])}
    # echo -en '1\\0read file' | sha256sum
    assert wire == {"read file": "read_file_ff63f51e", "read_file_1214148e": "read_file_1214148e"}


@each_case(
    ("name", "stem"),
    [
        ("read file", "read_file_"),
        ("a.b:c", "a_b_c_"),
        ("7up", "_7up_"),
        ("", "_unnamed_"),
        ("\u00e9t\u00e9", "_t__"),
    ],
)
def test_a_made_name_shows_what_it_was_made_of(name: str, stem: str) -> None:
    made = ToolNames(Capabilities(), ExportReport()).of(name, "")
    assert re.fullmatch(re.escape(stem) + "_?[0-9a-f]{8}", made)
