"""`tooltrail repair`, and what every reading command repairs by itself."""

from collections.abc import Generator
from contextlib import contextmanager

import pytest
from tests.support.call_facts import message
from tests.support.cli import Cli
from tests.support.recording import run_command
from tests.support.spool_writer import SpoolWriter
from tests.support.spools import captured_in


@contextmanager
def writer_of(cli: Cli) -> Generator[SpoolWriter]:
    with SpoolWriter(cli.database, cli.folder / "artifacts", cli.spool) as writer:
        yield writer


def kill_after(cli: Cli, *steps: str) -> str:
    """The invocation of a process that was killed after these steps."""
    with writer_of(cli) as writer:
        name = writer.do("start")
        for step in steps:
            writer.do(step)
    return name


def test_repair_reports_what_it_did(cli: Cli) -> None:
    name = kill_after(cli, "fill stdout 70000", "flush stdout")
    (report,) = cli.ok("repair", "--json").records
    # What begins may be in the database already: the killed program ingests in a thread.
    assert report.pop("frame_count") in {1, 2, 3}
    assert report == {
        "schema_version": 1,
        "rejected_count": 0,
        "pending_count": 0,
        "published_count": 0,
        "recovered_count": 1,
    }
    with writer_of(cli) as writer:
        running = writer.do("start")
        cli.ok("repair")
        states = {row["id"]: row["state"] for row in cli.ok("log", "--json").records}
        assert states == {name: "interrupted", running: "started"}
    assert len(cli.ok("show", name, "--stream", "stdout").stdout) == 70_000
    assert cli.ok("verify").text == ""
    assert captured_in(cli.spool) == []


def test_a_store_that_is_up_to_date_needs_no_repair(cli: Cli) -> None:
    assert cli.ok("repair").message == (
        "0 facts ingested, 0 calls of killed programs ended as interrupted,"
        " 0 waiting artifacts stored\n"
    )


def test_a_spool_without_a_journal_is_named(cli: Cli) -> None:
    assert cli.exec("true").code == 0
    assert "no journal" not in cli.ok("repair").message
    mistyped = cli.folder / "mistyped"
    said = cli.ok("repair", "--spool", str(mistyped)).message
    assert f"there is no journal in {mistyped}\n" in said


@pytest.mark.parametrize("command", ["log", "transcript", "status"])
def test_every_reading_command_ends_the_calls_of_killed_programs(cli: Cli, command: str) -> None:
    name = kill_after(cli, "write stdout x", "flush stdout")
    ended = cli.ok(*command.split())
    assert "repair" not in ended.message
    (row,) = cli.ok("log", "--json").records
    assert (row["id"], row["state"]) == (name, "interrupted")
    assert cli.ok("show", name, "--stream", "stdout").stdout == b"x\n"


def test_output_that_cannot_be_read_now_waits_and_recording_goes_on(cli: Cli) -> None:
    name = kill_after(cli, "write stdout x")
    file = cli.spool / name / "stdout.zst"
    file.unlink()
    file.symlink_to("/proc/self/mem")
    ended = cli.run("repair")
    assert ended.code == 5
    assert f"{file} cannot be read: " in ended.sentence
    assert cli.exec("--", "true").code == 0
    assert len(cli.ok("log", "--json").records) == 2
    file.unlink()
    cli.ok("repair")
    assert cli.ok("verify").text == ""


def test_calls_of_another_spool_are_left_to_that_spool(cli: Cli) -> None:
    other = cli.folder / "other"
    with SpoolWriter(cli.database, cli.folder / "artifacts", other) as writer:
        name = writer.do("start")
        cli.ok("repair", "--spool", str(other))
    cli.ok("repair")
    (row,) = cli.ok("log", "--json").records
    assert (row["id"], row["state"]) == (name, "started")
    (row,) = cli.ok("log", "--json", "--spool", str(other)).records
    assert (row["id"], row["state"]) == (name, "interrupted")


def test_output_waits_for_an_artifact_root_that_is_away(cli: Cli) -> None:
    root = cli.folder / "artifacts"
    root.rename(cli.folder / "away")
    with cli.open() as store:
        name = run_command(store.open_session(), b"line\n" * 20_000).invocation_id
    ended = cli.run("repair")
    assert ended.code == 5
    assert "1 artifact waiting for the artifact root: " in ended.message
    status = cli.ok("status")
    (waiting,) = [one for one in status.message.splitlines() if "1 artifact (100 kB)" in one]
    reason = ended.message.split("waiting for the artifact root: ")[1].strip()
    assert waiting.endswith(f": {reason}")
    assert cli.ok("show", "--stream", "stdout").stdout == b"line\n" * 20_000
    (cli.folder / "away").rename(root)
    assert "1 waiting artifact stored" in cli.ok("repair").message
    assert cli.ok("show", str(name), "--stream", "stdout").stdout == b"line\n" * 20_000


def test_rejected_facts_are_incomplete_and_named(cli: Cli) -> None:
    with cli.open() as store:
        session = store.open_session()
        for text in (b"one", b"other"):
            store.recorder.log.record([message(session.id, text, id=session.id)])
    ended = cli.run("repair")
    assert ended.code == 4
    assert "1 fact could not be applied: see `tooltrail status`" in ended.message
    status = cli.run("status")
    assert status.code == 4
    assert "journals: 1 fact could not be applied; the newest are:" in status.message
    assert f"  {session.id}: " in status.message
    (record,) = cli.run("status", "--json").records
    assert record["condition"]["rejected_count"] == 1
    assert cli.run("verify").code == 4
