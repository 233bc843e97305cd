"""Describes why arguments were refused: the location and the requirement, but never the value.

A refused value may be a secret, and may have any size. The libraries that check arguments quote
it in many of their messages, so this module makes new messages from the schema.
"""

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Protocol, cast, runtime_checkable

from pydantic import JsonValue, ValidationError
from pydantic_core import PydanticKnownError
from pydantic_core.core_schema import ErrorType

from tooltrail.records._details_json import recordable
from tooltrail.records._error_text import full_text, one_line, type_name
from tooltrail.records.canonical_json import encode_text
from tooltrail.records.shortened_json import shorten_json

_PART_CHARS = 1_000
"""Longest path, in which the model may have chosen names, and longest part of a schema."""

_RUN = 4
"""Length of a run of letters and digits that a message must not have in common with the value."""

_NOT_REPEATED = "refused by a check of the tool, whose words may repeat the value"

_OF_THE_SCHEMA = {
    *("gt", "ge", "lt", "le", "multiple_of", "min_length", "max_length", "actual_length"),
    *("max_digits", "decimal_places", "whole_digits", "pattern", "encoding", "method_name"),
    *("expected", "expected_tags", "expected_schemes", "expected_version", "discriminator"),
    *("field_type", "class", "class_name"),
}
"""Variables of pydantic's message templates that never contain a part of the value."""

_NAMING_KEYWORDS = frozenset({"required", "additionalProperties", "dependentRequired"})
"""Keywords whose messages in jsonschema quote only the names of fields."""


@runtime_checkable
class SchemaProblem(Protocol):
    """One error of a JSON Schema validator, with the attributes that `jsonschema` gives it."""

    @property
    def message(self) -> str: ...
    @property
    def validator(self) -> object: ...
    @property
    def validator_value(self) -> object: ...
    @property
    def absolute_path(self) -> Iterable[str | int]: ...


def refusal_details(refusal: Exception | str) -> dict[str, JsonValue]:
    """The details of a refusal: `problems`, `parse_error`, or only the type of the `exception`."""
    if isinstance(refusal, str):
        return {"parse_error": full_text(refusal)}
    if isinstance(refusal, ValidationError):
        problems = _problems_of(refusal)
    elif isinstance(refusal, SchemaProblem):
        problems = [(_path(refusal.absolute_path), _sentence_of(refusal))]
    else:
        for error in (refusal, refusal.__cause__):
            if isinstance(error, json.JSONDecodeError):
                return {"parse_error": full_text(str(error))}
        return {"exception": type_name(refusal)}
    return {"problems": [{"path": path, "message": sentence} for path, sentence in problems]}


def text_of_refusal(error: ValidationError) -> str:
    """A text for pydantic's exception, without the values that pydantic's own text quotes."""
    problems = _problems_of(error)
    listed = "; ".join(f"{path}: {sentence}" for path, sentence in problems)
    noun = "error" if len(problems) == 1 else "errors"
    return f"{len(problems)} validation {noun} for {error.title}: {listed}"


def _problems_of(refusal: ValidationError) -> list[tuple[str, str]]:
    """All problems as `(path, sentence)`."""
    return [
        (_path(problem["loc"]), _without_value(cast("Mapping[str, object]", problem)))
        for problem in refusal.errors(include_url=False)
    ]


def _path(parts: Iterable[str | int]) -> str:
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)
    return one_line(text.removeprefix("."), _PART_CHARS) or "(input)"


def _without_value(problem: Mapping[str, object]) -> str:
    """Pydantic's template for the type of problem, or the tool's own message, or neither."""
    kind = cast("ErrorType", problem["type"])
    if kind not in ("value_error", "assertion_error"):  # raised by a validator of the tool
        context = cast("Mapping[str, object]", problem.get("ctx", {}))
        shown = {name: value if name in _OF_THE_SCHEMA else "…" for name, value in context.items()}
        with suppress(KeyError, TypeError, ValueError):  # the tool's own type, or no template
            return PydanticKnownError(kind, shown).message()
    text = str(problem["msg"])
    return full_text(text) if _is_silent_about(problem["input"], text) else _NOT_REPEATED


def _is_silent_about(value: object, text: str) -> bool:
    """Whether `value` is a text or a number, and no run of its letters and digits is in `text`."""
    if not isinstance(value, str | int | float):
        return False
    try:
        spelled = str(value)
    except ValueError:  # more digits than Python prints
        return False
    # A text may quote a value in another case, escaped, shortened or with commas.
    quoted, said = ("".join(filter(str.isalnum, one.casefold())) for one in (spelled, text))
    length = min(_RUN, len(quoted))
    if not length:
        return not spelled.strip()
    return all(said[n : n + length] not in quoted for n in range(len(said) - length + 1))


def _sentence_of(problem: SchemaProblem) -> str:
    if problem.validator in _NAMING_KEYWORDS:
        return full_text(problem.message)
    wanted = shorten_json(recordable(problem.validator_value), _PART_CHARS).value
    return full_text(f"does not satisfy {problem.validator}: {encode_text(wanted)}")
