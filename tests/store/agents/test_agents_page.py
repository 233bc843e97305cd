"""`docs/agents.md` says what is so: its tables are those of the code, and its examples run."""

import asyncio
import re
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, get_args

import pytest
from tests.support.agents.scenarios import EXAMPLES, GOOD
from tests.support.agents.scripted_provider import scripted_provider
from tests.support.agents.spelled_answers import Call, asks

from tooltrail.agents import Limits, OutputSchema, SessionArtifacts, read_agent
from tooltrail.agents.schemas._formats import FORMATS
from tooltrail.agents.schemas._keywords import ANNOTATIONS, ASSERTIONS, IN_PLACE
from tooltrail.records import LegOutcome
from tooltrail.store import Store
from tooltrail.workspace import workspace_tools

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "agents.md").read_text()


def table(head: str) -> list[list[str]]:
    """The cells of the table whose first cell is this, without its head."""
    lines = PAGE.split(f"| {head} |", 1)[1].splitlines()[2:]
    rows: list[list[str]] = []
    for line in lines:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def test_the_configuration_of_the_page_is_one() -> None:
    [text] = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    config = read_agent(text, "agents.md")
    assert [tier.format for tier in config.ladder] == ["ollama", "anthropic"]
    assert config.output is not None


def test_limits_and_outcomes_are_those_of_the_code() -> None:
    defaults = Limits().model_dump(by_alias=True)
    told = {row[0].strip("`"): row[1].replace(",", "") for row in table("limit")}
    assert told == {name: str(value or "none") for name, value in defaults.items()}
    assert [row[0].strip("`") for row in table("outcome")] == [*get_args(LegOutcome)]


def test_every_tool_of_a_workspace_is_named(store: Store, tmp_path: Path) -> None:
    with store.open_session() as session:
        artifacts = SessionArtifacts(store, session.id)
    tools = workspace_tools(tmp_path, allow_writes=True, allow_commands=True, artifacts=artifacts)
    told = [name.strip("`") for row in table("tool") for name in row[0].split(", ")]
    assert told == [*tools]


def test_every_keyword_and_format_is_named() -> None:
    section = PAGE.split("## What a schema may say", 1)[1].split("\n## ", 1)[0]
    for name in (*ANNOTATIONS, *ASSERTIONS, *IN_PLACE, *FORMATS, "$ref", "$defs", "items"):
        assert f"`{name}`" in section, name
    for refused in ("idn-email", "iri", "of-my-own"):
        with pytest.raises(ValueError, match="is not supported"):
            OutputSchema.of_any({"format": refused})


def test_the_example_in_python_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [code] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    script = [asks(Call("submit_result", GOOD["researcher"], "c1"))]
    folder = tmp_path / "examples" / "agents" / "researcher"
    folder.mkdir(parents=True)
    (folder / "agent.yml").write_text((EXAMPLES / "researcher" / "agent.yml").read_text())
    monkeypatch.chdir(tmp_path)
    with scripted_provider(script) as provider:
        names: dict[str, Any] = {}
        exec(code.replace("http://127.0.0.1:11434", provider.url), names)
        main: Coroutine[Any, Any, None] = names["main"]()
        asyncio.run(main)
    assert provider.refused == []
    assert provider.script == []
