"""The schema of a store, for operators."""

import sqlite3
from contextlib import closing

import pytest
from tests.support.cli import Cli
from tests.support.recording import run_command


def alter(cli: Cli, *statements: str) -> None:
    with closing(sqlite3.connect(cli.database, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def test_current_prints_the_revision_and_whether_it_is_head(cli: Cli) -> None:
    assert cli.ok("db", "current").text == "0002 (head)\n"
    (record,) = cli.ok("db", "current", "--json").records
    assert record == {"schema_version": 1, "revision": "0002", "head": "0002"}


def test_current_of_another_revision_is_printed_and_not_at_head(cli: Cli) -> None:
    alter(cli, "UPDATE tooltrail_version SET version_num = '0000'")
    ended = cli.run("db", "current", "--json")
    assert ended.code == 5
    assert ended.records == [{"schema_version": 1, "revision": "0000", "head": "0002"}]
    assert ended.message == "this program needs revision 0002\n"


def test_upgrade_at_head_changes_nothing(cli: Cli) -> None:
    ended = cli.ok("db", "upgrade")
    assert (ended.text, ended.message) == ("", "at 0002 already\n")


def test_check_of_a_sound_store_finds_nothing(cli: Cli) -> None:
    ended = cli.ok("db", "check")
    assert (ended.text, ended.message) == ("", "no problem found\n")
    assert cli.ok("db", "check", "--json").records == []


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("DROP TRIGGER receipts_no_delete", "append-only trigger receipts_no_delete is missing"),
        (
            "ALTER TABLE sessions RENAME COLUMN agent_digest TO other",
            "column sessions.agent_digest is missing",
        ),
        ("DROP TABLE holds", "table holds is missing"),
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


def test_check_names_a_row_that_points_nowhere(cli: Cli) -> None:
    with cli.open() as store:
        run_command(store.open_session(), b"kept\n")
    alter(cli, "DROP TRIGGER bodies_no_delete", "DELETE FROM bodies")
    ended = cli.run("db", "check")
    assert ended.code == 1
    assert "row 1 of invocations refers to a row of bodies that is missing" in ended.lines
