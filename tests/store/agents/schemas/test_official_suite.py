"""The official suite of JSON Schema: what is enforced agrees with it, all else is refused."""

import json
from pathlib import Path
from typing import Any, cast

import pytest
from tests.support.corpus.formats import CORPUS

from tooltrail.agents import OutputSchema, UnsupportedSchemaError

SUITE = CORPUS / "json_schema_suite" / "tests" / "draft2020-12"

pytestmark = pytest.mark.skipif(not SUITE.is_dir(), reason="the corpus is not here")

SUPPORTED = {
    *("allOf", "anyOf", "boolean_schema", "const", "default", "enum"),
    *("exclusiveMaximum", "exclusiveMinimum", "infinite-loop-detection", "maxItems", "maxLength"),
    *("maximum", "minItems", "minLength", "minimum", "multipleOf", "oneOf", "pattern"),
    *("required", "type"),
}
"""Files of which every schema is enforced."""

MIXED = {"additionalProperties", "format", "items", "properties", "ref", "uniqueItems"}
"""Files of keywords that are enforced, some of whose schemas have others beside them."""

UNSUPPORTED = {
    *("anchor", "contains", "content", "defs", "dependentRequired", "dependentSchemas"),
    *("dynamicRef", "if-then-else", "maxContains", "maxProperties", "minContains", "minProperties"),
    *("not", "patternProperties", "prefixItems", "propertyNames", "refRemote"),
    *("unevaluatedItems", "unevaluatedProperties", "vocabulary"),
}
"""Files of which every schema is refused."""

KEYWORDS = {
    *("$anchor", "$dynamicAnchor", "$dynamicRef", "$id", "$vocabulary", "contains"),
    *("contentEncoding", "contentMediaType", "contentSchema", "definitions", "dependentRequired"),
    *("dependentSchemas", "else", "if", "maxContains", "maxProperties", "minContains"),
    *("minProperties", "not", "patternProperties", "prefixItems", "propertyNames", "then"),
    *("unevaluatedItems", "unevaluatedProperties"),
}
"""Keywords that are not enforced; every refusal is because of one, a reference or a format."""

ANNOTATED_FORMATS = 13
"""Tests of `format.json` that hold a wrong value of an enforced format to be valid: the suite takes
formats for annotations there, and here they are enforced."""


def groups(name: str) -> list[dict[str, Any]]:
    loaded: list[dict[str, Any]] = json.loads((SUITE / f"{name}.json").read_text())
    return loaded


def keywords_in(value: Any) -> set[str]:
    """All names in a schema, whatever they are the names of."""
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return {*members}.union(*map(keywords_in, members.values()))
    if isinstance(value, list):
        return set[str]().union(*map(keywords_in, cast("list[object]", value)))
    return set()


def test_every_file_of_the_suite_is_in_one_of_the_lists() -> None:
    assert {path.stem for path in SUITE.glob("*.json")} == SUPPORTED | MIXED | UNSUPPORTED
    assert not SUPPORTED & MIXED
    assert not (SUPPORTED | MIXED) & UNSUPPORTED


@pytest.mark.parametrize("name", sorted(SUPPORTED))
def test_all_of_a_supported_file_agrees(name: str) -> None:
    for group in groups(name):
        schema = OutputSchema.of_any(group["schema"])
        for case in group["tests"]:
            accepted = not schema.violations(case["data"])
            assert accepted is case["valid"], (group["description"], case["description"])


@pytest.mark.parametrize("name", sorted(MIXED - {"format"}))
def test_what_is_enforced_of_a_mixed_file_agrees_and_the_rest_is_refused(name: str) -> None:
    enforced = 0
    for group in groups(name):
        try:
            schema = OutputSchema.of_any(group["schema"])
        except UnsupportedSchemaError as error:
            refused = {fault.pointer.rpartition("/")[2] for fault in error.faults}
            assert refused & (keywords_in(group["schema"]) & (KEYWORDS | {"$ref"}))
            continue
        enforced += 1
        assert not keywords_in(group["schema"]) & {"patternProperties", "prefixItems", "if", "$id"}
        for case in group["tests"]:
            accepted = not schema.violations(case["data"])
            assert accepted is case["valid"], (group["description"], case["description"])
    assert enforced


@pytest.mark.parametrize("name", sorted(UNSUPPORTED))
def test_every_schema_of_an_unsupported_file_is_refused(name: str) -> None:
    for group in groups(name):
        with pytest.raises(UnsupportedSchemaError) as refused:
            OutputSchema.of_any(group["schema"])
        assert refused.value.faults


def test_an_enforced_format_refuses_what_the_suite_takes_for_an_annotation() -> None:
    stricter, agreeing, refused = 0, 0, 0
    for group in groups("format"):
        try:
            schema = OutputSchema.of_any(group["schema"])
        except UnsupportedSchemaError:
            refused += len(group["tests"])
            continue
        for case in group["tests"]:
            accepted = not schema.violations(case["data"])
            if accepted is case["valid"]:
                agreeing += 1
                continue
            assert case["description"].endswith("string is only an annotation by default")
            assert case["valid"]
            stricter += 1
    assert stricter == ANNOTATED_FORMATS
    assert agreeing + stricter + refused == sum(len(group["tests"]) for group in groups("format"))


def test_the_figures_of_the_page_are_those_of_the_suite() -> None:
    agreeing = refused = other = 0
    for name in SUPPORTED | MIXED | UNSUPPORTED:
        for group in groups(name):
            try:
                schema = OutputSchema.of_any(group["schema"])
            except UnsupportedSchemaError:
                refused += len(group["tests"])
                continue
            for case in group["tests"]:
                agrees = (not schema.violations(case["data"])) is case["valid"]
                agreeing, other = agreeing + agrees, other + (not agrees)
    page = (Path(__file__).parents[4] / "docs" / "agents.md").read_text()
    assert (
        f"of {agreeing + other:,} tests are enforced, and {agreeing:,} of these tests agree" in page
    )
    assert f"{refused:,} tests" in page
    assert other == ANNOTATED_FORMATS
