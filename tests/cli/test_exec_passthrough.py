"""Under exec a command behaves as it does alone: its bytes, its streams, its end."""

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.cli import Cli, kill_group, python
from tests.support.spools import names_in

# One program for all of them, since each start costs half a second.
EVERY_STATUS = """
import sys
from tooltrail.cli._app import app
from tooltrail.cli._failures import run
session = sys.argv[1]
for status in range(256):
    sys.argv = ["tooltrail", "exec", "--session", session, "sh", "-c", f"exit {status}"]
    print(status, run(app))
"""

WILD = bytes(range(256)) + b"\0\0\xff\xfe no newline at the end"


def test_every_exit_status_is_mirrored_and_recorded(cli: Cli) -> None:
    session = cli.ok("session", "open").text.strip()
    done = subprocess.run(
        [sys.executable, "-c", EVERY_STATUS, session],
        env=cli.full_environment,
        capture_output=True,
        check=True,
        text=True,
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [f"{status} {status}" for status in range(256)]
    logged = cli.ok(
        "log", "-n", "0", "--reverse", "--json", "--fields", "exit_status,state"
    ).records
    assert logged == [{"exit_status": status, "state": "success"} for status in range(256)]


def test_bytes_that_are_no_text_pass_through_untouched_and_are_recorded(cli: Cli) -> None:
    code = f"import os; os.write(1, {WILD!r}); os.write(2, {WILD[::-1]!r})"
    ended = cli.exec("--", *python(code))
    assert (ended.code, ended.stdout, ended.stderr) == (0, WILD, WILD[::-1])
    assert cli.ok("show", "--stream", "stdout").stdout == WILD
    assert cli.ok("show", "--stream", "stderr").stdout == WILD[::-1]
    shown = cli.ok("show", "--surface", "complete")
    assert (shown.stdout, shown.stderr) == (WILD, WILD[::-1])


def test_three_megabytes_of_noise_pass_through_and_come_back_from_the_artifact(cli: Cli) -> None:
    code = "import random, sys; sys.stdout.buffer.write(random.Random(7).randbytes(3_000_000))"
    ended = cli.exec("--", *python(code))
    assert ended.stdout == random.Random(7).randbytes(3_000_000)
    assert cli.ok("show", "--stream", "stdout").stdout == ended.stdout
    (artifact,) = cli.ok("artifact", "ls", "--json").records
    assert artifact["size"] == 3_000_000
    assert cli.ok("artifact", "cat", artifact["path"]).stdout == ended.stdout
    assert ended.stderr == b""
    assert names_in(cli.spool) == ["journal", "owners"]
    assert not names_in(cli.spool / "owners")


def test_the_streams_stay_apart_and_the_order_of_their_chunks_is_recorded(cli: Cli) -> None:
    # Each piece is answered before the next, so that no two can be taken for one.
    code = (
        "import os\n"
        "for n in range(10):\n"
        "    os.write(1 + n % 2, bytes([65 + n]) * (n + 1))\n"
        "    os.read(0, 1)\n"
    )
    process = cli.start("exec", "--", *python(code), stdin=subprocess.PIPE)
    assert process.stdin
    assert process.stdout
    assert process.stderr
    try:
        for n in range(10):
            stream = process.stderr if n % 2 else process.stdout
            piece = b""
            while len(piece) < n + 1:
                piece += stream.read(n + 1 - len(piece))
            assert piece == bytes([65 + n]) * (n + 1)
            process.stdin.write(b".")
    except BaseException:
        kill_group(process)
        raise
    with process:
        assert process.communicate(timeout=60) == (b"", b"")
    order = cli.ok("show", "--stream", "order").text
    chunks = [tuple(map(int, line.split())) for line in order.splitlines()]
    assert [(fd, size) for fd, size, _ in chunks] == [(1 + n % 2, n + 1) for n in range(10)]
    times = [at for _, _, at in chunks]
    assert times == sorted(times)
    assert cli.ok("show", "--stream", "stdout").stdout == b"ACCCEEEEEGGGGGGGIIIIIIIII"


def test_chunks_of_one_stream_long_apart_are_lines_of_their_own(cli: Cli) -> None:
    ended = cli.exec("--", "sh", "-c", "echo a; sleep 2; echo b")
    assert ended.stdout == b"a\nb\n"
    order = [line.split() for line in cli.ok("show", "--stream", "order").lines]
    assert [(fd, size) for fd, size, _ in order] == [("1", "2"), ("1", "2")]
    assert int(order[1][2]) - int(order[0][2]) >= 200


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_a_death_by_signal_n_is_mirrored_as_128_plus_n(cli: Cli, number: signal.Signals) -> None:
    ended = cli.exec("--", "sh", "-c", f"ulimit -c 0; kill -{int(number)} $$")
    assert (ended.code, ended.stderr) == (128 + number, b"")
    (record,) = cli.ok("log", "--json").records
    assert (record["state"], record["exit_status"], record["signal"]) == ("success", None, number)
    assert "SIG" in cli.ok("log").text


def test_a_signal_to_exec_reaches_the_command_and_the_record_is_finished(cli: Cli) -> None:
    code = (
        "import os, signal, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: os._exit(9))\n"
        "os.write(1, b'ready')\n"
        "time.sleep(60)\n"
    )
    process = cli.start("exec", "--", *python(code))
    assert process.stdout
    assert process.stdout.read(5) == b"ready"
    process.terminate()
    with process:
        assert process.communicate(timeout=60) == (b"", b"")
    assert process.returncode == 9
    (record,) = cli.ok("log", "--json").records
    assert (record["state"], record["exit_status"]) == ("success", 9)


def test_a_timeout_ends_the_command_and_is_mirrored_as_124(cli: Cli) -> None:
    ended = cli.exec("--timeout", "1.5", "--", "sh", "-c", "echo began; exec sleep 60")
    assert (ended.code, ended.stdout, ended.stderr) == (124, b"began\n", b"")
    (record,) = cli.ok("log", "--json").records
    assert (record["state"], record["timed_out"], record["signal"]) == (
        "success",
        True,
        signal.SIGTERM,
    )
    assert cli.ok("log").lines[1].split()[4] == "timeout"
    assert cli.ok("show", "--surface", "receipt").text.startswith("Process timed out after 1.5 s")


@pytest.mark.parametrize(
    ("timeout", "milliseconds"),
    [("90", 90_000), ("0.5", 500), ("5m", 300_000), ("1.5 H", 5_400_000)],
)
def test_a_timeout_is_a_duration_or_a_number_of_seconds(
    cli: Cli, timeout: str, milliseconds: int
) -> None:
    assert cli.exec("--timeout", timeout, "--grace=1m", "--", "true").code == 0
    arguments = cli.ok("show", "--surface", "input").text
    assert json.loads(arguments)["timeout_ms"] == milliseconds


def test_after_the_grace_a_stubborn_command_is_killed(cli: Cli) -> None:
    stubborn = "trap '' TERM; echo on; while :; do sleep 0.1; done"
    ended = cli.exec("--timeout", "2", "--grace", "200ms", "--", "sh", "-c", stubborn)
    assert ended.code == 124
    (record,) = cli.ok("log", "--json").records
    assert (record["timed_out"], record["signal"]) == (True, signal.SIGKILL)


def test_a_reader_that_goes_away_ends_the_command_quietly(cli: Cli) -> None:
    line = "set -o pipefail; $0 -m tooltrail.cli exec -- yes | head -1; echo ${PIPESTATUS[0]}"
    done = subprocess.run(
        ["bash", "-c", line, sys.executable],
        env=cli.full_environment,
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert (done.stdout, done.stderr) == (b"y\n141\n", b"")
    (record,) = cli.ok("log", "--json").records
    assert (record["state"], record["signal"]) == ("success", signal.SIGPIPE)


def test_closed_standard_descriptors_harm_neither_the_command_nor_the_record(cli: Cli) -> None:
    line = '"$0" -m tooltrail.cli exec -v -- sh -c "echo out; echo err >&2; exit 7" <&- >&- 2>&-'
    done = subprocess.run(
        ["sh", "-c", line, sys.executable], env=cli.full_environment, check=False, timeout=60
    )
    assert done.returncode == 7
    assert cli.ok("show", "--stream", "stdout").stdout == b"out\n"
    assert cli.ok("show", "--stream", "stderr").stdout == b"err\n"
    assert cli.ok("db", "check").message == "no problem found\n"


@pytest.mark.parametrize(("closing", "code"), [(">&-", 4), ("2>&-", 4), ("<&-", 0)])
def test_output_that_no_descriptor_takes_is_no_success_and_is_recorded(
    cli: Cli, closing: str, code: int
) -> None:
    script = "echo out; sleep 0.2; echo out; echo err >&2; sleep 0.2; echo err >&2"
    line = f'"$0" -m tooltrail.cli exec -- sh -c "{script}" {closing}'
    done = subprocess.run(
        ["sh", "-c", line, sys.executable],
        env=cli.full_environment,
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == code
    said = b"tooltrail: output could not be passed on: Bad file descriptor\n"
    printed = {">&-": b"err\nerr\n" + said, "2>&-": b"", "<&-": b"err\nerr\n"}
    assert done.stderr == printed[closing]
    assert cli.ok("show", "--stream", "stdout").stdout == b"out\nout\n"
    assert cli.ok("show", "--stream", "stderr").stdout == b"err\nerr\n"


def test_a_full_standard_output_is_said_and_everything_is_recorded(cli: Cli) -> None:
    with Path("/dev/full").open("wb") as full:
        ended = cli.exec("--", "sh", "-c", "echo out; exit 3", stdout=full)
        assert cli.exec("--", "echo", "out", stdout=full).code == 4  # is no success
        said_to_nobody = cli.exec("-v", "--", "sh", "-c", "echo out; exit 3", stderr=full)
    assert ended.code == 3
    assert ended.sentence == "output could not be passed on: No space left on device"
    assert (said_to_nobody.code, said_to_nobody.stdout) == (3, b"out\n")
    for record in cli.ok("log", "--json").records:
        assert cli.ok("show", record["id"], "--stream", "stdout").stdout == b"out\n"


@pytest.mark.parametrize(
    ("words", "code", "kind"),
    [
        (["--", "/no/such/command"], 127, "command_spawn_failed"),
        (["--", "/dev/null"], 126, "command_spawn_failed"),
        (["--cwd", "/no/such/folder", "--", "true"], 126, "workdir_not_found"),
    ],
)
def test_a_command_that_cannot_start_is_said_and_recorded(
    cli: Cli, words: list[str], code: int, kind: str
) -> None:
    ended = cli.exec(*words)
    assert (ended.code, ended.stdout) == (code, b"")
    assert repr(words[1]) in ended.sentence
    (record,) = cli.ok("log", "--json").records
    assert (record["state"], record["error_kind"], record["exit_status"]) == ("error", kind, None)
    assert kind in cli.ok("log").text
    shown = cli.ok("show").text
    assert f"outcome    error: {kind}" in shown
    assert ended.sentence in shown
    assert b'"argv"' in cli.ok("show", "--surface", "complete").stdout


def test_the_command_runs_in_the_folder_that_was_named(cli: Cli, tmp_path: Path) -> None:
    folder = os.path.realpath(tmp_path)
    assert cli.exec("--cwd", folder, "--", "pwd", "-P").stdout == os.fsencode(folder) + b"\n"
    (record,) = cli.ok("show", "--json").records
    assert record["complete_output"]["result"]["cwd"] == folder


def test_arguments_that_are_no_utf_8_reach_the_command_and_the_record(cli: Cli) -> None:
    ended = cli.exec("--", "printf", "%s", b"a\xff\xfeb")
    assert (ended.code, ended.stdout, ended.stderr) == (0, b"a\xff\xfeb", b"")
    assert b'"a\\\\udcff\\\\udcfeb"' in cli.ok("show", "--surface", "input").stdout
    assert "a\\udcff\\udcfeb" in cli.ok("log").text
    assert cli.exec("--", b"/no/\xff").code == 127
    assert "/no/\\udcff" in cli.ok("show", "--surface", "receipt").text


def test_what_follows_the_command_belongs_to_it(cli: Cli) -> None:
    assert cli.exec("printf", "%s.", "--tool", "-v", "--", "-h").stdout == b"--tool.-v.--.-h."
