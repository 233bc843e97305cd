"""Configurations read from files, and every problem of one told with its line."""

import os
from pathlib import Path

import pytest
from tests.support.agents.scenarios import AGENTS, EXAMPLES

from tooltrail.agents import (
    AgentConfigError,
    check_agents,
    find_agents,
    load_agent,
    read_agent,
    workspace_tools,
)
from tooltrail.records import NotFoundError

HEAD = "schema: kb.agent/1\nid: a\nname: A\n"


def problems(text: str) -> list[str]:
    with pytest.raises(AgentConfigError) as refused:
        read_agent(text, "agent.yml")
    return [str(problem).removeprefix("agent.yml:") for problem in refused.value.problems]


@pytest.mark.parametrize("name", AGENTS)
def test_the_examples_are_whole(name: str, tmp_path: Path) -> None:
    config = load_agent(EXAMPLES / name / "agent.yml")
    assert config.id == name
    assert config.output is not None
    assert [tier.name for tier in config.ladder] == ["small", "large"]
    tools = workspace_tools(tmp_path, allow_writes=True, allow_commands=True)
    assert set(config.tools) <= set(tools)


def test_a_configuration_is_what_its_file_says() -> None:
    config = read_agent(
        HEAD
        + """version: "2"
tiers:
  - {name: local, model: qwen3, format: ollama, baseUrl: "http://127.0.0.1:11434"}
  - {name: large, model: m, apiKeyEnv: OWN_KEY}
context: {static: {system: "Be brief."}}
tools: ["fs:read"]
limits: {maxSteps: 3, maxTokens: 1000}
output:
  schema: {type: object, properties: {a: {enum: [no, on, 2026-01-01, "x", null, 1.0]}}}
""",
        "agent.yml",
    )
    assert (config.id, config.name, config.version) == ("a", "A", "2")
    local, large = config.ladder
    assert (local.format, local.base_url) == ("ollama", "http://127.0.0.1:11434")
    assert (large.format, large.api_key_env) == (None, "OWN_KEY")
    assert config.context.static.system == "Be brief."
    assert (config.limits.max_steps, config.limits.max_tokens) == (3, 1000)
    assert config.limits.max_attempts == 5
    assert config.output is not None
    # By YAML 1.2 none of these is a boolean or a date.
    schema = config.output.json_schema
    assert schema["properties"] == {"a": {"enum": ["no", "on", "2026-01-01", "x", None, 1.0]}}


def test_an_agent_may_have_one_model_or_none_and_no_schema() -> None:
    assert [tier.name for tier in read_agent(HEAD + "model: m\n", "x").ladder] == ["default"]
    assert read_agent(HEAD, "x").ladder == ()
    assert read_agent(HEAD, "x").output is None
    both = problems(HEAD + "model: m\ntiers: [{name: a, model: b}]\n")
    assert both == ["1: an agent has `model` or `tiers`, and not both"]


def test_json_is_yaml_too() -> None:
    text = '{"schema": "kb.agent/1", "id": "a", "name": "\\u00e4", "model": "m"}'
    assert read_agent(text, "agent.json").name == "\u00e4"


