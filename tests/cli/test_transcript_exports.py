"""A session in the formats of providers, through the command line."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.agents.spelled_answers import Call, says, spell_whole
from tests.support.cli import HANG_S, PROGRAM, Cli
from tests.support.recording import say
from tests.support.wire.fake_provider import request_problems

from tooltrail.records import CompleteOutput, GenericOutput, ToolCall
from tooltrail.store import record_response

PROVIDERS = ("openai", "openai-responses", "anthropic", "bedrock", "ollama", "gemini", "cohere")
ANSWER = spell_whole(
    "openai", says("I look.", *(Call("add", {"a": n}, f"call_{n}") for n in range(2)))
)


@pytest.fixture
def talk(cli: Cli) -> Iterator[Cli]:
    """A question, an answer with two calls of which one runs, and one call without an id."""
    with cli.open() as store:
        session = store.open_session(title="talk")
        say(session, "user", "add")
        first, second = record_response(session, "openai", ANSWER).calls
        session.start(first).finish(CompleteOutput.success("add", GenericOutput.of("1")))
        session.start(second)
        say(session, "user", "and?")
        session.start(ToolCall.of("ls", {})).finish(
            CompleteOutput.success("ls", GenericOutput.of("a"))
        )
        yield cli


def exported(cli: Cli, *options: str) -> Any:
    return json.loads(cli.ok("transcript", *options).text)


@pytest.mark.parametrize("style", PROVIDERS)
def test_the_export_is_part_of_a_request(talk: Cli, style: str) -> None:
    request = exported(talk, "--format", style)
    assert request_problems(style, request) == []


def test_what_was_changed_is_counted_and_told_one_by_one(talk: Cli, tmp_path: Path) -> None:
    report = tmp_path / "report.jsonl"
    ended = talk.ok("transcript", "--format", "openai", "--report", str(report))
    assert ended.message.splitlines()[-1] == (
        "tooltrail: the export differs from the record: 1 batch_as_text, 1 error_as_prefix,"
        " 1 result_missing, 1 status_flattened"
    )
    changes = [json.loads(line) for line in report.read_text().splitlines()]
    assert sorted(change["kind"] for change in changes) == [
        "batch_as_text",
        "error_as_prefix",
        "result_missing",
        "status_flattened",
    ]
    assert all(change["where"] and change["detail"] for change in changes)


def test_a_strict_export_prints_nothing(talk: Cli, tmp_path: Path) -> None:
    target = tmp_path / "request.json"
    ended = talk.run("transcript", "--format", "openai", "--strict", "-o", str(target))
    assert (ended.code, ended.stdout, target.exists()) == (1, b"", False)
    assert "result_missing" in ended.message


def test_calls_without_ids_are_told_as_text_or_get_ids(talk: Cli) -> None:
    as_text = exported(talk, "--format", "openai")["messages"]
    assert as_text[-1]["content"].startswith('<tool_result name="ls"')
    hermes = exported(talk, "--format", "openai", "--text-family", "hermes")["messages"]
    assert hermes[-1]["content"].startswith("<tool_response>")
    native = exported(talk, "--format", "openai", "--ids", "synthesise")["messages"]
    assert native[-1]["role"] == "tool"
    assert native[-1]["tool_call_id"] == native[-2]["tool_calls"][0]["id"]


def test_calls_without_results_are_marked_left_out_or_unknown(talk: Cli) -> None:
    def result(*options: str) -> str:
        messages = exported(talk, "--format", "openai", *options)["messages"]
        told = [one["content"] for one in messages if one.get("tool_call_id") == "call_1"]
        return told[0] if told else ""

    assert "no result recorded" in result()
    assert "not recorded" in result("--as-seen")
    assert "unknown" in result("--as-seen")
    assert result("--unanswered", "drop") == ""


def test_the_session_up_to_an_entry_is_told(talk: Cli) -> None:
    messages = exported(talk, "--format", "openai", "--until", "#2")["messages"]
    assert [one["role"] for one in messages] == ["user", "assistant", "tool", "tool"]
    ended = talk.run("transcript", "--format", "openai", "--until", "f" * 12)
    # The call that never ended may be told of first.
    last = ended.message.splitlines()[-1]
    assert (ended.code, last) == (
        3,
        "tooltrail: the session has no entry with the name 'ffffffffffff'",
    )


def test_what_the_provider_sent_is_printed_byte_for_byte(talk: Cli) -> None:
    (text,) = talk.ok("transcript", "--provider-exact").lines
    line = json.loads(text)
    assert (line["wire_format"], line["role"]) == ("openai", "assistant")
    assert line["payload"] == ANSWER.decode()


def test_options_that_do_not_go_together_are_refused(talk: Cli) -> None:
    for line in (
        *("--strict", "--ids synthesise", "--unanswered drop", "--text-family hermes"),
        *("--provider x", "--report x", "--as-seen", "--as-seen --json"),
        *("--as-seen --provider-exact", "--as-seen --unanswered drop --format openai"),
        *("--as-seen --unanswered mark --format openai", "--report - --format openai"),
        *("--compact 9 --as-seen --format openai", "--provider-exact --format openai"),
        "--provider-exact --compact 9",
    ):
        ended = talk.run("transcript", *line.split())
        assert (ended.code, ended.stdout) == (2, b"")


def test_a_report_never_takes_the_place_of_the_document(talk: Cli, tmp_path: Path) -> None:
    target, link = tmp_path / "request.json", tmp_path / "link"
    link.symlink_to(target)
    twin = tmp_path / "twin"
    for before in (None, "before"):
        if before is not None:
            target.write_text(before)
            twin.hardlink_to(target)
        names = [target, tmp_path / "." / "request.json", link, *([twin] if before else [])]
        for name in names:
            ended = talk.run(
                *("transcript", "--format", "openai", "-o", str(target), "--report", str(name))
            )
            assert (ended.code, ended.stdout) == (2, b"")
            assert (
                ended.usage_error
                == f"--report would overwrite the document in {name}; name another file"
            )
            assert (target.read_text() if target.exists() else None) == before


@pytest.mark.parametrize("command", [("transcript",), ("tools", "export")])
def test_a_report_never_takes_the_place_of_what_standard_output_leads_to(
    talk: Cli, tmp_path: Path, command: tuple[str, ...]
) -> None:
    target = tmp_path / "request.json"
    with target.open("wb") as file:
        started = subprocess.Popen(
            [*PROGRAM, *command, "--format", "openai", "--report", str(target)],
            stdout=file,
            stderr=subprocess.PIPE,
            env=talk.full_environment,
        )
        _, message = started.communicate(timeout=HANG_S)
    assert (started.returncode, target.read_bytes()) == (2, b"")
    assert b"--report would overwrite the document" in message


def test_a_device_takes_the_document_and_the_report(talk: Cli) -> None:
    talk.ok("transcript", "--format", "openai", "-o", os.devnull, "--report", os.devnull)


def test_nothing_is_printed_where_the_report_cannot_be_written(talk: Cli, tmp_path: Path) -> None:
    target, report = tmp_path / "request.json", str(tmp_path / "no" / "report")
    for output in ((), ("-o", str(target))):
        ended = talk.run("transcript", "--format", "openai", "--report", report, *output)
        assert (ended.code, ended.stdout, target.exists()) == (5, b"", False)
        told = f"tooltrail: {report} cannot be written: No such file or directory"
        assert ended.message.splitlines()[-1] == told


def test_lines_of_json_are_entries(talk: Cli) -> None:
    lines = [json.loads(line) for line in talk.ok("transcript", "--format", "jsonl").lines]
    assert [line["type"] for line in lines[1:]].count("tool_call") == 3
