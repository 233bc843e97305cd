"""What a stage left out, counted. What is cut is said to be cut."""

from typing import Literal, Self

from pydantic import model_validator

from tooltrail.records._model import Record
from tooltrail.records.streams import Count

Stage = Literal["capture", "projection", "error", "rendering"]
Unit = Literal["bytes", "lines", "chars", "items"]


class Omission(Record):
    """One stage kept `after` of `before` units of a field.

    Attributes:
        stage: who cut.
        field: what was cut, `stdout` or `error.details` for instance.
        unit: what is counted.
        before: how much came in.
        after: how much went on; less than `before`.
        reason: why, in one sentence.
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
