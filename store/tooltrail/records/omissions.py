"""Counts of what a stage left out, so that every cut is visible."""

from typing import Literal, Self

from pydantic import model_validator

from tooltrail.records._model import Record
from tooltrail.records.streams import Count

Stage = Literal["capture", "projection", "error", "rendering"]
Unit = Literal["bytes", "lines", "chars", "items"]


class Omission(Record):
    """One stage kept `after` of `before` units of a field.

    Attributes:
        stage: the stage that left something out.
        field: the field that was cut, for example `stdout` or `error.details`.
        unit: the unit of both counts.
        before: the amount before the cut.
        after: the amount after the cut; less than `before`.
        reason: the reason, in one sentence.
    """

    stage: Stage
    field: str
    unit: Unit
    before: Count
    after: Count
    reason: str

    @model_validator(mode="after")
    def _check_counts(self) -> Self:
        if self.after >= self.before:
            raise ValueError("an omission must leave something out")
        return self
