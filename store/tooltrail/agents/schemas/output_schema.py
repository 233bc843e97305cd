"""A JSON Schema of which every keyword is enforced."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from math import isfinite
from typing import Any, Self, cast

from jsonschema.protocols import Validator
from pydantic import JsonValue

from tooltrail.agents.schemas._keywords import (
    SchemaFault,
    UnsupportedSchemaError,
    faults_of,
    with_schemas,
)
from tooltrail.agents.schemas._validation import TooManyLooksError, bounded, validator_of
from tooltrail.agents.schemas._wording import spelled_path, violation_of
from tooltrail.agents.schemas.strict_form import StrictForm, strict_form_of
from tooltrail.records import Digest, SchemaViolation, canonical_json, digest_of

MAX_VIOLATIONS = 1_000
"""Errors of one value that are listed; nobody mends more at once."""

MAX_VALUE_DEPTH = 100
"""Levels of a value that are looked at; deeper ones would overflow the stack."""


class OutputSchema:
    """A schema that was looked at as a whole. Safe to share between threads.

    Attributes:
        document: the schema as it was given.
        plain: the same without `nullable`, which is said by `type`: what a model is shown, and what
            values are held against.
        digest: of the canonical JSON of the document.
    """

    def __init__(self, document: dict[str, JsonValue]) -> None:
        self.document = document
        self.plain = cast("dict[str, JsonValue]", plain_schema(document))
        self.digest: Digest = digest_of(canonical_json.encode(document))

    @classmethod
    def of(cls, document: dict[str, Any]) -> Self:
        """The schema of an agent's result, if all of it is enforced.

        Raises:
            UnsupportedSchemaError: it is no schema, has a keyword that is not enforced, or is not
                of an object with properties.
        """
        schema = cls.of_any(document)
        faults: list[SchemaFault] = []
        if document.get("type") != "object":
            faults.append(SchemaFault("", 'a result is an object: `type` must be "object"'))
        if not isinstance(document.get("properties"), dict):
            faults.append(SchemaFault("", "a result has fields: `properties` must name them"))
        if faults:
            raise UnsupportedSchemaError(faults)
        return schema

    @classmethod
    def of_any(cls, document: dict[str, Any]) -> Self:
        """The schema of any value, if all of it is enforced.

        Raises:
            UnsupportedSchemaError: it is no schema, or has a keyword that is not enforced.
        """
        faults = faults_of(document)
        if faults:
            raise UnsupportedSchemaError(faults)
        return cls(document)

    def violations(self, value: JsonValue) -> tuple[SchemaViolation, ...]:
        """Every way in which a value breaks the schema, in the schema's order; none if it fits.

        Of very many the first `MAX_VIOLATIONS` are given, and one that says that there are more.

        Args:
            value: of JSON types.
        """
        try:
            parts = list(_parts((), value))
            odd = [path for path, one in parts if isinstance(one, float) and not isfinite(one)]
            if odd:
                return tuple(map(_not_finite, odd))
            with bounded(len(parts)):
                return tuple(self._broken(value))
        except RecursionError:
            message = f"the result is nested deeper than {MAX_VALUE_DEPTH} levels"
            return (SchemaViolation(path="", message=message),)
        except TooManyLooksError:
            return (SchemaViolation(path="", message="the result takes too long to check"),)

    def _broken(self, value: JsonValue) -> Iterator[SchemaViolation]:
        """What is wrong, each once: two ways to the same place of a schema tell the same twice."""
        seen: set[SchemaViolation] = set()
        for error in self.validator.iter_errors(cast("Any", value)):
            violation = violation_of(error)
            if violation in seen:
                continue
            if len(seen) == MAX_VIOLATIONS:
                more = f"more than {MAX_VIOLATIONS:,} errors; the others are not listed"
                yield SchemaViolation(path="", message=more)
                return
            seen.add(violation)
            yield violation

    @cached_property
    def validator(self) -> Validator:
        """What holds values against it."""
        return validator_of(self.plain)

    @cached_property
    def strict_form(self) -> StrictForm | None:
        """As a provider wants it that enforces schemas itself; None where it cannot be said so."""
        return strict_form_of(self.plain, self.validator)


def plain_schema(schema: JsonValue) -> JsonValue:
    """A schema without `nullable`: where it is true, `type` has `null` as well (OpenAPI 3.0.3).

    `enum` and `const` beside it say what they say: null must be among them to be allowed. A schema
    that is `false` is spelled as an object, since the library tells no place where it is not; and
    `$schema` is left out, since the library would go on with a validator of its own there.
    """
    if schema is False:
        return {"not": {}}
    if not isinstance(schema, dict):
        return schema
    plain = with_schemas(schema, plain_schema)
    if schema.get("additionalProperties") is False:
        plain["additionalProperties"] = False
    plain.pop("$schema", None)
    if plain.pop("nullable", False) is True:
        types = plain["type"]
        listed = types if isinstance(types, list) else [types]
        plain["type"] = [*listed, *(() if "null" in listed else ("null",))]
    return plain


def _not_finite(path: tuple[str | int, ...]) -> SchemaViolation:
    spelled = spelled_path(path)
    return SchemaViolation(path=spelled, message=f"`{spelled}` must be a finite number")


def _parts(
    path: tuple[str | int, ...], value: Any, depth: int = 0
) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """A value and all that is in it, each with its path.

    Raises:
        RecursionError: it is nested too deep.
    """
    if depth > MAX_VALUE_DEPTH:
        raise RecursionError
    yield path, value
    if isinstance(value, Mapping):
        for name, one in cast("Mapping[str, Any]", value).items():
            yield from _parts((*path, name), one, depth + 1)
    elif isinstance(value, list):
        for number, one in enumerate(cast("list[object]", value)):
            yield from _parts((*path, number), one, depth + 1)
