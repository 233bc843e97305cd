"""The audit guide prints what it says, and its answers are those of plain SQL."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.audit_guide import PAGE, SECRET, examples, printed_by
from tests.support.cli import Cli

from tooltrail.store.engines.sqlite_library import sqlite3

IDS = "SELECT call_id FROM v_invocations"


@pytest.mark.parametrize(("command", "printed"), examples())
def test_a_command_prints_what_the_page_says(story: Cli, command: str, printed: str) -> None:
    folder = str(Path(story.database).parent)
    assert printed_by(story, command).replace(folder, "/home/you") == printed


def test_the_page_has_an_answer_to_twenty_questions() -> None:
    assert PAGE.read_text().count("\n### ") == 20
    assert len(examples()) >= 18


@pytest.mark.parametrize(
    ("command", "plain"),
    [
        ("log --failed", f"{IDS} WHERE state <> 'success' AND state <> 'started' OR exit_status"),
        ("log --sort duration -n 3", f"{IDS} ORDER BY coalesce(duration_ms, -1) DESC LIMIT 3"),
        ("log --outcome unfinished", f"{IDS} WHERE state = 'started'"),
        ("log --outcome denied", f"{IDS} WHERE state = 'denied'"),
        ("log --tool Grep", f"{IDS} WHERE tool_name = 'Grep'"),
        ("log --where 'size > 1kB'", f"{IDS} WHERE output_size > 1000"),
        (
            "log --where 'arguments.command = \"make test\"'",
            f"{IDS} WHERE json_extract(arguments, '$.command') = 'make test'",
        ),
    ],
)
def test_an_answer_is_that_of_plain_sql(story: Cli, command: str, plain: str) -> None:
    text = printed_by(story, f"{command} --json")
    with sqlite3.connect(story.database) as raw:
        wanted = sorted(row[0] for row in raw.execute(plain))
    assert wanted
    assert sorted(one["call_id"] for one in json.loads(text)) == wanted


def test_statistics_are_those_of_plain_sql(story: Cli) -> None:
    (found,) = json.loads(printed_by(story, "stats --utc --tool Bash --by day --json"))
    with sqlite3.connect(story.database) as raw:
        query = "SELECT count(*), sum(output_size) FROM invocations WHERE tool_name = 'Bash'"
        (wanted,) = raw.execute(query)
    assert (found["call_count"], found["produced_bytes"]) == wanted


def test_sessions_that_used_a_tool_are_those_of_plain_sql(story: Cli) -> None:
    found: list[dict[str, Any]] = json.loads(printed_by(story, "session ls --tool Grep --json"))
    with sqlite3.connect(story.database) as raw:
        query = "SELECT DISTINCT session_id FROM v_invocations WHERE tool_name = 'Grep'"
        wanted = {row[0] for row in raw.execute(query)}
    assert {one["id"] for one in found} == wanted


def test_no_secret_of_the_story_is_in_the_store(story: Cli) -> None:
    files = [one for one in Path(story.database).parent.rglob("*") if one.is_file()]
    kept = [one for one in files if "projects" not in one.parts]
    assert kept
    assert not [one for one in kept if SECRET.encode() in one.read_bytes()]
