"""The structured output family: a value that an agent submits as its result, and its validation.

A value that does not match its schema is still a success of the tool, which did check the value.
"""

from collections.abc import Iterable
from typing import Annotated, ClassVar, Self

from pydantic import Field, JsonValue

from tooltrail.records import canonical_json
from tooltrail.records._model import DigestField, Record, Sentence
from tooltrail.records.budgets import Budget, ReceiptChars
from tooltrail.records.cutting import Cutter
from tooltrail.records.digests import Digest
from tooltrail.records.envelope import CanonicalResult, FamilyOutput
from tooltrail.records.families._shared import (
    NAME_CHARS,
    SENTENCE_CHARS,
    Identifier,
    Json,
    bound_texts,
    bounded,
    hidden_lines,
    json_of,
    one_line,
    receipt,
    structured_fields,
)
from tooltrail.records.family import Family
from tooltrail.records.streams import StreamRecord

MAX_VIOLATIONS = 1_000
"""Largest number of violations that a check lists; `NOT_LISTED` stands for all others."""

_ERROR_LIMITS = {"path": NAME_CHARS, "message": SENTENCE_CHARS}


class StructuredOutputBudget(Budget):
    """Bounds of the family: `preview_chars` for the value, `max_items` validation errors."""

    item_chars: ClassVar[int] = 960
    """Room for a line with a path and a message."""

    receipt_chars: ReceiptChars = 53_000


class SchemaViolation(Record):
    """A violation of the schema by a value; the path is a JSON pointer or the like, or empty."""

    path: Sentence
    message: Sentence


NOT_LISTED = SchemaViolation(
    path="", message=f"more than {MAX_VIOLATIONS:,} errors; the others are not listed"
)
"""The last entry of a check that found more than `MAX_VIOLATIONS`."""


class StructuredOutput(FamilyOutput):
    """One attempt of an agent to submit a result; the first has the number 1.

    Attributes:
        value: the canonical JSON of the value.
        errors: all violations of the schema; a value without any is valid.
    """

    agent: Identifier
    schema_digest: DigestField
    value: StreamRecord
    errors: tuple[SchemaViolation, ...] = ()
    attempt: Annotated[int, Field(ge=1, lt=1 << 31)]

    @property
    def valid(self) -> bool:
        """Whether the value matches the schema."""
        return not self.errors

    @classmethod
    def of(
        cls,
        value: JsonValue,
        *,
        agent: str,
        schema_digest: Digest,
        attempt: int = 1,
        errors: Iterable[SchemaViolation] = (),
    ) -> Self:
        """The submission of a value.

        Raises:
            InvalidRecordError: `value` is not made of JSON types.
        """
        return cls(
            agent=agent,
            schema_digest=schema_digest,
            value=StreamRecord.from_bytes("value", canonical_json.encode(value)),
            errors=tuple(errors),
            attempt=attempt,
        )

    def summary(self) -> str:
        """The verdict."""
        count = len(self.errors)
        number = f"{count:,}"
        if self.errors[-1:] == (NOT_LISTED,):
            number = f"more than {count - 1:,}"
        found = "" if self.valid else f" with {number} {'error' if count == 1 else 'errors'}"
        return f"result {_verdict(valid=self.valid)}{found}"


def project_structured_output(
    result: StructuredOutput, budget: StructuredOutputBudget, cutter: Cutter
) -> Json:
    """Bound the value and the list of errors.

    The value is in `value`, or else in `value_preview`: shortened by its structure, or as text if
    it is `null`, too deep, or a long text. `error_count` counts all errors.
    """
    listed = cutter.items("errors", result.errors, budget.max_items)
    errors = tuple(
        bound_texts(error, f"errors[{n}]", _ERROR_LIMITS, cutter) for n, error in enumerate(listed)
    )
    value = structured_fields(result.value, budget.preview_chars, cutter, "value")
    value |= {"valid": result.valid, "error_count": len(result.errors) or None}
    return bounded(result, cutter, errors=errors or None, **value)


def render_structured_output(canonical: CanonicalResult, _budget: StructuredOutputBudget) -> str:
    """Render the verdict and the errors. The value is omitted: the model has just written it."""
    result = json_of(canonical)
    errors = result.get("errors", [])
    lines = [f"Result {_verdict(valid=result['valid'])} (attempt {result['attempt']:,})"]
    lines += [f"- {one_line(e['path']) or '(root)'}: {one_line(e['message'])}" for e in errors]
    lines += hidden_lines(result, result.get("error_count", 0) - len(errors), "error")
    return receipt(["\n".join(lines)], result)


def _verdict(*, valid: bool) -> str:
    return "accepted" if valid else "rejected"


FAMILY = Family(
    name="structured_output",
    result_types=(StructuredOutput,),
    projector=project_structured_output,
    render=render_structured_output,
    budget=StructuredOutputBudget(),
    tool_names=frozenset({"final_answer", "structured_output", "submit_result"}),
)
