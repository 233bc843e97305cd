"""The store is away, the disk is full: the command runs all the same, and nothing is said falsely.

In every case the command's status is mirrored, its output reaches its reader completely, and one
sentence says what became of the record.
"""

import json
import re
import resource
import shlex
import stat
import subprocess
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import zstandard
from tests.support.cli import Cli, python, without_coverage
from tests.support.disks import SmallDisk, small_disk
from tests.support.evidence import check_evidence
from tests.support.postgres import closed_database
from tests.support.spools import left_in, names_in
from tests.support.template_stores import make_store

from tooltrail.artifacts import Capture
from tooltrail.cli import _recording
from tooltrail.cli._process import ChildExit
from tooltrail.records import CommandOutput, digest_of
from tooltrail.store import new_id, open_store
from tooltrail.store._engines.sqlite import sqlite3

MIB = 1024 * 1024
DISK_BYTES = MIB
WAITS = "the record waits in the outbox; `tooltrail repair` stores it"
PASSWORD = "s3cret-passw0rd"
AWAY = f"postgresql://bob:{PASSWORD}@127.0.0.1:1/records"
# Noise, so that compression does not make it fit.
NOISE_BYTES = 3_000_000
WRITE_NOISE = (
    f"import random, sys; sys.stdout.buffer.write(random.Random(1).randbytes({NOISE_BYTES}))"
)
NOISE = f"{WRITE_NOISE}; sys.exit(3)"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk", DISK_BYTES) as mounted:
        yield mounted


@pytest.fixture
def on_disk(disk: SmallDisk) -> Cli:
    """The command line of a store on the small disk."""
    make_store(disk.folder / "trail.db").close()
    return Cli(str(disk.folder / "trail.db"))


def plain(stored: Path) -> bytes:
    with stored.open("rb") as file:
        reader = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
        return reader.read()


def aside_of(spool: Path) -> tuple[Path, dict[str, Any]]:
    (folder,) = (spool / name for name in names_in(spool))
    assert re.fullmatch(r"aside-[0-9a-f-]{36}", folder.name)
    record: dict[str, Any] = json.loads((folder / "record.json").read_bytes())
    assert folder.name == f"aside-{record['id']}"
    return folder, record


def kept_in(folder: Path) -> str:
    """What is said of a record that was set aside whole."""
    return f"tooltrail: the record is kept in {folder}; `tooltrail repair` stores it"


def states(cli: Cli) -> list[str]:
    with cli.open() as store:
        check_evidence(store)
    return [row["state"] for row in cli.ok("log", "--json").records]


