"""`exec` while its store is away, and `repair` when it is back; what `status` says in between."""

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from tests.support.asides import set_aside_whole, wanted
from tests.support.cli import Cli, kill_group, python, without_coverage
from tests.support.evidence import ledger_of
from tests.support.lossy_server import END, LossyServer
from tests.support.postgres import closed_database
from tests.support.spools import left_in, names_in
from tests.support.template_stores import make_store

from tooltrail.artifacts import SpoolReader
from tooltrail.cli._location import Location
from tooltrail.records import InvalidRecordError
from tooltrail.store import WantedStore

PRINT = "echo out; seq 30000; echo err >&2; exit 4"


def lose_store(cli: Cli) -> None:
    """The store is away from now on: a folder is where SQLite must make a file."""
    Path(f"{cli.database}-wal").mkdir()


def find_store(cli: Cli) -> None:
    Path(f"{cli.database}-wal").rmdir()


def status_of(cli: Cli) -> dict[str, Any]:
    (status,) = cli.ok("status", "--json").records
    return status


def test_what_ran_while_the_store_was_away_is_recorded_when_it_is_back(cli: Cli) -> None:
    lose_store(cli)
    ended = cli.exec("--", "sh", "-c", PRINT)
    find_store(cli)
    status = status_of(cli)
    assert status["set_aside"]["ready"] == 1
    assert status["set_aside"]["oldest_at"] is not None
    assert status["unsettled"]["set_aside"] == 1
    said = cli.ok("status").message
    assert "warning: 1 record set aside while this store was away, the oldest of " in said
    assert ": `tooltrail repair` stores it\n" in said
    assert said.count("`tooltrail repair`") == 1
    assert cli.ok("log").message == "tooltrail: 1 record set aside: `tooltrail repair`\n"

    dry = cli.ok("repair", "--dry-run").message
    assert dry.startswith("1 invocation would be recorded that had been set aside")
    repaired = cli.ok("repair")
    (_, line) = repaired.lines
    assert line.split()[1:] == ["recorded", "169", "kB"]
    assert repaired.message.startswith(
        "1 invocation recorded that had been set aside while the store was away\n"
    )

    (row,) = cli.ok("log", "--json").records
    assert (row["state"], row["exit_status"], row["tool_name"]) == ("success", 4, "exec")
    shown = cli.ok("show", "--surface", "complete")
    assert (shown.stdout, shown.stderr) == (ended.stdout, b"err\n")
    assert cli.ok("verify").code == 0
    assert names_in(cli.folder / "spool") == []
    assert not any(status_of(cli)["set_aside"].values())
    assert "repair" not in cli.ok("log").message


def test_arguments_that_are_no_text_come_back_as_they_were(cli: Cli) -> None:
    lose_store(cli)
    cli.exec("--", *python("pass"), b"a\xffb")
    find_store(cli)
    assert cli.ok("repair").code == 0
    raw = json.loads(cli.ok("show", "--surface", "input").text)
    assert raw["argv"][-1] == {"$tooltrail.text": "a\\udcffb"}
    assert cli.ok("verify").code == 0


def test_the_session_that_was_named_has_it(cli: Cli) -> None:
    session = cli.ok("session", "open").text.strip()
    lose_store(cli)
    cli.exec("--session", session, "--", "true")
    find_store(cli)
    cli.ok("repair")
    (row,) = cli.ok("log", "--json").records
    assert row["session_id"] == session


def test_a_record_in_the_users_own_spool_is_taken_in_too(cli: Cli, own_state: Path) -> None:
    lose_store(cli)
    spool = cli.folder / "spool"
    shutil.rmtree(spool)
    spool.write_text("")
    ended = cli.exec("--", "sh", "-c", PRINT)
    assert str(own_state / "tooltrail" / "spool" / "aside-") in ended.message
    spool.unlink()
    find_store(cli)
    assert status_of(cli)["set_aside"]["ready"] == 1
    assert [row["outcome"] for row in cli.ok("repair", "--json").records] == ["recorded"]
    assert cli.ok("show", "--stream", "stdout").stdout == ended.stdout
    assert names_in(own_state / "tooltrail" / "spool") == []


