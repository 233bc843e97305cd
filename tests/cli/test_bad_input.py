"""Bad input: one sentence, the documented exit code, no traceback, and nothing is lost."""

import fcntl
import os
import random
import resource
import shutil
import signal
import stat
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from tests.support.altering import alter
from tests.support.cli import HANG_S, Cli, Ended
from tests.support.effort import times
from tests.support.evidence import check_evidence
from tests.support.recording import run_command
from tests.support.waiting import until

from tooltrail.artifacts import FrameIndex, encode
from tooltrail.migrations import HEAD_REVISION
from tooltrail.records import InvalidRecordError
from tooltrail.store import open_store
from tooltrail.store.engines.sqlite_library import sqlite3

READING = (
    *("log", "log --json", "status", "show", "transcript", "session ls", "artifact ls"),
    *("artifact verify", "artifact cat abcdef", "db check", "verify", "show --rerender"),
    "transcript --compact 1000",
)
ALL = (*READING, "session close @last", "db current", "db upgrade")
RECORDING = ("session open", "import .", "mcp-proxy -- true", "hook install claude-code")
BIG = b"".join(b"%d a line of the big output\n" % n for n in range(120_000))


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a store with an open session, one short and one long output."""
    folder = tmp_path_factory.mktemp("template")
    with open_store(folder / "trail.db", artifacts=str(folder / "artifacts")) as store:
        session = store.open_session(title="recorded")
        run_command(session, b"short\n", b"said\n")
        run_command(session, BIG)
    return folder


@pytest.fixture
def recorded(template: Path, tmp_path: Path) -> Cli:
    """The command line of a copy of this store."""
    return Cli(str(shutil.copytree(template, tmp_path / "store") / "trail.db"))


def refused(cli: Cli, command: str, code: int) -> str:
    """Run a command that must fail, and give its sentence."""
    ended = cli.run(*command.split())
    assert (ended.code, ended.stdout) == (code, b""), ended.message
    return ended.sentence


# No store, another store


def test_without_a_store_every_command_says_how_to_create_one(nowhere: Cli) -> None:
    for command in ALL:
        assert refused(nowhere, command, 5) == (
            f"no store at {nowhere.database};"
            " record something first, or create one with `tooltrail init`"
        )
    assert not nowhere.folder.exists()


@pytest.mark.parametrize(
    ("command", "reading"),
    [("exec -- echo ran", "show"), ("session open --title ran", "session ls")],
)
def test_recording_needs_no_store_and_the_first_reading_command_creates_one(
    nowhere: Cli, command: str, reading: str
) -> None:
    recorded = nowhere.program(*command.split())
    assert recorded.code == 0
    assert "ran" in nowhere.ok(*reading.split()).text
    assert nowhere.ok("verify").text == ""


def test_recording_goes_on_beside_a_damaged_database(recorded: Cli) -> None:
    whole = Path(recorded.database).read_bytes()
    Path(recorded.database).write_bytes(b"no database" * 500)
    ended = recorded.exec("--", "echo", "ran")
    assert (ended.code, ended.stdout, ended.stderr) == (0, b"ran\n", b"")
    assert " is not an SQLite database" in refused(recorded, "log", 1)
    Path(recorded.database).write_bytes(whole)
    assert recorded.ok("show", "--surface", "complete").stdout == b"ran\n"


def test_a_store_of_another_revision_is_refused_and_left_as_it_is(recorded: Cli) -> None:
    with sqlite3.connect(recorded.database) as connection:
        connection.execute("UPDATE tooltrail_version SET version_num = '9999'")
    connection.close()
    for command in (*READING, "session close @last", "db upgrade"):
        sentence = refused(recorded, command, 5)
        assert "is at revision 9999" in sentence
        assert sentence.endswith("; use the program that wrote it")
    ended = recorded.run("db", "current")
    assert (ended.code, ended.stdout) == (5, b"9999\n")
    assert ended.message == f"this program needs revision {HEAD_REVISION}\n"


def test_the_database_of_another_application_is_refused_and_left_as_it_is(nowhere: Cli) -> None:
    nowhere.folder.mkdir()
    with sqlite3.connect(nowhere.database) as other:
        other.execute("CREATE TABLE bookmarks (id)")
    other.close()
    before = Path(nowhere.database).read_bytes()
    sentence = f"no store in {nowhere.database}: another application uses the file"
    ended = nowhere.exec("--", "echo", "ran")
    assert (ended.code, ended.stdout, ended.sentence) == (2, b"", sentence)
    for command in ("init", *RECORDING):
        assert refused(nowhere, command, 2) == sentence
    with pytest.raises(InvalidRecordError, match="another application uses the file"):
        open_store(nowhere.database)
    for command in ("status", "db check", "db upgrade"):
        assert refused(nowhere, command, 5) == sentence
    assert [one.name for one in nowhere.folder.iterdir()] == ["trail.db"]
    # Facts may wait for a store that was replaced. The refusal is the same.
    (nowhere.folder / "trail.db-spool" / "journal").mkdir(parents=True)
    assert refused(nowhere, "log", 2) == sentence
    assert Path(nowhere.database).read_bytes() == before
    assert not (nowhere.folder / "trail.db-artifacts").exists()


def test_an_init_that_was_killed_keeps_nothing_from_recording(nowhere: Cli) -> None:
    nowhere.folder.mkdir()
    with sqlite3.connect(nowhere.database) as empty:
        empty.execute("PRAGMA journal_mode = WAL")
    empty.close()
    assert nowhere.exec("--", "echo", "ran").code == 0
    assert nowhere.ok("show", "--surface", "complete").stdout == b"ran\n"


def test_a_database_that_cannot_be_is_wrong_usage(nowhere: Cli) -> None:
    for url in ("mysql://u:pw@h/x", "sqlite://", "postgresql://u:pw@h:port/x", "a\0b"):
        ended = nowhere.run("log", "--db", url)
        assert ended.code == 2
        assert "pw" not in ended.sentence


@pytest.mark.parametrize("odd", ["pipe", "/dev/zero"])
def test_an_odd_file_gives_one_sentence_at_once(cli: Cli, odd: str) -> None:
    os.mkfifo(cli.folder / "pipe")
    path = str(cli.folder / odd)
    sentence = "not a regular file"
    assert cli.exec("--policy", path, "--", "true").usage_error.endswith(sentence)
    assert sentence in cli.run("log", "--db", path).sentence
    cli.environment["TOOLTRAIL_REDACTION"] = path
    assert cli.exec("--", "true").sentence.endswith(sentence)


# Damaged databases


@pytest.mark.parametrize("beginning", [b"", b"SQLite format 3\0"])
def test_a_file_that_is_no_database_is_damage_and_left_as_it_is(
    nowhere: Cli, beginning: bytes
) -> None:
    nowhere.folder.mkdir()
    garbage = beginning + random.Random(4).randbytes(20_000)
    Path(nowhere.database).write_bytes(garbage)
    damage = f"{nowhere.database} is not an SQLite database, or its beginning is damaged"
    for command in (*ALL, *RECORDING, "init", "gc", "repair"):
        if command == "db check":
            # To this one the damage is not what keeps it from answering, but the answer.
            assert nowhere.run("db", "check").text.startswith(damage)
        else:
            assert refused(nowhere, command, 1).startswith(damage)
    assert Path(nowhere.database).read_bytes() == garbage


def test_an_empty_file_is_no_store(nowhere: Cli) -> None:
    nowhere.folder.mkdir()
    Path(nowhere.database).touch()
    for command in ALL:
        assert refused(nowhere, command, 5).startswith("no store in ")
    assert nowhere.run("init").code == 0
    assert nowhere.run("db", "check").code == 0


def test_a_cut_database_is_damage_whatever_is_missing(recorded: Cli) -> None:
    whole = Path(recorded.database).read_bytes()
    page = 4096
    for length in (page // 2, page, len(whole) // 3, len(whole) // 2 + 7, len(whole) - page):
        Path(recorded.database).write_bytes(whole[:length])
        for command in ("log", "show", "status"):
            assert " is damaged: " in refused(recorded, command, 1)
        checked = recorded.run("db", "check")
        assert (checked.code, checked.message) == (1, "1 problem found\n")
        assert b" is damaged: " in checked.stdout
        assert Path(recorded.database).read_bytes() == whole[:length]


NAMING = ("artifact verify", "verify", "status")
"""Commands that name each damaged thing on a line of its own."""


def test_no_damaged_page_makes_any_command_fail_without_a_sentence(recorded: Cli) -> None:
    whole = Path(recorded.database).read_bytes()
    page = 4096
    noise = random.Random(9)
    first, step = (0, 1) if times(1) > 1 else (random.randrange(4), 4)
    for start in range(first * page, len(whole), step * page):
        damaged = whole[:start] + noise.randbytes(page) + whole[start + page :]
        Path(recorded.database).write_bytes(damaged)
        found = recorded.run("db", "check")
        assert found.code == 1, f"page {start // page}: {found.message}"
        for command in READING:
            ended = recorded.run(*command.split())
            if ended.code not in (0, 3):
                # Facts that cannot be ingested cannot be compared either, and `status` goes on.
                codes = (1, 4) if command in ("verify", "status") else (1,)
                assert ended.code in codes, f"page {start // page}: {ended.message}"
                assert ended.message.count("\n") == 1 or command in NAMING
        assert Path(recorded.database).read_bytes() == damaged
    Path(recorded.database).write_bytes(whole)
    with recorded.open() as store:
        check_evidence(store)


# Names


def test_an_unknown_name_is_not_found(recorded: Cli) -> None:
    for command in (
        "show feedbeef",
        "show nonsense",
        "show ab",
        "show @last:Nothing",
        "show @last#99",
        "show @last#x",
        "transcript feedbeef",
        "session close feedbeef",
        "session open --parent feedbeef",
        "log --session feedbeef",
        "artifact ls --invocation feedbeef",
        "artifact ls --session feedbeef",
        "artifact cat feedbeef",
        "artifact verify feedbeef",
    ):
        sentence = refused(recorded, command, 3)
        assert command.split()[-1] in sentence or "no invocation" in sentence


@pytest.mark.parametrize(
    "command",
    ["log", "log --sort size", "session ls", "artifact ls", "retries", "stats", "search e*"],
)
def test_a_number_beyond_every_store_means_all(recorded: Cli, command: str) -> None:
    words = command.split()
    assert (
        recorded.ok(*words, "-n", "9" * 30, "--json").text
        == recorded.ok(*words, "-n", "0", "--json").text
    )


def test_an_ambiguous_name_lists_what_it_fits(recorded: Cli) -> None:
    recorded.ok("session", "open")
    calls, sessions = (
        [row["id"] for row in recorded.ok(*words, "--json").records]
        for words in (["log"], ["session", "ls"])
    )
    shared = calls[0][:4]  # of the time, which has these digits for 49 days
    sentence = refused(recorded, f"show {shared}", 2)
    assert sentence == f"{shared!r} is ambiguous: it fits {', '.join(calls)}"
    sentence = refused(recorded, f"transcript {shared}", 2)
    assert len(sessions) > 1
    assert all(name in sentence for name in sessions)


def test_an_ambiguous_beginning_of_a_digest_lists_what_it_fits(cli: Cli) -> None:
    with cli.open() as store, store.open_session() as session:
        run_command(session, b"x" * 40_000)
        (artifact,) = store.reader.artifacts()
        one = artifact.digest.removeprefix("sha256:")
        twin = one[:10] + "f" * 54
        alter(
            store,
            f"INSERT INTO artifacts (digest, size, stored_size, line_count, created_at)"
            f" SELECT x'{twin}', size, stored_size, line_count, created_at FROM artifacts",
        )
    for spelled in ("", "sha256:"):
        sentence = refused(cli, f"artifact stat {spelled}{one[:10]}", 2)
        assert sentence.startswith(f"'{spelled}{one[:10]}' is ambiguous: it fits sha256/")
        assert cli.run("artifact", "stat", spelled + one[:20]).code == 0


@pytest.mark.parametrize("verb", ["cat", "head", "tail", "stat", "verify"])
def test_a_path_that_leaves_the_artifacts_is_refused(recorded: Cli, verb: str) -> None:
    for path in (
        *("../../etc/passwd", "..", "/etc/passwd", "sha256/../../x", "a//b", "a\\b", "x/y.part"),
        *("", "sha256/ab/nonsense.zst", "sha256:zzzz", "notes.txt"),
    ):
        ended = recorded.run("artifact", verb, path)
        # What is no path may be a call.
        is_path = "/" in path or ":" in path or verb in ("stat", "verify")
        assert (ended.code, ended.stdout) == (2 if is_path else 3, b""), path
        assert ended.sentence


# Damaged artifacts

READS_ALL = (
    *("artifact cat {path}", "artifact tail {path}", "artifact verify {path}", "artifact verify"),
    *("show --surface complete", "show --stream stdout"),
)


def big_artifact(cli: Cli) -> tuple[str, Path]:
    (artifact,) = cli.ok("artifact", "ls", "--json").records
    stored = cli.folder / "artifacts" / artifact["path"]
    stored.chmod(stat.S_IMODE(stored.stat().st_mode) | stat.S_IWUSR)
    return artifact["path"], stored


def damage_of(ended: Ended) -> str:
    """What a command says of a damaged artifact; `verify` counts besides."""
    is_verdict = ended.stderr.endswith((b": 1 damaged\n", b": 1 missing\n"))
    return (ended.text if is_verdict else ended.sentence).strip()


@pytest.mark.parametrize("kind", ["cut in a frame", "cut between frames", "altered", "exchanged"])
def test_a_damaged_artifact_is_damage_and_named(recorded: Cli, kind: str) -> None:
    path, stored = big_artifact(recorded)
    data = stored.read_bytes()
    stored.write_bytes(
        {
            "cut in a frame": data[: FrameIndex.from_bytes(data).frames_size - 10],
            "cut between frames": data[: data.rindex(b"\x28\xb5\x2f\xfd")],
            "altered": data[:-1000] + bytes([data[-1000] ^ 1]) + data[-999:],
            "exchanged": encode(b"something else\n"),
        }[kind]
    )
    for command in READS_ALL:
        ended = recorded.run(*command.format(path=path).split())
        assert ended.code == 1, command
        assert path in damage_of(ended)
    if kind == "exchanged":
        for name in (path, "@last"):
            ended = recorded.run("head", name)
            assert (ended.code, ended.stdout) == (1, b"")
    shown = recorded.run("show", "--stream", "stdout")
    assert BIG.startswith(shown.stdout)


def test_no_byte_of_an_object_with_another_digest_is_printed(recorded: Cli) -> None:
    path, stored = big_artifact(recorded)
    stored.write_bytes(encode(b"something else\n" * 200_000))  # several blocks of output
    printing = ("cat", "artifact cat", "show --stream stdout", "show --surface complete")
    for command in printing:
        names = (path, "@last") if command.endswith("cat") else ("@last",)
        for name in names:
            ended = recorded.run(*command.split(), name)
            assert (ended.code, ended.stdout) == (1, b""), (command, name)
            assert path in ended.sentence


def test_an_altered_beginning_is_found_by_what_prints_only_the_beginning(recorded: Cli) -> None:
    path, stored = big_artifact(recorded)
    data = stored.read_bytes()
    stored.write_bytes(data[:100] + bytes([data[100] ^ 1]) + data[101:])
    ended = recorded.run("artifact", "head", path)
    assert (ended.code, path in ended.sentence) == (1, True)
    assert recorded.ok("show").lines  # prints no byte of it


def test_a_cut_index_is_damage_and_the_whole_can_still_be_read(recorded: Cli) -> None:
    path, stored = big_artifact(recorded)
    data = stored.read_bytes()
    stored.write_bytes(data[:-10])
    for verb in ("verify", "head", "tail"):
        ended = recorded.run("artifact", verb, path)
        assert ended.code == 1
        assert path in damage_of(ended)
    assert recorded.ok("artifact", "cat", path).stdout == BIG


def test_verify_names_exactly_what_is_damaged_and_what_is_missing(cli: Cli) -> None:
    with cli.open() as store, store.open_session() as session:
        for n in range(5):
            run_command(session, b"%d\n" % n * 20_000)
    paths = [row["path"] for row in cli.ok("artifact", "ls", "--json").records]
    cut, gone = paths[1], paths[3]
    stored = cli.folder / "artifacts" / cut
    stored.chmod(0o600)
    stored.write_bytes(stored.read_bytes()[:-1])
    (cli.folder / "artifacts" / gone).unlink()
    ended = cli.run("artifact", "verify")
    assert ended.code == 1
    assert [line.split()[:2] for line in ended.lines] == [
        ["damaged", f"{cut}:"],
        ["missing", f"{gone}:"],
    ]
    assert ended.message == "5 artifacts, 200 kB: 1 damaged, 1 missing\n"
    found = cli.run("artifact", "verify", "--json").records
    assert [row["state"] for row in found] == ["ok", "damaged", "ok", "missing", "ok"]
    assert [bool(row["reason"]) for row in found] == [False, True, False, True, False]
    assert cli.run("artifact", "verify", gone).code == 4
    assert cli.run("artifact", "verify", paths[0], paths[2]).code == 0


# Our own output


@pytest.mark.parametrize(
    "command", ["log --json", "log", "show --stream stdout", "transcript", "artifact cat {path}"]
)
def test_a_closed_pipe_ends_a_reading_command_quietly(recorded: Cli, command: str) -> None:
    path, _ = big_artifact(recorded)
    process = recorded.start(*command.format(path=path).split())
    assert process.stdout
    process.stdout.close()
    assert process.stderr
    with process:
        assert process.stderr.read() == b""
    assert process.returncode == 141


def test_without_a_buffer_a_short_write_is_continued_or_said(recorded: Cli) -> None:
    recorded.environment["PYTHONUNBUFFERED"] = "1"
    with recorded.start("cat", "@last") as process:
        until(lambda: is_pipe_full(process))
        process.send_signal(signal.SIGSTOP)
        process.send_signal(signal.SIGCONT)
        printed, said = process.communicate(timeout=HANG_S)
    assert (process.returncode, len(printed), said) == (0, len(BIG), b"")
    with (recorded.folder / "printed").open("wb") as file:
        ended = recorded.program("cat", "@last", stdout=file, preexec_fn=limit_files)
    assert ended.code == 5
    assert ended.sentence.endswith("output cannot be written: File too large")


def is_pipe_full(process: subprocess.Popen[bytes]) -> bool:
    """Whether a program waits until somebody reads its output."""
    assert process.stdout
    waiting = fcntl.ioctl(process.stdout, termios.FIONREAD, bytes(4))
    size = fcntl.fcntl(process.stdout, fcntl.F_GETPIPE_SZ)
    return int.from_bytes(waiting, sys.byteorder) == size


def limit_files() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, resource.RLIM_INFINITY))


@pytest.mark.parametrize("command", ["log", "show --surface receipt", "artifact cat {path}"])
def test_a_full_standard_output_is_said(recorded: Cli, command: str) -> None:
    path, _ = big_artifact(recorded)
    with Path("/dev/full").open("wb") as full:
        ended = recorded.program(*command.format(path=path).split(), stdout=full)
    assert ended.code == 5
    assert ended.sentence.endswith("output cannot be written: No space left on device")


@pytest.mark.parametrize("command", ["log", "show --surface receipt", "--version", "log --help"])
def test_a_closed_standard_output_is_said(recorded: Cli, command: str) -> None:
    line = f'"$0" -m tooltrail.cli {command} >&-'
    done = subprocess.run(
        ["sh", "-c", line, sys.executable],
        env=recorded.full_environment,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 5
    (said,) = done.stderr.decode().splitlines()
    assert said.startswith("tooltrail: ")
    assert said.endswith("Bad file descriptor")


def test_help_on_a_full_standard_output_is_said(nowhere: Cli) -> None:
    with Path("/dev/full").open("wb") as full:
        ended = nowhere.program("--help", stdout=full)
    assert (ended.code, ended.sentence) == (5, "No space left on device")


def test_messages_that_nobody_reads_change_no_exit_code(recorded: Cli) -> None:
    with Path("/dev/full").open("wb") as full:
        assert recorded.program("show", "feedbeef", stderr=full).code == 3
        assert recorded.program("log", "--nonsense", stderr=full).code == 2
    line = f'"$0" -m tooltrail.cli artifact cat {big_artifact(recorded)[0][7:17]} >&- 2>&-'
    done = subprocess.run(
        ["sh", "-c", line, sys.executable], env=recorded.full_environment, check=False
    )
    assert done.returncode == 2


@pytest.mark.parametrize("command", ["log", "session ls", "artifact ls"])
def test_a_number_that_no_database_has_is_all_entries(cli: Cli, command: str) -> None:
    with cli.open() as store:
        run_command(store.open_session(), b"x" * 60_000)
    few = cli.ok(*command.split(), "-n", "0", "--json").records
    assert len(few) == 1
    assert cli.ok(*command.split(), "-n", "9" * 30, "--json").records == few
