"""Creating a store, and seeing at a glance what it holds."""

import stat
from pathlib import Path
from unittest.mock import patch

import pytest
from tests.support.altering import alter
from tests.support.cli import Cli
from tests.support.disks import small_disk
from tests.support.recording import captured, run_command

from tooltrail.cli._default_database import default_database
from tooltrail.cli._output import size_of
from tooltrail.migrations import HEAD_REVISION
from tooltrail.records import ToolCall
from tooltrail.store import create_store, open_store
from tooltrail.store.engines.sqlite_library import sqlite3

TIMES = ("store_info SET created_at", "journals SET ingested_at")


def test_init_creates_a_store_and_its_parents_for_their_owner_alone(nowhere: Cli) -> None:
    ended = nowhere.ok("init")
    assert ended.stdout == b""
    assert ended.message == (
        f"created a store in {nowhere.database}, artifacts in file://{nowhere.database}-artifacts\n"
    )
    assert stat.S_IMODE(nowhere.folder.stat().st_mode) == 0o700
    assert nowhere.ok("log", "--json").records == []
    assert nowhere.ok("db", "check").message == "no problem found\n"


def test_init_again_changes_nothing(cli: Cli) -> None:
    with cli.open() as store:
        run_command(store.open_session(), b"kept\n")
    before = Path(cli.database).read_bytes()
    ended = cli.ok("init")
    assert ended.message == (
        f"a store already exists in {cli.database}, artifacts in file://{cli.folder}/artifacts; "
        "nothing was changed\n"
    )
    (cli.folder / "link").symlink_to(cli.folder / "artifacts")
    for same in ("artifacts", "artifacts/", "link"):
        assert cli.ok("init", "--artifacts", f"{cli.folder}/{same}").message == ended.message
    again = cli.run("init", "--artifacts", str(cli.folder / "elsewhere"))
    assert again.code == 2
    assert again.message.startswith(ended.message)
    assert f"{cli.folder}/elsewhere is not its artifact root" in again.message
    assert Path(cli.database).read_bytes() == before
    assert not (cli.folder / "elsewhere").exists()


@pytest.mark.parametrize("root", ["s3:/bucket/x", "s3//bucket/x", "S3:/bucket", "file:/a/folder"])
def test_init_takes_no_misspelt_url_for_a_folder(nowhere: Cli, root: str) -> None:
    ended = nowhere.run("init", "--artifacts", root)
    assert ended.code == 2
    assert (
        f"{root!r} is not a URL; write {root[: root.find('/')].rstrip(':').lower()}://…"
        in ended.message
    )
    assert not nowhere.folder.exists()


@pytest.mark.parametrize("root", ["my-s3//data", "backup.gs/x", "foo:/bar"])
def test_an_odd_name_of_a_folder_is_no_url(nowhere: Cli, tmp_path: Path, root: str) -> None:
    nowhere.ok("init", "--artifacts", f"{tmp_path}/{root}")
    assert (tmp_path / root).is_dir()


@pytest.mark.parametrize("spelling", ["{}", "sqlite:///{}"])
def test_init_at_a_place_that_is_named(nowhere: Cli, tmp_path: Path, spelling: str) -> None:
    place = tmp_path / "a b" / "records.db"
    ended = nowhere.ok(
        "init", "--db", spelling.format(place), "--artifacts", str(tmp_path / "large")
    )
    assert ended.message.endswith(f"artifacts in file://{tmp_path}/large\n")
    assert place.is_file()
    assert (tmp_path / "large").is_dir()
    assert not nowhere.folder.exists()
    status = Cli(str(place)).ok("status", "--json").records[0]
    assert status["artifact_root"] == f"file://{tmp_path}/large"


def test_an_artifact_root_that_moves_alone_can_be_named(cli: Cli, tmp_path: Path) -> None:
    with cli.open() as store:
        run_command(store.open_session(), b"moved\n" * 10_000)
    (cli.folder / "artifacts").rename(tmp_path / "elsewhere")
    ended = cli.run("artifact", "verify")
    assert ended.code == 5
    assert f"cannot use {cli.folder}/artifacts for artifacts: " in ended.text
    assert ended.message == "1 artifact, 60 kB: 1 unreadable\n"
    assert cli.ok("artifact", "verify", "--artifacts", str(tmp_path / "elsewhere")).code == 0
    cli.environment["TOOLTRAIL_ARTIFACTS"] = str(tmp_path / "elsewhere")
    assert cli.ok("artifact", "verify").code == 0


def test_artifacts_in_memory_would_be_gone_at_once(nowhere: Cli) -> None:
    ended = nowhere.run("init", "--artifacts", "memory://large")
    assert ended.code == 2
    assert (
        ended.usage_error
        == "artifacts in memory are lost when this command ends; name a folder or a URL"
    )
    assert not nowhere.folder.exists()


