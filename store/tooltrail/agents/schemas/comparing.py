"""Compares two schemas of a result, and says whether stored results may not fit the new schema.

A change is `compatible` if a rule proves that every value that fitted before still fits. Otherwise
it is `breaking`. So an equivalent schema in other words may be called breaking; check the stored
results against the new schema to be sure.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, cast

from pydantic import JsonValue

from tooltrail.agents.schemas._keywords import (
    ANNOTATIONS,
    IN_PLACE,
    iter_schemas,
    target_of,
    with_schemas,
)
from tooltrail.agents.schemas._validation import json_key
from tooltrail.agents.schemas.output_schema import OutputSchema

Effect = Literal["compatible", "unlikely", "breaking"]
"""Whether a stored result may not fit any more. `unlikely`: only a result that happens to have an
undeclared field of this name."""

ChangeKind = Literal[
    "field_added",
    "field_removed",
    "required_added",
    "required_removed",
    "other_fields",
    "type_changed",
    "values_changed",
    "bound_changed",
    "rule_changed",
]

Schema: TypeAlias = JsonValue
_Members: TypeAlias = Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """One difference.

    Attributes:
        path: path of the field, such as `findings[].confidence`; empty for the result itself.
        kind: kind of change.
        detail: old and new value, in a few words.
        effect: effect on stored results.
    """

    path: str
    kind: ChangeKind
    detail: str
    effect: Effect


_AT_LEAST = ("minLength", "minItems", "minimum", "exclusiveMinimum")
_AT_MOST = ("maxLength", "maxItems", "maximum", "exclusiveMaximum")
_COMPARED = frozenset(
    {
        *_AT_LEAST,
        *_AT_MOST,
        *("type", "enum", "const", "properties", "required", "additionalProperties", "items"),
        *("$defs", "$ref"),
    }
)
_ALL_TYPES = frozenset({"object", "array", "string", "number", "integer", "boolean", "null"})
_MAX_DEPTH = 40
"""Deepest level that is compared, because a recursive schema has no end."""


def compare_schemas(old: OutputSchema, new: OutputSchema) -> tuple[SchemaChange, ...]:
    """All differences that affect values, in the order of the new schema."""
    comparing = _Comparing(dict(iter_schemas(old.plain)), dict(iter_schemas(new.plain)))
    return tuple(dict.fromkeys(comparing.changes("", old.plain, new.plain, 0)))


@dataclass(frozen=True, slots=True)
class _Comparing:
    """Compares two documents, given their subschemas by pointer."""

    before: _Members
    after: _Members
    running: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])

    def changes(self, path: str, old: Schema, new: Schema, depth: int) -> Iterator[SchemaChange]:
        """The differences of one part and of the parts below it."""
        if json_key(_bare(old)) == json_key(_bare(new)) and not self._refers(old, new):
            return
        former, latter = _resolved(old, self.before), _resolved(new, self.after)
        if former is None or latter is None or depth > _MAX_DEPTH:
            yield SchemaChange(
                path, "rule_changed", "the referenced schemas may differ", "breaking"
            )
            return
        pair = (id(former), id(latter))
        if pair in self.running:
            # A recursive schema: the outer comparison reports the differences.
            return
        self.running.add(pair)
        try:
            for changed in (_types_changed, _values_changed, _bounds_changed):
                yield from changed(path, former, latter)
            yield from self._rules_changed(path, former, latter, depth)
            yield from self._fields_changed(path, former, latter, depth)
            if "items" in latter:
                items = former.get("items", True), latter["items"]
                yield from self.changes(f"{path}[]", *items, depth + 1)
        finally:
            self.running.remove(pair)

    def _refers(self, *schemas: Schema) -> bool:
        """Whether equal references may mean different schemas in the two documents."""
        is_same = json_key(_bare(self.before[""])) == json_key(_bare(self.after[""]))
        return not is_same and any("$ref" in str(schema) for schema in schemas)

    def _rules_changed(
        self, path: str, old: _Members, new: _Members, depth: int
    ) -> Iterator[SchemaChange]:
        """Changes of other keywords. Removing one allows more; another change may allow less."""
        for keyword in sorted((old.keys() | new.keys()) - ANNOTATIONS - _COMPARED):
            was, now = (_bare({keyword: one.get(keyword)}) for one in (old, new))
            if keyword not in new:
                yield SchemaChange(path, "rule_changed", f"`{keyword}` was removed", "compatible")
            elif json_key(was) != json_key(now):
                yield SchemaChange(path, "rule_changed", f"`{keyword}` changed", "breaking")
            elif keyword in IN_PLACE:
                yield from self._alternatives_changed(path, old, new, keyword, depth)

    def _alternatives_changed(
        self, path: str, old: _Members, new: _Members, keyword: str, depth: int
    ) -> Iterator[SchemaChange]:
        """The changes behind the references of alternatives in the same words."""
        former, latter = (cast("list[Schema]", one[keyword]) for one in (old, new))
        pairs = zip(former, latter, strict=True)
        found = [one for was, now in pairs for one in self.changes(path, was, now, depth + 1)]
        if found and keyword == "oneOf":  # a wider alternative may overlap another one
            found = [SchemaChange(path, "rule_changed", "`oneOf` changed", "breaking")]
        yield from found

    def _fields_changed(
        self, path: str, old: _Members, new: _Members, depth: int
    ) -> Iterator[SchemaChange]:
        former, latter = _properties(old), _properties(new)
        for name in dict.fromkeys((*latter, *former)):
            place = _below(path, name)
            if name not in former:
                yield self._field_added(place, old, latter[name])
            elif name in latter:
                yield from self.changes(place, former[name], latter[name], depth + 1)
            else:
                is_free = self._takes(new.get("additionalProperties", True), former[name])
                effect: Effect = "compatible" if is_free else "breaking"
                yield SchemaChange(place, "field_removed", "it is not declared any more", effect)
        yield from _required_changed(path, old, new)
        yield from self._others_changed(path, old, new, depth)

    def _field_added(self, place: str, old: _Members, added: Schema) -> SchemaChange:
        others = old.get("additionalProperties", True)
        if others is False:
            wording: tuple[str, Effect] = ("it was not allowed before", "compatible")
        elif self._takes(added, others):
            wording = ("it allows all values that were allowed before", "compatible")
        elif others is True or others == {}:
            wording = ("a result may have an undeclared field of this name", "unlikely")
        else:
            wording = ("it was allowed before as an undeclared field", "breaking")
        return SchemaChange(place, "field_added", *wording)

    def _takes(self, wide: Schema, narrow: Schema) -> bool:
        """Whether every value that fits `narrow` is certain to fit `wide`."""
        if wide is True or wide == {}:
            return True
        if wide is False or narrow is True:
            return narrow is False
        return all(
            change.effect == "compatible" for change in self.changes("", narrow, wide, _MAX_DEPTH)
        )

    def _others_changed(
        self, path: str, old: _Members, new: _Members, depth: int
    ) -> Iterator[SchemaChange]:
        former, latter = (one.get("additionalProperties", True) for one in (old, new))
        if json_key(former) == json_key(latter) and not self._refers(former, latter):
            return
        if former is False or latter is True or latter == {}:
            yield SchemaChange(
                path, "other_fields", "undeclared fields may have any value", "compatible"
            )
        elif former is True or former == {} or latter is False:
            wording = "undeclared fields are restricted"
            yield SchemaChange(path, "other_fields", wording, "breaking")
        else:
            yield from self.changes(_below(path, "*"), former, latter, depth + 1)


def _resolved(schema: Schema, schemas: Mapping[str, Schema]) -> dict[str, JsonValue] | None:
    """The schema behind a reference, as an object; None if other keywords stand beside it."""
    while isinstance(schema, dict) and "$ref" in schema:
        if schema.keys() - ANNOTATIONS - {"$ref", "$defs"}:
            return None
        schema = schemas[target_of(cast("str", schema["$ref"])) or ""]
    if isinstance(schema, bool):
        return {} if schema else {"enum": []}
    return cast("dict[str, JsonValue]", schema)


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _bare(schema: Schema) -> Schema:
    """A schema without annotations, at all levels."""
    if not isinstance(schema, dict):
        return schema
    members = with_schemas(schema, _bare).items()
    return {name: one for name, one in members if name not in ANNOTATIONS}


def _properties(schema: _Members) -> _Members:
    return cast("_Members", schema.get("properties") or {})


def _required_changed(path: str, old: _Members, new: _Members) -> Iterator[SchemaChange]:
    was, now = (cast("list[str]", one.get("required") or []) for one in (old, new))
    for name in now:
        if name not in was:
            place = _below(path, name)
            yield SchemaChange(place, "required_added", "the field is required now", "breaking")
    for name in was:
        if name not in now:
            place = _below(path, name)
            yield SchemaChange(place, "required_removed", "the field is optional now", "compatible")


def _types_of(schema: _Members) -> frozenset[str]:
    types = schema.get("type", sorted(_ALL_TYPES))
    named = frozenset(cast("list[str]", types if isinstance(types, list) else [types]))
    return named | {"integer"} if "number" in named else named


def _types_changed(path: str, old: _Members, new: _Members) -> Iterator[SchemaChange]:
    was, now = _types_of(old), _types_of(new)
    if was == now:
        return
    wording = f"from {', '.join(sorted(was))} to {', '.join(sorted(now))}"
    yield SchemaChange(path, "type_changed", wording, "compatible" if was <= now else "breaking")


def _allowed(schema: _Members) -> frozenset[object] | None:
    """Keys of the allowed values; None if any value is allowed."""
    listed = frozenset(map(json_key, cast("list[Any]", schema.get("enum", []))))
    if "const" not in schema:
        return listed if "enum" in schema else None
    only = frozenset({json_key(schema["const"])})
    return only & listed if "enum" in schema else only


def _values_changed(path: str, old: _Members, new: _Members) -> Iterator[SchemaChange]:
    was, now = _allowed(old), _allowed(new)
    if was == now:
        return
    is_wider = now is None or (was is not None and was <= now)
    wording = "more values are allowed" if is_wider else "fewer values are allowed"
    yield SchemaChange(path, "values_changed", wording, "compatible" if is_wider else "breaking")


def _bounds_changed(path: str, old: _Members, new: _Members) -> Iterator[SchemaChange]:
    for keyword in (*_AT_LEAST, *_AT_MOST):
        was, now = old.get(keyword), new.get(keyword)
        if was == now:
            continue
        effect: Effect = "compatible" if _is_looser(keyword, was, now) else "breaking"
        former, latter = ("none" if bound is None else bound for bound in (was, now))
        yield SchemaChange(path, "bound_changed", f"{keyword}: from {former} to {latter}", effect)


def _is_looser(keyword: str, was: Any, now: Any) -> bool:
    if was is None or now is None:
        return now is None
    return bool(now < was if keyword in _AT_LEAST else now > was)
