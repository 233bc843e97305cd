"""Configurations are read from files; what is wrong with one is told with its line."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import cast

import pytest
from pydantic import BaseModel, ValidationError, field_validator
from tests.support.agents.configs import MINIMAL, lines_of

from tooltrail.agents import SchemaFault, UnsupportedSchemaError
from tooltrail.agents._config_wording import complaints
from tooltrail.agents._yaml import Document, read_document
from tooltrail.agents.config_problems import AgentConfigError, AgentConfigWarning, spell_path
from tooltrail.agents.loading import check_agents, find_agents, load_agent, read_agent
from tooltrail.records import InvalidRecordError, NotFoundError, UnavailableError


def problems_of(text: str) -> list[str]:
    with pytest.raises(AgentConfigError) as caught:
        read_agent(text, "agent.yml")
    assert len(caught.value.problems) == len(str(caught.value).splitlines())
    return str(caught.value).splitlines()


def place_of(document: Document, *path: str | int) -> tuple[int, int, str]:
    problem = document.problem(path, "")
    return problem.line, problem.column, problem.path


def test_a_configuration_is_read_with_its_defaults() -> None:
    config = read_agent(MINIMAL, "agent.yml")
    assert (config.id, config.name, config.ladder) == ("probe", "Probe", ())
    assert config.limits.max_steps == 50
    assert config.output is None


def test_every_part_of_a_configuration_is_read() -> None:
    config = read_agent(
        lines_of(
            "schema: kb.agent/1",
            "id: researcher",
            "name: Code Researcher",
            'version: "1.10"',
            "description: Finds out.",
            "tiers:",
            "  - {name: small, model: a, format: ollama}",
            "  - name: large",
            "    model: b",
            "    baseUrl: http://127.0.0.1:1",
            "    apiKeyEnv: MY_KEY",
            "context: {static: {system: 'You look.'}}",
            "tools: ['fs:read', fs:list]",
            "limits: {maxSteps: 7, toolTimeoutMs: 1000}",
            "output:",
            "  schema:",
            "    type: object",
            "    properties:",
            "      summary: {type: string, minLength: 1}",
        ),
        "agent.yml",
    )
    assert config.version == "1.10"
    assert [tier.name for tier in config.ladder] == ["small", "large"]
    assert (config.tiers[0].format, config.tiers[1].base_url) == ("ollama", "http://127.0.0.1:1")
    assert config.tiers[1].api_key_env == "MY_KEY"
    assert config.context.static.system == "You look."
    assert config.tools == ("fs:read", "fs:list")
    assert (config.limits.max_steps, config.limits.tool_timeout_ms) == (7, 1000)
    assert config.output is not None
    assert config.output.json_schema == {
        "type": "object",
        "properties": {"summary": {"type": "string", "minLength": 1}},
    }


def test_json_is_read_as_well_whatever_it_is_indented_with() -> None:
    value = {"schema": "kb.agent/1", "id": "probe", "name": "a\U0001f600", "tools": ["x", "y"]}
    for indent in (None, 2, "\t"):
        text = json.dumps(value, indent=indent, separators=(",", ":") if indent is None else None)
        config = read_agent(text, "agent.json")
        assert (config.id, config.name, config.tools) == ("probe", "a\U0001f600", ("x", "y"))


def test_a_byte_order_mark_and_lines_of_windows_change_nothing(tmp_path: Path) -> None:
    file = tmp_path / "agent.yml"
    file.write_bytes(b"\xef\xbb\xbf" + MINIMAL.replace("\n", "\r\n").encode())
    assert load_agent(file) == read_agent(MINIMAL, "agent.yml")
    assert load_agent(file).version_record.digest == read_agent(MINIMAL, "x").version_record.digest


def test_every_problem_is_told_in_the_order_of_the_file() -> None:
    text = lines_of(
        "schema: kb.agent/2",
        'id: "not good"',
        "name: 5",
        "version: 1.10",
        "tiers:",
        "  - {name: small, modell: a}",
        "  - name: large",
        "    model: x",
        "    format: openapi",
        "limits:",
        "  max_step: 5",
        '  maxTimeMs: "5"',
        "  maxTokens: true",
        "  maxAttempts: 0",
        "  modelRetries: 5000",
        "  maxReminders: 2.5",
        "tools: fs:read",
        "context: []",
        "output: {shema: {}}",
        "description: [1]",
    )
    formats = "`openai`, `openai-responses`, `anthropic`, `gemini` or `ollama`"
    assert problems_of(text) == [
        "agent.yml:1: schema: must be `kb.agent/1`",
        "agent.yml:2: id: does not match the pattern `^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`",
        "agent.yml:3: name: must be text, not a number: put it in quotes",
        "agent.yml:4: version: must be text, not a number with a fraction: put it in quotes",
        "agent.yml:6: tiers[0]: the key `model` is missing",
        "agent.yml:6: tiers[0].modell: unknown key `modell`, did you mean `model`?",
        f"agent.yml:9: tiers[1].format: must be {formats}, did you mean `openai`?",
        "agent.yml:11: limits.max_step: unknown key `max_step`, did you mean `maxSteps`?",
        "agent.yml:12: limits.maxTimeMs: must be a whole number, not text",
        "agent.yml:13: limits.maxTokens: must be a whole number, not true or false",
        "agent.yml:14: limits.maxAttempts: must be at least 1",
        "agent.yml:15: limits.modelRetries: must be at most 1000",
        "agent.yml:16: limits.maxReminders: must be a whole number, not a number with a fraction",
        "agent.yml:17: tools: must be a list, not text",
        "agent.yml:18: context: must be a mapping of keys, not a list",
        "agent.yml:19: output: the key `schema` is missing",
        "agent.yml:19: output.shema: unknown key `shema`, did you mean `schema`?",
        "agent.yml:20: description: must be text, not a list",
    ]


TRAPS = {
    "model: m\ntiers: [{name: a, model: b}]": (
        "4: model: an agent has `model` or `tiers`, not both"
    ),
    "tiers: [{name: a, model: b}, {name: a, model: c}]": "4: tiers: two tiers have the name `a`",
    "tiers: [{name: a, model: b, format: 3}]": (
        "4: tiers[0].format: must be `openai`, `openai-responses`, `anthropic`, `gemini` or "
        "`ollama`, not a number"
    ),
    "tools:\n- a\n- b\n- a": "4: tools: the tool `a` is named twice",
    "tools:\n- a\n- ' '": "6: tools[1]: must not be blank",
    "tools:": "4: tools: must be a list, not empty",
    "output: {schema: {type: object, properties: {b.c: {type: number, minimum: .inf}}}}": (
        '4: output.schema.properties["b.c"].minimum: JSON has no infinity and no `.nan`; '
        "put it in quotes for text"
    ),
    "limits: {maxSteps: 010}": (
        "4: limits.maxSteps: a number that begins with 0 is octal in some versions of YAML; remove "
        "the 0, or put the number in quotes"
    ),
    "limits: {maxSteps: 1e999}": (
        "4: limits.maxSteps: the number is too large for a double; put it in quotes for text"
    ),
    "limits: {maxSteps: " + "9" * 401 + "}": (
        "4: limits.maxSteps: a number of more than 400 digits; put it in quotes for text"
    ),
    "id: other": "4: id: duplicate key `id`: lines 2 and 4",
    '"id": other': "4: id: duplicate key `id`: lines 2 and 4",
    "limits: !!map {}": "4: limits: tags are not supported; remove the tag",
    "1: x": "4: a key must be text: put it in quotes",
    "? [a]\n: x": "4: a key must be text: put it in quotes",
    "limits:\n  <<: {maxSteps: 1}": (
        "5: limits: merge keys (`<<`) are not supported: write the keys out"
    ),
    "description: &d x\nversion: *e": "5: not YAML: found undefined alias 'e'",
    "tools: &t [a, *t]": "4: nested deeper than 100 levels",
    "---\nschema: kb.agent/1": "4: the file has more than one document; keep only one",
    "limits:\n\tmaxSteps: 5": "5: a tab in the indentation: indent with spaces",
    "description:\tx": "4: a tab in the indentation: indent with spaces",
    "tools: [a\nmodel: m": (
        "5: not YAML: expected ',' or ']', but got ':', while parsing a flow sequence that begins "
        "in line 4"
    ),
    "description: a: b": "4: not YAML: mapping values are not allowed here",
    'description: "\\ud83d"': "4: description: half of a surrogate pair is missing",
    "description: a\x07b": "4: an invisible character, U+0007: escape it in double quotes",
    "description: a\u2028b": "4: an invisible character, U+2028: escape it in double quotes",
    "description: a\ud800b": "4: an invisible character, U+D800: escape it in double quotes",
}
"""What is added to three lines that are right, and what is said of it."""


@pytest.mark.parametrize("addition", TRAPS)
def test_each_trap_is_told_by_its_line(addition: str) -> None:
    assert problems_of(f"{MINIMAL}{addition}\n") == [f"agent.yml:{TRAPS[addition]}"]


IGNORED = {
    "modle: m": "4: modle: unknown key `modle`, did you mean `model`?",
    "xyzzy: {a: 1}": "4: xyzzy: unknown key `xyzzy`",
    "format_version: x": (
        "4: format_version: unknown key `format_version`, did you mean `version`?"
    ),
    "output: {}": "4: output: there is no `schema`: the agent answers in free text",
}
"""What is added to three lines that are right, and the warning about it."""


@pytest.mark.parametrize("addition", IGNORED)
def test_what_says_nothing_here_is_ignored_with_a_warning(addition: str, tmp_path: Path) -> None:
    text = f"{MINIMAL}{addition}\n"
    with pytest.warns(AgentConfigWarning) as caught:
        assert read_agent(text, "agent.yml") == read_agent(MINIMAL, "agent.yml")
    assert [str(warning.message) for warning in caught] == [f"agent.yml:{IGNORED[addition]}"]
    (tmp_path / "agent.yml").write_text(text)
    [checked] = check_agents(tmp_path)
    assert (checked.config is None, checked.problems, len(checked.warnings)) == (False, (), 1)
    [refused] = check_agents(tmp_path, strict=True)
    assert (refused.config, refused.problems, refused.warnings) == (None, checked.warnings, ())


@pytest.mark.parametrize(
    "addition", ["limits: {maxStep: 5}", "context: {dynamic: 1}", "output: {schema: {}, x: 1}"]
)
def test_inside_of_a_section_every_key_must_be_known(addition: str) -> None:
    assert any("unknown key" in one for one in problems_of(f"{MINIMAL}{addition}\n"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "1: the file is empty"),
        ("# nothing\n", "1: the file is empty"),
        ("---\n", "1: the file is empty"),
        ("[]", "1: must be a mapping of keys, not a list"),
        ("text", "1: must be a mapping of keys, not text"),
        ("!!null x", "1: tags are not supported; remove the tag"),
        ("%YAML 1.1\n---\nid: x", "1: only YAML 1.2 is read; leave the `%YAML` line out"),
        ("x: " + "[" * 101 + "]" * 101, "1: nested deeper than 100 levels"),
        ("[" * 100_000, "1: nested deeper than 100 levels"),
        ("x: '" + "a" * (1 << 20) + "'", "1: larger than 1 MiB"),
    ],
)
def test_what_is_no_document_is_told(text: str, expected: str) -> None:
    assert problems_of(text) == [f"agent.yml:{expected}"]


def test_a_document_that_says_that_it_is_yaml_1_2_is_read() -> None:
    assert read_agent(f"%YAML 1.2\n---\n{MINIMAL}", "agent.yml").id == "probe"


def test_only_true_and_false_are_booleans_and_only_digits_are_numbers() -> None:
    texts = [
        *("no", "on", "yes", "y", "off", "2026-01-01", "12:30:45", "1_000", "0b1", "0o9", "1.2.3"),
    ]
    read = read_document(f"""[{", ".join(texts)}, '1', '~', "true"]""", "x")
    assert (read.value, read.problems) == ([*texts, "1", "~", "true"], ())
    read = read_document("[true, False, ~, null, 0, -0, +7, 0x1F, 0o17, 1., .5, -1e3]", "x")
    assert read.value == [True, False, None, None, 0, 0, 7, 31, 15, 1.0, 0.5, -1000.0]
    assert [type(value) for value in cast("list[object]", read.value)[-4:]] == [int, *[float] * 3]


def test_aliases_stand_for_what_their_anchors_hold() -> None:
    read = read_document("a: &x {b: [1, &y c]}\nd: *x\n*y : 2\ne: *y\n", "x")
    inner = {"b": [1, "c"]}
    assert (read.value, read.problems) == ({"a": inner, "d": inner, "c": 2, "e": "c"}, ())
    assert place_of(read, "d", "b", "1") == (1, 15, "d.b[1]")
    assert place_of(read, "d", "b", 7, "x") == (1, 8, "d.b[7].x")


def test_aliases_cannot_make_a_small_file_large() -> None:
    lol = [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    laughs = lines_of("a0: &a0 [lol,lol,lol,lol,lol,lol,lol,lol,lol,lol]", *lol)
    # What is repeated is in the first line.
    assert problems_of(laughs) == ["agent.yml:1: too large after aliases are expanded"]


def test_aliases_cannot_make_a_shallow_file_deep() -> None:
    text = "a: &a " + "[" * 60 + "]" * 60 + "\nb: " + "[" * 50 + "*a" + "]" * 50
    assert problems_of(text) == ["agent.yml:1: nested deeper than 100 levels"]


def test_a_fault_of_a_schema_is_told_where_the_keyword_stands() -> None:
    class Probe(BaseModel):
        output: dict[str, object]

        @field_validator("output")
        @classmethod
        def refuse(cls, value: object) -> object:
            raise UnsupportedSchemaError(
                (
                    SchemaFault("/properties/summary/minLenght", "is not enforced"),
                    SchemaFault("/anyOf/1/a~1b", "is not enforced"),
                    SchemaFault("", "is no object"),
                )
            )

    read = read_document(
        lines_of(
            "output:",
            "  properties:",
            "    summary:",
            "      type: string",
            "      minLenght: 3",
            "  anyOf:",
            "    - {}",
            "    - type: string",
            "      a/b: 1",
        ),
        "x",
    )
    with pytest.raises(ValidationError) as caught:
        Probe.model_validate(read.value)
    assert [place_of(read, *path) for path, _ in complaints(caught.value)] == [
        (5, 7, "output.properties.summary.minLenght"),
        (9, 7, 'output.anyOf[1]["a/b"]'),
        (1, 1, "output"),
    ]


def test_a_misspelled_keyword_is_told_by_the_line_that_it_stands_in() -> None:
    text = MINIMAL + lines_of(
        "output:",
        "  schema:",
        "    type: object",
        "    properties:",
        "      summary:",
        "        type: string",
        "        minLenght: 50",
    )
    with pytest.raises(AgentConfigError) as caught:
        read_agent(text, "agent.yml")
    (problem,) = caught.value.problems
    assert (problem.line, problem.column) == (10, 9)
    assert problem.path == "output.schema.properties.summary.minLenght"


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ("{type: object}", "the result must have fields: `properties` must name them"),
        ("{type: array, properties: {}}", 'the result must be an object: `type` must be "object"'),
        ("{type: objekt, properties: {}}", None),
    ],
)
def test_a_schema_that_no_result_can_have_is_refused_at_load_by_its_line(
    schema: str, expected: str | None
) -> None:
    [problem] = problems_of(f"{MINIMAL}output:\n  schema: {schema}\n")
    assert problem.startswith("agent.yml:5: output.schema")
    if expected is not None:
        assert problem == f"agent.yml:5: output.schema: {expected}"


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (
            "properties: {a: {anyOf: [{minLength: 5, maxLength: 2}, {type: 'null'}]}}",
            "properties.a.anyOf[0].minLength: must be at most `maxLength`",
        ),
        ("properties: {a: {enum: []}}", "properties.a.enum: an empty list allows no value"),
        (
            "properties: {}, $defs: {unused: {enum: []}}",
            "$defs.unused.enum: an empty list allows no value",
        ),
        (
            "properties: {a: {type: array, maxItems: 0, items: {enum: []}}}",
            "properties.a.items.enum: an empty list allows no value",
        ),
    ],
)
def test_a_part_of_a_schema_that_no_value_satisfies_is_a_warning(
    tmp_path: Path, part: str, expected: str
) -> None:
    file = tmp_path / "agent.yml"
    file.write_text(f"{MINIMAL}output:\n  schema: {{type: object, {part}}}\n")
    [checked] = check_agents(file)
    assert checked.problems == ()
    assert [str(one) for one in checked.warnings] == [f"{file}:5: output.schema.{expected}"]
    with pytest.warns(AgentConfigWarning, match=r"at most|an empty list"):
        assert load_agent(file) == checked.config
    [refused] = check_agents(file, strict=True)
    assert (refused.config, refused.problems) == (None, checked.warnings)


def test_a_file_that_is_not_there_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r".*agent\.yml does not exist"):
        load_agent(tmp_path / "agent.yml")
    with pytest.raises(NotFoundError, match=r".*agents does not exist"):
        find_agents(tmp_path / "agents")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"id: a\nname: \xff", ":2: not UTF-8: the byte 0xff is not part of a character"),
        (b"id: a\r\nname: \xc3", ":2: not UTF-8: the byte 0xc3 is not part of a character"),
        ("id: a".encode("utf-16"), ":1: not UTF-8: it looks like UTF-16; save it as UTF-8"),
        (b" " * (1 << 20) + b" ", ":1: larger than 1 MiB"),
        (b"", ":1: the file is empty"),
    ],
)
def test_bytes_that_are_no_text_are_told(tmp_path: Path, content: bytes, expected: str) -> None:
    file = tmp_path / "agent.yml"
    file.write_bytes(content)
    with pytest.raises(InvalidRecordError) as caught:
        load_agent(file)
    assert str(caught.value) == f"{file}{expected}"


def test_what_is_no_file_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "agent.yml").mkdir()
    for name, expected in {
        "pipe": "not a regular file",
        ".": "cannot be read: Is a directory",
    }.items():
        with pytest.raises(AgentConfigError) as caught:
            load_agent(tmp_path / name)
        assert caught.value.problems[0].message == expected


def test_a_folder_stands_for_the_agent_in_it(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r".*/agent\.yml does not exist"):
        load_agent(tmp_path)
    (tmp_path / "agent.yml").write_text(MINIMAL)
    assert load_agent(tmp_path) == read_agent(MINIMAL, "agent.yml")


def test_agents_are_found_in_all_folders_that_are_not_hidden(tmp_path: Path) -> None:
    hidden = tmp_path / ".kb" / "agents"
    for name in ("b/agent.yml", "a.YAML", "a/x.yaml", ".git/agent.yml", ".x.yml", "notes.md"):
        (hidden / name).parent.mkdir(parents=True, exist_ok=True)
        (hidden / name).write_text(MINIMAL)
    assert find_agents(hidden) == [
        hidden / "a" / "x.yaml",
        hidden / "a.YAML",
        hidden / "b/agent.yml",
    ]
    assert find_agents(hidden / "notes.md") == [hidden / "notes.md"]


def test_in_the_root_of_a_project_its_agents_are_found_and_no_other_files(tmp_path: Path) -> None:
    agents = tmp_path / ".kb" / "agents"
    names = (".kb/agents/b/agent.yml", ".kb/agents/a/c/agent.yml", ".kb/agents/a/notes.yml")
    for name in (*names, ".kb/other.yml", ".kb/agents/.x/agent.yml", "compose.yml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(MINIMAL)
    assert find_agents(tmp_path) == [agents / "a" / "c" / "agent.yml", agents / "b" / "agent.yml"]


def test_a_folder_that_cannot_be_listed_is_told(tmp_path: Path) -> None:
    # Names of folders that lead beyond the longest path are there and cannot be listed.
    descriptor = os.open(tmp_path, os.O_RDONLY)
    for name in ["d" * 255] * 20:
        os.mkdir(name, dir_fd=descriptor)
        below = os.open(name, os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = below
    os.close(descriptor)
    with pytest.raises(UnavailableError, match="cannot list"):
        find_agents(tmp_path)


@pytest.mark.parametrize("url", ["http://ada:hunter2@127.0.0.1:1", "http://ada:hunter2@host:x"])
def test_a_url_with_a_password_is_refused_and_not_shown(tmp_path: Path, url: str) -> None:
    path = tmp_path / "agent.yml"
    tiers = f"tiers:\n  - name: one\n    model: m\n    format: ollama\n    baseUrl: {url}\n"
    path.write_text(MINIMAL + tiers)
    (checked,) = check_agents(path)
    (problem,) = map(str, checked.problems)
    assert "must not contain a user or a password" in problem
    assert "hunter2" not in problem


def test_a_url_may_have_an_at_sign_in_its_path(tmp_path: Path) -> None:
    path = tmp_path / "agent.yml"
    url = "https://gateway.example/v1/account/me@example.com"
    path.write_text(f"{MINIMAL}tiers:\n  - name: one\n    model: m\n    baseUrl: {url}\n")
    assert check_agents(path)[0].problems == ()


def test_a_url_that_is_none_is_a_problem(tmp_path: Path) -> None:
    path = tmp_path / "agent.yml"
    path.write_text(f"{MINIMAL}tiers:\n  - name: one\n    model: m\n    baseUrl: nonsense\n")
    (checked,) = check_agents(path)
    assert ["is not a URL" in str(one) for one in checked.problems] == [True]


def test_many_files_with_one_id_name_three_others(tmp_path: Path) -> None:
    for number in range(6):
        (tmp_path / f"{number}.yml").write_text(MINIMAL)
    last = str(check_agents(tmp_path)[-1].problems[0])
    names = ", ".join(str(tmp_path / f"{number}.yml") for number in range(3))
    assert last.endswith(f"is also the id in {names} and 2 more files")


def test_all_files_of_a_folder_are_checked(tmp_path: Path) -> None:
    good, bad, twin = (tmp_path / name for name in ("a.yml", "b.yml", "c.yml"))
    good.write_text(MINIMAL)
    bad.write_text(MINIMAL.replace("name:", "nam:"))
    twin.write_text(MINIMAL)
    (tmp_path / "d.yml").symlink_to(tmp_path / "nowhere")
    (tmp_path / "e.yml").write_text(MINIMAL.replace("probe", "other"))
    checked = check_agents(tmp_path)
    assert [agent.path.name for agent in checked] == ["a.yml", "b.yml", "c.yml", "d.yml", "e.yml"]
    assert [agent.config is None for agent in checked] == [False, True, False, True, False]
    assert [[str(problem) for problem in agent.problems] for agent in checked] == [
        [f"{good}:2: id: `probe` is also the id in {bad}, {twin}"],
        [
            f"{bad}:1: the key `name` is missing",
            f"{bad}:2: id: `probe` is also the id in {good}, {twin}",
        ],
        [f"{twin}:2: id: `probe` is also the id in {good}, {bad}"],
        [f"{tmp_path / 'd.yml'}:1: cannot be read: No such file or directory"],
        [],
    ]
    assert [str(warning) for agent in checked for warning in agent.warnings] == [
        f"{bad}:3: nam: unknown key `nam`, did you mean `name`?"
    ]


def test_without_pyyaml_the_error_names_the_extra() -> None:
    code = (
        "import sys; sys.modules['yaml'] = None\n"
        "from tooltrail.agents.loading import read_agent\n"
        "read_agent('id: x', 'agent.yml')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1] == (
        "tooltrail.records.errors.UnavailableError: agents need yaml, which is "
        "not installed: pip install 'tooltrail[agents]'"
    )


def test_a_path_is_spelled_as_people_write_it() -> None:
    assert spell_path(()) == ""
    assert spell_path(("a", 0, "b c", "d\n" + "x" * 90)) == 'a[0]["b c"]["d\\n' + "x" * 76 + '…"]'
