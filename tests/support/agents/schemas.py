"""Schemas with all keywords that are enforced, and values that nearly fit the schemas."""

from typing import Any

from hypothesis import strategies as st

NAMES = ("a", "b", "c")

values: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 5)
    | st.sampled_from([0.5, 1.0, 2.5])
    | st.sampled_from(["", "a", "bb", "2024-02-29", "\u00e4"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner),
    max_leaves=6,
)

_bounds = st.integers(0, 3)


def _with(keywords: dict[str, st.SearchStrategy[Any]], **fixed: Any) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries(
        {name: st.just(value) for name, value in fixed.items()}, optional=keywords
    )


_leaves: st.SearchStrategy[Any] = st.one_of(
    _with({}, type="boolean"),
    _with({}, type="null"),
    _with({}, const=None) | values.map(lambda value: {"const": value}),
    st.lists(values, min_size=1, max_size=3).map(lambda several: {"enum": several}),
    _with(
        {
            "minLength": _bounds,
            "maxLength": _bounds,
            "pattern": st.sampled_from(["^a", "b$", "."]),
            "format": st.just("date"),
        },
        type="string",
    ),
    st.sampled_from(["number", "integer"]).flatmap(
        lambda kind: _with(
            {
                "minimum": _bounds,
                "maximum": _bounds,
                "exclusiveMinimum": _bounds,
                "multipleOf": st.sampled_from([1, 2, 0.5]),
            },
            type=kind,
        )
    ),
)


def _objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    fields = st.dictionaries(st.sampled_from(NAMES), inner, min_size=1, max_size=3)
    return fields.flatmap(
        lambda named: _with(
            {
                "required": st.lists(st.sampled_from(sorted(named)), unique=True),
                "additionalProperties": st.just(value=False) | inner,
            },
            type="object",
            properties=named,
        )
    )


def _arrays(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    optional = {"minItems": _bounds, "maxItems": _bounds, "uniqueItems": st.booleans()}
    return inner.flatmap(lambda items: _with(optional, type="array", items=items))


def _alternatives(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(inner, min_size=1, max_size=2)
    keyword = st.sampled_from(["anyOf", "oneOf", "allOf"])
    return st.tuples(keyword, several).map(lambda pair: {pair[0]: pair[1]})


schemas: st.SearchStrategy[dict[str, Any]] = st.recursive(
    _leaves, lambda inner: _objects(inner) | _arrays(inner) | _alternatives(inner), max_leaves=5
)

outputs: st.SearchStrategy[dict[str, Any]] = _objects(schemas)
"""Schemas that are allowed for the result of an agent."""
