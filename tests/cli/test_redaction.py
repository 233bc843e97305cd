"""Credentials: replaced in all that `exec` records, and found in what a store holds."""

import json
import sys
from pathlib import Path

import pytest
from tests.importers.sources import claude_call, claude_line, claude_result, write_lines
from tests.support.altering import alter
from tests.support.cli import Cli

SECRET = "ghp_" + "a1" * 18
MARK = "[REDACTED:github-token]"


def files_with(folder: Path, secret: str) -> list[Path]:
    """The files of a store that hold a secret, which may be compressed nowhere in these tests."""
    files = [one for one in folder.rglob("*") if one.is_file()]
    assert files
    return [one for one in files if secret.encode() in one.read_bytes()]


def test_no_part_of_a_command_keeps_a_secret(cli: Cli) -> None:
    code = f"import sys; print('a {SECRET} b'); sys.stderr.write('{SECRET}')"
    ended = cli.exec("--", sys.executable, "-c", code, f"token={SECRET}")
    assert ended.stdout == f"a {SECRET} b\n".encode()  # what the command prints stays as it is
    assert ended.stderr == SECRET.encode()
    assert cli.ok("show", "--stream", "stdout").text == f"a {MARK} b\n"
    assert cli.ok("show", "--stream", "stderr").text == MARK
    (record,) = cli.ok("show", "--json").records
    assert {one["field"]: one["count"] for one in record["redacted"]} == {
        "arguments": 3,
        "stdout": 1,
        "stderr": 1,
    }
    assert record["arguments_raw"].count(MARK) == 3
    assert files_with(cli.folder, SECRET) == []
    cli.ok("verify", "--receipts")


def test_a_pattern_that_matches_digests_and_sizes_leaves_the_end_whole(cli: Cli) -> None:
    rules = cli.folder / "rules.toml"
    rules.write_text("[patterns]\nnumber = '[0-9]{3,}'\nword = '[a-z]+_[a-z_]+'\n")
    cli.environment["TOOLTRAIL_REDACTION"] = str(rules)
    cli.exec("--", sys.executable, "-c", "print(12345, 'x' * 2000)", "678")
    assert cli.exec("--", "/no/such/program-910273645546").code == 127
    failed, ended = cli.ok("log", "--json").records
    assert (failed["state"], ended["state"]) == ("error", "success")
    assert cli.ok("show", ended["id"], "--stream", "stdout").text.startswith("[REDACTED:number] x")
    assert "910273645546" not in cli.ok("show", failed["id"], "--json").text
    cli.ok("verify", "--receipts")


def test_a_command_that_cannot_start_keeps_no_secret_of_several_words(cli: Cli) -> None:
    key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
    assert cli.exec("--", "no-such", "set", "aws_secret_access_key", key).code == 127
    assert files_with(cli.folder, key) == []
    (record,) = cli.ok("show", "--json").records
    assert {one["field"] for one in record["redacted"]} == {"arguments", "output"}
    assert ": 0 secrets;" in cli.ok("redact", "--scan").message


def test_two_variables_with_one_rule_are_refused(cli: Cli) -> None:
    rules = cli.folder / "rules.toml"
    rules.write_text('environment = ["MY_TOKEN", "my_token"]\n')
    values = {"MY_TOKEN": "first-value", "my_token": "second-value"}
    cli.environment |= {"TOOLTRAIL_REDACTION": str(rules), **values}
    ended = cli.exec("--", "true")
    assert ended.code == 2
    assert "$my_token and another variable have the same rule, my-token" in ended.message


def test_a_secret_in_two_chunks_is_one_secret(cli: Cli) -> None:
    code = (
        "import sys, time\n"
        f"sys.stdout.write({SECRET[:20]!r}); sys.stdout.flush(); time.sleep(0.3)\n"
        f"sys.stdout.write({SECRET[20:]!r}); sys.stdout.flush(); time.sleep(0.3)\n"
    )
    path = cli.folder / "tool.py"
    path.write_text(code)
    assert cli.exec("--", sys.executable, str(path)).stdout == SECRET.encode()
    assert cli.ok("show", "--stream", "stdout").text == MARK
    path.unlink()
    assert files_with(cli.folder, SECRET[20:]) == []
    order = [line.split() for line in cli.ok("show", "--stream", "order").lines]
    assert sum(int(size) for _, size, _ in order) == len(MARK)


