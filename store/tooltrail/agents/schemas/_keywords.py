"""The keywords that are enforced, and the search for all others in a schema.

All subschemas are searched, even those that no reference uses: the author of a keyword relies on
it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any, cast
from urllib.parse import unquote

from jsonschema import Draft202012Validator
from pydantic import JsonValue

from tooltrail.agents.schemas._formats import FORMATS, pattern_problem
from tooltrail.records import canonical_json

Schema = Mapping[str, JsonValue]

ANNOTATIONS = frozenset(
    {
        *("title", "description", "default", "examples", "deprecated"),
        *("readOnly", "writeOnly", "$comment", "$schema"),
    }
)
"""Keywords that do not restrict values."""

ASSERTIONS = frozenset(
    {
        *("type", "enum", "const", "required", "nullable", "format", "pattern", "uniqueItems"),
        *("minItems", "maxItems", "minLength", "maxLength", "multipleOf"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
    }
)
"""Keywords that restrict a value."""

ONE_BELOW = frozenset({"items", "additionalProperties"})
"""Keywords with one schema for parts of the value."""

NAMED_BELOW = frozenset({"properties", "$defs"})
"""Keywords with schemas by name."""

IN_PLACE = ("allOf", "anyOf", "oneOf")
"""Keywords with a list of schemas for the same value."""

_KNOWN = ANNOTATIONS | ASSERTIONS | ONE_BELOW | NAMED_BELOW | {*IN_PLACE, "$ref"}
_BOUNDS = (("minLength", "maxLength"), ("minItems", "maxItems"), ("minimum", "maximum"))
_DIALECT = "https://json-schema.org/draft/2020-12/schema"

MAX_DEPTH = 60
"""Deepest nesting of a schema, because it is read by recursion."""

MAX_CHECKS = 5_000
"""Most subschemas that one value may be checked against. References can double the number with each
step, and the check would not end."""


@dataclass(frozen=True, slots=True)
class SchemaFault:
    """A part of a schema that is not enforced or not valid.

    Attributes:
        pointer: JSON pointer (RFC 6901) to the part; empty for the schema itself.
        message: the fault, in one sentence.
    """

    pointer: str
    message: str


class UnsupportedSchemaError(ValueError):
    """A schema is not valid, or a part of it is not enforced.

    Attributes:
        faults: all faults.
    """

    def __init__(self, faults: Iterable[SchemaFault]) -> None:
        self.faults = tuple(faults)
        lines = (f"{fault.pointer or '(root)'}: {fault.message}" for fault in self.faults)
        super().__init__("; ".join(lines))


def below(pointer: str, *parts: str | int) -> str:
    """The JSON pointer to a part below another pointer."""
    escaped = (str(part).replace("~", "~0").replace("/", "~1") for part in parts)
    return "".join((pointer, *(f"/{part}" for part in escaped)))


def faults_of(document: JsonValue) -> list[SchemaFault]:
    """All faults of a schema, in its order.

    Args:
        document: the schema; any JSON value.
    """
    if canonical_json.is_deeper_than(document, MAX_DEPTH):
        return [SchemaFault("", f"the schema is nested deeper than {MAX_DEPTH} levels")]
    checker: Any = Draft202012Validator(Draft202012Validator.META_SCHEMA)
    malformed = [
        # The first of the alternatives for `type` names all types.
        SchemaFault(below("", *error.absolute_path), f"not valid: {first.message}")
        for error in checker.iter_errors(document)
        for first in (error.context or [error])[:1]
    ]
    if malformed:
        return malformed
    schemas = dict(iter_schemas(document))
    found = [
        SchemaFault(below(pointer, keyword), problem)
        for pointer, schema in schemas.items()
        if isinstance(schema, dict)
        for keyword in schema
        if (problem := _problem(keyword, schema, schemas))
    ]
    return found or list(_endless(schemas))


def contradictions_of(document: JsonValue) -> Iterator[SchemaFault]:
    """The parts of a schema without faults that obviously no value can satisfy.

    The schema itself may accept values, for example if the part is one branch of an `anyOf`.
    """
    for pointer, schema in iter_schemas(document):
        members: Any = schema if isinstance(schema, dict) else {}
        if members.get("enum") == []:
            yield SchemaFault(below(pointer, "enum"), "an empty list allows no value")
        for lower, upper in _BOUNDS:
            if lower in members and members[lower] > members.get(upper, members[lower]):
                yield SchemaFault(below(pointer, lower), f"must be at most `{upper}`")
        if members.get("additionalProperties") is False:
            for name in members.get("required", ()):
                if name not in members.get("properties", {}):
                    message = f"the field {name!r} is not in `properties`, and no other is allowed"
                    yield SchemaFault(below(pointer, "required"), message)


def iter_schemas(document: JsonValue, pointer: str = "") -> Iterator[tuple[str, JsonValue]]:
    """Every subschema with its pointer, the schema itself first."""
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


def with_schemas(schema: Schema, change: Callable[[JsonValue], JsonValue]) -> dict[str, JsonValue]:
    """A copy of a schema with each direct subschema changed."""
    changed = dict(schema)
    for keyword, value in schema.items():
        if keyword in ONE_BELOW:
            changed[keyword] = change(value)
        elif keyword in NAMED_BELOW and isinstance(value, dict):
            changed[keyword] = {name: change(one) for name, one in value.items()}
        elif keyword in IN_PLACE and isinstance(value, list):
            changed[keyword] = [change(one) for one in value]
    return changed


def target_of(reference: str) -> str | None:
    """The JSON pointer of a local reference; None for another reference."""
    if reference == "#":
        return ""
    return unquote(reference[1:]) if reference.startswith("#/") else None


def _problem(keyword: str, schema: Schema, schemas: Mapping[str, JsonValue]) -> str:
    """The reason why a keyword is not enforced; empty if it is, or if it restricts nothing."""
    value = schema[keyword]
    if keyword == "pattern":
        return pattern_problem(cast("str", value))
    if keyword == "$schema" and str(value).rstrip("#") != _DIALECT:
        return f"only draft 2020-12 is supported: {_DIALECT}"
    if keyword == "nullable" and not (isinstance(value, bool) and "type" in schema):
        return "`nullable` must be true or false, beside `type`"
    if keyword == "format" and value not in FORMATS:
        known = ", ".join(sorted(FORMATS))
        return f"the format {value!r} is not supported; supported formats: {known}"
    if keyword == "$ref" and (target := target_of(str(value))) not in schemas:
        supported = "; only `#` and `#/…` are supported" if target is None else ""
        return f"there is no schema at {value}{supported}"
    return "" if keyword in _KNOWN else f"`{keyword}` is not supported"


def _endless(schemas: Mapping[str, JsonValue]) -> Iterator[SchemaFault]:
    """References that form a cycle, or check one value too often."""
    targets = {pointer: [*_same_value(pointer, schema)] for pointer, schema in schemas.items()}
    counts: dict[str, int] = {}
    try:
        for pointer in TopologicalSorter(targets).static_order():
            counts[pointer] = 1 + sum(counts[one] for one in targets[pointer])
    except CycleError as error:
        circle = cast("list[str]", error.args[1])
        yield SchemaFault(min(circle, key=len), "its references form a cycle")
        return
    for pointer in targets:
        if counts[pointer] > MAX_CHECKS:
            message = f"it would check one value more than {MAX_CHECKS:,} times"
            yield SchemaFault(pointer, message)
            return


def _same_value(pointer: str, schema: JsonValue) -> Iterator[str]:
    """The pointers of the subschemas that apply to the same value."""
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
