"""An omission leaves something out, or it is none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from tests.records.support import MemoryPublisher
from tests.support.cases import each_case

from tooltrail.records import DEFAULT_POLICY, Cutter, Omission


def omission(**changes: object) -> Omission:
    fields = {
        "stage": "projection",
        "field": "stdout",
        "unit": "bytes",
        "before": 10,
        "after": 4,
        "reason": "preview budget",
    }
    return Omission.model_validate(fields | changes)


@each_case("stage", ["capture", "projection", "error", "rendering"])
@each_case("unit", ["bytes", "lines", "chars", "items"])
def test_every_stage_may_leave_out_every_unit(stage: str, unit: str) -> None:
    assert omission(stage=stage, unit=unit).after == 4


@each_case(
    "changes",
    [{"after": 10}, {"after": 11}, {"before": 0, "after": 0}, {"after": -1}, {"stage": "taste"},
     {"unit": "pages"}],
)  # fmt: skip
def test_an_omission_of_nothing_or_of_an_unknown_kind_is_refused(
    changes: dict[str, object],
) -> None:
    with pytest.raises(ValidationError):
        omission(**changes)


@given(st.integers(0, 20), st.integers(0, 20))
def test_there_is_an_omission_exactly_when_something_is_missing(before: int, after: int) -> None:
    cutter = Cutter(DEFAULT_POLICY.edge_bytes, MemoryPublisher())
    cutter.count("stderr", "lines", before, after, "full", stage="capture")
    wanted = {"stage": "capture", "field": "stderr", "unit": "lines", "reason": "full"}
    made = [omission(before=before, after=after, **wanted)] if after < before else []
    assert list(cutter.omissions) == made