def test_while_postgresql_is_away_the_record_is_set_aside_whole(tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    cli = Cli(AWAY, {"TOOLTRAIL_SPOOL": str(spool)})
    ended = cli.exec(
        "--session", "ab12", "--", "sh", "-c", "echo out; echo err >&2; seq 200000; exit 4"
    )
    assert (ended.code, len(ended.stdout)) == (
        4,
        4 + sum(len(str(n)) + 1 for n in range(1, 200_001)),
    )
    folder, record = aside_of(spool)
    away, err, kept = ended.message.splitlines()
    assert away.startswith("tooltrail: database postgresql://127.0.0.1:1/records: ")
    assert err == "err"
    assert kept == kept_in(folder)
    result = record["complete_output"]["result"]
    for role in ("stdout", "stderr", "order"):
        data = plain(folder / f"{role}.zst")
        assert (digest_of(data), len(data)) == (result[role]["digest"], result[role]["size"])
    assert plain(folder / "stdout.zst") == ended.stdout
    assert (result["exit_status"], record["session"]) == (4, "ab12")
    assert json.loads(record["call"]["arguments_raw"])["argv"][0] == "sh"
    assert record["started_at"] < record["finished_at"]
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    everything = ended.stderr + ended.stdout + b"".join(p.read_bytes() for p in folder.iterdir())
    assert PASSWORD.encode() not in everything


def test_what_cannot_start_while_the_store_is_away_is_set_aside_too(tmp_path: Path) -> None:
    cli = Cli(AWAY, {"TOOLTRAIL_SPOOL": str(tmp_path / "spool")})
    ended = cli.exec("--", "/no/such/command")
    assert ended.code == 127
    folder, record = aside_of(tmp_path / "spool")
    assert [path.name for path in folder.iterdir()] == ["record.json"]
    assert record["complete_output"]["error"]["kind"] == "command_spawn_failed"
    assert record["session"] is None


def test_where_its_spool_cannot_be_written_the_record_goes_to_the_users_own(
    tmp_path: Path, own_state: Path
) -> None:
    (tmp_path / "file").write_text("")
    cli = Cli(AWAY, {"TOOLTRAIL_SPOOL": str(tmp_path / "file" / "spool")})
    ended = cli.exec("--", "sh", "-c", "echo out; exit 4")
    assert (ended.code, ended.stdout) == (4, b"out\n")
    folder, record = aside_of(own_state / "tooltrail" / "spool")
    assert ended.message.splitlines()[1] == kept_in(folder)
    assert record["complete_output"]["result"]["exit_status"] == 4


def test_without_any_spool_that_can_be_written_it_says_that_nothing_was_recorded(
    tmp_path: Path,
) -> None:
    (tmp_path / "file").write_text("")
    spool = tmp_path / "file" / "spool"
    cli = Cli(AWAY, {"TOOLTRAIL_SPOOL": str(spool), "XDG_STATE_HOME": str(spool)})
    ended = cli.exec("--", "sh", "-c", "echo out; exit 4")
    assert (ended.code, ended.stdout) == (4, b"out\n")
    away, lost = ended.message.splitlines()
    assert "connection" in away
    assert re.fullmatch(
        r"tooltrail: nothing was recorded: .*/aside-\S+ cannot be written: Not a directory", lost
    )


@pytest.mark.parametrize(
    "command", ["log", "status", "show", "transcript", "db check", "db current"]
)
def test_reading_while_postgresql_is_away_says_so_and_never_the_password(command: str) -> None:
    for url in (
        AWAY,
        f"postgresql://bob@127.0.0.1:1/records?password={PASSWORD}",
        f"postgresql://127.0.0.1:1/records?sslpassword={PASSWORD}&options=-cx={PASSWORD}",
    ):
        ended = Cli(url).run(*command.split())
        assert ended.code == 5
        assert ended.sentence.startswith("database postgresql://127.0.0.1:1/records: ")
        assert PASSWORD not in ended.message
        assert "bob" not in ended.message


def test_while_postgresql_is_away_at_the_end_of_a_command_its_end_waits_in_the_outbox(
    postgres_url: str, tmp_path: Path
) -> None:
    make_store(postgres_url, artifacts=str(tmp_path / "artifacts")).close()
    cli = Cli(postgres_url, {"TOOLTRAIL_SPOOL": str(tmp_path / "spool")})
    code = "import os; os.write(1, b'x' * 50_000); os.read(0, 1); os._exit(6)"
    process = cli.start("exec", "--", *python(code), stdin=subprocess.PIPE)
    assert process.stdout
    assert process.stdout.read(1) == b"x"
    with closed_database(postgres_url):
        out, err = process.communicate(b".", timeout=60)
    assert (process.returncode, len(out)) == (6, 49_999)
    assert err.decode() == f"tooltrail: {WAITS}\n"
    assert states(cli) == ["started"]
    assert [row["outcome"] for row in cli.ok("repair", "--json").records] == ["stored"]
    assert states(cli) == ["success"]
    (row,) = cli.ok("log", "--json").records
    assert row["exit_status"] == 6
    assert cli.ok("show", "--stream", "stdout").stdout == b"x" * 50_000
    assert cli.ok("verify").code == 0
    assert left_in(tmp_path / "spool") == []


def test_a_session_that_waits_in_the_outbox_takes_records_when_the_store_is_back(
    postgres_url: str, tmp_path: Path
) -> None:
    spool = tmp_path / "spool"
    make_store(postgres_url, artifacts=str(tmp_path / "artifacts"), spool=spool).close()
    cli = Cli(postgres_url, {"TOOLTRAIL_SPOOL": str(spool)})
    with closed_database(postgres_url), open_store(postgres_url, spool=spool) as store:
        session = store.open_session().id
    assert cli.exec("--session", str(session), "--", "true").code == 0
    (row,) = cli.ok("log", "--json").records
    assert (row["session_id"], row["state"]) == (str(session), "success")
    nobody = str(new_id())
    ended = cli.exec("--session", nobody, "--", "true")
    assert (ended.code, ended.sentence) == (3, f"no session has the id {nobody}")


def test_a_record_that_waits_is_not_called_recorded_but_named(
    postgres_url: str, tmp_path: Path
) -> None:
    make_store(
        postgres_url, artifacts=str(tmp_path / "artifacts"), spool=tmp_path / "spool"
    ).close()
    cli = Cli(postgres_url, {"TOOLTRAIL_SPOOL": str(tmp_path / "spool")})
    with closed_database(postgres_url):
        ended = cli.exec("-v", "--", "true")
    why, said = ended.message.splitlines()
    assert "is not currently accepting connections" in why
    cli.ok("repair")
    (row,) = cli.ok("log", "--json").records
    assert said == "tooltrail: " + WAITS.replace("record", f"record of {row['id']}", 1)
    assert cli.exec("-v", "--", "true").sentence.startswith("recorded ")


def test_while_a_store_that_was_met_before_is_away_start_and_end_wait_in_the_outbox(
    postgres_url: str, tmp_path: Path
) -> None:
    make_store(
        postgres_url, artifacts=str(tmp_path / "artifacts"), spool=tmp_path / "spool"
    ).close()
    cli = Cli(postgres_url, {"TOOLTRAIL_SPOOL": str(tmp_path / "spool")})
    session = cli.ok("session", "open").text.strip()
    with closed_database(postgres_url):
        for arguments in ((), ("--session", session), ("--session", session)):
            ended = cli.exec(*arguments, "--", "sh", "-c", "seq 20000; exit 4")
            assert ended.code == 4
            why, kept = ended.message.splitlines()
            assert "is not currently accepting connections" in why or "that came before" in why
            assert kept == f"tooltrail: {WAITS}"
        # Which session is meant by less than its id, only the store can say.
        cli.exec("--session", session[:-1], "--", "true")
    assert [name for name in names_in(tmp_path / "spool") if name.startswith("aside-")]
    outcomes = [row["outcome"] for row in cli.ok("repair", "--json").records]
    # What all three printed is stored once.
    assert sorted(outcomes) == ["cleared", "cleared", "recorded", "stored"]
    assert states(cli) == ["success"] * 4
    rows = cli.ok("log", "--json", "--session", session).records
    assert sorted(row["seq"] for row in rows) == [0, 1, 2]
    assert cli.ok("show", "--stream", "stdout", rows[-1]["id"]).stdout == ended.stdout
    assert cli.ok("verify").code == 0
    assert cli.ok("repair", "--json").records == []


def test_a_disk_that_is_full_at_the_start_does_not_keep_the_command_from_running(
    on_disk: Cli, disk: SmallDisk
) -> None:
    disk.fill()
    on_disk.environment["XDG_STATE_HOME"] = str(disk.folder / "state")
    ended = on_disk.exec("--", "sh", "-c", "echo out; exit 3")
    assert (ended.code, ended.stdout) == (3, b"out\n")
    away, lost = ended.message.splitlines()
    assert away.startswith(f"tooltrail: database {on_disk.database}: ")
    assert lost.startswith("tooltrail: nothing was recorded: ")
    assert lost.endswith(": No space left on device")
    disk.free()
    assert states(on_disk) == []


def test_the_record_of_a_full_disk_is_kept_in_the_users_own_folder(
    on_disk: Cli, disk: SmallDisk, own_state: Path
) -> None:
    disk.fill()
    ended = on_disk.exec("--", "sh", "-c", "echo out; exit 3")
    assert (ended.code, ended.stdout) == (3, b"out\n")
    folder, _ = aside_of(own_state / "tooltrail" / "spool")
    assert ended.message.splitlines()[1] == kept_in(folder)
    assert plain(folder / "stdout.zst") == b"out\n"
    assert left_in(disk.folder / "spool") == []


def test_with_a_spool_on_another_disk_the_record_of_a_full_one_is_kept(
    on_disk: Cli, disk: SmallDisk, tmp_path: Path
) -> None:
    disk.fill()
    on_disk.environment["TOOLTRAIL_SPOOL"] = str(tmp_path / "spool")
    ended = on_disk.exec("--", *python(NOISE))
    assert (ended.code, len(ended.stdout)) == (3, NOISE_BYTES)
    assert ended.message.splitlines()[-1] == f"tooltrail: {WAITS}"
    disk.free()
    (one,) = on_disk.run("repair", "--json").records
    # There is no room for all of it as an artifact.
    assert one["outcome"] == "failed"
    (row,) = on_disk.ok("log", "--json").records
    assert (row["state"], row["exit_status"]) == ("success", 3)


@contextmanager
def open_reader(database: str) -> Generator[None]:
    """Somebody reads as long as the block lasts, so that the log can only grow."""
    connection = sqlite3.connect(database, isolation_level=None)
    connection.execute("BEGIN")
    connection.execute("SELECT count(*) FROM invocations")
    try:
        yield
    finally:
        connection.close()


def test_a_disk_that_fills_during_capture_is_said_with_what_is_missing(
    on_disk: Cli, disk: SmallDisk
) -> None:
    # The disk fills once some of the output is in the spool.
    wait = f"until [ -s {disk.folder}/spool/*/stdout.zst ]; do sleep 0.05; done"
    fill = f"; {wait}; cat /dev/zero > {disk.folder}/filler 2>/dev/null; exit 3"
    with open_reader(on_disk.database):
        ended = on_disk.exec("--", "sh", "-c", f"{shlex.join(python(NOISE))}{fill}")
    assert (ended.code, len(ended.stdout)) == (3, NOISE_BYTES)
    said = re.fullmatch(
        r"database (\S+): the disk is full; nor can it be kept in \S+: No space left on device; "
        r"invocation (\S+) stays in the store as started; "
        r"its output is kept in (\S+), without ([\d,]+) bytes",
        ended.sentence,
    )
    assert said, ended.sentence
    assert said[1] == on_disk.database
    assert said[3] == str(disk.folder / "spool" / said[2])
    kept = plain(Path(said[3], "stdout.zst"))
    assert kept
    assert ended.stdout.startswith(kept)
    assert len(kept) + int(said[4].replace(",", "")) == NOISE_BYTES
    disk.free()
    assert states(on_disk) == ["started"]


def test_a_spool_that_fills_during_capture_shortens_the_record_and_says_so(
    cli: Cli, disk: SmallDisk
) -> None:
    cli.environment["TOOLTRAIL_SPOOL"] = str(disk.folder / "spool")
    ended = cli.exec("--", *python(NOISE))
    assert (ended.code, len(ended.stdout)) == (3, NOISE_BYTES)
    said = re.fullmatch(
        r"stdout: ([\d,]+) bytes not kept: low disk space: of [\d,]+ free bytes [\d,]+ are held"
        r" back, [\d,]+ needed",
        ended.sentence,
    )
    assert said, ended.sentence
    del cli.environment["TOOLTRAIL_SPOOL"]
    shown = cli.run("show", "--stream", "stdout")
    assert shown.code == 4
    assert ended.stdout.startswith(shown.stdout)
    assert len(shown.stdout) + int(said[1].replace(",", "")) == NOISE_BYTES
    assert states(cli) == ["success"]


def test_an_aside_record_says_what_it_could_not_keep(disk: SmallDisk) -> None:
    cli = Cli(AWAY, {"TOOLTRAIL_SPOOL": str(disk.folder / "spool")})
    room = disk.folder / "room"
    room.write_bytes(bytes(16_384))
    code = f"{WRITE_NOISE}; import os; sys.stdout.flush(); os.unlink({str(room)!r})"
    ended = cli.exec("--", *python(code))
    assert (ended.code, len(ended.stdout)) == (0, NOISE_BYTES)
    folder, record = aside_of(disk.folder / "spool")
    kept = plain(folder / "stdout.zst")
    lost, last = ended.message.splitlines()[-2:]
    assert lost.startswith(
        f"tooltrail: stdout: {NOISE_BYTES - len(kept):,} bytes not kept: low disk"
    )
    assert last == kept_in(folder)
    assert record["complete_output"]["result"]["stdout"]["size"] == len(kept)


def test_a_disk_that_is_full_at_the_finish_takes_a_short_record_into_the_room_of_its_log(
    on_disk: Cli, disk: SmallDisk
) -> None:
    fill = f"cat /dev/zero > {disk.folder}/filler 2>/dev/null; echo small; exit 3"
    ended = on_disk.exec("--", "sh", "-c", fill)
    assert (ended.code, ended.stdout, ended.message) == (3, b"small\n", "")
    assert on_disk.ok("show", "--stream", "stdout").stdout == b"small\n"
    disk.free()
    assert states(on_disk) == ["success"]


@pytest.mark.parametrize(
    ("prints", "kept"),
    [("echo small", "its 6 bytes of output were not kept"), ("", "it had no output")],
)
def test_a_disk_that_is_full_at_the_finish_is_said_truthfully(
    on_disk: Cli, disk: SmallDisk, prints: str, kept: str
) -> None:
    fill = f"cat /dev/zero > {disk.folder}/filler 2>/dev/null; {prints}\nexit 3"
    with open_reader(on_disk.database):
        ended = on_disk.exec("--", "sh", "-c", fill)
    assert (ended.code, ended.stdout) == (3, b"small\n" if prints else b"")
    assert ended.sentence.endswith(f" stays in the store as started; {kept}")
    assert "the disk is full; nor can it be kept in " in ended.sentence
    disk.free()
    assert states(on_disk) == ["started"]
    assert on_disk.exec("--", "echo", "next").code == 0
    assert states(on_disk) == ["success", "started"]


def test_a_limit_on_the_size_of_files_is_like_a_full_disk(cli: Cli) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (512 * 1024, resource.RLIM_INFINITY))

    ended = cli.exec(
        "--",
        *python(NOISE),
        preexec_fn=limit,
        env=without_coverage(cli.full_environment),
    )
    assert (ended.code, len(ended.stdout)) == (3, NOISE_BYTES)
    assert "bytes not kept: spool cannot be written: File too large" in ended.sentence
    assert cli.run("show", "--stream", "stdout").code == 4
    assert states(cli) == ["success"]


