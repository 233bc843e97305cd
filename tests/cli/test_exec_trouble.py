"""The database is away, the disk is full, exec is killed: what is recorded, and what is said."""

import os
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zstandard
from tests.support.cli import Cli, python, without_coverage
from tests.support.disks import SmallDisk, small_disk
from tests.support.waiting import until

from tooltrail.cli import _exec
from tooltrail.cli._process import ChildExit
from tooltrail.cli._recording import StreamCapture
from tooltrail.journal import Cursor, Frame, read_journal
from tooltrail.records.facts import CallEnded, CallStarted, Fact

MIB = 1024 * 1024
TOO_LONG = "x" * 300
PASSWORD = "s3cret-passw0rd"
AWAY = f"postgresql://bob:{PASSWORD}@127.0.0.1:1/records"
# Noise, so that compression does not make it fit.
NOISE_BYTES = 3_000_000
NOISE = (
    "import random, sys;"
    f" sys.stdout.buffer.write(random.Random(1).randbytes({NOISE_BYTES})); sys.exit(3)"
)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk", MIB) as mounted:
        yield mounted


def facts_in(spool: Path) -> list[Fact]:
    items = list(read_journal(spool / "journal", Cursor()))
    return [item.fact for item in items if isinstance(item, Frame)]


def plain(stored: Path) -> bytes:
    with stored.open("rb") as file:
        reader = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
        return reader.read()


def states(cli: Cli) -> list[str]:
    cli.ok("verify")
    return [row["state"] for row in cli.ok("log", "--json").records]