def test_every_problem_is_told_with_its_line_and_place() -> None:
    text = (
        HEAD
        + """limits:
  max_step: 3
  maxSteps: "5"
  maxTimeMs: 0
tools: [a, a]
output:
  schema:
    type: object
    properties:
      summary: {type: string, minLenght: 3}
      "a b":
        not: {}
tiers:
  - {name: x, model: " "}
extra: 1
"""
    )
    assert problems(text) == [
        "5: limits.max_step: unknown key `max_step`, did you mean `maxSteps`?",
        "6: limits.maxSteps: must be a whole number, not text",
        "7: limits.maxTimeMs: must be at least 1",
        "8: tools: the tool `a` is named twice",
        "13: output.schema.properties.summary.minLenght: `minLenght` is not enforced here",
        '15: output.schema.properties["a b"].not: `not` is not enforced here',
        "17: tiers[0].model: must not be blank",
        "18: extra: unknown key `extra`",
    ]


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("", 1, "empty"),
        ("# only words\n", 1, "empty"),
        ("- 1\n", 1, "must be a mapping of keys, not a list"),
        (HEAD + "model: [1\n", 5, "no YAML"),
        (HEAD + "model: m\nmodel: n\n", 5, "stands twice: in line 4 and in line 5"),
        (HEAD + "model: *nowhere\n", 4, "there is no anchor"),
        (HEAD + "x: &x [*x]\n", 4, "stands inside of what it repeats"),
        (HEAD + "---\nmodel: m\n", 4, "a second document begins"),
        (HEAD + "model: !!str m\n", 4, "tags are not used here"),
        (HEAD + "1: m\n", 4, "a key must be text"),
        (HEAD + "? [a]\n: m\n", 4, "a key must be text"),
        (HEAD + "<<: {model: m}\n", 4, "merge keys"),
        (HEAD + "limits: {maxSteps: .inf}\n", 4, "no JSON"),
        (HEAD + "limits: {maxSteps: 012}\n", 4, "begins with 0"),
        (HEAD + "context:\n\tstatic: {}\n", 5, "tab"),
        (HEAD + 'model: "a\0b"\n', 4, "an invisible character, U+0000"),
        ("%YAML 1.1\n---\n" + HEAD, 1, "1.2"),
        ("schema: kb.agent/2\nid: a\nname: A\n", 1, "must be `kb.agent/1`"),
        (HEAD + "model: " + "[" * 200 + "]" * 200 + "\n", 4, "nested deeper than 100 levels"),
        (HEAD.replace("id: a", "id: a b"), 2, "does not match the pattern"),
    ],
)
def test_each_trap_of_a_file_is_a_sentence_with_its_line(text: str, line: int, words: str) -> None:
    found = problems(text)
    assert any(one.startswith(f"{line}: ") and words in one for one in found), found


def test_aliases_are_written_out_within_bounds() -> None:
    text = HEAD + "model: &m m\ndescription: *m\n"
    assert read_agent(text, "x").description == "m"
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    assert any(
        "too large when its aliases are written out" in one for one in problems("\n".join(lines))
    )


def test_files_that_cannot_be_read_say_so(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="there is no file"):
        load_agent(tmp_path / "missing.yml")
    latin = tmp_path / "latin.yml"
    latin.write_bytes(b"schema: kb.agent/1\nname: \xe4\n")
    large = tmp_path / "large.yml"
    large.write_bytes(b"#" * (1 << 20) + b"\n")
    pipe = tmp_path / "pipe.yml"
    os.mkfifo(pipe)
    for path, line, words in (
        (latin, 2, "UTF-8"),
        (large, 1, "larger than 1 MiB"),
        (pipe, 1, "regular"),
    ):
        with pytest.raises(AgentConfigError) as refused:
            load_agent(path)
        [problem] = refused.value.problems
        assert (problem.file, problem.line) == (str(path), line)
        assert words in problem.message


def test_a_byte_order_mark_and_other_ends_of_lines_are_taken(tmp_path: Path) -> None:
    path = tmp_path / "agent.yml"
    path.write_bytes(b"\xef\xbb\xbf" + (HEAD + "model: m\n").replace("\n", "\r\n").encode())
    assert load_agent(path).model == "m"


def test_files_are_found_below_a_folder_and_hidden_ones_where_they_are_named(
    tmp_path: Path,
) -> None:
    for name in ("b/agent.yml", "a.yaml", ".kb/agents/x/agent.yml", "c/agent.json", ".hidden.yml"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(HEAD)
    assert find_agents(tmp_path) == [tmp_path / "a.yaml", tmp_path / "b" / "agent.yml"]
    assert find_agents(tmp_path / ".kb") == [tmp_path / ".kb/agents/x/agent.yml"]
    assert find_agents(tmp_path / "c/agent.json") == [tmp_path / "c/agent.json"]


def test_two_agents_of_one_id_are_a_problem_of_both(tmp_path: Path) -> None:
    (tmp_path / "one.yml").write_text(HEAD)
    (tmp_path / "two.yml").write_text(HEAD)
    (tmp_path / "bad.yml").write_text("schema: 1\n")
    bad, one, two = check_agents(tmp_path)
    assert bad.config is None
    assert bad.problems
    assert one.config is not None
    assert "two.yml" in one.problems[0].message
    assert "one.yml" in two.problems[0].message


def test_the_version_of_an_agent_is_its_whole_configuration() -> None:
    config = read_agent(HEAD + "model: m\n", "x")
    same = read_agent("name: A\nmodel: m\nid: a\nschema: kb.agent/1\n", "y")
    other = read_agent(HEAD + "model: m\nlimits: {maxSteps: 49}\n", "x")
    assert config.version_record.digest == same.version_record.digest
    assert other.version_record.digest != config.version_record.digest
    assert '"maxSteps":50' in config.version_record.document