def check_what_waits(cli: Cli, stdout: bytes) -> Path:
    """The spool file of the one output that waits, which holds all of it."""
    (waiting,) = (cli.folder / "spool").glob("*/stdout.zst")
    assert plain(waiting) == stdout
    return waiting


def waits_in(stdout: Path) -> str:
    return (
        f"the artifact root is unavailable, so the output waits in {stdout.parent}:"
        " `tooltrail repair` stores it"
    )


@pytest.mark.parametrize("is_mounted", [True, False], ids=["mount point", "nothing"])
def test_artifacts_that_are_away_from_the_beginning_cost_no_record(
    cli: Cli, is_mounted: bool
) -> None:
    root, disk = cli.folder / "artifacts", cli.folder / "disk"
    cli.exec("--", "seq", "8000")
    (first,) = (row["id"] for row in cli.ok("log", "--json").records)
    root.rename(disk)
    if is_mounted:
        root.mkdir()

    short = cli.exec("--", "sh", "-c", "echo out; exit 3")
    assert (short.code, short.stdout, short.message) == (3, b"out\n", "")
    ended = cli.exec("--", "sh", "-c", "seq 9000; exit 3")
    assert ended.code == 3
    waiting = check_what_waits(cli, ended.stdout)
    assert ended.sentence == waits_in(waiting)
    assert [row["state"] for row in cli.ok("log", "--json").records] == ["success"] * 3
    assert "9000" in cli.ok("show", "--surface", "receipt").text
    assert cli.run("show", first, "--stream", "stdout").code == 5
    assert cli.run("artifact", "ls").code == 0
    warned = cli.ok("status").message
    assert (
        "warning: the artifact root is unavailable, so long output waits in the spool: " in warned
    )
    assert cli.run("repair").code == 5
    assert check_what_waits(cli, ended.stdout)

    if is_mounted:
        root.rmdir()
    disk.rename(root)
    assert cli.ok("show", first, "--stream", "stdout").text.endswith("\n8000\n")
    assert "output of 1 invocation stored that had waited" in cli.ok("repair").message
    assert cli.ok("show", "--stream", "stdout").stdout == ended.stdout
    assert cli.ok("verify").code == 0


