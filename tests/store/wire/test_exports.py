"""The account of an export: everything once, in order, and a refusal that names the first."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tooltrail.records import InvalidRecordError
from tooltrail.wire import Change, ExportPolicy, ExportRefusedError, ExportReport
from tooltrail.wire._writing import Writing
from tooltrail.wire.capabilities import Capabilities

changes = st.builds(
    Change,
    st.sampled_from(["id_renamed", "text_replaced"]),
    st.text("ab", max_size=1),
    st.just("x"),
)


@given(st.lists(changes, max_size=8))
def test_a_report_has_each_change_once_in_the_order_in_which_it_came_up(
    added: list[Change],
) -> None:
    report = ExportReport()
    for change in added:
        report.add(change.kind, change.where, change.detail)
    unique = list(dict.fromkeys(added))
    assert list(report) == unique
    assert report.changes == tuple(unique)
    assert report.of_kind("id_renamed") == [one for one in unique if one.kind == "id_renamed"]
    assert bool(report) is bool(added)


@pytest.mark.parametrize(
    ("count", "more"), [(1, ""), (2, ", and 1 more"), (1002, ", and 1,001 more")]
)
def test_a_strict_export_refuses_and_says_what_it_would_change(count: int, more: str) -> None:
    writing = Writing("openai", Capabilities(), ExportPolicy(strict=True))
    for number in range(count):
        writing.note("id_renamed", f"messages[{number}]", "'a' is b here")
    with pytest.raises(ExportRefusedError) as refused:
        writing.export({})
    told = "the export would not be exact: messages[0]: id_renamed: 'a' is b here"
    assert str(refused.value) == told + more
    assert len(refused.value.report.changes) == count
    assert isinstance(refused.value, InvalidRecordError)
