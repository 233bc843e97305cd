"""Queries that people write: they read, and nothing else."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.cli import PROGRAM, Cli, on_a_terminal
from tests.support.recording import run_command

from tooltrail.records import ToolCall
from tooltrail.store import create_store

WRITES = (
    *("DELETE FROM store_info", "UPDATE sessions SET title = 'x'"),
    *("INSERT INTO tombstones SELECT * FROM tombstones", "DROP TABLE sessions"),
    *("CREATE TABLE mine (a int)", "CREATE TEMP TABLE mine (a int)", "BEGIN", "COMMIT", "VACUUM"),
    *("SELECT 1; SELECT 2", "SELECT 1; COMMIT; CREATE TABLE mine (a int)"),
)
OF_SQLITE = (
    *("PRAGMA query_only = OFF", "PRAGMA journal_mode = DELETE", "ATTACH 'mine.db' AS mine"),
    *("DETACH main", "VACUUM INTO 'mine.db'", "SELECT load_extension('mine')", "REINDEX"),
)
OF_SERVER = (
    "COPY sessions TO STDOUT",
    "SET TRANSACTION READ WRITE",
    "SELECT set_config('transaction_read_only', 'off', false)",
    "WITH gone AS (DELETE FROM sessions RETURNING 1) SELECT * FROM gone",
    "SELECT lo_create(0)",
    "DO $$ BEGIN END $$",
)


# Its own process, because the peak of children is the peak of all children ever waited for.
MEASURE = """
import resource, subprocess, sys
with subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE) as process:
    size = sum(map(len, iter(lambda: process.stdout.read(65536), b"")))
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
print(peak * (1 if sys.platform == "darwin" else 1024), size)
sys.exit(process.returncode)
"""


@pytest.fixture
def recorded(database: str, tmp_path: Path) -> Cli:
    """A store with two calls."""
    with (
        create_store(database, artifacts=str(tmp_path / "a"), spool=tmp_path / "spool") as store,
        store.open_session(title="\x1b[31mred\u202e", agent="Ada") as session,
    ):
        run_command(session, call=ToolCall.of("Bash", {"command": "a, b"}))
        run_command(session, exit_status=1)
    return Cli(database, {"TOOLTRAIL_SPOOL": str(tmp_path / "spool")})


def is_server(cli: Cli) -> bool:
    return cli.database.startswith("postgres")


def test_rows_are_printed_in_every_style(recorded: Cli) -> None:
    query = "SELECT seq, tool_name AS tool, exit_status FROM v_invocations ORDER BY seq"
    version = {"schema_version": 1}
    rows = [
        {"seq": 1, "tool": "Bash", "exit_status": 0},
        {"seq": 2, "tool": "Bash", "exit_status": 1},
    ]
    assert recorded.ok("sql", query, "--json").records == [{**version, **row} for row in rows]
    assert [json.loads(line) for line in recorded.ok("sql", query, "--ndjson").lines] == [
        {**version, **row} for row in rows
    ]
    assert (
        recorded.ok("sql", query, "--csv", "--fields", "tool,seq").text
        == "tool,seq\nBash,1\nBash,2\n"
    )
    assert [line.split() for line in recorded.ok("sql", query).lines] == [
        ["seq", "tool", "exit_status"],
        ["1", "Bash", "0"],
        ["2", "Bash", "1"],
    ]
    assert (
        recorded.ok("sql", f"{query.replace('ORDER', 'WHERE seq > 9 ORDER')};", "--json").text
        == "[]\n"
    )


def test_without_a_query_the_columns_of_the_views_are_listed(recorded: Cli) -> None:
    rows = recorded.ok("sql", "--json").records
    for view in {row["view"] for row in rows}:
        names = [row["column"] for row in rows if row["view"] == view]
        assert recorded.ok("sql", f"SELECT * FROM {view} WHERE 1 = 0", "--csv").text == (
            f"schema_version,{','.join(names)}\n"
        )
    assert {row["view"] for row in rows} == {
        "v_invocations",
        "v_sessions",
        "v_artifacts",
        "v_omissions",
    }


@pytest.mark.both_engines
def test_every_table_can_be_read(recorded: Cli) -> None:
    with recorded.open() as store, store.database.read() as connection:
        # The index of words is a virtual table, which can only be asked for words.
        names = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE '%VIRTUAL%'"
        if not connection.is_sqlite:
            names = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
        tables = [row[0] for row in connection.query(names)]
        counts = {name: len(connection.query(f"SELECT * FROM {name}")) for name in tables}
    for name, count in counts.items():
        for style in ("--json", "--csv"):
            assert len(recorded.ok("sql", f"SELECT * FROM {name}", style).lines) >= count
        recorded.ok("sql", f"SELECT * FROM {name}")
    assert recorded.ok("sql", "SELECT id FROM sessions", "--csv").lines[1].count(",") == 1


def test_a_column_that_has_the_name_of_another_gets_a_number(recorded: Cli) -> None:
    assert recorded.ok("sql", "SELECT 1 AS a, 2 AS a, 3 AS a_2", "--csv").lines[0] == (
        "schema_version,a,a_2,a_2_2"
    )


@pytest.mark.both_engines
def test_nothing_but_reading_is_possible(recorded: Cli, tmp_path: Path) -> None:
    before = recorded.ok("sql", "SELECT * FROM v_sessions", "--json").text
    for query in (*WRITES, *(OF_SERVER if is_server(recorded) else OF_SQLITE)):
        ended = recorded.run("sql", query)
        assert ended.code == 2, query
        assert ended.sentence.startswith(("a query", "the query failed: ")), query
        assert ended.text == ""
    assert recorded.ok("sql", "SELECT * FROM v_sessions", "--json").text == before
    assert recorded.run("sql", "SELECT * FROM mine").code == 2
    assert not list(tmp_path.glob("**/mine*"))


@pytest.mark.both_engines
def test_a_mistake_is_one_sentence(recorded: Cli) -> None:
    for query in ("", " ", "selec", "SELECT nothing", "SELECT * FROM nowhere", "SELECT ("):
        ended = recorded.run("sql", query)
        assert (ended.code, ended.text) == (2, "")
        assert ended.sentence.startswith(("a query is needed", "the query failed: "))
    assert "can only read" in recorded.run("sql", "DELETE FROM sessions").sentence
    ended = recorded.run("sql", "SELECT '\udcff'")  # a byte that is not UTF-8
    assert (ended.code, ended.sentence) == (2, "a database takes no text that is not UTF-8")


@pytest.mark.both_engines
def test_hostile_text_drives_no_terminal(recorded: Cli) -> None:
    query = "SELECT title AS \"a\x1b[2Jb\", repeat('x', 5000) AS y FROM v_sessions"
    if not is_server(recorded):
        query = query.replace("repeat('x', 5000)", "printf('%.*c', 5000, 'x')")
    for text in (recorded.ok("sql", query).text, on_a_terminal(recorded, "sql", query, columns=80)):
        assert "\x1b[2J" not in text
        assert "\x1b[31m" not in text
        assert "\u202e" not in text
        assert "red" in text
    ended = recorded.run("sql", "SELECT '\x1b[31m' FROM nowhere")
    assert "\x1b" not in ended.message
    assert recorded.ok("sql", query, "--json").records[0]["y"] == "x" * 5000


def test_a_table_has_a_thousand_rows(recorded: Cli) -> None:
    query = (
        "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 1001)"
        " SELECT n FROM c WHERE n <= {}"
    )
    ended = recorded.ok("sql", query.format(1001))
    assert len(ended.lines) == 1 + 1000
    assert ended.message == "only the first 1,000 rows; --csv, --json or --ndjson for all\n"
    assert recorded.ok("sql", query.format(1000)).message == ""
    assert len(recorded.ok("sql", query.format(1001), "--json").records) == 1001


def peak_of(cli: Cli, rows: int, style: str) -> int:
    """The peak memory in bytes of a query that yields rows of 10 kB."""
    row = "repeat('x', 10000)" if is_server(cli) else "printf('%.*c', 10000, 'x')"
    query = (
        "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c"
        f" WHERE n < {rows}) SELECT n, {row} AS x FROM c"
    )
    command = [sys.executable, "-c", MEASURE, *PROGRAM, "sql", query, style]
    ran = subprocess.run(command, env=cli.full_environment, capture_output=True, check=True)
    peak, size = map(int, ran.stdout.split())
    assert size > rows * 10_000
    return peak


@pytest.mark.both_engines
def test_rows_pass_through_at_constant_memory(recorded: Cli) -> None:
    style = "--csv" if is_server(recorded) else "--json"
    assert peak_of(recorded, 6_000, style) < peak_of(recorded, 1_000, style) + 20_000_000


@pytest.mark.both_engines
def test_a_query_that_takes_too_long_can_be_interrupted(recorded: Cli) -> None:
    endless = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n FROM c) SELECT count(*) FROM c"
    with recorded.start("sql", endless) as process:
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == -signal.SIGINT


def test_a_damaged_text_hides_no_row(cli: Cli) -> None:
    query = "SELECT CAST(x'61ff62' AS TEXT) AS a UNION ALL SELECT 'b'"
    assert cli.ok("sql", query, "--csv", "--fields", "a").lines == ["a", "a\ufffdb", "b"]