def test_an_artifact_root_that_goes_away_postpones_the_output_until_it_is_repaired(
    cli: Cli,
) -> None:
    root = cli.folder / "artifacts"
    ended = cli.exec("--", "sh", "-c", f"mv {root} {root}.away; seq 9000; exit 3")
    assert ended.code == 3
    stdout = check_what_waits(cli, ended.stdout)
    assert ended.sentence == waits_in(stdout)
    root.with_name("artifacts.away").rename(root)
    (record,) = cli.ok("log", "--json").records
    assert record["state"] == "success"
    waiting = cli.run("show", "--stream", "stdout")
    assert waiting.code == 5
    assert "stream stdout is not stored yet, `tooltrail repair` does that: " in waiting.message
    assert "; full output: not stored yet]" in cli.ok("show", "--surface", "receipt").text
    assert "could not be stored at once: " in cli.ok("show").text
    assert cli.ok("artifact", "tail", "-f", "-n", "2", "@last").stdout == b"8999\n9000\n"
    verified = cli.run("verify")
    assert verified.code == 4
    assert "is not stored yet, `tooltrail repair` does that: " in verified.text

    assert "output of 1 invocation stored that had waited" in cli.ok("repair").message
    assert cli.ok("show", "--stream", "stdout").stdout == ended.stdout
    assert not stdout.parent.exists()
    (artifact,) = cli.ok("artifact", "ls", "--json").records
    assert cli.ok("artifact", "cat", artifact["path"]).stdout == ended.stdout
    assert cli.ok("verify").code == 0
    assert cli.ok("gc", "--yes", "--grace", "0s").code == 0
    assert cli.ok("artifact", "verify").code == 0


