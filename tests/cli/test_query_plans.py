"""What the reading commands ask of the database: by a key or an index, and never all bodies."""

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, text
from tests.support.away import away
from tests.support.cli import Cli
from tests.support.ended import BASH, made
from tests.support.large_store import make_large_store
from tests.support.recording import fail_tool, run_command, run_tool, statements_of

from tooltrail.store import create_store, index_invocations, open_store, repair

LARGE = {
    "bodies",
    "complete_outputs",
    "canonical_results",
    "receipts",
    "output_streams",
    "omissions",
    "invocation_artifacts",
    "ledger_entries",
    "messages",
    "range_traits",
}
"""Tables of which a command may look rows up, and never go through all."""

HEAVY = {
    *("sqlalchemy", "alembic", "pydantic", "fsspec", "zstandard", "rich", "asyncio"),
    *("tooltrail.records.families", "tooltrail.records.projection", "tooltrail.store.tables"),
}
"""What a list of the newest must not import: what records or changes, and toolkits."""

FILTERS = (
    ("--session", "@last"),
    ("--invocation", "@last"),
    ("--tool", "Bash"),
    ("--tool", "Bash", "--tool", "Read"),
    ("--family", "command"),
    ("--state", "error"),
    ("--state", "success"),
    ("--status", "error"),
    ("--error-kind", "tool_execution_failed"),
    ("--agent", "coder"),
    ("--exit-code", "1"),
    ("--since", "2024-01-01"),
    ("--until", "2030-01-01"),
    ("--min-size", "10"),
    ("--tool", "Bash", "--state", "error"),
    ("--session", "@last", "--status", "error"),
    ("--agent", "coder", "--since", "2024-01-01"),
)

RARE = (
    ("--family", "notification"),
    ("--family", "command", "--error-kind", "tool_execution_failed"),
    ("--tool", "Read", "--min-size", "10000"),
    ("--since", "2020-01-01", "--until", "2020-01-02"),
    ("--agent", "archivist", "--exit-code", "42"),
)
"""Filters that so few fit that a page of them is not found among the nearest."""


def commands_of(database: str) -> list[tuple[str, ...]]:
    """Every way of reading a list, an invocation or a session."""
    with open_store(database) as store:
        newest = store.reader.invocation("@last").summary
        path = store.reader.artifacts()[0].path
    lists = [("log", *where, "-n", str(n)) for where in ((), *FILTERS) for n in (0, 1)]
    lists += [("log", "--reverse", "--cursor", "1", *where) for where in FILTERS]
    shown = [
        ("show", name)
        for name in (
            str(newest.id),
            newest.id.hex[:16],
            newest.id.hex[-8:],
            "@last",
            "@last:Read",
            "@last#0",
        )
    ]
    return [
        *lists,
        *shown,
        ("show", "--rerender", "@last"),
        ("show", "--json", "@last"),
        ("show", "--surface", "complete", "@last"),
        ("transcript", "@last"),
        ("session", "ls"),
        ("artifact", "ls"),
        ("artifact", "ls", "--session", "@last"),
        ("artifact", "ls", "--invocation", "@last"),
        ("artifact", "stat", path),
        ("artifact", "cat", path),
    ]


def asked_by(cli: Cli, *arguments: str) -> list[tuple[str, Any]]:
    """The questions that a command asks; it must have had an answer."""
    with statements_of(Engine) as statements:
        ended = cli.run(*arguments)
    assert ended.code in (0, 4), ended.message
    return [one for one in statements if one[0].startswith(("SELECT", "WITH"))]


def scans_of_sqlite(connection: Connection, sql: str, values: Sequence[Any]) -> list[str]:
    plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {sql}", tuple(values)).all()
    return [str(row[3]) for row in plan if row[3].startswith("SCAN ")]


def is_bad_on_sqlite(step: str) -> bool:
    found = re.match(r"SCAN (\w+?)(_\d+)?( USING (COVERING )?INDEX \w+)?$", step)
    table, index = (found[1], found[3]) if found else (step, None)
    return table in LARGE or (table == "invocations" and index is None)


def test_no_command_goes_through_a_body_table_or_walks_the_hot_table_on_sqlite(
    tmp_path: Path,
) -> None:
    database = tmp_path / "trail.db"
    make_large_store(database, 2_000)
    cli = Cli(str(database))
    bad: dict[str, str] = {}
    for arguments in commands_of(str(database)):
        asked = asked_by(cli, *arguments)
        with open_store(database) as store, store.database.read() as connection:
            for sql, values in asked:
                for step in filter(is_bad_on_sqlite, scans_of_sqlite(connection, sql, values)):
                    bad[step] = f"{arguments}: {sql}"
    assert not bad


