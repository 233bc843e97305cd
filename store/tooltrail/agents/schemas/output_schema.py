"""The schema of a result, with every keyword enforced."""

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
from tooltrail.agents.schemas._validation import TooManyChecksError, bounded, validator_of
from tooltrail.agents.schemas._wording import spelled_path, violation_of
from tooltrail.agents.schemas.strict_form import StrictForm, strict_form_of
from tooltrail.records import Digest, SchemaViolation, canonical_json, digest_of
from tooltrail.records.families.structured_output import MAX_VIOLATIONS, NOT_LISTED

MAX_VALUE_DEPTH = 100
"""Deepest nesting of a value, because a deeper value would overflow the stack."""


class OutputSchema:
    """A schema without faults. Safe to share between threads.

    Attributes:
        document: the schema as given.
        plain: the schema with `nullable` expressed by `type`. Models see it, and values are checked
            against it.
        digest: digest of the canonical JSON of the document.
    """

    def __init__(self, document: dict[str, JsonValue]) -> None:
        self.document = document
        self.plain = cast("dict[str, JsonValue]", plain_schema(document))
        self.digest: Digest = digest_of(canonical_json.encode(document))

    @classmethod
    def of(cls, document: dict[str, Any]) -> Self:
        """Make the schema of an agent's result.

        Raises:
            UnsupportedSchemaError: the document is not a schema, has an unsupported keyword, or is
                not the schema of an object with properties.
        """
        schema = cls.of_any(document)
        faults: list[SchemaFault] = []
        if document.get("type") != "object":
            faults.append(SchemaFault("", 'the result must be an object: `type` must be "object"'))
        if not isinstance(document.get("properties"), dict):
            faults.append(
                SchemaFault("", "the result must have fields: `properties` must name them")
            )
        if faults:
            raise UnsupportedSchemaError(faults)
        return schema

    @classmethod
    def of_any(cls, document: dict[str, Any]) -> Self:
        """Make the schema of any value.

        Raises:
            UnsupportedSchemaError: the document is not a schema, or has an unsupported keyword.
        """
        faults = faults_of(document)
        if faults:
            raise UnsupportedSchemaError(faults)
        return cls(document)

    def violations(self, value: JsonValue) -> tuple[SchemaViolation, ...]:
        """All errors of a value in the order of the schema; empty if the value fits.

        At most `MAX_VIOLATIONS` errors, then `NOT_LISTED`.

        Args:
            value: any JSON value.
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
        except TooManyChecksError:
            return (SchemaViolation(path="", message="the result takes too long to check"),)

    def _broken(self, value: JsonValue) -> Iterator[SchemaViolation]:
        """The errors without duplicates; two paths to one subschema report the same error."""
        seen: set[SchemaViolation] = set()
        for error in self.validator.iter_errors(cast("Any", value)):
            violation = violation_of(error)
            if violation in seen:
                continue
            if len(seen) == MAX_VIOLATIONS:
                yield NOT_LISTED
                return
            seen.add(violation)
            yield violation

    @cached_property
    def validator(self) -> Validator:
        """The validator of the plain schema."""
        return validator_of(self.plain)

    @cached_property
    def strict_form(self) -> StrictForm | None:
        """The strict form for providers that enforce schemas; None if the schema has none."""
        return strict_form_of(self.plain, self.validator)


def plain_schema(schema: JsonValue) -> JsonValue:
    """A schema with `null` in `type` instead of `nullable: true` (OpenAPI 3.0.3).

    `enum` and `const` still apply, so null must be among their values to be allowed. The schema
    `false` becomes an object, because the library reports no position for `false`. `$schema` is
    removed, because the library would switch to its own validator there.
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
    """A value and all its parts, each with its path.

    Raises:
        RecursionError: the value is nested too deep.
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
