"""The schema of a store, for operators."""

from contextlib import closing
from pathlib import Path

import pytest
from tests.support.cli import Cli, on_a_terminal
from tests.support.large_store import make_large_store
from tests.support.recording import run_command, with_frame_index

from tooltrail.cli._output import size_of
from tooltrail.store._engines.sqlite import sqlite3


def alter(cli: Cli, *statements: str) -> None:
    with closing(sqlite3.connect(cli.database, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def test_current_prints_the_revision_and_whether_it_is_head(cli: Cli) -> None:
    assert cli.ok("db", "current").text == "0007 (head)\n"
    (record,) = cli.ok("db", "current", "--json").records
    assert record == {"schema_version": 1, "revision": "0007", "head": "0007"}


def test_current_of_another_revision_is_printed_and_not_at_head(cli: Cli) -> None:
    alter(cli, "UPDATE tooltrail_version SET version_num = '0000'")
    ended = cli.run("db", "current", "--json")
    assert ended.code == 5
    assert ended.records == [{"schema_version": 1, "revision": "0000", "head": "0007"}]
    assert ended.message == "this program needs revision 0007\n"


def test_upgrade_at_head_changes_nothing(cli: Cli) -> None:
    ended = cli.ok("db", "upgrade")
    assert (ended.text, ended.message) == ("", "at 0007 already\n")


def test_check_of_a_sound_store_finds_nothing(cli: Cli) -> None:
    ended = cli.ok("db", "check")
    assert (ended.text, ended.message) == ("", "no problem found\n")
    assert cli.ok("db", "check", "--json").records == []


def test_index_makes_anew_what_lists_are_found_by(tmp_path: Path) -> None:
    make_large_store(tmp_path / "trail.db", 6_000)
    cli = Cli(str(tmp_path / "trail.db"))
    ended = cli.ok("db", "index")
    assert (ended.text, ended.message) == ("", "1 range of invocations made\n")
    alter(cli, "UPDATE range_traits SET members = x'00' WHERE trait = 0")
    checked = cli.run("db", "check")
    assert (checked.code, checked.message) == (1, "1 problem found\n")
    assert checked.text.startswith("range 0 of invocations tells what they are not")
    cli.ok("db", "index")
    assert cli.ok("db", "check").text == ""


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("DROP TRIGGER receipts_no_delete", "append-only trigger receipts_no_delete is missing"),
        (
            "ALTER TABLE sessions RENAME COLUMN agent_digest TO other",
            "column sessions.agent_digest is missing",
        ),
        ("DROP TABLE holds", "table holds is missing"),
        ("DROP TABLE store_info", "table store_info is missing"),
        ("DROP INDEX ix_invocations_started_at", "index ix_invocations_started_at is missing"),
        (
            "CREATE TRIGGER quiet BEFORE INSERT ON receipts BEGIN SELECT RAISE(IGNORE); END",
            "trigger quiet of table receipts is no part of the schema",
        ),
    ],
)
def test_check_names_what_is_missing(cli: Cli, statement: str, problem: str) -> None:
    with cli.open() as store:
        run_command(store.open_session(), b"kept\n")
    alter(cli, statement)
    ended = cli.run("db", "check")
    assert ended.code == 1
    assert problem in ended.lines
    count = len(ended.lines)
    assert ended.message == f"{count} problem{'s' if count > 1 else ''} found\n"
    found = cli.run("db", "check", "--json")
    assert found.code == 1
    assert {"schema_version": 1, "problem": problem} in found.records


def test_check_names_a_store_without_a_row_of_its_own(cli: Cli) -> None:
    alter(cli, "DROP TRIGGER store_info_no_delete", "DELETE FROM store_info")
    ended = cli.run("db", "check")
    assert (ended.code, ended.lines) == (
        1,
        [
            "append-only trigger store_info_no_delete is missing",
            "table store_info has no row: the store does not know itself",
        ],
    )


def test_check_shows_a_bar_on_a_terminal(cli: Cli) -> None:
    seen = on_a_terminal(cli, "db", "check", columns=80)
    assert "checking" in seen
    assert seen.endswith("no problem found\n")


def test_check_names_a_row_that_points_nowhere(cli: Cli) -> None:
    with cli.open() as store:
        run_command(store.open_session(), b"kept\n")
    alter(cli, "DROP TRIGGER bodies_no_delete", "DELETE FROM bodies")
    ended = cli.run("db", "check")
    assert ended.code == 1
    assert "row 1 of invocations refers to a row of bodies that is missing" in ended.lines


@pytest.mark.parametrize("offset", ["the page of a table", "the head of the file"])
def test_check_of_a_damaged_file_is_a_document_all_the_same(cli: Cli, offset: str) -> None:
    with cli.open() as store:
        run_command(store.open_session(), b"kept\n")
    with closing(sqlite3.connect(cli.database)) as connection:
        (page,) = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'invocations'"
        ).fetchone()
    with Path(cli.database).open("r+b") as file:
        file.seek((page - 1) * 4_096 if offset == "the page of a table" else 0)
        file.write(bytes(4_096))
    found = cli.run("db", "check", "--json")
    assert found.code == 1
    assert found.records
    told = [record["problem"] for record in found.records]
    assert all("damaged" in one or one.startswith("integrity check: ") for one in told)
    assert len(set(told)) == len(told)
    assert found.message == cli.run("db", "check").message
    assert found.message.endswith("found\n")