def test_a_start_that_the_store_refuses_runs_nothing_and_leaves_no_session(cli: Cli) -> None:
    with cli.open() as store, store.database.write() as connection:
        connection.exec_driver_sql(
            "CREATE TRIGGER refuse BEFORE INSERT ON invocations "
            "BEGIN SELECT RAISE(ABORT, 'not now'); END"
        )
    ended = cli.exec("--", "echo", "ran")
    assert (ended.code, ended.stdout) == (2, b"")
    assert ended.sentence.endswith("refused the record: not now")
    assert cli.ok("session", "ls", "--json").records == []
    assert names_in(cli.folder / "spool") == []


def test_a_session_that_is_for_one_call_is_closed_with_it_or_not_at_all(cli: Cli) -> None:
    with cli.open() as store, store.database.write() as connection:
        connection.exec_driver_sql(
            "CREATE TRIGGER refuse BEFORE UPDATE OF closed_at ON ledger_heads "
            "WHEN new.closed_at IS NOT NULL BEGIN SELECT RAISE(ABORT, 'not now'); END"
        )
    ended = cli.exec("--", "sh", "-c", "echo out; exit 3")
    assert (ended.code, ended.stdout) == (3, b"out\n")
    assert "refused the record: not now; invocation " in ended.sentence
    assert [row["state"] for row in cli.ok("log", "--json").records] == ["started"]
    with cli.open() as store, store.database.write() as connection:
        connection.exec_driver_sql("DROP TRIGGER refuse")
    cli.ok("repair")
    assert states(cli) == ["interrupted"]
    (session,) = cli.ok("session", "ls", "--json").records
    assert session["closed_at"]


