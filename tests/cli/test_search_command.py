"""`tooltrail search`: what it prints, and that it finds every word of imported sessions."""

import json
import random
import re
import shlex
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, cast
from uuid import UUID

import pytest
from tests.importers.sources import CORPUS
from tests.support.cli import Cli, on_a_terminal
from tests.support.recording import run_command, run_tool, say

from tooltrail.records import CompleteOutput, ErrorKind, ToolCall, ToolError
from tooltrail.store import InvocationDetail, Reader
from tooltrail.store.engines.sqlite_library import sqlite3
from tooltrail.store.search.queries import WordQuery
from tooltrail.store.search.searching import Search
from tooltrail.store.search.words import phrases_of

DAMAGED = "the index of words is damaged; `tooltrail db index --rebuild` makes it again"
WHOLE, EDGE = 64 * 1024, 32 * 1024
LONG = b"".join(b"%06d some line of a log\n" % n for n in range(20_000))


@pytest.fixture
def recorded(cli: Cli) -> Cli:
    """A store with a message, a short and a long output, and a failed command."""
    with cli.open() as store, store.open_session(agent="coder") as session:
        say(session, "user", "please find the needle")
        run_command(session, b"first\nerror[E0433]: no needle here\n", exit_status=1)
        run_command(session, LONG)
        run_tool(session, "a \x1b[2J\u202e needle\x07 of a hostile tool")
        store.ingest()
    return cli


def test_a_hit_says_where_it_is_and_the_command_that_opens_it(recorded: Cli) -> None:
    ended = recorded.ok("search", "E0433")
    head, place, line = ended.lines
    assert head.split()[-3:-1] == ["exit", "1"]
    assert place.startswith("  stdout, line 2, byte 12:  tooltrail cat ")
    assert line == "    error[E0433]: no needle here"
    opened = recorded.ok(*shlex.split(place.partition("tooltrail ")[2]))
    assert opened.stdout == b"first\nerror[E0433]: no needle here\n"
    (record,) = recorded.ok("search", "E0433", "--json").records
    assert (record["schema_version"], record["kind"], record["outcome"]) == (1, "call", "exit 1")
    assert (record["place"], record["line"], record["offset"]) == ("stdout", 2, 12)
    assert record["places"][0] == "stdout"
    fields = recorded.ok("search", "E0433", "--csv", "--fields", "place,text").lines
    assert fields == ["place,text", "stdout,error[E0433]: no needle here"]
    around = recorded.ok("search", "E0433", "-C", "1", "--csv", "--fields", "before").lines
    assert around == ["before", '"[""first""]"']


def test_each_command_of_a_hit_works(recorded: Cli) -> None:
    words = ["needle", "000001"]
    for word in words:
        for record in recorded.ok("search", word, "--json").records:
            _, *command = shlex.split(record["command"])
            shown = recorded.run(*command)
            assert shown.code in (0, 4), shown.message
            assert word in shown.text
    (record,) = recorded.ok("search", "--literal", "010000 some", "--json").records
    _, *command = shlex.split(record["command"])
    assert "010000 some line" in recorded.ok(*command).text
    assert (record["line"], record["offset"]) == (10_001, LONG.index(b"010000"))


def test_the_command_of_a_text_of_the_complete_output_shows_the_text(recorded: Cli) -> None:
    (hit, *_) = recorded.ok("search", "make", "--json").records
    assert hit["place"] == "output.result.command"
    _, *command = shlex.split(hit["command"])
    (record,) = recorded.ok(*command).records
    assert record["complete_output"]["result"]["command"] == "make"


def test_the_first_appearance_is_one_command(recorded: Cli) -> None:
    ended = recorded.ok("search", "needle", "--reverse", "-n", "1")
    assert "user" in ended.lines[0]
    assert "first 1 listed; -n 0 for all, --cursor" in ended.message
    cursor = ended.message.split("--cursor ")[1].split()[0]
    rest = recorded.ok("search", "needle", "--reverse", "--cursor", cursor, "--json").records
    assert [one["name"] for one in rest] == ["Bash", "Read"]


def test_filters_and_rank(recorded: Cli) -> None:
    named = [one["name"] for one in recorded.ok("search", "needle", "--failed", "--json").records]
    assert named == ["Bash"]
    ranked = recorded.ok("search", "needle", "--rank", "--json").records
    assert len(ranked) == 3
    assert recorded.run("search", "needle", "--tool", "Bash2").code == 3
    assert recorded.run("search", "needle", "--agent", "coder", "-n", "1").code == 0