def file_limit(size: int) -> dict[str, Any]:
    """Options of a program that can write no file beyond a size."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    return {"preexec_fn": limit}


@pytest.mark.parametrize(
    ("line", "code", "stdout"),
    [
        ("exec -- echo out", 0, b"out\n"),
        ("mcp-proxy -- echo out", 0, b"out\n"),
        ("import missing.jsonl", 3, b""),
    ],
)
def test_a_recorder_says_that_the_driver_of_its_database_is_missing(
    tmp_path: Path, line: str, code: int, stdout: bytes
) -> None:
    without_driver = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from tooltrail.cli.__main__ import main; sys.exit(main())"
    )
    program = (sys.executable, "-c", without_driver)
    cli = Cli(AWAY, {"TOOLTRAIL_SPOOL": str(tmp_path / "spool")})
    ended = cli.program(*line.split(), program=program, cwd=tmp_path)
    assert (ended.code, ended.stdout) == (code, stdout)
    (said,) = [one for one in ended.stderr.decode().splitlines() if "psycopg" in one]
    assert said == (
        f"tooltrail: records will wait in {tmp_path / 'spool'} until psycopg is installed:"
        " pip install 'tooltrail[postgres]'"
    )


def test_a_database_that_is_away_is_not_noticed(tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    cli = Cli(AWAY, {"TOOLTRAIL_SPOOL": str(spool)})
    script = "echo out; echo err >&2; seq 20000; exit 4"
    ended = cli.exec("--session", "ab12", "--", "sh", "-c", script)
    assert (ended.code, ended.stderr) == (4, b"err\n")
    _, started, end = facts_in(spool)
    assert isinstance(started, CallStarted)
    assert isinstance(end, CallEnded)
    assert (end.id, end.session, end.exit_status) == (started.id, started.session, 4)
    assert plain(spool / str(end.streams[0].spooled)) == ended.stdout
    everything = b"".join(path.read_bytes() for path in spool.rglob("*") if path.is_file())
    assert PASSWORD.encode() not in everything


def test_the_spool_of_a_server_is_in_the_users_own_folder(own_state: Path) -> None:
    assert Cli(AWAY).exec("--", "true").code == 0
    (spool,) = (own_state / "tooltrail").iterdir()
    assert len(facts_in(spool)) == 4


@pytest.mark.parametrize("url", ["mysql://localhost/x", "sqlite://", ":memory:", "postgresql:/x"])
def test_a_database_that_cannot_be_is_refused_before_anything_runs(url: str) -> None:
    ended = Cli(url).exec("--", "echo", "ran")
    assert (ended.code, ended.stdout) == (2, b"")


def test_nothing_is_recorded_beside_a_file_that_is_no_database(nowhere: Cli) -> None:
    Path(nowhere.database).parent.mkdir()
    Path(nowhere.database).write_text("a page of text\n")
    ended = nowhere.exec("--", "echo", "ran")
    assert (ended.code, ended.stdout) == (5, b"")
    problem = f"{nowhere.database} is not an SQLite database, or its beginning is damaged"
    assert ended.sentence.startswith(f"{problem}; the command was not run")
    assert [one.name for one in Path(nowhere.database).parent.iterdir()] == ["trail.db"]


def test_the_first_command_begins_a_store_and_says_so_once(nowhere: Cli) -> None:
    first, second = (nowhere.exec("--", "echo", "hi") for _ in range(2))
    assert first.sentence == f"recording into a new store at {nowhere.database}"
    assert (first.stdout, second.stdout, second.stderr) == (b"hi\n", b"hi\n", b"")
    assert not Path(nowhere.database).exists()
    assert states(nowhere) == ["success", "success"]
    assert Path(nowhere.database).exists()


def test_a_new_store_remembers_the_artifact_root_of_the_first_exec(
    nowhere: Cli, tmp_path: Path
) -> None:
    root = str(tmp_path / "root")
    assert nowhere.exec("--artifacts", root, "--", "seq", "100000").code == 0
    (status,) = nowhere.ok("status", "--json").records
    assert status["artifact_root"] == f"file://{root}"
    (artifact,) = nowhere.ok("artifact", "ls", "--json").records
    assert Path(root, artifact["path"]).is_file()


def test_the_first_exec_says_that_the_artifact_root_cannot_be_used(
    nowhere: Cli, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    ended = nowhere.exec("--artifacts", str(tmp_path / "file" / "root"), "--", "true")
    assert ended.code == 0
    assert "no store was created: " in ended.message
    assert not Path(nowhere.database).exists()


def test_where_the_start_cannot_be_recorded_nothing_is_run(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ended = cli.exec("--spool", str(tmp_path / "file" / "spool"), "--", "echo", "ran")
    assert (ended.code, ended.stdout) == (5, b"")
    assert re.fullmatch(
        r"spool .*/file/spool cannot be created or written: Not a directory; the command was not"
        r" run: solve this problem, or name another --db or --spool",
        ended.sentence,
    )
    assert states(cli) == []


@pytest.mark.parametrize("option", ["--db", "--spool", "XDG_DATA_HOME"])
def test_a_spool_that_cannot_be_reached_keeps_the_command_from_running(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    monkeypatch.chdir(cli.folder)
    if option == "XDG_DATA_HOME":
        cli = Cli("", {option: str(cli.folder / TOO_LONG)})
        ended = cli.exec("--", "echo", "ran")
    else:
        ended = cli.exec(option, TOO_LONG, "--", "echo", "ran")
    assert (ended.code, ended.stdout) == (5, b"")
    assert " cannot be created or written: File name too long; " in ended.sentence


def test_a_database_that_cannot_be_reached_hinders_no_record(cli: Cli, tmp_path: Path) -> None:
    spool = tmp_path / "other"
    ended = cli.exec("--db", str(tmp_path / TOO_LONG), "--spool", str(spool), "--", "echo", "ran")
    assert (ended.code, ended.stdout, ended.stderr) == (0, b"ran\n", b"")
    assert len(facts_in(spool)) == 4


@pytest.mark.parametrize("odd", ["pipe", "loop", "/dev/null"])
def test_nothing_is_recorded_beside_what_can_be_no_database(
    cli: Cli, tmp_path: Path, odd: str
) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    path = tmp_path / odd
    for _ in range(2):
        ended = cli.exec("--db", str(path), "--", "echo", "ran")
        assert (ended.code, ended.stdout) == (2, b"")
        assert ended.sentence == f"{path} is not a regular file; a database is one"
    assert not Path(f"{path}-spool").exists()


def test_a_disk_that_is_full_at_the_start_keeps_the_command_from_running(
    cli: Cli, disk: SmallDisk
) -> None:
    disk.fill()
    ended = cli.exec("--spool", str(disk.folder / "spool"), "--", "echo", "ran")
    assert (ended.code, ended.stdout) == (5, b"")
    assert "No space left on device" in ended.sentence


def test_a_disk_that_is_full_at_the_end_has_room_for_a_short_record(
    cli: Cli, disk: SmallDisk
) -> None:
    cli.environment["TOOLTRAIL_SPOOL"] = str(disk.folder / "spool")
    fill = f"cat /dev/zero > {disk.folder}/filler 2>/dev/null; echo small; exit 3"
    ended = cli.exec("--", "sh", "-c", fill)
    assert (ended.code, ended.stdout, ended.message) == (3, b"small\n", "")
    disk.free()
    assert cli.ok("show", "--stream", "stdout").stdout == b"small\n"
    assert states(cli) == ["success"]


def test_an_end_that_cannot_be_recorded_is_said_and_the_call_is_recovered(cli: Cli) -> None:
    fill = python("import os; os.write(1, b'x' * 16_000); os.write(2, b'y' * 16_000); os._exit(3)")
    cli.exec("--", *fill)
    # The next end does not fit into the journal's first 64 KiB.
    quiet = without_coverage(cli.full_environment)
    ended = cli.exec("--", *fill, env=quiet, **file_limit(64 << 10))
    assert (ended.code, ended.stdout) == (3, b"x" * 16_000)
    said = ended.message.removeprefix("y" * 16_000)
    assert re.fullmatch(
        r"tooltrail: journal \S+ cannot be written: File too large; the end of invocation \S+ is"
        r" not recorded: the next reader ends the call as interrupted, with the output in \S+\n",
        said,
    )
    assert states(cli) == ["interrupted", "success"]
    for name, byte in (("stdout", b"x"), ("stderr", b"y")):
        assert cli.ok("show", "--stream", name).stdout == byte * 16_000


def test_output_that_fits_neither_into_the_journal_nor_into_the_spool_is_counted(
    cli: Cli, disk: SmallDisk
) -> None:
    cli.environment["TOOLTRAIL_SPOOL"] = str(disk.folder / "spool")
    print_much = "head -c 16000 /dev/zero; head -c 16000 /dev/zero >&2"
    assert cli.exec("--", "sh", "-c", print_much).code == 0
    fill = f"cat /dev/zero > {disk.folder}/filler 2>/dev/null; {print_much}; exit 3"
    ended = cli.exec("--", "sh", "-c", fill)
    assert (ended.code, ended.stdout) == (3, b"\0" * 16_000)
    for name in ("stdout", "stderr"):
        assert f"tooltrail: {name}: 16,000 bytes not kept: " in ended.message
    disk.free()
    assert states(cli) == ["interrupted", "success"]


def test_a_spool_that_fills_during_capture_shortens_the_record_and_says_so(
    cli: Cli, disk: SmallDisk
) -> None:
    cli.environment["TOOLTRAIL_SPOOL"] = str(disk.folder / "spool")
    ended = cli.exec("--", *python(NOISE))
    assert (ended.code, len(ended.stdout)) == (3, NOISE_BYTES)
    said = re.fullmatch(
        r"stdout: ([\d,]+) bytes not kept: low disk space: of [\d,]+ free bytes [\d,]+ are held"
        r" back, up to [\d,]+ needed to store the next part",
        ended.sentence,
    )
    assert said, ended.sentence
    shown = cli.run("show", "--stream", "stdout")
    assert shown.code == 4
    assert ended.stdout.startswith(shown.stdout)
    assert len(shown.stdout) + int(said[1].replace(",", "")) == NOISE_BYTES
    assert states(cli) == ["success"]


def test_a_limit_on_the_size_of_files_is_like_a_full_disk(cli: Cli) -> None:
    quiet = without_coverage(cli.full_environment)
    ended = cli.exec("--", *python(NOISE), env=quiet, **file_limit(512 * 1024))
    assert (ended.code, len(ended.stdout)) == (3, NOISE_BYTES)
    assert "bytes not kept: spool cannot be written: File too large" in ended.sentence
    assert cli.run("show", "--stream", "stdout").code == 4
    assert states(cli) == ["success"]


def test_a_command_that_outlives_its_killed_exec_is_running_until_it_ends(cli: Cli) -> None:
    code = "import os; os.write(1, b'so far\\n'); os.read(0, 1)"
    process = cli.start(
        *("exec", "--", *python(code)),
        stdin=subprocess.PIPE,
        env=without_coverage(cli.full_environment),
    )
    assert process.stdout
    assert process.stdin
    with process:
        assert process.stdout.read(7) == b"so far\n"
        until(lambda: any(one.stat().st_size for one in cli.spool.glob("*/stdout.zst")))
        process.send_signal(signal.SIGKILL)
        process.wait(60)
        assert state_of_last(cli) == "started"
        process.stdin.write(b".")
        process.stdin.flush()
        until(lambda: state_of_last(cli) != "started")
    assert states(cli) == ["interrupted"]
    assert cli.ok("show", "--stream", "stdout").stdout == b"so far\n"
    assert "last second may be missing" in cli.ok("show", "--surface", "receipt").text


def state_of_last(cli: Cli) -> str:
    return str(cli.ok("log", "--json").records[0]["state"])


def test_the_descriptor_of_the_owner_lock_is_none_that_scripts_use(cli: Cli) -> None:
    numbers = "import os; print(*(n for n in range(10) if os.path.exists(f'/dev/fd/{n}')))"
    assert cli.exec("--", *python(numbers)).stdout == b"0 1 2\n"


def test_many_waiting_facts_are_ingested_after_the_command(cli: Cli) -> None:
    counts = [waiting_after_an_exec(cli) for _ in range(24)]
    # 64 frames are 16 commands.
    assert 0 < max(counts) < 24
    assert min(counts[12:]) < 12


def waiting_after_an_exec(cli: Cli) -> int:
    assert cli.exec("--", "true").code == 0
    with cli.open() as store, store.database.read() as connection:
        ((stored,),) = connection.query("SELECT count(*) FROM ledger_entries")
    return (len(facts_in(cli.spool)) - int(stored)) // 4


@pytest.mark.parametrize("how", ["flag", "variable"])
def test_an_acknowledgement_without_a_sync_is_recorded_as_well(cli: Cli, how: str) -> None:
    flags = ["--acknowledge", "process"] if how == "flag" else []
    if how == "variable":
        cli.environment["TOOLTRAIL_ACKNOWLEDGE"] = "process"
    assert cli.exec(*flags, "--", "seq", "9000").code == 0
    assert states(cli) == ["success"]
    assert len(cli.ok("show", "--stream", "stdout").lines) == 9000


def test_a_recording_that_stopped_early_is_said(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object) -> None:
        raise ValueError("the capture is broken")

    monkeypatch.setattr(StreamCapture, "write", refuse)
    monkeypatch.setenv("TOOLTRAIL_DB", cli.database)
    assert _exec.main(["--", "sh", "-c", "echo hi; sleep 0.1; echo on; exit 3"]) == 3
    said = "tooltrail: recording stopped early: the capture is broken\n"
    assert tuple(capfd.readouterr()) == ("hi\non\n", said)


def test_an_end_that_somebody_else_saw_is_recorded_as_unknown(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reaped_by_others(*_: object, **__: object) -> ChildExit:
        return ChildExit(None, None, timed_out=False, duration_ms=1)

    monkeypatch.setattr(_exec, "run_child", reaped_by_others)
    monkeypatch.setenv("TOOLTRAIL_DB", cli.database)
    assert _exec.main(["--", "true"]) == 255
    (row,) = cli.ok("log", "--json").records
    assert (row["exit_status"], row["signal"]) == (None, None)
    assert "its exit status is not known" in cli.ok("show", "--surface", "receipt").text