def test_the_order_counts_what_is_kept_if_another_stream_interrupts_a_secret(cli: Cli) -> None:
    pieces = [(1, SECRET[:38]), (2, "b"), (1, SECRET[38:] + "\n"), (2, f" {SECRET}"), (1, "c")]
    code = (
        "import os, time\n"
        f"for fd, text in {pieces}:\n"
        "    os.write(fd, text.encode())\n"
        "    time.sleep(1)\n"
    )
    cli.exec("--", sys.executable, "-c", code)
    order = [line.split() for line in cli.ok("show", "--stream", "order").lines]
    # What replaces a secret belongs to the chunk in which the secret begins.
    wanted = [("1", len(MARK)), ("2", 1), ("1", 1), ("2", 1 + len(MARK)), ("1", 1)]
    assert [(fd, int(size)) for fd, size, _ in order] == wanted


def test_a_long_output_is_redacted_before_it_is_spooled(cli: Cli) -> None:
    lines = f"for n in range(30000): print(n, '{SECRET}' if n == 29999 else '')"
    path = cli.folder / "tool.py"
    path.write_text(lines)
    printed = cli.exec("--", sys.executable, str(path)).stdout
    kept = cli.ok("show", "--stream", "stdout").stdout
    assert kept == printed.replace(SECRET.encode(), MARK.encode())


def test_a_command_that_cannot_start_keeps_no_secret(cli: Cli) -> None:
    ended = cli.exec("--", "/no/such/command", SECRET)
    assert ended.code == 127
    (record,) = cli.ok("show", "--json").records
    assert record["state"] == "error"
    assert files_with(cli.folder, SECRET) == []


def test_a_user_may_keep_secrets(cli: Cli) -> None:
    cli.exec("--no-redact", "--", "echo", SECRET)
    assert cli.ok("show", "--stream", "stdout").text == f"{SECRET}\n"
    (record,) = cli.ok("show", "--json").records
    assert record["redacted"] == []


def test_a_user_names_more_secrets_in_a_file(cli: Cli) -> None:
    path = cli.folder / "redaction.toml"
    path.write_text(
        'environment = ["DEPLOY_TOKEN", "UNSET", "EMPTY"]\n[patterns]\nticket = "T-[0-9]{4}"\n'
    )
    cli.environment |= {
        "TOOLTRAIL_REDACTION": str(path),
        "DEPLOY_TOKEN": "correct horse",
        "EMPTY": "",
    }
    cli.exec("--", "echo", "T-1234", "correct horse")
    assert cli.ok("show", "--stream", "stdout").text == (
        "[REDACTED:ticket] [REDACTED:deploy-token]\n"
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (None, "No such file"),
        ("[", "Invalid initial character"),
        ("other = 1", "unknown member other"),
        ('[patterns]\nx = "("', "redaction pattern x is not valid"),
        ('environment = "X"', "environment a list"),
        ("environment = [1]", "must be texts"),
        ("patterns = 1", "patterns must be a table"),
        ('[patterns]\nX = "a"', "needs a name"),
        (
            'environment = ["PIN"]',
            "the value of $PIN is shorter than 8 bytes, and would match parts of words; leave",
        ),
    ],
)
def test_a_file_that_cannot_be_used_is_refused(cli: Cli, text: str | None, problem: str) -> None:
    path = cli.folder / "redaction.toml"
    if text is not None:
        path.write_text(text)
    cli.environment |= {"TOOLTRAIL_REDACTION": str(path), "PIN": "1234567"}
    ended = cli.run("exec", "--", "touch", str(cli.folder / "ran"))
    assert (ended.code, (cli.folder / "ran").exists()) == (2, False)
    assert ended.sentence.startswith(f"$TOOLTRAIL_REDACTION: {path} cannot be used: ")
    assert problem in ended.sentence


def test_a_scan_finds_what_was_kept_and_counts_what_was_replaced(cli: Cli) -> None:
    cli.exec("--no-redact", "--", "echo", SECRET)
    cli.exec("--", "echo", SECRET)
    lines = [
        claude_line("user", f"use {SECRET}", 1, unknown=[SECRET]),
        claude_call(2, "t1", "Read", {"file": "a"}),
        claude_result(3, "t1", f"it is {SECRET}", "other"),
    ]
    cli.ok("import", "--no-redact", str(write_lines(cli.folder / "a.jsonl", lines)))
    ended = cli.run("redact", "--scan", "--json")
    assert ended.code == 1
    found = {(one["kind"], one["field"]): one for one in ended.records}
    assert set(found) == {
        *(("call", name) for name in ("arguments_preview", "arguments", "output", "canonical")),
        ("call", "receipt"),
        ("call", "stdout"),
        *(("message", name) for name in ("text", "extras")),
    }
    assert found["message", "text"]["offset"] == 4
    assert SECRET not in ended.text
    assert "searched 3 calls and 2 messages: " in ended.message
    assert "; 2 in calls were replaced before they were stored" in ended.message
    text = cli.run("redact", "--scan").text
    assert f"message {found['message', 'text']['id']} of session " in text
    assert ": text: 1 github-token at byte 4\n" in text