def test_a_store_whose_spool_is_the_users_own_counts_it_once(cli: Cli, own_state: Path) -> None:
    cli.environment["TOOLTRAIL_SPOOL"] = str(own_state / "tooltrail" / "spool")
    lose_store(cli)
    cli.exec("--", "true")
    find_store(cli)
    assert status_of(cli)["set_aside"]["ready"] == 1
    assert [row["outcome"] for row in cli.ok("repair", "--json").records] == ["recorded"]


def test_a_users_own_spool_that_is_no_folder_keeps_nobody_from_anything(
    cli: Cli, own_state: Path
) -> None:
    (own_state / "tooltrail").mkdir(parents=True)
    (own_state / "tooltrail" / "spool").write_text("")
    lose_store(cli)
    cli.exec("--", "true")
    find_store(cli)
    assert status_of(cli)["set_aside"]["ready"] == 1
    assert "1 record set aside: `tooltrail repair`" in cli.ok("log").message
    assert [row["outcome"] for row in cli.ok("repair", "--json").records] == ["recorded"]


def test_a_user_without_a_home_folder_has_no_spool_of_their_own(cli: Cli) -> None:
    location = Location(cli.database)
    with patch.object(Path, "home", side_effect=RuntimeError), patch.dict(os.environ):
        del os.environ["XDG_STATE_HOME"]
        assert location.other_spools() == []
        assert location.spool_folders() == [cli.folder / "spool"]
        with pytest.raises(InvalidRecordError, match="there is no home folder for the spool"):
            Location("postgresql://nobody@127.0.0.1:1/none").spool_folders()


def test_a_database_that_is_a_folder_runs_nothing_and_leaves_nothing(cli: Cli) -> None:
    marker = cli.folder / "ran"
    (cli.folder / "folder").mkdir()
    ended = cli.exec("--db", str(cli.folder / "folder"), "--", "touch", str(marker))
    assert ended.code == 2
    assert ended.sentence == f"{cli.folder}/folder is a folder; a database is a file"
    assert not marker.exists()
    assert not list(cli.folder.glob("**/aside-*"))


def test_a_server_that_was_away_takes_it_in_by_whatever_name_it_is_reached(
    postgres_url: str, tmp_path: Path
) -> None:
    make_store(postgres_url, artifacts=str(tmp_path / "artifacts")).close()
    cli = Cli(postgres_url, {"TOOLTRAIL_SPOOL": str(tmp_path / "spool")})
    with closed_database(postgres_url):
        ended = cli.exec("--", "sh", "-c", PRINT)
        assert ended.code == 4
        assert cli.run("repair").code == 5
    more = "&" if "?" in postgres_url else "?"
    again = Cli(f"{postgres_url}{more}application_name=other", cli.environment)
    assert [row["outcome"] for row in again.ok("repair", "--json").records] == ["recorded"]
    assert cli.ok("show", "--stream", "stdout").stdout == ended.stdout
    assert cli.ok("verify").code == 0


def test_a_record_for_another_store_is_said_and_left(cli: Cli, tmp_path: Path) -> None:
    spool = cli.folder / "spool"
    other = WantedStore(database=str(tmp_path / "other.db"))
    aside = set_aside_whole(spool, other, stdout=b"x" * 9_000)
    status = status_of(cli)["set_aside"]
    assert (status["foreign"], status["ready"], status["oldest_at"]) == (1, 0, None)
    assert status["oldest_foreign_at"] is not None
    assert status["foreign_databases"] == [f"{tmp_path}/other.db"]
    said = cli.ok("status").message
    assert f"1 record set aside for {tmp_path}/other.db, the oldest of " in said
    ended = cli.ok("repair")
    assert ended.lines[1].endswith(f"it is for {tmp_path}/other.db")
    assert "1 record set aside for another store: left\n" in ended.message
    assert (aside.folder / "stdout.zst").is_file()
    assert "repair" not in cli.ok("log").message


def test_a_record_that_was_edited_is_named_and_not_all_is_done(cli: Cli) -> None:
    with cli.open() as store:
        aside = set_aside_whole(cli.folder / "spool", wanted(store), stdout=b"x")
        set_aside_whole(cli.folder / "spool", wanted(store), stdout=b"y")
    path = aside.folder / "record.json"
    path.write_text(path.read_text().replace("make", "move"))
    assert status_of(cli)["set_aside"]["unreadable"] == 1
    assert "1 record set aside and not as written" in cli.ok("status").message
    for _ in range(2):
        ended = cli.run("repair")
        assert ended.code == 4
        assert f"{path} was altered: it is not what its digest names; left in" in ended.text
        assert "1 record set aside and not as it was written: left\n" in ended.message
    assert len(cli.ok("log", "--json").records) == 1


