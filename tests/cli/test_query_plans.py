"""What the reading commands ask of the database: by a key or an index, and never all bodies."""

import re
import subprocess
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from tests.support.cli import Cli
from tests.support.large_store import make_large_store
from tests.support.recording import fail_tool, run_command, run_tool

from tooltrail.store import create_store, open_store
from tooltrail.store.engines.connection import Connection

LARGE = {
    *("bodies", "surfaces", "streams", "omissions", "invocation_artifacts", "ledger_entries"),
    "messages",
}
"""Tables of which a command may look rows up, and never go through all."""

HEAVY = {
    *("sqlalchemy", "alembic", "psycopg", "pydantic", "fsspec", "zstandard", "rich", "asyncio"),
    *("tooltrail.records.families", "tooltrail.records.projection", "dataclasses"),
    *("hashlib", "shutil", "secrets", "tooltrail.artifacts._scratch"),
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
    ("--failed",),
    ("--ok",),
    ("--signal", "KILL"),
    ("--exit-code", "!=0"),
    ("--error-kind", "tool_execution_failed"),
    ("--agent", "coder"),
    ("--exit-code", "1"),
    ("--since", "2024-01-01"),
    ("--until", "2030-01-01"),
    ("--min-size", "10"),
    ("--tool", "Bash", "--state", "error"),
    ("--session", "@last", "--failed"),
    ("--agent", "coder", "--since", "2024-01-01"),
    ("--where", "tool = Bash and exit_status != 0"),
    ("--where", 'arguments.command ~ "make" and not result.exit_status = 1'),
    ("--where", "cut > 3 or error is not null", "--tool", "Bash"),
    ("--sort", "cut"),
    ("--sort", "cut", "--session", "@last"),
    ("--sort", "cut", "--tool", "Bash"),
)

Asked = tuple[str, Sequence[Any]]


