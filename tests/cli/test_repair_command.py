"""`tooltrail repair`, and who says that there is something to repair."""

import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.support.cli import Cli
from tests.support.recording import run_command
from tests.support.spool_writer import SpoolWriter

from tooltrail.artifacts.codec import compress_frame
from tooltrail.store import create_store

NOTICE = "tooltrail: 1 invocation of killed programs: `tooltrail repair`\n"


@contextmanager
def writer_of(cli: Cli) -> Generator[SpoolWriter]:
    with SpoolWriter(cli.database, cli.folder / "artifacts", cli.folder / "spool") as writer:
        yield writer


def kill_after(cli: Cli, *steps: str) -> str:
    """The invocation of a process that was killed after these steps."""
    with writer_of(cli) as writer:
        name = writer.do("start")
        for step in steps:
            writer.do(step)
    return name


def test_repair_prints_a_line_for_each_and_a_summary(cli: Cli) -> None:
    name = kill_after(cli, "fill stdout 70000", "flush stdout")
    with writer_of(cli) as writer:
        running = writer.do("start")
        ended = cli.ok("repair")
        assert [line.split() for line in ended.lines] == [
            ["INVOCATION", "OUTCOME", "RECOVERED", "LOST", "REASON"],
            [name, "interrupted", "70", "kB"],
            [running, "running"],
        ]
        assert ended.message == ("1 invocation ended as interrupted, 70 kB recovered, 1 running\n")
    assert len(cli.ok("show", name, "--stream", "stdout").stdout) == 70_000
    assert "state      interrupted\n" in cli.ok("show", name).text
    assert cli.ok("verify").code == 0


def test_a_dry_run_says_what_would_be_done(cli: Cli) -> None:
    name = kill_after(cli, "write stdout x", "flush stdout")
    ended = cli.ok("repair", "--dry-run", "--json")
    assert ended.records == [
        {
            "schema_version": 1,
            "invocation_id": name,
            "outcome": "interrupted",
            "recovered_bytes": 2,
            "lost_bytes": 0,
            "reason": "",
            "kept_in": None,
        }
    ]
    assert ended.message == (
        "1 invocation would be ended as interrupted, 2 B would be recovered, 0 running\n"
    )
    assert cli.ok("log", "--state", "started", "--json").records


def test_nothing_to_repair_prints_no_table(cli: Cli) -> None:
    ended = cli.ok("repair")
    assert ended.stdout == b""
    assert ended.message == "0 invocations ended as interrupted, 0 B recovered, 0 running\n"
    assert cli.ok("repair", "--json").records == []


def test_what_is_lost_is_said(cli: Cli) -> None:
    name = kill_after(cli, "write stdout kept", "flush stdout")
    with (cli.folder / "spool" / name / "stdout.zst").open("ab") as file:
        file.write(compress_frame(b"z" * 2_000).data[:-1])
    assert [line.split() for line in cli.ok("repair").lines[1:]] == [
        [name, "interrupted", "5", "B", "1", "B"]
    ]
    ended = cli.run("show", name, "--stream", "stdout")
    assert (ended.code, ended.stdout) == (4, b"kept\n")
    assert ended.sentence == (
        "stdout: 1 bytes were not kept: the program that recorded it ended in the middle of a frame"
    )


def test_what_cannot_be_stored_is_kept_and_incomplete(cli: Cli) -> None:
    with cli.open() as store:
        name = run_command(store.open_session(), b"stored\n").invocation_id
    folder = cli.folder / "spool" / str(name)
    folder.mkdir()
    (folder / "stdout.zst").write_bytes(compress_frame(b"not stored\n").data)
    ended = cli.run("repair")
    kept = folder.parent / "kept" / folder.name
    assert ended.code == 4
    why = f"not in the store: stdout; kept in {kept}"
    assert ended.lines[1].split(maxsplit=2) == [str(name), "kept", why]
    assert cli.ok("repair").stdout == b""


def test_a_damaged_file_is_named_where_it_is_kept_and_incomplete(cli: Cli) -> None:
    name = kill_after(cli, "write stdout whole", "flush stdout")
    file = cli.folder / "spool" / name / "stdout.zst"
    with file.open("ab") as spooled:
        spooled.write(bytes(100))
    kept = cli.folder / "spool" / "kept" / name / "stdout.zst"

    dry, done, again = (cli.run("repair", *flags) for flags in (["--dry-run"], [], []))

    assert (dry.code, done.code, again.code) == (4, 4, 0)
    assert f" {file} is damaged: " in dry.text
    assert f" {kept} is damaged: " in done.text
    assert f"1 byte was not kept: {kept} is damaged: " in cli.run(
        "show", name, "--stream", "stdout"
    ).message.replace("1 bytes were", "1 byte was")
    assert kept.exists()