def flushed(path: Path) -> int:
    """Bytes in the whole frames of a spool file."""
    with path.open("rb") as stored:
        return sum(map(len, SpoolReader(stored, str(path))))


def killed_exec(cli: Cli, streams: str) -> bytes:
    """What the command of an exec printed that was killed in the middle of it."""
    code = "import os; os.write(1, b'so far\\n' * 9_000); os.read(0, 1)"
    process = cli.start(
        *("exec", "--", *python(code)),
        stdin=subprocess.PIPE,
        env=without_coverage(cli.full_environment),
    )
    stdout = process.stdout
    assert stdout
    said = b""
    while len(said) < 7 * 9_000:
        said += stdout.read(65_536)
    while sum(map(flushed, (cli.folder / "spool").glob(streams))) < len(said):
        assert process.poll() is None
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    with process:
        process.wait(60)
    return said


def test_what_was_killed_while_the_store_was_away_is_interrupted(cli: Cli) -> None:
    lose_store(cli)
    said = killed_exec(cli, "aside-*/stdout.zst")
    find_store(cli)
    status = status_of(cli)["set_aside"]
    assert (status["ready"], status["unfinished"]) == (0, 1)
    assert "1 record set aside while this store was away, 1 of killed programs" in (
        cli.ok("status").message
    )
    assert [row["outcome"] for row in cli.ok("repair", "--json").records] == ["interrupted"]
    assert cli.ok("show", "--stream", "stdout").stdout == said
    (row,) = cli.ok("log", "--json").records
    assert (row["state"], row["duration_ms"]) == ("interrupted", None)
    (session,) = cli.ok("session", "ls", "--json").records
    assert session["closed_at"]


def test_what_runs_while_the_store_is_away_is_left_alone(cli: Cli) -> None:
    lose_store(cli)
    code = "import os; os.write(1, b'begun\\n'); os.read(0, 1)"
    process = cli.start("exec", "--", *python(code), stdin=subprocess.PIPE)
    try:
        assert process.stdout
        assert process.stdout.readline() == b"begun\n"
        find_store(cli)
        assert status_of(cli)["set_aside"]["running"] == 1
        assert "1 running invocation being set aside" in cli.ok("status").message
        assert [row["outcome"] for row in cli.ok("repair", "--json").records] == ["running"]
        process.communicate(b".", timeout=60)
    except BaseException:
        kill_group(process)
        raise
    assert process.returncode == 0
    assert [row["outcome"] for row in cli.ok("repair", "--json").records] == ["recorded"]


def test_the_own_session_of_a_killed_exec_is_closed_with_its_call(cli: Cli) -> None:
    killed_exec(cli, "*/stdout.zst")
    (session,) = cli.ok("session", "ls", "--json").records
    assert session["closed_at"] is None
    cli.ok("repair")
    (session,) = cli.ok("session", "ls", "--json").records
    assert session["closed_at"]
    with cli.open() as store:
        (view,) = store.reader.sessions()
        *_, closed = ledger_of(store, view.id)
    assert (closed.kind, closed.payload) == (
        "session.closed",
        {"reason": "its only call was interrupted"},
    )


def without_spool(cli: Cli) -> str:
    """The id of an invocation whose output had to wait, and is gone."""
    root, disk = cli.folder / "artifacts", cli.folder / "disk"
    root.rename(disk)
    assert "the artifact root is unavailable" in cli.exec("--", "seq", "9000").message
    ended = cli.ok("log")
    assert ended.message == (
        "tooltrail: 1 invocation with output that waits for the artifacts: `tooltrail repair`\n"
    )
    message = cli.ok("status").message
    assert ": `tooltrail repair` stores it when the artifacts are back\n" in message
    disk.rename(root)
    (row,) = cli.ok("log", "--json").records
    return str(row["id"])