def test_long_streams_are_mentioned(recorded: Cli) -> None:
    ended = recorded.run("search", "010000")
    assert ended.code == 3
    assert "--literal searches all" in ended.message


def test_what_cannot_be_searched_is_explained(recorded: Cli) -> None:
    assert recorded.run("search", "--", "--no-such").code == 3
    assert "--literal" in recorded.run("search", "***").sentence
    assert "regular expression" in recorded.run("search", "--regex", "(").sentence
    assert "not a cursor" in recorded.run("search", "a", "--cursor", "x").sentence


def test_hostile_text_does_not_control_a_terminal(recorded: Cli) -> None:
    for arguments in (("needle",), ("--literal", "needle"), ("needle", "-C", "2")):
        text = recorded.ok("search", *arguments).text
        assert all(c.isprintable() or c == "\n" for c in text)
        screen = on_a_terminal(recorded, "search", *arguments, columns=80)
        assert "\x1b[2J" not in screen
        assert "\u202e" not in screen


def test_a_search_may_be_the_first_command_that_reads(cli: Cli) -> None:
    assert cli.exec("--db", str(cli.folder / "new.db"), "--", "echo", "needle").code == 0
    ended = cli.ok("search", "needle", "--db", str(cli.folder / "new.db"), "--json")
    assert [one["place"] for one in ended.records]


