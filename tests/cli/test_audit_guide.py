"""The answers to the twenty questions are those of plain SQL, or of a second look at the sources.

Each question is asked in the made-up session of the guide, and in the real sessions of the corpus.
What `docs/audit-guide.md` prints is checked in `tests/project/test_consoles.py`.
"""

import json
import re
import shlex
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest
from tests.importers.sources import CORPUS
from tests.importers.test_corpus import member, objects_in, values_in
from tests.support.audit_guide import SECRET, write_story
from tests.support.cli import Cli, python
from tests.support.waiting import until

from tooltrail.records import ToolCall, ToolDefinition
from tooltrail.records.digests import digest_of
from tooltrail.store.engines.sqlite_library import sqlite3

GUIDE = (Path(__file__).parents[2] / "docs" / "audit-guide.md").read_text()
STORY = {
    "since": "2026-03-24",
    "call": "toolu_04",
    "before": "toolu_01",
    "after": "toolu_04",
    "path": "app/login.py",
    "text": "error: missing",
    "session": "9b138c7e",
}
REAL = {
    "since": "2026-02-01",
    "call": "toolu_01BVizaQ19rkKqPjChzJy8TD",
    "before": "toolu_01PGKMoE1RQiPFjmhr7VMbD4",
    "after": "toolu_017DHUwWyrV1SCfxzpThFnvD",
    "path": "authcode/authcode.go",
    "text": "FAIL:",
    "session": "220c8e1c-18de-4039-8d22-658ecf89acdc",
}


@dataclass(frozen=True)
class Trail:
    """A store, the sessions of Claude Code in it as files, and names that exist there."""

    cli: Cli
    files: list[Path]
    names: dict[str, str]

    def answer(self, command: str) -> str:
        """What a command prints, with the names of this store."""
        quoted = {name: shlex.quote(value) for name, value in self.names.items()}
        ended = self.cli.run(*shlex.split(command.format(**quoted)))
        assert ended.code in (0, 1, 4), ended.message
        return ended.text

    def records(self, command: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.answer(f"{command} --json"))
        return found

    def plain(self, query: str) -> list[tuple[Any, ...]]:
        """The rows of a query, without Tooltrail."""
        with sqlite3.connect(self.cli.database) as raw:
            return list(raw.execute(query, self.names))

    def entries(self) -> Iterator[Any]:
        """Each entry that Claude Code wrote; one of a sub-agent in its progress report, too."""
        for path in self.files:
            for value in values_in(path):
                yield {**value, **(member(value, "data", "message") or {})}

    def blocks(self, kind: str) -> Iterator[tuple[Any, dict[str, Any]]]:
        """Each block of a type, with its entry."""
        for entry in self.entries():
            for block in objects_in(member(entry, "message", "content")):
                if block.get("type") == kind:
                    yield entry, block

    def call_ids(self, found: list[dict[str, Any]]) -> set[str]:
        """The ids that the provider gave to these calls; "" for a message."""
        ids = dict(self.plain("SELECT id, call_id FROM v_invocations"))
        return {ids.get(one["id"], "") for one in found}

    def returned(self) -> dict[str, Any]:
        """What each tool returned, by the id of its call; `{}` if only the text is known."""
        return {
            block["tool_use_id"]: entry.get("toolUseResult", {})
            for entry, block in self.blocks("tool_result")
        }

    def receipts(self) -> dict[str, str]:
        """The text of each result, by the id of its call."""
        return {
            block["tool_use_id"]: text_of(block["content"])
            for _, block in self.blocks("tool_result")
        }


def text_of(content: str | list[dict[str, Any]]) -> str:
    """The text of a result, without the secret of the story."""
    if not isinstance(content, str):
        content = "".join(one.get("text", "") for one in content)
    return content.replace(SECRET, "[REDACTED:github-token]")


def strings_in(value: Any) -> list[str]:
    """Every string inside a value."""
    if isinstance(value, str):
        return [value]
    members = cast("dict[str, Any]", value).values() if isinstance(value, dict) else value
    found = cast("list[Any]", members) if isinstance(value, dict | list) else []
    return [text for one in found for text in strings_in(one)]