def test_a_target_that_can_be_no_file_is_wrong_use(cli: Cli) -> None:
    ended = cli.run("db", "backup", "/")
    assert (ended.code, ended.text) == (2, "")
    assert "no file can have the name '/'" in ended.message


# Copies


def test_backup_says_how_large_it_is_and_where_what_is_not_in_it_is(
    cli: Cli, tmp_path: Path
) -> None:
    with cli.open() as store:
        run_command(store.open_session(), b"a long line\n" * 20_000)
    copy = tmp_path / "copy.db"
    ended = cli.ok("db", "backup", str(copy))
    assert ended.text == ""
    size = size_of(copy.stat().st_size)
    artifacts = f"{cli.folder}/artifacts"
    assert ended.message == (
        f"{copy}: {size}, the whole database at revision 0007\n"
        f"the artifacts are not in it; they are in {artifacts}, "
        "and --artifacts leads there from a store that is opened elsewhere\n"
    )
    other = Cli(str(copy), {"TOOLTRAIL_ARTIFACTS": artifacts})
    assert other.ok("verify").text == ""
    assert other.ok("db", "check").message == "no problem found\n"
    assert other.ok("log", "--json").text == cli.ok("log", "--json").text


def test_backup_tells_a_program_the_same(cli: Cli, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    (record,) = cli.ok("db", "backup", str(copy), "--json").records
    with cli.open() as store:
        assert record == {
            "schema_version": 1,
            "path": str(copy),
            "size": copy.stat().st_size,
            "revision": "0007",
            "store_id": str(store.info.id),
            "artifacts": f"{cli.folder}/artifacts",
        }


def test_backup_overwrites_nothing_and_needs_a_name(cli: Cli, tmp_path: Path) -> None:
    there = tmp_path / "mine"
    there.write_bytes(b"mine")
    ended = cli.run("db", "backup", str(there))
    assert (ended.code, ended.sentence) == (2, f"{there} is there already; nothing was overwritten")
    assert there.read_bytes() == b"mine"
    assert cli.run("db", "backup", "").usage_error == "TARGET is empty; name a file"


def test_backup_of_a_server_names_the_tool_for_it(postgres_url: str, tmp_path: Path) -> None:
    cli = Cli(postgres_url)
    ended = cli.run("db", "backup", str(tmp_path / "copy.db"))
    assert ended.code == 2
    assert "pg_dump --format=custom" in ended.sentence
    assert not (tmp_path / "copy.db").exists()


# Back to an earlier revision


def test_downgrade_is_a_dry_run_that_says_what_would_be_lost(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_frame_index(monkeypatch)
    with cli.open() as store:
        run_command(store.open_session(), b"a long line\n" * 20_000)
    before = cli.ok("log", "--json").text
    ended = cli.ok("db", "downgrade", "0001", "--json")
    assert ended.records == [
        {
            "schema_version": 1,
            "before": "0007",
            "after": "0001",
            "losses": [{"table": "artifacts", "column": "frame_index", "count": 1}],
            "dry_run": True,
        }
    ]
    assert ended.message == (
        "dry run, nothing was changed: --yes --lose-data downgrades from 0007 to 0001, "
        "and loses 1 value of artifacts.frame_index\n"
    )
    refused = cli.run("db", "downgrade", "0001", "--yes")
    assert (refused.code, refused.stdout) == (2, b"")
    assert refused.sentence == (
        "revision 0001 has no place for 1 value of artifacts.frame_index; nothing was changed"
    )
    assert cli.ok("log", "--json").text == before
    assert cli.ok("db", "check").message == "no problem found\n"


def test_downgrade_does_what_is_confirmed_and_an_upgrade_takes_it_back(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_frame_index(monkeypatch)
    with cli.open() as store:
        run_command(store.open_session(), b"a long line\n" * 20_000)
    before = cli.ok("log", "--json").text
    ended = cli.ok("db", "downgrade", "0001", "--yes", "--lose-data")
    assert ended.message == "downgraded from 0007 to 0001; lost: 1 value of artifacts.frame_index\n"
    assert cli.ok("db", "downgrade", "0001", "--yes").message == "at 0001 already\n"
    for command in ("log", "db check"):
        refused = cli.run(*command.split())
        assert refused.code == 5
        assert "run `tooltrail db upgrade`" in refused.sentence
    assert cli.run("db", "current").code == 5
    assert cli.ok("db", "upgrade").message == "upgraded from 0001 to 0007\n"
    assert cli.ok("log", "--json").text == before
    assert cli.ok("db", "check").message == "no problem found\n"


def test_downgrade_of_a_store_that_loses_nothing_says_so(cli: Cli) -> None:
    ended = cli.ok("db", "downgrade", "0001")
    assert ended.message == (
        "dry run, nothing was changed: --yes downgrades from 0007 to 0001, and loses nothing\n"
    )


def test_downgrade_to_no_revision_is_wrong_input(cli: Cli) -> None:
    ended = cli.run("db", "downgrade", "base")
    assert (ended.code, ended.sentence) == (
        2,
        "no revision is named 'base'; there are 0001, 0002, 0003, 0004, 0005, 0006, 0007",
    )
