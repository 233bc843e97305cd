"""The keywords that are enforced, and a look at a whole schema for all others.

A schema is looked at wherever one stands, also where nothing leads to: whoever wrote a keyword
counts on it.
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
    if canonical_json.is_deeper_than(document, MAX_DEPTH):
        return [SchemaFault("", f"the schema is nested deeper than {MAX_DEPTH} levels")]
    checker: Any = Draft202012Validator(Draft202012Validator.META_SCHEMA)
    malformed = [
        SchemaFault(below("", *error.absolute_path), f"is not as it should be: {error.message}")
        for error in checker.iter_errors(document)
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


def with_schemas(schema: Schema, change: Callable[[JsonValue], JsonValue]) -> dict[str, JsonValue]:
    """A schema in which each schema that stands directly in it is changed."""
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
    """The pointer that a local reference leads to; None for any other."""
    if reference == "#":
        return ""
    return unquote(reference[1:]) if reference.startswith("#/") else None


def _problem(keyword: str, schema: Schema, schemas: Mapping[str, JsonValue]) -> str:
    """Why a keyword of a schema cannot be enforced; empty if it is enforced, or asserts nothing."""
    value = schema[keyword]
    if keyword == "pattern":
        return pattern_problem(cast("str", value))
    if keyword == "$schema" and str(value).rstrip("#") != _DIALECT:
        return f"only the draft 2020-12 is known here: {_DIALECT}"
    if keyword == "nullable" and not (isinstance(value, bool) and "type" in schema):
        return "`nullable` must be true or false, beside `type`"
    if keyword == "format" and value not in FORMATS:
        known = ", ".join(sorted(FORMATS))
        return f"the format {value!r} is not enforced here; those that are: {known}"
    if keyword == "$ref" and target_of(str(value)) not in schemas:
        return f"there is no schema at {value}; only `#` and `#/…` are followed"
    return "" if keyword in _KNOWN else f"`{keyword}` is not enforced here"


def _endless(schemas: Mapping[str, JsonValue]) -> Iterator[SchemaFault]:
    """References that lead back to themselves, or to too many others, for one value."""
    sent = {pointer: [*_same_value(pointer, schema)] for pointer, schema in schemas.items()}
    looks: dict[str, int] = {}
    try:
        for pointer in TopologicalSorter(sent).static_order():
            looks[pointer] = 1 + sum(looks[one] for one in sent[pointer])
    except CycleError as error:
        circle = cast("list[str]", error.args[1])
        yield SchemaFault(min(circle, key=len), "references lead back to it without end")
        return
    for pointer in sent:
        if looks[pointer] > MAX_LOOKS:
            message = f"one value would be looked at more than {MAX_LOOKS:,} times"
            yield SchemaFault(pointer, message)
            return


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