@pytest.fixture(scope="module", params=["story", "corpus"])
def trail(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Trail:
    folder, names = tmp_path_factory.mktemp("trail"), STORY
    sessions = folder / "projects"
    if request.param == "story":
        write_story(sessions)
    elif CORPUS.is_dir():
        sessions, names = CORPUS, REAL
    else:
        pytest.skip("the shared corpus is not beside the repository")
    cli = Cli(str(folder / "trail.db"), {"TZ": "UTC"})
    agents = [str(sessions / one) for one in ("claude_code", "codex", "opencode")]
    assert cli.run("import", *(agents if sessions == CORPUS else [str(sessions)])).code in (0, 4)
    with cli.open() as store, store.open_session(agent="builder") as session:
        # Two calls of the first version, one of the second, one while no tool is on offer.
        for version, count in (("builds", 2), ("builds and tests", 1), (None, 1)):
            made = ToolDefinition(name="build", description=version)
            session.offer_tools([made] if version else [])
            digest = digest_of(made.to_json()) if version else None
            for _ in range(count):
                session.start(ToolCall.of("build", {"version": digest})).interrupt("stopped")
    files = (sessions / "claude_code" if sessions == CORPUS else sessions).rglob("*.jsonl")
    return Trail(cli, sorted(files), names)


FAILED = "state NOT IN ('started', 'success') OR exit_status <> 0 OR signal > 0 OR timed_out"
ENDED = (
    "CASE WHEN timed_out OR error_kind = 'tool_timed_out' THEN 'timeout'"
    " ELSE state || ifnull(error_kind, '') || ifnull(signal, '') || ifnull(exit_status, 0) END"
)
QUESTIONS = [
    (1, "log --failed --since {since} -n 0", "id", f"""
        SELECT id FROM v_invocations WHERE started_at >= :since AND ({FAILED})"""),
    (6, "log --sort duration -n 0", "id duration_ms", """
        SELECT id, duration_ms FROM v_invocations WHERE duration_ms >= 0
        ORDER BY duration_ms DESC"""),
    (7, "log --sort cut -n 0", "id cut_size", """
        SELECT id, cut FROM (SELECT id, CASE renderer
            WHEN 'seen' THEN output_size - length(CAST(receipt AS BLOB))
            ELSE (SELECT sum(before_count - after_count) FROM v_omissions
                WHERE invocation_id = v.id AND unit = 'bytes') END AS cut
            FROM v_invocations AS v) WHERE cut > 0 ORDER BY cut DESC"""),
    (8, "session ls --tool Grep -n 0", "id", """
        SELECT DISTINCT session_id FROM v_invocations WHERE tool_name = 'Grep'"""),
    (9, "log --session {helper} -n 0", "id", """
        SELECT id FROM v_invocations WHERE session_id = :helper"""),
    (10, 'sql "SELECT call_id, receipt FROM v_invocations WHERE outcome = \'denied\'"',
        "call_id receipt", """
        SELECT call_id, receipt FROM invocations JOIN surfaces ON invocation_key = key
        WHERE state = 'denied'"""),
    (11, "log --outcome unfinished --outcome interrupted --outcome running -n 0", "id", """
        SELECT id FROM v_invocations WHERE state IN ('started', 'interrupted')"""),
    (12, "retries -n 0", "session_id tool_name attempt_count is_changed", f"""
        SELECT session_id, tool_name, count(*), count(DISTINCT {ENDED}) > 1 FROM v_invocations
        GROUP BY session_id, tool_name, arguments HAVING count(*) > 1"""),
    (13, "stats --tool Bash --by day --utc -n 0", "call_count produced_bytes day", """
        SELECT count(*), sum(output_size), substr(started_at, 1, 10) AS day FROM v_invocations
        WHERE tool_name = 'Bash' GROUP BY day ORDER BY day DESC"""),
    (15, "tools ls --calls", "name digest call_count first_call_at last_call_at", """
        SELECT tool_name, json_extract(arguments, '$.version') AS version, count(*),
        replace(min(started_at), 'Z', '+00:00'), replace(max(started_at), 'Z', '+00:00')
        FROM v_invocations WHERE tool_name = 'build' AND version IS NOT NULL GROUP BY version"""),
    (19, "verify", "kind subject", """
        SELECT 'incomplete', 'call ' || id FROM v_invocations WHERE state = 'started'"""),
]  # fmt: skip
"""The number of a question, its command, the members of the answer, and the same in SQL."""


@pytest.mark.parametrize(
    ("command", "members", "query"),
    [one[1:] for one in QUESTIONS],
    ids=[one[0] for one in QUESTIONS],
)
def test_an_answer_is_that_of_plain_sql(
    trail: Trail, command: str, members: str, query: str
) -> None:
    (helper, *_) = trail.plain("SELECT id FROM v_sessions WHERE parent_id IS NOT NULL ORDER BY 1")
    trail.names["helper"] = helper[0]
    found = [tuple(one[name] for name in members.split()) for one in trail.records(command)]
    wanted = trail.plain(query)
    assert wanted
    assert sorted(found) == sorted(wanted)
    if "ORDER BY" in query:
        assert [row[-1] for row in found] == [row[-1] for row in wanted]


def test_what_the_model_saw_is_the_text_of_the_source(trail: Trail) -> None:
    assert trail.answer("show --surface receipt {call}") == trail.receipts()[trail.names["call"]]


def test_what_the_model_did_not_see_is_not_in_the_text_of_the_source(trail: Trail) -> None:
    (found,) = trail.records("diff --surfaces {call}")
    output, seen = trail.returned()[trail.names["call"]], trail.receipts()[trail.names["call"]]
    assert [one["role"] for one in found["streams"]] == ["stdout", "stderr"]
    for stream in found["streams"]:
        text, at = output[stream["role"]].encode(), 0
        for part in stream["parts"]:
            assert part["start"] == at
            at = part["stop"]
            assert (part["state"] == "shown") is (text[part["start"] : at].decode() in seen)
        assert at == stream["size"] == len(text)


def test_the_calls_that_touched_a_path_name_it_in_their_arguments(trail: Trail) -> None:
    path = re.compile(rf"(?<![\w.-]){re.escape(trail.names['path'])}(?![\w-])")
    wanted = {
        block["id"]
        for _, block in trail.blocks("tool_use")
        if any(path.search(text) for text in strings_in(block["input"]))
    }
    found = trail.records("search --path {path} --agent claude-code -n 0")
    assert wanted
    assert trail.call_ids(found) == wanted


def test_a_text_is_found_wherever_the_source_has_it(trail: Trail) -> None:
    text = trail.names["text"]
    wanted: dict[str, set[tuple[int, str]]] = defaultdict(set)
    values = [(block["id"], block["input"]) for _, block in trail.blocks("tool_use")]
    for kind in ("text", "thinking"):
        values += [("", block[kind]) for _, block in trail.blocks(kind)]
    contents = (member(entry, "message", "content") for entry in trail.entries())
    values += [("", content) for content in contents if isinstance(content, str)]
    values += trail.returned().items()
    for call_id, seen in trail.receipts().items():
        # The output of a failed command is what the model saw after the first line.
        values += [(call_id, seen), (call_id, re.sub(r"\AExit code \d+\n", "", seen))]
    for call_id, value in values:
        for one in strings_in(value):
            for n, line in enumerate(one.split("\n"), 1):
                if text in line:
                    wanted[call_id].add((n, line))
    found = trail.records("search --literal {text} --agent claude-code --reverse -n 0")
    assert wanted
    assert trail.call_ids(found) == set(wanted)
    for hit in found:
        (call_id,) = trail.call_ids([hit])
        assert (hit["line"], hit["text"]) in wanted[call_id]
    assert [hit["at"] for hit in found] == sorted(hit["at"] for hit in found)


def test_two_runs_differ_in_what_their_rows_differ_in(trail: Trail) -> None:
    before, after = (
        trail.plain(f"""
            SELECT tool_name, arguments, {ENDED}, output, canonical, receipt FROM v_invocations
            WHERE call_id = :{name}""")[0]
        for name in ("before", "after")
    )
    names = ("tool", "arguments", "outcome", "complete output", "canonical result", "receipt")
    (found,) = trail.records("diff {before} {after} --brief")
    different = {one["name"] for one in found["different"]}
    pairs = zip(names, before, after, strict=True)
    assert different & {*names} == {name for name, one, other in pairs if one != other}
    streams = [
        dict(trail.plain(f"""
            SELECT role, digest FROM streams JOIN invocations ON key = invocation_key
            WHERE call_id = :{name}"""))
        for name in ("before", "after")
    ]  # fmt: skip
    roles = streams[0].keys() | streams[1].keys()
    assert different - {*names} == {
        role for role in roles if streams[0].get(role) != streams[1].get(role)
    }


def test_who_ran_a_call_where_is_what_the_source_says(trail: Trail) -> None:
    (found,) = trail.records("show {call}")
    (entry,) = [one for one, block in trail.blocks("tool_use") if block["id"] == found["call_id"]]
    said = {"agent_version": "version", "cwd": "cwd", "git_branch": "gitBranch"}
    wanted = {name: entry[other] for name, other in said.items() if entry.get(other)}
    assert found["environment"] == wanted


def test_a_session_in_the_format_of_a_provider_has_every_call_and_result(trail: Trail) -> None:
    (session,) = trail.plain("SELECT session_id FROM v_invocations WHERE call_id = :call")
    trail.names["of_call"] = session[0]
    messages = json.loads(trail.answer("transcript {of_call} --format anthropic"))
    for kind, id_of in (("tool_use", "id"), ("tool_result", "tool_use_id")):
        wanted = [
            (block[id_of], block.get("input", text_of(block.get("content", ""))))
            for entry, block in trail.blocks(kind)
            if entry["sessionId"] == trail.names["session"] and not entry.get("isSidechain")
        ]
        found = [
            (block[id_of], block.get("input", text_of(block.get("content", ""))))
            for block in objects_in(messages)
            if block.get("type") == kind
        ]
        assert found[: len(wanted)] == wanted


def test_the_end_of_a_running_command_is_what_the_command_has_printed(trail: Trail) -> None:
    code = "for n in range(500): print('line', n)\nimport time; print(flush=True); time.sleep(600)"
    with trail.cli.start("exec", "--", *python(code)) as process:
        try:
            until(lambda: trail.cli.run("tail", "-n", "1", "@running").stdout == b"\n")
            wanted = [f"line {n}" for n in range(401, 500)]
            assert trail.answer("tail -n 100 @running").splitlines() == [*wanted, ""]
        finally:
            process.terminate()


def test_no_secret_of_the_story_is_in_the_store(trail: Trail) -> None:
    files = [one for one in trail.cli.folder.rglob("*") if one.is_file()]
    kept = [one for one in files if "projects" not in one.parts]
    assert kept
    assert not [one for one in kept if SECRET.encode() in one.read_bytes()]


def test_the_guide_has_an_answer_to_twenty_questions() -> None:
    assert re.findall(r"^### (\d+)\.", GUIDE, re.MULTILINE) == [str(n) for n in range(1, 21)]
