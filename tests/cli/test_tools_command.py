"""Tools that models were offered, through the command line."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.cli import Cli
from tests.support.wire.schemas import problems

from tooltrail.records import ToolDefinition

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"a": {"type": "integer"}},
    "required": ["a"],
}
ADD = ToolDefinition(name="add", description="Adds\n one.", parameters=SCHEMA)
NEWER = ADD.model_copy(update={"description": "Adds two."})
SQL = ToolDefinition(name="sql", kind="custom", description="Asks.")


@pytest.fixture
def offered(cli: Cli) -> Cli:
    with cli.open() as store:
        with store.open_session(title="first") as session:
            session.offer_tools([SQL, ADD])
        with store.open_session(title="second") as session:
            session.offer_tools([NEWER])
    return cli


def test_every_version_is_listed(offered: Cli) -> None:
    header, *rows = offered.ok("tools", "ls", "--utc").lines
    assert header.split() == ["DIGEST", "NAME", "FAMILY", "OFFERED", "DESCRIPTION"]
    assert [row.split()[1] for row in rows] == ["add", "add", "sql"]
    assert rows[0].split()[0] == ADD.digest[:19]
    assert rows[0].endswith(" Adds one.")
    records = offered.ok("tools", "ls", "--json", "--tool", "add").records
    assert [record["digest"] for record in records] == [ADD.digest, NEWER.digest]
    assert records[0]["definition"] == {
        "name": "add",
        "description": "Adds\n one.",
        "parameters": SCHEMA,
    }
    assert offered.ok("tools", "ls", "--session", "@last", "--csv", "--fields", "name").lines == [
        "name",
        "add",
    ]


def test_the_latest_versions_are_told_in_the_format_of_a_provider(offered: Cli) -> None:
    for style, member, target in (
        ("openai", "tools", "openai.tool"),
        ("openai-responses", "tools", "openai-responses.tool"),
        ("anthropic", "tools", "anthropic.tool"),
        ("gemini", "tools", "gemini.tool"),
        ("ollama", "tools", "ollama.tool"),
        ("mcp", "tools", "mcp-2026.tool"),
    ):
        exported = json.loads(
            offered.ok("tools", "export", "--format", style, "--tool", "add").text
        )
        (tool,) = exported[member]
        assert problems(target, tool) == []
        assert "Adds two." in json.dumps(tool)


def test_what_a_session_offered_is_told_in_its_order(offered: Cli) -> None:
    first = offered.ok("session", "ls", "--json").records[1]["id"]
    exported = offered.ok("tools", "export", "--format", "openai", "--session", first).text
    assert json.loads(exported) == {
        "tools": [
            {"type": "custom", "custom": {"name": "sql", "description": "Asks."}},
            {
                "type": "function",
                "function": {"name": "add", "description": "Adds\n one.", "parameters": SCHEMA},
            },
        ]
    }


def test_of_a_name_that_a_session_offered_twice_the_last_is_told_and_the_other_in_the_report(
    cli: Cli, tmp_path: Path
) -> None:
    with cli.open() as store, store.open_session() as session:
        session.offer_tools([NEWER, ADD])
    command = ("tools", "export", "--format", "openai", "--session", "@last")
    report = tmp_path / "report"
    ended = cli.ok(*command, "--report", str(report))
    (tool,) = json.loads(ended.text)["tools"]
    assert tool["function"]["description"] == "Adds\n one."
    assert json.loads(report.read_text()) == {
        "kind": "tool_repeated",
        "where": "tools[0]",
        "detail": "another definition of 'add' stands behind it",
    }
    refused = cli.run(*command, "--strict")
    assert (refused.code, refused.stdout) == (1, b"")


def test_a_definition_is_json_in_a_table_of_commas_too(offered: Cli) -> None:
    text = offered.ok("tools", "ls", "--csv", "--tool", "add", "--fields", "name,definition").text
    first, *_ = csv.DictReader(io.StringIO(text))
    assert json.loads(first["definition"]) == ADD.model_dump(exclude_defaults=True)


def test_what_cannot_be_told_is_counted_and_a_strict_export_prints_nothing(
    offered: Cli, tmp_path: Path
) -> None:
    ended = offered.ok("tools", "export", "--format", "anthropic", "--tool", "sql")
    assert json.loads(ended.text)["tools"]
    assert ended.message.startswith("tooltrail: the export differs from the record: ")
    report = tmp_path / "report"
    refused = offered.run(
        "tools", "export", "--format", "anthropic", "--strict", "--report", str(report)
    )
    assert (refused.code, refused.stdout) == (1, b"")
    (line,) = report.read_text().splitlines()
    assert json.loads(line)["where"] == "tools[1]"


def test_names_that_nobody_offered_are_not_found(offered: Cli) -> None:
    ended = offered.run("tools", "ls", "--tool", "sub")
    assert (ended.code, ended.sentence) == (3, "no tool 'sub' was offered; nearest: `sql`, `add`")
    ended = offered.run("tools", "export", "--format", "mcp", "--session", "@last", "--tool", "sql")
    assert (ended.code, ended.sentence) == (
        3,
        "no tool 'sql' was offered by session @last; nearest: `add`",
    )
    assert offered.run("tools", "ls", "--session", "ffffffff").code == 3


def test_a_store_without_offers_has_an_empty_list(cli: Cli) -> None:
    assert cli.ok("tools", "ls", "--json").records == []
    assert json.loads(cli.ok("tools", "export", "--format", "openai").text) in ({}, {"tools": []})