def test_a_spool_that_is_a_file_is_wrong_usage(cli: Cli) -> None:
    ended = cli.run("status", "--spool", cli.database)
    assert ended.code == 2
    assert "is a file" in ended.usage_error


def test_an_empty_option_is_none(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(cli.folder)
    (status,) = cli.ok("status", "--json", "--db", "", "--spool", "", "--artifacts", "").records
    assert status["database"] == cli.database
    assert status["spool"] == str(cli.spool)
    assert status["artifact_root"] == f"file://{cli.folder}/artifacts"
    ended = cli.ok("init", "--artifacts", "", "--db", "new/trail.db")
    assert ended.message.endswith(f"artifacts in file://{cli.folder}/new/trail.db-artifacts\n")


def test_a_database_that_is_a_folder_is_wrong_usage(cli: Cli) -> None:
    for command in ("status", "init", "log"):
        ended = cli.run(command, "--db", str(cli.folder))
        assert ended.code == 2
        assert ended.sentence == f"{cli.folder} is a folder; a database is a file"


@pytest.mark.parametrize("root", ["{}/file", "file://{}/file", "ftp://host/root", "{}/taken"])
def test_an_init_that_fails_leaves_no_database(nowhere: Cli, tmp_path: Path, root: str) -> None:
    (tmp_path / "file").write_text("mine")
    create_store(tmp_path / "other.db", artifacts=str(tmp_path / "taken")).close()
    with open_store(tmp_path / "other.db") as other:
        run_command(other.open_session(), b"taken\n" * 10_000)
    ended = nowhere.run("init", "--artifacts", root.format(tmp_path))
    assert ended.code in (2, 5), ended.message
    assert not Path(nowhere.database).exists()
    assert nowhere.run("status").sentence.startswith(f"no store at {nowhere.database};")
    nowhere.ok("init")


def test_an_init_that_fails_leaves_a_file_that_was_there(nowhere: Cli) -> None:
    nowhere.folder.mkdir()
    Path(nowhere.database).touch()
    assert nowhere.run("init", "--artifacts", "ftp://host/root").code == 2
    assert Path(nowhere.database).read_bytes() == b""


def test_the_default_store_is_in_the_users_data_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    beside_home = str(tmp_path / ".local/share/tooltrail/tooltrail.db")
    assert default_database() == beside_home
    monkeypatch.setenv("XDG_DATA_HOME", "relative/is/ignored")
    assert default_database() == beside_home
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert default_database() == str(tmp_path / "data/tooltrail/tooltrail.db")


def test_without_flag_and_variable_the_default_store_is_used(tmp_path: Path) -> None:
    cli = Cli("", {"XDG_DATA_HOME": str(tmp_path)})
    assert f"created a store in {tmp_path}/tooltrail/tooltrail.db" in cli.ok("init").message
    assert cli.ok("log", "--json").records == []


def test_the_flag_wins_over_the_variable(cli: Cli, tmp_path: Path) -> None:
    ended = cli.run("log", "--db", str(tmp_path / "other.db"))
    assert ended.code == 5
    assert str(tmp_path / "other.db") in ended.sentence


def test_status_counts_what_the_store_holds(cli: Cli) -> None:
    with cli.open() as store:
        session = store.open_session()
        run_command(session, b"small\n")
        run_command(session, b"large\n" * 10_000)
        session.start(ToolCall(tool_name="Bash"))
        (status,) = cli.ok("status", "--json").records
        text = cli.ok("status", "--utc").text
    assert status["schema_version"] == 1
    assert status["database"] == cli.database
    assert status["engine"] == f"SQLite {sqlite3.sqlite_version}"
    assert status["revision"] == HEAD_REVISION
    assert status["sessions"] == 1
    assert status["invocations"] == {"ok": 2, "running": 1}
    assert status["produced_bytes"] == 6 + 60_000
    assert (status["artifacts"], status["artifact_bytes"]) == (1, 60_000)
    assert 0 < status["artifact_stored_bytes"] < 60_000
    assert [status[n] for n in ("bodies", "body_bytes", "body_stored_bytes")] == [None] * 3
    (counted,) = cli.ok("status", "--bodies", "--json").records
    assert 0 < counted["body_stored_bytes"] <= counted["body_bytes"]
    assert f"bodies       {counted['bodies']} bodies, " in cli.ok("status", "--bodies").text
    assert status["database_bytes"] >= Path(cli.database).stat().st_size
    assert status["not_ingested"] is None
    condition = status["condition"]
    assert (condition["open_count"], condition["waiting_count"]) == (1, 0)
    assert [one["entry_count"] for one in condition["journals"]] == [6]
    assert f"database     {cli.database} (SQLite " in text
    assert "invocations  3 (2 ok, 1 running)\n" in text
    assert "produced     60 kB\n" in text
    assert ", 1 artifact " in text
    assert "bodies" not in text
    assert f"created      {status['created_at'][:19].replace('T', ' ')}Z\n" in text


def test_status_of_an_empty_store(cli: Cli) -> None:
    text = cli.ok("status").text
    assert "invocations  0\n" in text
    assert ", 0 artifacts 0 B for 0 B, spool 0 B\n" in text


def warned(cli: Cli) -> list[str]:
    """The warnings of `status`, without that of an old SQLite."""
    lines = cli.ok("status", "--utc").message.splitlines()
    return [line.removeprefix("warning: ") for line in lines if " SQLite " not in line]


def test_a_running_call_is_counted_and_no_warning(cli: Cli) -> None:
    with cli.open() as store:
        invocation = store.open_session().start(ToolCall(tool_name="Bash"))
        captured(invocation, "stdout", b"so far\n" * 9_000)
        spooled = sum(file.stat().st_size for file in cli.spool.rglob("*.zst"))
        store.ingest()  # so that nothing changes between the commands
        ended = cli.ok("status")
        assert "invocations  1 (1 running)\n" in ended.text
        assert warned(cli) == []
        (status,) = cli.ok("status", "--json").records
    assert status["spool_bytes"] >= spooled > 0
    assert f", spool {size_of(status['spool_bytes'])}\n" in ended.text
    parts = ("database_bytes", "artifact_stored_bytes", "spool_bytes")
    stored = sum(status[part] for part in parts)
    assert f"on disk      {size_of(stored)}: database " in ended.text


@pytest.mark.parametrize("value", ["'x'", 1 << 62])
def test_a_time_that_is_none_hides_nothing_else(cli: Cli, value: object) -> None:
    assert cli.exec("--", "echo", "one").code == 0
    before = cli.ok("log", "--json").text
    with cli.open() as store:
        alter(store, *(f"UPDATE {one} = {value}" for one in TIMES))
    assert cli.ok("log", "--json").text == before
    lines = cli.ok("status", "--utc").lines
    assert "created      1970-01-01 00:00:00Z" in lines
    assert "invocations  1 (1 ok)" in lines


def test_a_spool_whose_journal_is_gone_is_a_warning(cli: Cli, tmp_path: Path) -> None:
    assert cli.exec("--", "echo", "one").code == 0
    assert warned(cli) == []
    moved = cli.spool.rename(tmp_path / "moved")
    (warning,) = warned(cli)
    assert warning.startswith(f"the journal of the spool {cli.spool} is gone")
    assert "is gone" not in cli.ok("status", "--spool", str(moved)).message


def test_facts_that_wait_in_another_spool_are_a_warning(cli: Cli, tmp_path: Path) -> None:
    other = str(tmp_path / "other spool")
    assert cli.exec("--spool", other, "--", "echo", "one").code == 0
    assert cli.ok("log", "--spool", other, "--json").records
    assert warned(cli) == []
    assert cli.exec("--spool", other, "--", "echo", "two").code == 0
    assert cli.ok("status", "--json").records[0]["other_spools"] == [other]
    (warning,) = warned(cli)
    assert warning == (
        f"facts, or calls of ended programs, wait in the spool {other}; "
        f"`tooltrail repair --spool='{other}'` ingests them"
    )
    cli.ok("repair", "--spool", other)
    assert warned(cli) == []


def test_a_disk_that_is_full_is_a_warning(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 64 << 20) as disk:
        create_store(disk.folder / "trail.db").close()
        cli = Cli(str(disk.folder / "trail.db"))
        assert cli.exec("--", "true").code == 0
        assert warned(cli) == []
        disk.fill()
        assert warned(cli) == [
            f"the disk of the {name} has 0 free bytes" for name in ("database", "spool")
        ]


@pytest.mark.parametrize(
    ("version", "warned"), [("3.40.1", True), ("3.51.2", True), ("3.51.3", False), ("3.53", False)]
)
def test_status_warns_of_an_sqlite_that_can_corrupt_the_database(
    cli: Cli, version: str, warned: bool
) -> None:
    with patch("tooltrail.cli._status._engine", return_value=f"SQLite {version}"):
        ended = cli.ok("status")
    assert (f"warning: SQLite {version} has the WAL-reset fault" in ended.message) == warned


def test_status_counts_the_log_of_the_database_too(cli: Cli) -> None:
    with cli.open() as store:
        before = cli.ok("status", "--json").records[0]["database_bytes"]
        run_command(store.open_session(), b"small\n")
        store.ingest()
        log = Path(f"{cli.database}-wal").stat().st_size
        assert log
        status = cli.ok("status", "--json").records[0]
    assert status["database_bytes"] >= before + log
