"""The agents of `examples/agents` are right, and have the tools that there are."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import JsonValue

from tooltrail.agents import check_agents, load_agent
from tooltrail.workspace import workspace_tools

FOLDER = Path(__file__).parents[3] / "examples" / "agents"
NAMES = ("implementer", "researcher", "reviewer", "tester")

SUPPORTED = {
    *("type", "properties", "required", "additionalProperties", "items", "enum", "const"),
    *("minItems", "maxItems", "uniqueItems", "minLength", "maxLength", "pattern", "format"),
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    *("anyOf", "oneOf", "allOf", "nullable", "$ref", "$defs", "description", "title"),
}
"""Keywords that an agent's schema may have."""

SUBMISSIONS: dict[str, dict[str, JsonValue]] = {
    "researcher": {
        "summary": "Retention removes bodies and leaves a tombstone for each of them.",
        "findings": [
            {
                "description": "Bodies are removed.",
                "files": ["store/pruning.py"],
                "evidence": "line 12",
                "confidence": "high",
            }
        ],
        "nextSteps": ["Read the triggers."],
    },
    "implementer": {
        "summary": "Done.",
        "filesModified": [{"path": "a.py", "action": "created", "changes": "All of it."}],
        "testsCovered": True,
    },
    "reviewer": {
        "summary": "One issue.",
        "issues": [{"severity": "minor", "description": "A typo.", "line": 3}],
        "overallQuality": "needs-work",
        "approved": True,
    },
    "tester": {
        "summary": "Two tests.",
        "testsCreated": [{"path": "test_a.py", "testCount": 2, "type": "unit"}],
        "coverage": 87.5,
    },
}
"""What a good run of each agent could give back."""


def schema_of(name: str) -> dict[str, Any]:
    output = load_agent(FOLDER / name / "agent.yml").output
    assert output is not None
    return output.json_schema


def is_valid(name: str, value: JsonValue) -> bool:
    errors = Draft202012Validator(schema_of(name)).iter_errors(value)  # pyright: ignore[reportUnknownMemberType]
    return next(errors, None) is None


def iter_keywords(schema: dict[str, Any]) -> Iterator[str]:
    yield from schema
    for inner in schema.get("properties", {}).values():
        yield from iter_keywords(inner)
    if "items" in schema:
        yield from iter_keywords(schema["items"])


def test_the_four_examples_have_no_problem() -> None:
    checked = check_agents(FOLDER)
    assert [agent.path.parent.name for agent in checked] == list(NAMES)
    assert [agent.problems for agent in checked] == [(), (), (), ()]
    assert [agent.config.id for agent in checked if agent.config is not None] == list(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_an_example_has_two_tiers_and_tools_that_there_are(name: str, tmp_path: Path) -> None:
    config = load_agent(FOLDER / name / "agent.yml")
    assert [tier.name for tier in config.ladder] == ["small", "large"]
    assert config.context.static.system
    assert (config.version, config.description is None) == ("1", False)
    may_change = name in {"implementer", "tester"}
    tools = workspace_tools(tmp_path, allow_writes=may_change, allow_commands=may_change)
    assert set(config.tools) == set(tools)


@pytest.mark.parametrize("name", NAMES)
def test_the_schema_of_an_example_is_one_and_has_supported_keywords_alone(name: str) -> None:
    schema = schema_of(name)
    Draft202012Validator.check_schema(schema)
    assert schema["type"] == "object"
    assert set(iter_keywords(schema)) <= SUPPORTED


@pytest.mark.parametrize("name", NAMES)
def test_a_good_result_fits_the_schema_of_an_example_and_a_bad_one_does_not(name: str) -> None:
    good = SUBMISSIONS[name]
    assert is_valid(name, good)
    for key in schema_of(name)["required"]:
        assert not is_valid(name, {k: v for k, v in good.items() if k != key})
    (listed,) = (k for k, v in good.items() if isinstance(v, list) and isinstance(v[0], dict))
    assert not is_valid(name, {**good, listed: [{"other": 1}]})
    entries = good[listed]
    assert isinstance(entries, list)
    assert isinstance(entries[0], dict)
    assert not is_valid(name, {**good, listed: [{**entries[0], "other": 1}]})