def test_output_that_waits_is_counted_and_stored(cli: Cli) -> None:
    without_spool(cli)
    waiting = status_of(cli)["waiting_streams"]
    assert (waiting["here"], waiting["missing"]) == (1, 0)
    (row,) = cli.ok("log", "--json").records
    assert waiting["oldest_at"] == row["finished_at"]
    message = cli.ok("status", "--utc").message
    assert "1 invocation has ended with output that waits in the spool, the oldest of 2" in message
    assert ": `tooltrail repair` stores it\n" in message
    assert (message.count("invocation"), message.count("`tooltrail repair`")) == (1, 1)
    assert cli.ok("log").message == (
        "tooltrail: 1 invocation with output that waits for the artifacts: `tooltrail repair`\n"
    )
    assert cli.run("show", "--stream", "stdout").code == 5
    cli.ok("repair")
    assert set(status_of(cli)["waiting_streams"].values()) == {0, None}


def test_output_that_waited_in_a_spool_that_is_gone_is_missing(cli: Cli) -> None:
    name = without_spool(cli)
    shutil.rmtree(cli.folder / "spool" / name)
    waiting = status_of(cli)["waiting_streams"]
    assert (waiting["here"], waiting["missing"]) == (0, 1)
    assert waiting["oldest_missing_at"] is not None
    assert "1 stream neither stored nor in this spool" in cli.ok("status").message
    missing = f"is not in the spool {cli.folder}/spool; if it was recorded with another spool"
    shown = cli.run("show", name, "--stream", "stdout")
    assert shown.code == 4
    assert "stream stdout is missing: it was not stored when its call ended (" in shown.sentence
    for arguments in (
        ("show", name, "--stream", "stdout"),
        ("show", name),
        ("show", name, "--json"),
        ("verify",),
    ):
        ended = cli.run(*arguments)
        assert ended.code == 4
        assert missing in ended.text + ended.message
        assert "tooltrail repair" not in ended.text + ended.message
    assert cli.ok("repair").stdout == b""


def test_a_start_that_was_recorded_although_nobody_said_so_is_one_record(
    postgres_url: str, tmp_path: Path
) -> None:
    make_store(postgres_url, artifacts=str(tmp_path / "artifacts")).close()
    cli = Cli(postgres_url, {"TOOLTRAIL_SPOOL": str(tmp_path / "spool")})
    with LossyServer(postgres_url).running() as server:
        server.lose_an_answer()
        ended = Cli(server.url, cli.environment).exec("--", "sh", "-c", PRINT)
    (row,) = cli.ok("log", "--json").records
    assert (ended.code, row["state"]) == (4, "started")
    assert f"whether the start of invocation {row['id']} is recorded is not known" in ended.message
    assert "the record waits in the outbox; `tooltrail repair` stores it" in ended.message

    assert [one["outcome"] for one in cli.ok("repair", "--json").records] == ["stored"]

    (again,) = cli.ok("log", "--json").records
    assert (again["id"], again["state"], again["exit_status"]) == (row["id"], "success", 4)
    assert cli.ok("show", "--stream", "stdout").stdout == ended.stdout
    (session,) = cli.ok("session", "ls", "--json").records
    assert session["closed_at"]
    assert cli.ok("repair", "--json").records == []
    assert cli.ok("verify").code == 0
    assert left_in(tmp_path / "spool") == []


@pytest.mark.parametrize("is_committed", [True, False])
def test_an_end_of_which_nobody_knows_whether_it_is_recorded_is_recorded_once(
    postgres_url: str, tmp_path: Path, is_committed: bool
) -> None:
    make_store(postgres_url, artifacts=str(tmp_path / "artifacts")).close()
    cli = Cli(postgres_url, {"TOOLTRAIL_SPOOL": str(tmp_path / "spool")})
    with LossyServer(postgres_url).running() as server:
        server.lose_an_answer(END, is_committed=is_committed)
        ended = Cli(server.url, cli.environment).exec("--", "sh", "-c", PRINT)
    (row,) = cli.ok("log", "--json").records
    assert (ended.code, row["state"]) == (4, "success" if is_committed else "started")
    waits = "tooltrail: the record waits in the outbox; `tooltrail repair` stores it\n"
    assert ended.message == f"err\n{waits}"
    (one,) = cli.ok("repair", "--json").records
    assert one["outcome"] == "cleared"
    (row,) = cli.ok("log", "--json").records
    assert (row["state"], row["exit_status"]) == ("success", 4)
    assert left_in(tmp_path / "spool") == []
    assert cli.ok("show", "--stream", "stdout").stdout == ended.stdout
    assert cli.ok("verify").code == 0
