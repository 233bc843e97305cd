"""A damaged row is named, never ends a command with a traceback, and hides no other row."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.altering import alter
from tests.support.cli import Cli
from tests.support.new_stores import make_store
from tests.support.recording import run_command, say

from tooltrail.records import CallBlock, Message, TextBlock, ToolCall, ToolDefinition
from tooltrail.store.read.columns import COLUMNS

OUTPUT = b"line\n" * 9_000
"""An output that is stored as an artifact."""

COMMANDS = (
    "log --json",
    "session ls --json",
    "show {call} --json",
    "show {call}",
    "cat {call}",
    "transcript {session}",
    "transcript {session} --format anthropic",
    "diff {session} {other}",
    "stats",
    "tools ls",
    "artifact ls",
    "redact --scan",
)

TABLES = ("invocations", "sessions", "messages", "surfaces", "streams", "bodies", "artifacts")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Cli:
    """A store with two alike sessions."""
    folder = tmp_path_factory.mktemp("store")
    make_store(str(folder / "trail.db"), folder)
    cli = Cli(str(folder / "trail.db"))
    with cli.open() as store:
        for name in ("first", "second"):
            with store.open_session(name=name) as session:
                session.offer_tools([ToolDefinition(name=name)])
                call = ToolCall(tool_name="Bash", call_id=name, arguments_raw=f'["{name}"]')
                blocks = (TextBlock(text=f"I run {name}"), CallBlock(call=call))
                session.message(Message(role="assistant", blocks=blocks))
                run_command(session, name.encode() + OUTPUT, call=call)
                say(session, "user", f"thanks for {name}")
        store.ingest()
    return cli


@pytest.fixture
def whole(recorded: Cli) -> Iterator[Cli]:
    """The same store for each test."""
    path = Path(recorded.database)
    content = path.read_bytes()
    yield recorded
    restore(path, content)


def restore(path: Path, content: bytes) -> None:
    for one in path.parent.glob(f"{path.name}-[ws]*"):
        if one.is_file():
            one.unlink()
    path.write_bytes(content)


def damage(cli: Cli, change: str) -> None:
    with cli.open() as store:
        alter(store, change)


@pytest.mark.parametrize("table", TABLES)
def test_no_value_of_a_column_ends_a_command_with_a_traceback(whole: Cli, table: str) -> None:
    path = Path(whole.database)
    content = path.read_bytes()
    other = whole.ok("transcript", "second").stdout
    words = {"call": "first#3", "session": "first", "other": "second"}
    columns = [one.partition(".")[2] for one in COLUMNS if one.startswith(f"{table}.")]
    for column in columns:
        if column in {"key", "invocation_key"}:
            continue
        for value in ("'x'", "x'ff'"):
            first = f"(SELECT min(_rowid_) FROM {table})"
            if table == "streams":
                first = "(SELECT min(invocation_key) FROM streams) AND n = 0"
            key = "invocation_key" if table == "streams" else "_rowid_"
            damage(whole, f"UPDATE {table} SET {column} = {value} WHERE {key} = {first}")
            for command in COMMANDS:
                ended = whole.run(*command.format(**words).split())
                assert ended.code in {0, 1, 3, 4}, (column, command)
                assert "Traceback" not in ended.message, (column, command)
            if table != "bodies":
                assert whole.ok("transcript", "second").stdout == other, column
            restore(path, content)


def test_a_call_with_a_damaged_id_is_named(whole: Cli) -> None:
    damage(whole, "UPDATE invocations SET id = x'00' WHERE key = 1")
    for command in ("cat", "show", "head", "grep line"):
        ended = whole.run(*command.split(), "first#3")
        assert (ended.code, ended.stdout) == (1, b"")
        assert ended.sentence.startswith("row 1 of invocations is damaged: id holds no id")
    assert whole.ok("cat", "second#3").stdout.startswith(b"second")


def test_a_transcript_names_what_is_damaged_and_prints_the_rest(whole: Cli) -> None:
    damage(whole, "UPDATE messages SET text = x'00' WHERE key = 2")
    for style in ("text", "markdown", "json", "jsonl", "anthropic", "openai"):
        ended = whole.run("transcript", "first", "--format", style)
        assert ended.code == 1
        assert "row 2 of messages is damaged: text holds no digest" in ended.message
        assert "`tooltrail verify` compares all records" in ended.message
        assert "thanks for first" in ended.text
    assert whole.run("transcript", "first", "--provider-exact").code == 1
    assert whole.ok("transcript", "second").message == ""


@pytest.mark.parametrize("style", ["text", "json", "anthropic"])
def test_a_transcript_goes_on_behind_a_message_whose_document_is_none(
    whole: Cli, style: str
) -> None:
    damage(whole, "UPDATE messages SET document = text WHERE key = 2")
    ended = whole.run("transcript", "first", "--format", style)
    assert ended.code == 1
    assert "row 2 of messages is damaged: its document cannot be read (" in ended.message
    assert "I run first" in ended.text  # its text
    assert "thanks for first" in ended.text


def test_a_transcript_goes_on_behind_a_state_that_is_none(whole: Cli) -> None:
    damage(whole, "UPDATE invocations SET state = 'gone' WHERE key = 1")
    for style in ("text", "json", "anthropic", "openai", "openai-responses", "gemini"):
        ended = whole.run("transcript", "first", "--format", style)
        assert (ended.code, "thanks for first" in ended.text) == (1, True)
        assert "tooltrail: row 1 of invocations is damaged: state holds no state" in ended.message


def test_a_transcript_names_entries_that_no_row_has(whole: Cli) -> None:
    damage(whole, "UPDATE messages SET session_key = 'x' WHERE key = 2")
    ended = whole.run("transcript", "first")
    assert (ended.code, "thanks for first" in ended.text) == (1, True)
    session = ended.text.split()[1].rstrip(",")
    assert ended.sentence.startswith(f"session {session} is damaged: #2 cannot be found; ")
    damage(whole, "UPDATE invocations SET session_key = 'x' WHERE key = 1")
    assert ": #2 to #3 cannot be found; " in whole.run("transcript", "first").sentence
    assert whole.run("transcript", "first", "--until", "#1").code == 0


def test_a_scan_counts_the_messages_that_no_session_has(whole: Cli) -> None:
    assert "searched 2 calls and 6 messages" in whole.ok("redact", "--scan").message
    damage(whole, "UPDATE messages SET session_key = 'x' WHERE key = 2")
    ended = whole.run("redact", "--scan")
    assert ended.code == 4
    assert "searched 2 calls and 5 messages" in ended.message
    assert "not searched: 1 message of sessions whose rows are lost or damaged" in ended.message


def test_a_scan_names_a_damaged_session(whole: Cli) -> None:
    damage(whole, "UPDATE sessions SET title = x'00' WHERE key = 1")
    ended = whole.run("redact", "--scan")
    assert (ended.code, "searched 2 calls and 6 messages" in ended.message) == (4, True)
    assert "not searched: row 1 of sessions is damaged: title holds no text" in ended.message


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("name = x'00'", "name holds no text"),
        ("created_at = 'x'", "offered_at holds no time"),
        (
            "digest = (SELECT text FROM messages WHERE key = 3)",
            "its definition cannot be read (not a ToolDefinition",
        ),
        ("digest = x'00'", "digest holds no digest"),
    ],
)
def test_a_list_of_tools_names_a_damaged_row_and_goes_on(
    whole: Cli, change: str, said: str
) -> None:
    damage(whole, f"UPDATE tools SET {change} WHERE name = 'first'")
    for command in ("tools ls", "tools ls --json", "tools export --format openai"):
        ended = whole.run(*command.split())
        assert ended.code == 1, command
        assert said in ended.sentence
        assert "second" in ended.text
    assert len(json.loads(whole.run("tools", "ls", "--json").text)) == 2
    for style in ("text", "json", "anthropic"):
        ended = whole.run("transcript", "first", "--format", style)
        assert (ended.code, "thanks for first" in ended.text) == (1, True)


@pytest.mark.parametrize("value", ["x'00'", "'x'"])
def test_a_list_of_artifacts_has_no_path_for_a_damaged_digest(whole: Cli, value: str) -> None:
    damage(whole, f"UPDATE artifacts SET digest = {value} WHERE key = 1")
    damaged, intact = whole.ok("artifact", "ls", "--json").records
    assert damaged["path"] == ""
    assert "digest holds no digest" in damaged["damage"]
    assert (intact["path"].startswith("sha256/"), intact["damage"]) == (True, None)
    assert "1 row with damaged values" in whole.ok("artifact", "ls").message
    assert whole.ok("artifact", "ls", "-n", "1").message.endswith("1 listed; -n 0 for all\n")


ROWS = {
    "UPDATE store_info SET id = 'x'": "id holds no id",
    "UPDATE store_info SET format = 'x'": "format holds no integer",
    "UPDATE store_info SET format = 0": "format is below 1",
    "DELETE FROM store_info": "lacks its row in store_info",
    "UPDATE store_info SET artifact_root = x'00'": "artifact_root holds no text",
    "UPDATE store_info SET artifact_root = ''": "artifact_root is empty",
}
"""Changes of the row of the store, and what is said of them."""


@pytest.mark.parametrize("change", ROWS)
def test_a_damaged_row_of_the_store_hides_no_record(whole: Cli, change: str) -> None:
    damage(whole, change)
    damage(whole, "UPDATE messages SET text = x'00' WHERE key = 2")
    said = ROWS[change]
    for command, code in (("verify", 1), ("db check", 1), ("status", 4), ("log", 0), ("stats", 0)):
        ended = whole.run(*command.split())
        assert (ended.code, said in ended.text + ended.message) == (code, True), command
    assert "message " in whole.run("verify").text
    assert whole.run("transcript", "second").text.count("thanks for second") == 1
    assert "unknown, since the database is damaged" in whole.run("status").text


def test_a_lost_revision_is_damage(whole: Cli) -> None:
    damage(whole, "DELETE FROM tooltrail_version")
    for command in ("log", "verify", "status"):
        ended = whole.run(command)
        assert (ended.code, ended.stdout) == (1, b"")
        assert "table tooltrail_version of " in ended.message
        assert "has no row; restore the database from a backup" in ended.message


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("spool = x'00'", "spool holds no text"),
        ("host = x'ff'", "host holds no text"),
        ("ingested_at = 'x'", "ingested_at holds no time"),
        ("branch_of = 'x'", "branch_of holds no id"),
    ],
)
def test_a_damaged_row_of_a_journal_stops_no_status(whole: Cli, change: str, said: str) -> None:
    damage(whole, f"UPDATE journals SET {change}")
    for command, code in (("status", 0), ("db check", 1)):
        ended = whole.run(*command.split())
        assert ended.code == code
        assert f"row 1 of journals is damaged: {said}" in ended.text + ended.message


def test_sizes_that_are_too_large_stop_no_status(whole: Cli) -> None:
    largest = (1 << 63) - 1
    damage(whole, f"UPDATE invocations SET output_size = {largest}")
    damage(whole, f"UPDATE artifacts SET size = {largest}, stored_size = {largest}")
    assert whole.ok("status").text.count("produced     0 B") == 1
    damage(whole, "ALTER TABLE search_cursors RENAME COLUMN n TO m")
    ended = whole.ok("status")
    assert "the index of words is damaged; `tooltrail db index --rebuild`" in ended.message
