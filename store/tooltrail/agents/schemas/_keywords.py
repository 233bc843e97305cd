"""The keywords that are enforced, and a look at a whole schema for all others.

A schema is looked at wherever one stands, also where nothing leads to: whoever wrote a keyword
counts on it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import unquote

from jsonschema import Draft202012Validator
from pydantic import JsonValue

from tooltrail.agents.schemas._formats import FORMATS, pattern_problem

Schema = Mapping[str, JsonValue]

ANNOTATIONS = frozenset(
    {
        *("title", "description", "default", "examples", "deprecated"),
        *("readOnly", "writeOnly", "$comment", "$schema"),
    }
)
"""Keywords that assert nothing."""

ASSERTIONS = frozenset(
    {
        *("type", "enum", "const", "required", "nullable", "format", "pattern", "uniqueItems"),
        *("minItems", "maxItems", "minLength", "maxLength", "multipleOf"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
    }
)
"""Keywords that a value is held against."""

ONE_BELOW = frozenset({"items", "additionalProperties"})
"""Keywords with one schema, for parts of the value."""

NAMED_BELOW = frozenset({"properties", "$defs"})
"""Keywords with schemas by name."""

IN_PLACE = ("allOf", "anyOf", "oneOf")
"""Keywords with a list of schemas for the very same value."""

_KNOWN = ANNOTATIONS | ASSERTIONS | ONE_BELOW | NAMED_BELOW | {*IN_PLACE, "$ref"}
_DIALECT = "https://json-schema.org/draft/2020-12/schema"

MAX_DEPTH = 60
"""Levels of a schema, which is looked at and translated level by level."""

MAX_LOOKS = 5_000
"""How often a schema may send a look at one value on to others. References can double that with
each step, and a value would take for ever."""


@dataclass(frozen=True, slots=True)
class SchemaFault:
    """Something in a schema that is not enforced, or is no schema.

    Attributes:
        pointer: JSON pointer (RFC 6901) to it in the schema; empty for the schema itself.
        message: what is wrong, in one sentence.
    """

    pointer: str
    message: str


class UnsupportedSchemaError(ValueError):
    """A schema that cannot be enforced as a whole.

    Attributes:
        faults: everything that is in the way.
    """

    def __init__(self, faults: Iterable[SchemaFault]) -> None:
        self.faults = tuple(faults)
        lines = (f"{fault.pointer or '(root)'}: {fault.message}" for fault in self.faults)
        super().__init__("; ".join(lines))


def below(pointer: str, *parts: str | int) -> str:
    """The pointer to a place below another one."""
    escaped = (str(part).replace("~", "~0").replace("/", "~1") for part in parts)
    return "".join((pointer, *(f"/{part}" for part in escaped)))


def faults_of(document: JsonValue) -> list[SchemaFault]:
    """Everything in a schema that is not enforced, in its order.

    Args:
        document: the schema, of any JSON.
    """
    if _is_deep(document):
        return [SchemaFault("", f"the schema is nested deeper than {MAX_DEPTH} levels")]
    malformed = list(_malformed(document))
    if malformed:
        return malformed
    schemas = dict(iter_schemas(document))
    found = [fault for pointer, schema in schemas.items() for fault in _faults_at(pointer, schema)]
    found += [
        fault for pointer, schema in schemas.items() for fault in _lost(pointer, schema, schemas)
    ]
    return found or list(_endless(schemas))


def iter_schemas(document: JsonValue, pointer: str = "") -> Iterator[tuple[str, JsonValue]]:
    """Every schema in a schema with its pointer, itself first."""
    yield pointer, document
    if not isinstance(document, dict):
        return
    for keyword, value in document.items():
        place = below(pointer, keyword)
        if keyword in ONE_BELOW:
            yield from iter_schemas(value, place)
        elif keyword in NAMED_BELOW and isinstance(value, dict):
            for name, schema in value.items():
                yield from iter_schemas(schema, below(place, name))
        elif keyword in IN_PLACE and isinstance(value, list):
            for number, schema in enumerate(value):
                yield from iter_schemas(schema, below(place, number))


def target_of(reference: str) -> str | None:
    """The pointer that a local reference leads to; None for any other."""
    if reference == "#":
        return ""
    return unquote(reference[1:]) if reference.startswith("#/") else None


def _is_deep(document: JsonValue) -> bool:
    level: list[JsonValue] = [document]
    for _ in range(MAX_DEPTH):
        level = [part for value in level for part in _parts(value)]
        if not level:
            return False
    return True


def _parts(value: JsonValue) -> list[JsonValue]:
    if isinstance(value, dict):
        return [*value.values()]
    return value if isinstance(value, list) else []


def _malformed(document: JsonValue) -> Iterator[SchemaFault]:
    """What the metaschema of the draft does not allow."""
    checker: Any = Draft202012Validator(Draft202012Validator.META_SCHEMA)
    for error in checker.iter_errors(document):
        yield SchemaFault(
            below("", *error.absolute_path), f"is not as it should be: {error.message}"
        )


def _faults_at(pointer: str, schema: JsonValue) -> Iterator[SchemaFault]:
    if not isinstance(schema, dict):
        return
    for keyword, value in schema.items():
        place = below(pointer, keyword)
        if keyword not in _KNOWN:
            yield SchemaFault(place, f"`{keyword}` is not enforced here")
        elif keyword in _CHECKS and (problem := _CHECKS[keyword](value, schema)):
            yield SchemaFault(place, problem)


def _dialect_problem(value: JsonValue, _: Schema) -> str:
    if isinstance(value, str) and value.rstrip("#") == _DIALECT:
        return ""
    return f"only the draft 2020-12 is known here: {_DIALECT}"


def _nullable_problem(value: JsonValue, schema: Schema) -> str:
    if not isinstance(value, bool):
        return "`nullable` must be true or false"
    return "" if "type" in schema else "`nullable` says something only beside `type`"


def _pattern_problem(value: JsonValue, _: Schema) -> str:
    return pattern_problem(cast("str", value))


def _format_problem(value: JsonValue, _: Schema) -> str:
    if value in FORMATS:
        return ""
    return (
        f"the format {value!r} is not enforced here; those that are: {', '.join(sorted(FORMATS))}"
    )


_CHECKS: Mapping[str, Callable[[JsonValue, Schema], str]] = {
    "$schema": _dialect_problem,
    "nullable": _nullable_problem,
    "pattern": _pattern_problem,
    "format": _format_problem,
}


def _lost(
    pointer: str, schema: JsonValue, schemas: Mapping[str, JsonValue]
) -> Iterator[SchemaFault]:
    """References that do not lead to a schema of this document."""
    reference = schema.get("$ref") if isinstance(schema, dict) else None
    if not isinstance(reference, str):
        return
    target = target_of(reference)
    if target is None:
        problem = "only references within the schema are followed: `#` and `#/…`"
    elif target not in schemas:
        problem = f"there is no schema at {reference}"
    else:
        return
    yield SchemaFault(below(pointer, "$ref"), problem)


def _endless(schemas: Mapping[str, JsonValue]) -> Iterator[SchemaFault]:
    """References that lead back to themselves, or to too many others, for one value."""
    looks: dict[str, int] = {}
    for pointer in schemas:
        try:
            count = _looks_from(pointer, schemas, looks, ())
        except RecursionError:
            yield SchemaFault(pointer, "references lead back to it without end")
            return
        if count > MAX_LOOKS:
            yield SchemaFault(
                pointer, f"one value would be looked at more than {MAX_LOOKS:,} times"
            )
            return


def _looks_from(
    pointer: str, schemas: Mapping[str, JsonValue], looks: dict[str, int], path: tuple[str, ...]
) -> int:
    """How many schemas look at a value that this one looks at.

    Raises:
        RecursionError: there is no end to that.
    """
    if pointer in looks:
        return looks[pointer]
    if pointer in path:
        raise RecursionError(pointer)
    looks[pointer] = 1 + sum(
        _looks_from(one, schemas, looks, (*path, pointer))
        for one in _same_value(pointer, schemas[pointer])
    )
    return looks[pointer]


def _same_value(pointer: str, schema: JsonValue) -> Iterator[str]:
    """The schemas that a schema sends the very same value on to."""
    if not isinstance(schema, dict):
        return
    reference = schema.get("$ref")
    if isinstance(reference, str):
        yield target_of(reference) or ""
    for keyword in IN_PLACE:
        several = schema.get(keyword)
        if isinstance(several, list):
            for number in range(len(several)):
                yield below(pointer, keyword, number)
