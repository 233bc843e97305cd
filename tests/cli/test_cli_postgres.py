"""The main path against PostgreSQL: what is printed does not depend on the engine."""

import json
from pathlib import Path
from typing import Any, cast

import pytest
from tests.support.cli import Cli
from tests.support.evidence import check_evidence
from tests.support.spools import left_in

from tooltrail.migrations import HEAD_REVISION


@pytest.fixture
def team(postgres_url: str, tmp_path: Path) -> Cli:
    cli = Cli(postgres_url, {"TOOLTRAIL_SPOOL": str(tmp_path / "spool")})
    ended = cli.ok("init", "--artifacts", str(tmp_path / "artifacts"))
    assert ended.message.endswith(f"artifacts in file://{tmp_path}/artifacts\n")
    return cli


def test_the_main_path_on_postgresql(team: Cli, tmp_path: Path) -> None:
    session = team.ok("session", "open", "--title", "team").text.strip()
    ended = team.exec("--session", session, "--", "sh", "-c", "seq 20000; echo err >&2; exit 3")
    assert (ended.code, ended.stderr) == (3, b"err\n")
    (row,) = team.ok("log", "--json").records
    assert (row["state"], row["exit_status"]) == ("success", 3)
    assert row["id"][-8:] in team.ok("log", "--tool", "exec", "--since", "1h").text
    shown = team.ok("show", "--surface", "complete")
    assert (shown.stdout, shown.stderr) == (ended.stdout, ended.stderr)
    assert row["id"] in team.ok("show", row["id"][-8:]).text
    assert json.loads(team.ok("transcript", "--json").text)["session"]["id"] == session
    (artifact,) = team.ok("artifact", "ls", "--json").records
    tail = team.ok("artifact", "tail", artifact["path"], "-n", "2").stdout
    assert tail == b"19999\n20000\n"
    assert team.ok("artifact", "verify").message == "1 artifact, 109 kB: 0 damaged or missing\n"
    assert team.ok("db", "check").message == "no problem found\n"
    assert team.ok("db", "current").text == f"{HEAD_REVISION} (head)\n"
    assert team.ok("db", "upgrade").message == f"already at {HEAD_REVISION}\n"
    again = team.run("init", "--artifacts", "elsewhere")
    assert again.code == 2
    assert "nothing was changed" in again.message
    assert team.ok("session", "close", session).message == f"closed session {session}\n"
    with team.open() as store:
        check_evidence(store)
    assert left_in(tmp_path / "spool") == []


def test_status_on_postgresql_names_the_server_and_has_no_warning(team: Cli) -> None:
    ended = team.ok("status", "--json")
    (status,) = ended.records
    assert status["engine"].startswith("PostgreSQL ")
    assert status["database_bytes"] > 0
    assert ended.message == ""


def kinds_in(value: object) -> Any:
    """The same with the kind of each value in its place."""
    match value:
        case dict():
            members = cast("dict[str, object]", value)
            return {name: kinds_in(member) for name, member in members.items()}
        case list():
            return [kinds_in(member) for member in cast("list[object]", value)]
        case _:
            return type(value).__name__


def test_the_json_of_both_engines_is_of_the_same_kinds(team: Cli, cli: Cli) -> None:
    policy = cli.folder / "policy.toml"
    policy.write_text("[tools.noisy]\nstream_bytes = 60\n")
    found: list[dict[str, Any]] = []
    for one in (cli, team):
        one.exec("--", "seq", "20000")
        one.exec("--policy", str(policy), "--tool", "noisy", "--", "seq", "500")
        reading = (
            *("log", "show", "session ls", "artifact ls"),
            *("transcript", "verify", "status", "gc"),
        )
        shown = {name: one.ok(*name.split(), "--json").text for name in reading}
        found.append({name: json.loads(text) for name, text in shown.items()})
        del found[-1]["status"][0]["condition"]["database_free_bytes"]  # of SQLite alone
    on_sqlite, on_postgres = found
    assert kinds_in(on_sqlite) == kinds_in(on_postgres)
    assert [row["lost_size"] for row in on_postgres["log"]] == [1_832, 0]


def test_a_database_without_a_store_says_how_to_create_one(postgres_url: str) -> None:
    ended = Cli(postgres_url).run("log")
    assert ended.code == 5
    assert ended.sentence.startswith("no store in postgresql://")
    assert ended.sentence.endswith("; create one with `tooltrail init --artifacts URL`")
    named = Cli("unused.db").run("log", "--db", postgres_url).sentence
    assert named.endswith("; create one with `tooltrail --db URL init --artifacts URL`")
    assert postgres_url not in named
