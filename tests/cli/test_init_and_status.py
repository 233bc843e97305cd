"""Creating a store, and seeing at a glance what it holds."""

import sqlite3
import stat
from pathlib import Path
from unittest.mock import patch

import pytest
from tests.support.cli import Cli
from tests.support.recording import captured, run_command

from tooltrail.cli._location import default_database
from tooltrail.records import ToolCall


def test_init_creates_a_store_and_its_parents_for_their_owner_alone(nowhere: Cli) -> None:
    ended = nowhere.ok("init")
    assert ended.stdout == b""
    assert ended.message == (
        f"created a store in {nowhere.database}, artifacts in file://{nowhere.folder}/artifacts\n"
    )
    assert stat.S_IMODE(nowhere.folder.stat().st_mode) == 0o700
    assert nowhere.ok("log", "--json").records == []
    assert nowhere.ok("db", "check").message == "no problem found\n"


def test_init_again_changes_nothing(cli: Cli) -> None:
    with cli.open() as store:
        run_command(store.open_session(), b"kept\n")
    before = Path(cli.database).read_bytes()
    ended = cli.ok("init")
    assert ended.message == f"there is a store in {cli.database} already; nothing was changed\n"
    again = cli.ok("init", "--artifacts", str(cli.folder / "elsewhere"))
    assert again.message == ended.message
    assert Path(cli.database).read_bytes() == before
    assert not (cli.folder / "elsewhere").exists()


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


def test_a_store_that_moves_takes_its_artifacts_along(cli: Cli, tmp_path: Path) -> None:
    with cli.open() as store:
        run_command(store.open_session(), b"moved\n" * 10_000)
    cli.folder.rename(tmp_path / "moved")
    moved = Cli(str(tmp_path / "moved" / "trail.db"))
    assert moved.ok("artifact", "verify").message == "1 artifact, 60 kB: 0 damaged or missing\n"


def test_an_artifact_root_that_moves_alone_can_be_named(cli: Cli, tmp_path: Path) -> None:
    with cli.open() as store:
        run_command(store.open_session(), b"moved\n" * 10_000)
    (cli.folder / "artifacts").rename(tmp_path / "elsewhere")
    ended = cli.run("artifact", "verify")
    assert ended.code == 5
    assert f"{cli.folder}/artifacts\n" in ended.text
    assert cli.ok("artifact", "verify", "--artifacts", str(tmp_path / "elsewhere")).code == 0
    cli.environment["TOOLTRAIL_ARTIFACTS"] = str(tmp_path / "elsewhere")
    assert cli.ok("artifact", "verify").code == 0


def test_postgresql_needs_to_be_told_where_artifacts_go(nowhere: Cli) -> None:
    ended = nowhere.run("init", "--db", "postgresql://nobody@127.0.0.1:1/none")
    assert ended.code == 2
    assert ended.sentence == "a PostgreSQL store needs an artifact root: name one (--artifacts)"


def test_artifacts_in_memory_would_be_gone_at_once(nowhere: Cli) -> None:
    ended = nowhere.run("init", "--artifacts", "memory://large")
    assert ended.code == 2
    assert ended.usage_error == "artifacts in memory would be gone with this command"
    assert not nowhere.folder.exists()


def test_a_spool_that_is_a_file_is_wrong_usage(cli: Cli) -> None:
    ended = cli.run("status", "--spool", cli.database)
    assert ended.code == 2
    assert "is a file" in ended.usage_error


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
    assert status["schema_version"] == 1
    assert status["database"] == cli.database
    assert status["engine"] == f"SQLite {sqlite3.sqlite_version}"
    assert status["revision"] == "0002"
    assert status["sessions"] == 1
    assert status["invocations"] == {"success": 2, "started": 1}
    assert status["produced_bytes"] == 6 + 60_000
    assert (status["artifacts"], status["artifact_bytes"]) == (1, 60_000)
    assert 0 < status["artifact_stored_bytes"] < 60_000
    assert status["bodies"] > 0
    assert status["database_bytes"] >= Path(cli.database).stat().st_size
    assert status["spooled_invocations"] == 0
    text = cli.ok("status", "--utc").text
    assert f"database     {cli.database} (SQLite " in text
    assert "invocations  3 (1 started, 2 success)\n" in text
    assert "produced     60 kB\n" in text
    assert ", 1 artifact " in text
    assert f"created      {status['created_at'][:19].replace('T', ' ')}Z\n" in text


def test_status_of_an_empty_store(cli: Cli) -> None:
    text = cli.ok("status").text
    assert "invocations  0\n" in text
    assert ", 0 artifacts 0 B for 0 B\n" in text


def test_status_warns_of_what_was_left_open_and_in_the_spool(cli: Cli) -> None:
    with cli.open() as store:
        invocation = store.open_session().start(ToolCall(tool_name="Bash"))
        captured(invocation, "stdout", b"so far\n")
    message = cli.ok("status", "--json").message
    assert "warning: 1 invocation not ended: running, or the process was killed\n" in message
    assert "warning: 1 invocation with output in the spool: running, or the process" in message


@pytest.mark.parametrize(
    ("version", "warned"), [("3.40.1", True), ("3.51.2", True), ("3.51.3", False), ("3.53", False)]
)
def test_status_warns_of_an_sqlite_that_can_corrupt_the_database(
    cli: Cli, version: str, warned: bool
) -> None:
    with patch.object(sqlite3, "sqlite_version", version):
        ended = cli.ok("status")
    assert (f"warning: SQLite {version} has the WAL-reset fault" in ended.message) == warned


def test_status_counts_the_log_of_the_database_too(cli: Cli) -> None:
    with cli.open() as store:
        before = cli.ok("status", "--json").records[0]["database_bytes"]
        run_command(store.open_session(), b"small\n")
        log = Path(f"{cli.database}-wal").stat().st_size
        assert log
        status = cli.ok("status", "--json").records[0]
    assert status["database_bytes"] >= before + log