REQUEST = _recording.Request(("echo", "hi"), None, None, 0.0, "exec", None)


def test_a_recording_that_stopped_early_is_said(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    def closed(role: str) -> Capture:
        capture = Capture(role, tmp_path / role, edge_bytes=8, inline_bytes=8)
        capture.close()
        return capture

    output, code = _recording.run_request(REQUEST, closed, lambda stream: stream.record)
    said = "tooltrail: recording stopped early: the capture of stdout is closed\n"
    assert tuple(capfd.readouterr()) == ("hi\n", said)
    assert (output.status, code) == ("success", 0)


def test_an_end_that_somebody_else_saw_is_recorded_as_unknown(tmp_path: Path) -> None:
    def capture(role: str) -> Capture:
        return Capture(role, tmp_path / role, edge_bytes=8, inline_bytes=8)

    def reaped_by_others(*_: object, **__: object) -> ChildExit:
        return ChildExit(None, None, timed_out=False, duration_ms=1)

    with patch.object(_recording, "run_child", reaped_by_others):
        output, code = _recording.run_request(REQUEST, capture, lambda stream: stream.record)
    assert isinstance(output.result, CommandOutput)
    assert (output.result.exit_status, code) == (None, 255)
    assert output.summary_text == "command ended, its exit status is not known"
