"""What holds for any schema and any value."""

from typing import Any

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from tests.support.agents.schemas import outputs, schemas, values

from tooltrail.agents import OutputSchema, compare_schemas

REFERENCE: Any = Draft202012Validator


@given(schemas, values)
def test_a_value_is_accepted_exactly_when_the_plain_library_accepts_it(
    document: dict[str, Any], value: Any
) -> None:
    plain = REFERENCE(document, format_checker=REFERENCE.FORMAT_CHECKER)
    violations = OutputSchema.of_any(document).violations(value)
    assert (not violations) == plain.is_valid(value)
    assert len(set(violations)) == len(violations)


def fill(document: dict[str, Any], value: dict[str, Any]) -> Any:
    """The value as a model gives it in the strict form: what is missing is null."""
    filled = dict(value)
    for name in document["properties"]:
        filled.setdefault(name, None)
    return filled


# Few pairs of a schema and a value fit each other.
@settings(suppress_health_check=[HealthCheck.filter_too_much])
@given(outputs, st.data())
def test_what_is_null_only_because_it_must_be_there_is_taken_out_again(
    document: dict[str, Any], data: st.DataObject
) -> None:
    schema = OutputSchema.of(document)
    strict = schema.strict_form
    assume(strict is not None)
    assert strict is not None
    value = data.draw(st.dictionaries(st.sampled_from(sorted(document["properties"])), values))
    assume(not schema.violations(value))
    told = strict.restore(fill(document, value))
    assert isinstance(told, dict)
    assert schema.violations(told) == ()
    # A null that the schema allows is indistinguishable from one that stands for nothing.
    assert {name: one for name, one in told.items() if one is not None} == {
        name: one for name, one in value.items() if one is not None
    }


@given(schemas, schemas, values)
def test_a_change_that_is_called_compatible_refuses_nothing_that_fitted(
    old: dict[str, Any], new: dict[str, Any], value: Any
) -> None:
    before, after = OutputSchema.of_any(old), OutputSchema.of_any(new)
    changes = compare_schemas(before, after)
    if all(change.effect == "compatible" for change in changes) and not before.violations(value):
        assert after.violations(value) == ()


@given(schemas)
def test_a_schema_differs_in_nothing_from_itself(document: dict[str, Any]) -> None:
    assert compare_schemas(OutputSchema.of_any(document), OutputSchema.of_any(document)) == ()
