"""The schema of a store, for operators."""

from contextlib import closing
from pathlib import Path

import pytest
from tests.support.cli import Cli, on_a_terminal
from tests.support.keeping import ingested

from tooltrail.cli._output import size_of
from tooltrail.store.engines.sqlite_library import sqlite3


def alter(cli: Cli, *statements: str) -> None:
    with closing(sqlite3.connect(cli.database, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def test_current_prints_the_revision_and_whether_it_is_head(cli: Cli) -> None:
    assert cli.ok("db", "current").text == "0001 (head)\n"
    (record,) = cli.ok("db", "current", "--json").records
    assert record == {"schema_version": 1, "revision": "0001", "head": "0001"}


def test_current_of_another_revision_is_printed_and_not_at_head(cli: Cli) -> None:
    alter(cli, "UPDATE tooltrail_version SET version_num = '0000'")
    ended = cli.run("db", "current", "--json")
    assert ended.code == 5
    assert ended.records == [{"schema_version": 1, "revision": "0000", "head": "0001"}]
    assert ended.message == "this program needs revision 0001\n"


def test_upgrade_at_head_changes_nothing(cli: Cli) -> None:
    ended = cli.ok("db", "upgrade")
    assert (ended.text, ended.message) == ("", "already at 0001\n")


def test_check_of_a_sound_store_finds_nothing(cli: Cli) -> None:
    ended = cli.ok("db", "check")
    assert (ended.text, ended.message) == ("", "no problem found\n")
    assert cli.ok("db", "check", "--json").records == []


@pytest.mark.parametrize(
    ("kind", "name"),
    [("trigger", "bodies_no_delete"), ("table", "tombstones"), ("table", "store_info")],
)
def test_check_names_what_is_missing(cli: Cli, kind: str, name: str) -> None:
    problem = f"{'append-only ' if kind == 'trigger' else ''}{kind} {name} is missing"
    with cli.open() as store:
        ingested(store, b"kept\n")
    alter(cli, f"DROP {kind} {name}")
    ended = cli.run("db", "check")
    assert ended.code == 1
    assert problem in ended.lines
    count = len(ended.lines)
    assert ended.message == f"{count} problem{'s' if count > 1 else ''} found\n"
    found = cli.run("db", "check", "--json")
    assert found.code == 1
    assert {"schema_version": 1, "problem": problem} in found.records


def test_check_of_a_cut_database_does_not_refer_to_itself(cli: Cli) -> None:
    with Path(cli.database).open("r+b") as file:
        file.truncate(100_000)
    assert cli.run("log").sentence.endswith("; `tooltrail db check` names the tables")
    ended = cli.run("db", "check")
    assert ended.code == 1
    assert f"database {cli.database} is damaged" in ended.text
    assert "db check" not in ended.text


def test_check_shows_a_bar_on_a_terminal(cli: Cli) -> None:
    seen = on_a_terminal(cli, "db", "check", columns=80)
    assert "checking" in seen
    assert seen.endswith("no problem found\n")


# Copies


def test_backup_says_how_large_it_is_and_where_what_is_not_in_it_is(
    cli: Cli, tmp_path: Path
) -> None:
    with cli.open() as store:
        ingested(store, b"a long line\n" * 20_000)
    copy = tmp_path / "copy.db"
    ended = cli.ok("db", "backup", str(copy))
    assert ended.text == ""
    size = size_of(copy.stat().st_size)
    artifacts = f"{cli.folder}/artifacts"
    assert ended.message == (
        f"{copy}: {size}, the complete database at revision 0001\n"
        f"the copy does not contain the artifacts, which are in {artifacts}; "
        "pass --artifacts to open the copy as a store\n"
    )
    other = Cli(str(copy), {"TOOLTRAIL_ARTIFACTS": artifacts})
    assert other.ok("verify").text == ""
    assert other.ok("db", "check").message == "no problem found\n"
    assert other.ok("log", "--json").text == cli.ok("log", "--json").text


def test_a_backup_has_what_waited_in_the_journal(cli: Cli, tmp_path: Path) -> None:
    assert cli.exec("--", "echo", "waits").code == 0
    cli.ok("db", "backup", str(tmp_path / "copy.db"))
    ended = Cli(str(tmp_path / "copy.db")).ok("log", "--json")
    assert [one["arguments_preview"] for one in ended.records] == ["echo waits"]


def test_a_backup_without_what_waits_in_the_journal_is_incomplete(cli: Cli, tmp_path: Path) -> None:
    with cli.open() as store:
        ingested(store, b"a line\n")
    alter(cli, "UPDATE journals SET segment_offset = 'x'")
    assert cli.exec("--", "echo", "waits").code == 0
    ended = cli.run("db", "backup", str(tmp_path / "copy.db"))
    assert ended.code == 4
    assert "newer facts may wait in" in ended.message
    assert len(Cli(str(tmp_path / "copy.db")).ok("log", "--json").records) == 1


def test_backup_tells_a_program_the_same(cli: Cli, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    (record,) = cli.ok("db", "backup", str(copy), "--json").records
    with cli.open() as store:
        assert record == {
            "schema_version": 1,
            "path": str(copy),
            "size": copy.stat().st_size,
            "revision": "0001",
            "store_id": str(store.info.id),
            "artifacts": f"{cli.folder}/artifacts",
        }


def test_check_finds_in_a_copy_the_damage_of_the_original(cli: Cli, tmp_path: Path) -> None:
    with closing(sqlite3.connect(cli.database)) as connection:
        ((size,),) = connection.execute("PRAGMA page_size")
        ((page,),) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'tools'")
    with Path(cli.database).open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(bytes(size))
    copy = str(tmp_path / "copy.db")
    cli.ok("db", "backup", copy)
    assert cli.run("db", "check", "--db", copy).code == 1
    said = " ".join(cli.ok("db", "backup", "--help").text.split())
    assert "Run `db check --db TARGET` before you rely on the copy." in said


def test_backup_overwrites_nothing(cli: Cli, tmp_path: Path) -> None:
    there = tmp_path / "mine"
    there.write_bytes(b"mine")
    ended = cli.run("db", "backup", str(there))
    assert (ended.code, ended.sentence) == (2, f"{there} is there already; nothing was overwritten")
    assert there.read_bytes() == b"mine"