def test_the_current_folder_is_a_path_to_search_for(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = cli.folder / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    cli.exec("--", "true")
    monkeypatch.chdir(cli.folder)
    cli.exec("--", "true")
    monkeypatch.chdir(folder)
    (hit,) = cli.ok("search", "--path", ".", "--json").records
    assert hit["id"] == cli.ok("log", "--json").records[1]["id"]
    ended = cli.run("search", "--path", "")
    assert (ended.code, ended.usage_error) == (2, "--path is empty; name a file or a folder")


def test_the_index_can_be_switched_off_and_made_again(recorded: Cli) -> None:
    (before,) = recorded.ok("db", "index", "--json").records
    assert before["is_on"]
    assert before["waiting_count"] == 0 or before["entry_count"] == 0
    assert recorded.ok("db", "index", "--off").text.startswith("index  off; ")
    ended = recorded.run("search", "needle")
    assert (ended.code, "tooltrail db index --rebuild" in ended.message) == (5, True)
    assert recorded.run("search", "--literal", "needle").code == 0
    assert recorded.run("search", "--path", "needle").code == 3
    with recorded.open() as store, store.open_session() as session:
        run_command(session, b"another needle\n")
    assert "off" in recorded.ok("status").text
    assert recorded.ok("verify").code == 0
    (after,) = recorded.ok("db", "index", "--rebuild", "--json").records
    assert (after["is_on"], after["waiting_count"]) == (True, 0)
    assert len(recorded.ok("search", "needle", "--json").records) == 4
    recorded.ok("db", "index", "--off")
    screen = on_a_terminal(recorded, "db", "index", "--rebuild", columns=80)
    assert screen.count("indexing  ░") == 1
    assert recorded.ok("db", "check").message == "no problem found\n"
    assert "facts" in next(one for one in recorded.ok("status").lines if one.startswith("index"))


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus is not on this machine")
def test_every_word_of_imported_sessions_is_found_where_it_stands(cli: Cli) -> None:
    files = sorted((CORPUS / "codex").rglob("*.jsonl"))[:3]
    files += sorted((CORPUS / "claude_code").rglob("*.jsonl"))[:4]
    files += sorted((CORPUS / "swe_agent_traj").rglob("*.traj"))[:2]
    assert cli.run("import", *map(str, files)).code in (0, 4)
    chance = random.Random(11)
    with cli.open() as store:
        texts = dict(_texts(store.reader))
        where: defaultdict[str, set[UUID]] = defaultdict(set)
        for owner, some in texts.items():
            for word in {word for text in some for word in _words(_plain(text))}:
                where[word].add(owner)
        words = sorted(where)
        rare = [word for word in words if len(where[word]) == 1]
        for word in [*chance.sample(words, 100), *chance.sample(rare, 100)]:
            search = Search(store.reader, lambda: store.archive, WordQuery(phrases_of([word])))
            assert {hit.id for hit in search.hits(256)} == where[word], word
            assert not search.unread


def _words(text: str) -> list[str]:
    r"""The words of a text; `\tword`, with an escape for white space, is `tword` and `word`."""
    return re.findall(r"[^\W_]+", text) + re.findall(r"(?<=\\[ntr])[^\W_]+", text)


def _plain(text: str) -> str:
    return unicodedata.normalize("NFC", re.sub(r"\x1b\[[0-9;]*m", " ", text)).casefold()


def _texts(reader: Reader) -> Iterator[tuple[UUID, list[str]]]:
    """What a search for words covers, by call and message."""
    for session in reader.sessions():
        _, messages, calls = reader.conversation(session.id)
        for one in messages:
            document: Any = {} if one.document is None else json.loads(one.document)
            yield one.id, [one.text, *_thought(document.get("blocks", []))]
        for call in calls:
            yield call.summary.id, _texts_of(reader, call)


def _texts_of(reader: Reader, call: InvocationDetail) -> list[str]:
    output = json.loads(call.complete_json or "{}")
    spoken = {name: output[name] for name in output.keys() - {"status"}}
    texts = [*_leaves(call.arguments.decode()), *_values(json.dumps(spoken))]
    if call.receipt is not None:
        texts.append(call.receipt.text)
    told = json.loads(call.canonical_json or "{}")
    texts += [told.get("summary_text", ""), *_values(json.dumps(told.get("error") or {}))]
    for stream in call.streams:
        if stream.role != "order":
            with reader.open_stream(stream) as source:
                data = source.read()
            parts = [data] if len(data) <= WHOLE else [data[:EDGE], data[-EDGE:]]
            texts += [one.decode("utf-8", "replace") for one in parts]
    return texts


def _thought(block: Any) -> Iterator[str]:
    """All texts of a block of a message, but for data, names and members of a provider."""
    if isinstance(block, dict):
        members = cast("dict[str, Any]", block)
        for name in members.keys() - {"call", "data", "extras", "type"}:
            yield from _thought(members[name])
    elif isinstance(block, list):
        for member in cast("Sequence[Any]", block):
            yield from _thought(member)
    elif block is not None:
        yield block if isinstance(block, str) else json.dumps(block)


def _values(envelope: str) -> list[str]:
    """All texts and numbers in an envelope, and the names in the details of an error."""
    return _leaves(envelope, names=False)


def _leaves(document: str, *, names: bool = True) -> list[str]:
    """All texts, names and numbers in a JSON document; the document if it is no JSON object."""
    found: list[str] = []

    def walk(value: Any, *, names: bool = names) -> None:
        if isinstance(value, dict) and not {"digest", "produced_size"} <= value.keys():
            for name, member in cast("dict[str, Any]", value).items():
                found.extend([name] * names)
                walk(member, names=names or name == "details")
        elif isinstance(value, list):
            for member in cast("Sequence[Any]", value):
                walk(member, names=names)
        elif value is not None and not isinstance(value, dict):
            found.append(value if isinstance(value, str) else json.dumps(value))

    try:
        walk(json.loads(document))
    except ValueError:
        return [document]
    return found


def test_words_in_colours_and_behind_escapes_are_found(cli: Cli) -> None:
    out = b"\x1b[1m\x1b[31mcolourword\x1b[0m: \x1b[38;5;9mE0999\x1b[0m failed\n"
    quoted = b'{"text": "first\\nsecondword\\tthirdword \\u001b[31mfourthword"}'
    with cli.open() as store, store.open_session() as session:
        run_command(session, out + quoted)
        store.ingest()
    words = ("colourword", "E0999", "failed", "secondword", "thirdword", "fourthword")
    for word in words:
        assert [one["kind"] for one in cli.ok("search", word, "--json").records] == ["call"], word


def test_a_name_with_an_escape_sequence_is_found_with_and_without_the_index(cli: Cli) -> None:
    name = "pre\x1b[31mpost.txt"
    with cli.open() as store, store.open_session() as session:
        run_command(session, name.encode(), call=ToolCall.of("Bash", {"command": f"cat {name}"}))
        store.ingest()
    for _ in range(2):
        for arguments in (["--path", name], [name], ["--literal", name]):
            assert len(cli.ok("search", *arguments, "--json").records) == 1, arguments
        cli.ok("db", "index", "--rebuild")


def test_members_of_arguments_that_look_like_a_stream_are_found(cli: Cli) -> None:
    given: dict[str, Any] = {
        "a": {"role": "x", "digest": "y", "produced_size": 1, "secret": "needleone"}
    }
    with cli.open() as store, store.open_session() as session:
        run_command(session, call=ToolCall.of("Bash", given))
        store.ingest()
    assert len(cli.ok("search", "needleone", "--json").records) == 1
    assert len(cli.ok("search", "--literal", "needleone", "--json").records) == 1


def test_the_words_of_the_envelope_are_not_searched_and_those_of_a_tool_are(cli: Cli) -> None:
    error = ToolError(
        kind=ErrorKind.PATCH_FAILED, message="no", details={"ownkey": {"innerkey": 1}}
    )
    with cli.open() as store, store.open_session() as session:
        run_command(session, b"fine\n", exit_status=0)
        call = session.start(ToolCall.of("Read", {"argkey": 1}))
        call.finish(CompleteOutput.failure("Read", error))
        store.ingest()
    assert cli.run("search", "error", "--ok").code == 3  # a value of the failed call
    for key in ("summary_text", "exit_status", "recovery_hint", "produced_size", "success"):
        for arguments in ([key], ["--literal", key], ["--regex", f"^{key}$", "-i"]):
            assert cli.run("search", *arguments).code == 3, arguments
    for key in ("argkey", "ownkey", "innerkey"):
        for arguments in ([key], ["--literal", key]):
            assert [one["name"] for one in cli.ok("search", *arguments, "--json").records] == [
                "Read"
            ], key


def test_running_calls_are_said_to_be_unsearched(recorded: Cli) -> None:
    said = "the output of 1 running call was not searched; `tooltrail grep TEXT @running`"
    with recorded.open() as store, store.open_session() as session:
        session.start(ToolCall.of("Bash", {"command": "make"}))
        for arguments in (["--literal", "nowhere"], ["--regex", "^nowhere"], ["nowhere"], ["make"]):
            ended = recorded.run("search", *arguments)
            assert (ended.code, said in ended.message) == (4, True), arguments
            ended = recorded.run("search", *arguments, "--tool", "Read")
            assert (ended.code, "running" in ended.message) == (3, False)
        assert recorded.run("search", "nowhere", "--failed").code == 3
        assert recorded.run("search", "--path", "nowhere").code == 3


def test_an_empty_pattern_is_wrong_usage(recorded: Cli) -> None:
    for flag in ("--literal", "--regex"):
        assert recorded.run("search", flag, "").code == 2
        assert recorded.run("search", "needle", flag, "").code == 2


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE search_words SET block = CAST(substr(block, 1, 9) || x'01' AS BLOB)",
        "UPDATE search_words SET block = 'x' WHERE initial = 101",
        # A header that announces more bytes than there is memory for.
        "UPDATE search_words SET block = x'28b52ffde000000000000040000100'",
        "DELETE FROM search_words WHERE initial = 0",
        "DELETE FROM search_words WHERE initial = 101",
    ],
)
def test_a_damaged_index_is_damage_with_a_way_out(recorded: Cli, damage: str) -> None:
    recorded.ok("db", "index", "--rebuild")
    with sqlite3.connect(recorded.database) as raw:
        raw.execute(damage)
    checked = recorded.run("db", "check")
    assert (checked.code, checked.lines) == (1, [f"{DAMAGED}"])
    ended = recorded.run("search", "E0433")
    # A search does not miss a block that is gone. The owners are in the block 0.
    is_unseen = damage.endswith("initial = 101") and damage.startswith("DELETE")
    assert (ended.code == 1 and DAMAGED in ended.message) or is_unseen
    recorded.ok("db", "index", "--rebuild")
    assert recorded.ok("db", "check").lines == []
    assert recorded.ok("search", "E0433").lines


def test_an_index_that_cannot_be_filled_hides_no_hit(recorded: Cli) -> None:
    with recorded.open() as store, store.open_session() as session:
        for _ in range(64):
            say(session, "user", "a late needle")
    with sqlite3.connect(recorded.database) as raw:
        raw.execute(
            "CREATE TRIGGER full BEFORE INSERT ON search_cursors BEGIN"
            " SELECT RAISE(ABORT, 'no room'); END"
        )
    assert len(recorded.ok("search", "late", "-n", "0", "--json").records) == 64
    (state,) = recorded.ok("db", "index", "--json").records
    assert (state["entry_count"], state["waiting_count"] >= 64) == (0, True)


def test_a_damaged_row_of_a_journal_hides_no_hit(recorded: Cli) -> None:
    found = recorded.ok("search", "E0433").lines
    with sqlite3.connect(recorded.database) as raw:
        raw.execute("UPDATE journals SET next_index = 'x'")
    assert recorded.run("status").code == 4  # newer facts could not be ingested
    assert recorded.ok("search", "E0433").lines == found
    recorded.ok("db", "index", "--rebuild")
    assert recorded.ok("search", "E0433").lines == found