def test_a_scan_of_a_clean_store_succeeds(cli: Cli) -> None:
    cli.exec("--", "echo", "hello")
    assert cli.ok("redact", "--scan").message.startswith(
        "searched 1 call and 0 messages: 0 secrets;"
    )


def test_a_scan_says_what_it_could_not_read(cli: Cli) -> None:
    cli.exec("--", sys.executable, "-c", "print('x' * 99_999)")
    (record,) = cli.ok("show", "--json").records
    (stream,) = [one for one in record["streams"] if one["role"] == "stdout"]
    (cli.folder / "artifacts" / stream["artifact_path"]).unlink()
    ended = cli.run("redact", "--scan")
    assert ended.code == 4
    assert "not searched: stream stdout: " in ended.message
    with cli.open() as store:
        alter(store, "DELETE FROM sessions")
    ended = cli.run("redact", "--scan")
    assert ended.code == 4
    assert "not searched: 1 call of sessions whose rows are lost or damaged" in ended.message


def test_a_scan_names_a_message_whose_extras_cannot_be_known(cli: Cli) -> None:
    source = write_lines(cli.folder / "a.jsonl", [claude_line("user", f"use {SECRET}", 1)])
    cli.ok("import", "--no-redact", str(source))
    with cli.open() as store:
        store.ingest()
        alter(store, "UPDATE ledger_entries SET fact = 'x'")
    ended = cli.run("redact", "--scan")
    assert ended.code == 1
    assert ": text: 1 github-token at byte 4\n" in ended.text
    assert "its fact cannot be read (a ledger entry is damaged: its fact is not r" in ended.message


def test_a_scan_goes_on_behind_a_session_with_a_damaged_id(cli: Cli) -> None:
    for name in ("first", "second"):
        cli.exec("--session", name, "--", "echo", "hello")
    with cli.open() as store:
        store.ingest()
        alter(store, "UPDATE sessions SET id = 'x' WHERE name = 'second'")
    ended = cli.run("redact", "--scan")
    assert ended.code == 4
    assert "searched 1 call " in ended.message
    assert "not searched: row 2 of sessions is damaged: id holds no id" in ended.message


def test_an_import_names_the_secrets_of_a_user(cli: Cli) -> None:
    path = cli.folder / "redaction.toml"
    path.write_text('[patterns]\nticket = "T-[0-9]{4}"\n')
    cli.environment["TOOLTRAIL_REDACTION"] = str(path)
    source = write_lines(cli.folder / "a.jsonl", [claude_line("user", "see T-1234", 1)])
    cli.ok("import", str(source))
    ended = cli.ok("transcript", "@last", "--format", "json")
    assert "[REDACTED:ticket]" in json.dumps(json.loads(ended.text))


def test_no_name_keeps_a_secret(cli: Cli) -> None:
    folder = cli.folder.parent / SECRET
    folder.mkdir()
    named = ("--session", f"x {SECRET}", "--call-id", SECRET, "--tool", SECRET)
    assert cli.exec(*named, "--", "true", cwd=folder).code == 0
    bearer = "abcdefghijklmnop1234"
    cli.exec("--", "true", "-H", "Authorization:", "Bearer", bearer)
    assert cli.ok("log", "--json").records[1]["call_id"] == MARK
    for secret in (SECRET, bearer):
        assert files_with(cli.folder, secret) == []
    assert cli.ok("redact", "--scan").text == ""


def test_a_scan_looks_at_names(cli: Cli) -> None:
    cli.exec("--no-redact", "--session", SECRET, "--call-id", SECRET, "--", "true")
    ended = cli.run("redact", "--scan", "--json")
    found = [(one["kind"], one["field"]) for one in ended.records]
    assert ("session", "name") in found
    assert ("call", "call_id") in found


def test_the_record_says_that_redaction_was_off(cli: Cli) -> None:
    path = write_lines(cli.folder / "s.jsonl", [claude_line("user", "hi", 0)])
    cli.exec("--no-redact", "--", "true")
    cli.ok("import", "--no-redact", str(path))
    cli.exec("--", "true")
    (status,) = cli.ok("status", "--json").records
    assert status["not_redacted_sessions"] == 2
    assert "off in 2 of the newest 3 sessions" in cli.ok("status").text
    shown = [
        json.loads(cli.ok("transcript", one["id"], "--format", "json").text)["session"]
        for one in cli.ok("session", "ls", "--json").records
    ]
    assert [one["environment"].get("redaction") for one in shown].count("off") == 2