def commands_of(database: str) -> list[tuple[str, ...]]:
    """Every way of reading a list, an invocation or a session."""
    with open_store(database) as store:
        newest = store.reader.invocation("@last").summary
        path = store.reader.artifacts()[0].path
    lists = [("log", *where, "-n", str(n)) for where in ((), *FILTERS) for n in (0, 1)]
    shown = [
        ("show", name)
        for name in (
            str(newest.id),
            newest.id.hex[:16],
            newest.id.hex[-8:],
            "@last",
            "@last:Read",
            f"@last#{newest.seq}",
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
        ("session", "ls", "--tool", "Bash", "-n", "1"),
        ("session", "ls", "--tool", "Rare"),
        ("artifact", "ls"),
        ("artifact", "ls", "--session", "@last"),
        ("artifact", "ls", "--invocation", "@last"),
        ("artifact", "stat", path),
        ("artifact", "cat", path),
    ]


@contextmanager
def statements() -> Generator[list[Asked]]:
    """Every query of the block, with its values."""
    seen: list[Asked] = []
    query = Connection.query

    def asked(one: Connection, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        seen.append((sql, values))
        return query(one, sql, values)

    with patch.object(Connection, "query", asked):
        yield seen


def asked_by(cli: Cli, *arguments: str) -> list[Asked]:
    """The questions that a command asks; it must have had an answer."""
    with statements() as seen:
        ended = cli.run(*arguments)
    assert ended.code in (0, 4), ended.message
    return [one for one in seen if one[0].lstrip().startswith(("SELECT", "WITH"))]


def is_bad(table: str, sql: str) -> bool:
    """Whether a query must not go through a table. Some filters are counted row by row."""
    return table in LARGE or (table == "invocations" and not sql.startswith("SELECT count(*)"))


def scans_of_sqlite(connection: Connection, sql: str, values: Sequence[Any]) -> list[str]:
    """Tables that a query goes through from end to end."""
    plan = connection.query(f"EXPLAIN QUERY PLAN {sql}", values)
    steps = [re.match(r"SCAN (\w+?)(_\d+)?( USING (COVERING )?INDEX \w+)?$", p[3]) for p in plan]
    # The list of invocations is read along an index, and ends when the page is full.
    return [found[1] for found in steps if found and not (found[1] == "invocations" and found[3])]


def scans_of_postgresql(connection: Connection, sql: str, values: Sequence[Any]) -> list[str]:
    if "pg_" in sql or "current_schema" in sql:
        return []
    # Of so few rows all would be read: whether they can be found is the question.
    connection.run("SET LOCAL enable_seqscan = off")
    plan = "\n".join(row[0] for row in connection.query(f"EXPLAIN {sql}", values))
    return re.findall(r"Seq Scan on (\w+)", plan)


Scans = Callable[[Connection, str, Sequence[Any]], list[str]]


def large_scans(cli: Cli, scans: Scans) -> dict[str, str]:
    """The large tables that a command goes through, and one such command for each."""
    bad: dict[str, str] = {}
    for arguments in commands_of(cli.database):
        asked = asked_by(cli, *arguments)
        with open_store(cli.database) as store, store.database.read() as connection:
            for sql, values in asked:
                for table in scans(connection, sql, values):
                    if is_bad(table, sql):
                        bad[table] = f"{arguments}: {sql}"
    return bad


def test_no_command_goes_through_a_large_table_on_sqlite(tmp_path: Path) -> None:
    make_large_store(tmp_path / "trail.db", 600)
    assert large_scans(Cli(str(tmp_path / "trail.db")), scans_of_sqlite) == {}


def test_no_command_goes_through_a_large_table_on_postgresql(
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
    assert large_scans(cli, scans_of_postgresql) == {}


@pytest.mark.parametrize(
    ("where", "index"),
    [
        (("--tool", "Bash"), "ix_surfaces_cut_size"),
        (("--tool", "Bash", "--exit-code", "1"), "ix_invocations_"),
    ],
)
def test_a_list_by_what_was_cut_begins_with_the_fewest_calls(
    tmp_path: Path, where: Sequence[str], index: str
) -> None:
    make_large_store(tmp_path / "trail.db", 300)
    asked = asked_by(Cli(str(tmp_path / "trail.db")), "log", "--sort", "cut", *where)
    with open_store(tmp_path / "trail.db") as store, store.database.read() as connection:
        plans = [
            [step[3] for step in connection.query(f"EXPLAIN QUERY PLAN {sql}", values)]
            for sql, values in asked
            if "cut_size" in sql
        ]
    assert plans
    for plan in plans:
        steps = [step for step in plan if step.startswith(("SEARCH", "SCAN"))]
        assert index in steps[0]


def test_status_looks_up_environments_and_no_other_body(tmp_path: Path) -> None:
    make_large_store(tmp_path / "trail.db", 300)
    cli = Cli(str(tmp_path / "trail.db"))
    asked = [(sql, len(values)) for sql, values in asked_by(cli, "status") if "bodies" in sql]
    assert all("WHERE digest" in sql for sql, _ in asked)
    with open_store(tmp_path / "trail.db") as store:
        assert sum(count for _, count in asked) <= len(store.reader.sessions(limit=1000))
    assert [sql for sql, _ in asked_by(cli, "status", "--bodies") if "bodies" in sql]


LISTS = ("log", "log --json", "log -n 2 --reverse --utc")
OTHERS = (
    *("show", "status", "transcript", "artifact ls", "stats", "retries", "search line"),
    *("cat --bytes 0:5 {}", "cat --lines 1 {}", "head -n 1 {}", "tail -n 1 {}", "grep line {}"),
)
RUN_ALL = """
import sys
from tooltrail.cli._app import app
from tooltrail.cli._failures import run
for line in {commands!r}:
    sys.argv = ["tooltrail", *line.split()]
    assert run(app) == 0, line
print("\\n", *sys.modules, file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("commands", "may_import"),
    [(LISTS, set[str]()), (OTHERS, {"zstandard", "dataclasses", "hashlib", "shutil"})],
    ids=["log", "others"],
)
def test_commands_that_read_import_nothing_heavy(
    tmp_path: Path, commands: tuple[str, ...], may_import: set[str]
) -> None:
    database = tmp_path / "trail.db"
    with create_store(database) as store, store.open_session() as session:
        run_command(session, b"a line\n" * 9_000)
        path = store.reader.artifacts()[0].path
    code = RUN_ALL.format(commands=[one.format(path) for one in commands])
    environment = Cli(str(database), {"XDG_STATE_HOME": str(tmp_path)}).full_environment
    # A measured run would start coverage in the child, which imports some of these.
    quiet = {name: value for name, value in environment.items() if not name.startswith("COV")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, env=quiet)
    assert done.stdout.count(b"Bash") >= len(LISTS)
    assert set(done.stderr.decode().splitlines()[-1].split()) & HEAVY <= may_import
