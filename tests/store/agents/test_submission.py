"""`submit_result` as each provider is told of it."""

from typing import Any

import pytest
from tests.support.agents.scenarios import AGENTS, GOOD, example, free_text
from tests.support.agents.scripted_provider import FORMATS

from tooltrail.agents import AgentConfig, Output, submission_tool
from tooltrail.agents.submission import Judge, offered_names


@pytest.mark.parametrize("wire_format", FORMATS)
def test_without_a_schema_there_is_no_such_tool(wire_format: str) -> None:
    assert submission_tool(free_text(example("tester")), wire_format) is None


def strictly(config: AgentConfig) -> AgentConfig:
    """The same agent, whose provider is to enforce the schema."""
    return config.model_copy(update={"output": strict_output(config)})


def strict_output(config: AgentConfig) -> Output:
    assert config.output is not None
    return config.output.model_copy(update={"strict": True})


@pytest.mark.parametrize("wire_format", FORMATS)
@pytest.mark.parametrize("agent", AGENTS)
def test_a_model_must_call_the_tool_and_no_strict_flag_is_sent_unasked(
    agent: str, wire_format: str
) -> None:
    config = example(agent)
    told = submission_tool(config, wire_format)
    assert told is not None
    assert config.output is not None
    assert "You MUST call this tool" in (told.description or "")
    assert (told.parameters, told.strict) == (config.output.json_schema, None)


@pytest.mark.parametrize("agent", AGENTS)
def test_a_provider_that_is_to_enforce_the_schema_is_told_the_strict_form(agent: str) -> None:
    config = strictly(example(agent))
    assert config.output is not None
    strict = submission_tool(config, "openai")
    plain = submission_tool(config, "anthropic")
    assert strict is not None
    assert plain is not None
    assert (strict.name, strict.strict) == ("submit_result", True)
    assert (plain.parameters, plain.strict) == (config.output.json_schema, None)
    parameters: Any = strict.parameters
    assert parameters["required"] == [*parameters["properties"]]
    assert "minLength" not in str(parameters)


def agent_of(schema: dict[str, Any]) -> AgentConfig:
    return AgentConfig.model_validate(
        {"schema": "kb.agent/1", "id": "a", "name": "A", "model": "m", "output": {"schema": schema}}
    )


def test_a_schema_that_has_no_strict_form_is_told_as_it_is_but_for_nullable() -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"a": {"type": "object"}, "b": {"type": "string", "nullable": True}},
    }
    told = submission_tool(strictly(agent_of(schema)), "openai")
    assert told is not None
    assert told.strict is None
    assert told.parameters == {
        "type": "object",
        "properties": {"a": {"type": "object"}, "b": {"type": ["string", "null"]}},
    }


def test_a_result_in_the_strict_form_is_judged_and_kept_as_the_schema_means_it() -> None:
    given = {**GOOD["reviewer"], "overallQuality": None}
    output = strict_output(example("reviewer"))
    strict = Judge("reviewer", output, "openai", attempt_count=1)
    assert strict.judge(given).valid
    assert strict.meant(given) == GOOD["reviewer"]
    plain = Judge("reviewer", output, "anthropic", attempt_count=2)
    verdict = plain.judge(given)
    assert {error.path for error in verdict.errors} == {"overallQuality"}
    assert (verdict.valid, verdict.attempt, plain.meant(given)) == (False, 2, given)


@pytest.mark.parametrize("wire_format", FORMATS)
def test_tools_have_names_that_every_model_can_write(wire_format: str) -> None:
    names = ["fs:read", "fs_write", "mind:rag-query", "plain"]
    assert [*offered_names(names, wire_format).values()] == [
        "fs_read",
        "fs_write",
        "mind_rag-query",
        "plain",
    ]


@pytest.mark.parametrize("wire_format", FORMATS)
def test_no_two_tools_have_the_same_name_and_none_that_of_the_submission(wire_format: str) -> None:
    names = ["fs:read", "fs_read", "fs/read", "submit:result", "1st", "x" * 300, "\u00e4"]
    told = offered_names(names, wire_format)
    assert len({*told.values()}) == len(names)
    assert "submit_result" not in told.values()
