"""`tooltrail coverage`: which calls of a transcript a store has."""

from pathlib import Path

from tests.importers.sources import claude_call, claude_result, write_lines
from tests.support.cli import Cli

SHELL = {"stdout": "out\n", "stderr": "", "interrupted": False}
LINES = [
    claude_call(1, "t1", "Bash", {"command": "make"}),
    claude_result(2, "t1", "out", SHELL, is_error=False),
    claude_call(3, "t2", "Bash", {"command": "make test"}),
]


def transcript(cli: Cli, count: int, name: str = "s.jsonl") -> Path:
    return write_lines(cli.folder / name, LINES[:count])


def test_every_call_matches_after_an_import(cli: Cli) -> None:
    path = transcript(cli, 3)
    cli.ok("import", str(path))
    ended = cli.ok("coverage", str(path))
    assert ended.text == ""
    assert ended.message == "compared 2 calls: 2 matched, 0 missing, 0 extra, 0 differing\n"
    assert [one["result"] for one in cli.ok("coverage", str(path), "--json").records] == [
        "matched",
        "matched",
    ]


def test_each_gap_is_named(cli: Cli) -> None:
    cli.ok("import", str(transcript(cli, 1)))
    path = transcript(cli, 3)
    ended = cli.run("coverage", "--json", str(path))
    assert ended.code == 1
    differing, missing = ended.records
    assert (differing["result"], differing["call_id"]) == ("differing", "t1")
    assert set(differing["differing"]) == {"state", "output", "streams", "receipt"}
    assert (missing["result"], missing["call_id"], missing["tool_name"]) == (
        "missing",
        "t2",
        "Bash",
    )
    header, row = cli.run("coverage", str(transcript(cli, 2))).lines
    assert header.split() == ["RESULT", "ID", "CALL", "TOOL", "DIFFERING"]
    assert row.split()[-1] == "receipt"


def test_calls_that_only_the_store_has_are_extra(cli: Cli) -> None:
    cli.ok("import", str(transcript(cli, 3)))
    ended = cli.run("coverage", str(transcript(cli, 2)))
    assert (ended.code, ended.text.count("extra ")) == (1, 1)


def test_a_damaged_line_is_a_gap_since_it_may_be_a_call(cli: Cli) -> None:
    path = transcript(cli, 3)
    path.write_text(path.read_text().replace('{"type": "assistant"', '"type": "assistant"', 1))
    assert cli.run("import", str(path)).code == 4
    ended = cli.run("coverage", str(path))
    assert (ended.code, f"{path}:1: " in ended.message) == (1, True)
    assert "compared 1 call: 1 matched, 0 missing, 0 extra, 0 differing\n" in ended.message


def test_nothing_is_imported(cli: Cli) -> None:
    ended = cli.run("coverage", str(transcript(cli, 3)))
    assert ended.code == 1
    assert cli.ok("log", "--json").records == []


def test_a_folder_without_sessions_is_refused(cli: Cli) -> None:
    assert cli.run("coverage", str(cli.folder / "none")).code == 3
    (cli.folder / "empty").mkdir()
    ended = cli.run("coverage", str(cli.folder / "empty"))
    assert (ended.code, "no sessions of known agents found" in ended.sentence) == (3, True)


def test_a_file_of_no_known_format_is_a_gap_if_it_may_be_a_session(cli: Cli) -> None:
    folder = cli.folder / "in"
    folder.mkdir()
    path = transcript(cli, 3, "in/s.jsonl")
    cli.ok("import", str(path))
    index = write_lines(folder / "index.json", [{"version": 1}])
    ended = cli.ok("coverage", str(folder))
    assert f"1 file of no known format was skipped, such as {index}\n" in ended.message
    assert ended.message.count(str(index)) == 1
    assert cli.run("coverage", str(path), str(index)).code == 3
    path.rename(folder / "s.json")
    cli.ok("coverage", str(folder))  # although other .json files are sessions
    for name in ("s.json.part.jsonl", "t.json"):
        damaged = folder / name
        damaged.write_text('{"type": "user", "mess\n')
        ended = cli.run("coverage", str(folder))
        assert (ended.code, f"{damaged} is damaged" in ended.message) == (1, True)
        damaged.unlink()
    for name in ("index.jsonl", "index.traj", "index.eval", "blank.jsonl"):
        unknown = folder / name
        unknown.write_text("\n" if name == "blank.jsonl" else index.read_text())
        ended = cli.run("coverage", str(folder))
        why = "is of no known format; it may be a session"
        assert (ended.code, f"\n{unknown} {why}\n" in ended.message) == (1, True)
        unknown.unlink()
    index.rename(folder / "index.jsonl")
    assert cli.run("coverage", str(folder)).code == 1


def test_the_logs_beside_sessions_of_gemini_are_no_gap(cli: Cli) -> None:
    folder = cli.folder / "tmp" / "5ab1"
    (folder / "chats").mkdir(parents=True)
    said = {"id": "m1", "timestamp": "2026-03-25T10:00:00Z", "type": "user", "content": "hi"}
    session = {"sessionId": "s1", "projectHash": "5ab1", "messages": [said]}
    write_lines(folder / "chats" / "session-1.json", [session])
    logs = write_lines(folder / "logs.json", [[{"sessionId": "s1", "message": "hi"}]])
    ended = cli.ok("coverage", str(cli.folder / "tmp"))
    assert ended.message.count(str(logs)) == 1