def test_status_says_what_is_kept_that_could_not_be_stored(cli: Cli, own_state: Path) -> None:
    (status,) = cli.ok("status", "--json").records
    assert status["kept"] == {"invocations": 0, "folders": []}
    assert "kept " not in cli.ok("status").text
    kept = cli.folder / "spool" / "kept"
    own = own_state / "tooltrail" / "spool" / "kept"
    for folder in (kept / "one", kept / "two", own / "aside-three"):
        folder.mkdir(parents=True)
    (status,) = cli.ok("status", "--json").records
    assert status["kept"] == {"invocations": 3, "folders": [str(own), str(kept)]}
    ended = cli.ok("status")
    assert ended.lines[-1] == (
        f"kept         files of 3 invocations that are not in the store as they are: {own}, {kept}"
    )
    assert "kept" not in ended.message


def test_what_cannot_be_repaired_now_is_unavailable(cli: Cli) -> None:
    name = kill_after(cli)
    (cli.folder / "spool" / name).mkdir()
    (cli.folder / "spool" / name / "stdout.zst").symlink_to("/proc/self/mem")
    ended = cli.run("repair", "--fields", "outcome,reason")
    assert ended.code == 5
    ((record),) = ended.records
    assert record["outcome"] == "failed"
    assert record["reason"].endswith("stdout.zst cannot be read: Too many levels of symbolic links")


def test_what_is_not_here_is_counted(cli: Cli) -> None:
    with SpoolWriter(cli.database, cli.folder / "artifacts", cli.folder / "other") as writer:
        writer.do("start")
        message = cli.ok("repair").message
    assert message.splitlines()[1:] == [
        ("1 invocation not ended and not in this spool: running elsewhere, or killed there"),
    ]


@pytest.mark.parametrize(
    "command",
    ["log", "show", "transcript", "session ls", "artifact ls", "verify", "log --session @last"],
)
def test_who_reads_is_told_once_that_there_is_something_to_repair(cli: Cli, command: str) -> None:
    kill_after(cli, "write stdout x", "flush stdout")
    assert cli.run(*command.split()).message.count(NOTICE) == 1
    cli.ok("repair")
    assert "repair" not in cli.run(*command.split()).message


def test_who_writes_is_not_told(cli: Cli) -> None:
    kill_after(cli)
    assert cli.exec("--", "true").stderr == b""
    assert cli.ok("session", "open").message == ""


def test_nobody_is_told_of_what_runs(cli: Cli) -> None:
    with writer_of(cli) as writer:
        writer.do("start")
        writer.do("write stdout x")
        assert cli.ok("log").message == ""


def test_a_spool_that_cannot_be_read_keeps_nobody_from_reading(cli: Cli) -> None:
    shutil.rmtree(cli.folder / "spool")
    (cli.folder / "spool").write_text("")
    assert cli.ok("log").message == ""
    ended = cli.run("repair")
    assert ended.code == 0


def test_status_says_how_many_can_be_repaired(cli: Cli) -> None:
    kill_after(cli, "write stdout x", "flush stdout")
    kill_after(cli)
    ended = cli.ok("status", "--json")
    (status,) = ended.records
    assert status["unsettled"] == {
        "running": 0,
        "elsewhere": 0,
        "unknown": 0,
        "killed": 2,
        "answers": 0,
        "waiting": 0,
        "leftover": 0,
        "set_aside": 0,
    }
    assert ended.message.count("invocation") == 1
    assert (
        "warning: 2 invocations of killed programs: `tooltrail repair` ends them as interrupted\n"
        in ended.message
    )
    cli.ok("repair")
    (status,) = cli.ok("status", "--json").records
    assert set(status["unsettled"].values()) == {0}


def test_what_another_store_has_in_the_same_spool_is_not_counted(cli: Cli) -> None:
    create_store(cli.folder / "other.db", artifacts=str(cli.folder / "others")).close()
    with SpoolWriter(
        str(cli.folder / "other.db"), cli.folder / "others", cli.folder / "spool"
    ) as writer:
        writer.do("start")
        (status,) = cli.ok("status", "--json").records
        assert set(status["unsettled"].values()) == {0}
    assert cli.ok("log").message == ""


def test_what_an_ended_invocation_left_in_the_spool_is_said_apart(cli: Cli) -> None:
    with cli.open() as store:
        names = [run_command(store.open_session(), b"stored\n").invocation_id for _ in range(2)]
    for name in names:
        (cli.folder / "spool" / str(name)).mkdir()
    message = cli.ok("status").message
    assert "warning: 2 invocations have ended and left something in the spool" in message
    assert cli.ok("log").message == (
        "tooltrail: 2 invocations ended with something left in the spool: `tooltrail repair`\n"
    )
    cli.ok("repair")
    assert cli.ok("log").message == ""
