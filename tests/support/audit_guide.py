"""The made-up session of the audit guide and of the tutorial."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.importers.sources import claude_line, write_lines
from tests.support.cli import Cli

LOG = "".join(f"compiling module {n:04}\n" for n in range(1, 4000)) + "error: missing ';'\n"
TESTS = "".join(f"tests/test_app.py::test_case_{n:03} PASSED\n" for n in range(1, 121))
SHOWN = (
    TESTS[:80] + f"... [{len(TESTS) - 120:,} characters cut] ...\n" + TESTS[-40:] + "120 passed\n"
)
SECRET = "ghp_" + "a1" * 18


def lines_of_story() -> Iterator[dict[str, Any]]:
    """A session of Claude Code, line by line: two builds, a fix, a denied push, a sub-agent."""
    steps: list[tuple[str, str, Any, Any, str]] = [
        ("Bash", "make test", f"Exit code 2\n{LOG}", None, "error"),
        ("Read", "app/login.py", "def login(): pass\n", {"type": "text"}, ""),
        ("Edit", "app/login.py", "The file was updated.", {"filePath": "app/login.py"}, ""),
        ("Bash", "make test", SHOWN, {"stdout": TESTS + "120 passed\n", "stderr": ""}, ""),
        ("Bash", "git push", "The user doesn't want to proceed with this tool use.", None, "error"),
        ("Bash", "env", f"TOKEN={SECRET}\n", {"stdout": f"TOKEN={SECRET}\n", "stderr": ""}, ""),
        ("Grep", "TODO", "app/login.py:7: TODO", {"numFiles": 1}, ""),
        ("Bash", "make deploy", None, None, "open"),
    ]
    yield _line("user", "The tests fail. Find out why.", 0)
    for n, (tool, what, shown, returned, end) in enumerate(steps, 1):
        member = {"Bash": "command", "Grep": "pattern"}.get(tool, "file_path")
        asked = {"type": "tool_use", "id": f"toolu_{n:02}", "name": tool, "input": {member: what}}
        yield _line("assistant", [asked], 2 * n)
        if end == "open":
            continue
        result = {"type": "tool_result", "tool_use_id": f"toolu_{n:02}", "content": shown}
        more = {} if returned is None else {"toolUseResult": {**returned, "durationMs": n * 700}}
        if end == "error":
            result["is_error"] = True
            more = {"toolUseResult": shown}
        yield _line("user", [result], 2 * n + 1, **more)


def lines_of_helper() -> Iterator[dict[str, Any]]:
    """The sub-agent of that session."""
    block = {"type": "tool_use", "id": "toolu_h1", "name": "Grep", "input": {"pattern": "password"}}
    yield _line("assistant", [block], 40, agentId="reviewer", isSidechain=True)
    result = {"type": "tool_result", "tool_use_id": "toolu_h1", "content": "No matches found"}
    yield _line("user", [result], 41, agentId="reviewer", isSidechain=True)


def _line(kind: str, content: Any, n: int, **more: Any) -> dict[str, Any]:
    line = claude_line(kind, content, n, **more)
    return {**line, "sessionId": "9b138c7e", "cwd": "/home/you/app", "userType": "external"}


def record_story(cli: Cli) -> None:
    """Import the story into a store, ingest it, and fill the index of words."""
    folder = Path(cli.database).parent / "projects"
    write_story(folder)
    cli.ok("import", str(folder))
    cli.ok("db", "index", "--rebuild")


def write_story(folder: Path) -> None:
    """Write the session and its sub-agent as Claude Code does."""
    helpers = folder / "9b138c7e" / "subagents"
    helpers.mkdir(parents=True)
    write_lines(folder / "9b138c7e.jsonl", lines_of_story())
    write_lines(helpers / "agent-reviewer.jsonl", lines_of_helper())