def test_no_filter_walks_the_hot_table_or_all_that_ranges_tell(tmp_path: Path) -> None:
    database = tmp_path / "trail.db"
    make_large_store(database, 6_000)
    with open_store(database) as store:
        assert index_invocations(store) == 1
    cli = Cli(str(database))
    bad: dict[str, str] = {}
    for where in (*FILTERS, *RARE):
        for order in ((), ("--reverse",), ("--cursor", "3000")):
            arguments = ("log", *where, *order, "-n", "100")
            asked = asked_by(cli, *arguments)
            assert any("range_traits" in sql for sql, _ in asked) or where not in RARE
            with open_store(database) as store, store.database.read() as connection:
                for sql, values in asked:
                    for step in filter(is_bad_on_sqlite, scans_of_sqlite(connection, sql, values)):
                        bad[step] = f"{arguments}: {sql}"
    assert not bad


def test_status_looks_at_no_body_unless_it_is_asked_to(tmp_path: Path) -> None:
    make_large_store(tmp_path / "trail.db", 300)
    cli = Cli(str(tmp_path / "trail.db"))
    assert not [sql for sql, _ in asked_by(cli, "status") if "bodies" in sql]
    assert [sql for sql, _ in asked_by(cli, "status", "--bodies") if "bodies" in sql]


def test_no_command_goes_through_a_body_table_or_the_hot_table_on_postgresql(
    postgres_url: str, tmp_path: Path
) -> None:
    with (
        create_store(postgres_url, artifacts=str(tmp_path / "a"), spool=tmp_path / "s") as store,
        store.open_session(agent="coder") as session,
    ):
        run_tool(session, "text")
        fail_tool(session)
        run_command(session, b"line\n" * 20_000)
    cli = Cli(postgres_url, {"TOOLTRAIL_SPOOL": str(tmp_path / "s")})
    bad: dict[str, str] = {}
    for arguments in commands_of(postgres_url):
        asked = asked_by(cli, *arguments)
        with open_store(postgres_url) as store, store.database.read() as connection:
            # Of so few rows all would be read: whether they can be found is the question.
            connection.execute(text("SET LOCAL enable_seqscan = off"))
            for sql, values in asked:
                for table in scanned_on_postgresql(connection, sql, values):
                    if table in LARGE | {"invocations"}:
                        bad[table] = f"{arguments}: {sql}"
    assert not bad


def scanned_on_postgresql(connection: Connection, sql: str, values: Any) -> list[str]:
    if "pg_" in sql or "version()" in sql:  # what SQLAlchemy asks when it connects
        return []
    plan = "\n".join(row[0] for row in connection.exec_driver_sql(f"EXPLAIN {sql}", values))
    return re.findall(r"Seq Scan on (\w+)", plan)


@pytest.mark.parametrize("arguments", [("log",), ("log", "-n", "3"), ("log", "--reverse")])
def test_the_newest_of_a_file_are_listed_without_the_database_toolkit(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    database = tmp_path / "trail.db"
    make_large_store(database, 300)
    cli = Cli(str(database), {"XDG_STATE_HOME": str(tmp_path / "state")})
    assert asked_by(cli, *arguments) == []
    plain = cli.ok(*arguments)
    # Anything in a spool is to be told of, which needs the store.
    (tmp_path / "spool" / "else").mkdir()
    assert len(asked_by(cli, *arguments)) > 0
    assert cli.ok(*arguments) == plain


def test_after_an_outage_the_newest_are_listed_without_the_toolkit_again(tmp_path: Path) -> None:
    database = tmp_path / "trail.db"
    cli = Cli(str(database), {"XDG_STATE_HOME": str(tmp_path / "state")})
    with create_store(database) as store:
        session = store.open_session()
        with away(store, str(database)):
            session.record(BASH, made())
        assert len(asked_by(cli, "log")) > 0
        assert "records wait in the outbox" in cli.run("log").message
        assert repair(store).outbox.delivered_count == 1
        assert store.fallback.outbox.is_there()
    assert asked_by(cli, "log") == []
    ended = cli.run("log")
    assert (ended.code, ended.message) == (0, "")
    assert ended.text.count("Bash") == 1


@pytest.mark.parametrize("arguments", [(), ("--json",), ("-n", "2", "--reverse", "--utc")])
def test_the_newest_of_a_file_are_listed_without_anything_heavy(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    database = tmp_path / "trail.db"
    with create_store(database) as store, store.open_session() as session:
        for number in range(5):
            run_command(session, exit_status=number)
    code = (
        "import sys, atexit, runpy\n"
        f"names = {HEAVY!r}\n"
        "atexit.register(lambda: print(*(names & set(sys.modules)), file=sys.stderr))\n"
        f"sys.argv = ['tooltrail', 'log', *{arguments!r}]\n"
        "runpy.run_module('tooltrail.cli', run_name='__main__')\n"
    )
    environment = Cli(str(database), {"XDG_STATE_HOME": str(tmp_path)}).full_environment
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, env=environment
    )
    assert done.stdout.count(b"Bash") == (2 if "-n" in arguments else 5)
    *_, loaded = done.stderr.split(b"\n")[:-1]
    assert loaded == b""
