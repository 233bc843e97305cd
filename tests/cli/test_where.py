"""The text of `--where`: what it means, and where a mistake is."""

import json
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.cli import Cli
from tests.support.recording import fail_tool, run_command

from tooltrail.cli._where import parse_where
from tooltrail.records import ToolCall
from tooltrail.store import create_store, open_store
from tooltrail.store.engines.sqlite_library import sqlite3
from tooltrail.store.expressions import PRESENT, Comparison, Every, Expression, Not, Some

TEN = datetime(2026, 1, 1, 10, tzinfo=UTC)
TOOL = Comparison("tool", "=", "a")


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ('tool = "a"', TOOL),
        ("tool='a'", TOOL),
        (" TOOL\n=\ta ", TOOL),
        (r'tool = "\"\u0061\\"', Comparison("tool", "=", '"a\\')),
        (r"title ~ 'C:\d \"'", Comparison("title", "~", r"C:\d \"")),
        ("tool in (a, 'b')", Some((TOOL, Comparison("tool", "=", "b")))),
        ("tool is null", Not(Comparison("tool", PRESENT))),
        ("tool IS NOT NULL", Comparison("tool", PRESENT)),
        ("not tool = a and tool = a or tool = a", Some((Every((Not(TOOL), TOOL)), TOOL))),
        ("not not (tool = a or tool = a)", Not(Not(Some((TOOL, TOOL))))),
        ("tool = and", Comparison("tool", "=", "and")),
        ("tool = order and tool=a", Every((Comparison("tool", "=", "order"), TOOL))),
        ("duration > 30s", Comparison("duration", ">", 30_000)),
        ("duration <= 1.5h", Comparison("duration", "<=", 5_400_000)),
        ('duration = "20 ms"', Comparison("duration", "=", 20)),
        ("size >= 10MB", Comparison("size", ">=", 10_000_000)),
        ("cut != 1.5KiB", Comparison("cut", "!=", 1536)),
        ("lost = 7", Comparison("lost", "=", 7)),
        ("exit_status = -2", Comparison("exit_status", "=", -2)),
        ("signal = KILL", Comparison("signal", "=", 9)),
        ("signal = 15", Comparison("signal", "=", 15)),
        ("started < 2026-01-01T10:00Z", Comparison("started", "<", TEN)),
        ("finished = '2026-01-01 10:00Z'", Comparison("finished", "=", TEN)),
        (f"session = {UUID(int=3)}", Comparison("session", "=", UUID(int=3))),
        ("session = nightly", Comparison("session", "=", "nightly")),
        ('args.a-b[0]."c d".2 = 3', Comparison("arguments", "=", 3, ("a-b", 0, "c d", "2"))),
        ("result.x = 3.5e1", Comparison("result", "=", 35.0, ("x",))),
        ("result.x = '3'", Comparison("result", "=", "3", ("x",))),
        ("result.x = true", Comparison("result", "=", True, ("x",))),
        ("result.x = yes", Comparison("result", "=", "yes", ("x",))),
        ("error.message ~ 日本", Comparison("error", "~", "日本", ("message",))),
        ("timed_out = true", Comparison("timed_out", "=", True)),
        ("cwd ~ repo", Comparison("cwd", "~", "repo")),
        ("arguments[1] < b", Comparison("arguments", "<", "b", (1,))),
    ],
)  # fmt: skip
def test_a_text_means_an_expression(text: str, expression: Expression) -> None:
    assert parse_where(text) == expression


def test_a_time_ago_is_counted_from_now() -> None:
    found = parse_where("started > 2h")
    assert isinstance(found, Comparison)
    assert isinstance(found.value, datetime)
    ago = datetime.now(UTC) - found.value
    assert timedelta(hours=2) <= ago < timedelta(hours=2, minutes=5)


@pytest.mark.parametrize(
    ("text", "at", "words"),
    [
        ("", 0, "expected a name such as tool"),
        ("tool", 4, "expected an operator"),
        ("tool =", 6, "expected a value"),
        ("tool = a b", 9, "expected `and` or `or`"),
        ("(tool = a", 9, "expected `and`, `or` or `)`"),
        ("tool in a", 8, "expected `(`"),
        ("tool is nil", 8, "expected `null`"),
        ('tool = "a', 7, "this quote has no end"),
        (r'tool = "\d"', 7, "write \\\\ or use single quotes"),
        ("tol = a", 0, "no column `tol`; nearest: tool"),
        ("tool = a and durration > 3s", 13, "no column `durration`; nearest: duration"),
        ("qqq.zzz = 3", 0, "no column `qqq`; there are tool, family"),
        ("tool < a", 0, "tool < is no comparison; tool has =, !=, ~"),
        ("timed_out is null", 0, "timed_out is null is no comparison; timed_out has =, !="),
        ("size ~ a", 0, "size ~ is no comparison"),
        ("tool.x = a", 0, "tool has no members; arguments, result, error have"),
        ("duration > 30", 11, "30 is not a duration such as"),
        ("size > 3 and size > 5XB", 20, "5XB is not a size such as"),
        ("started > someday", 10, "someday is not a time"),
        ("outcome = failed", 10, "failed is not one of ok, running"),
        ("exit_status = x", 14, "x is not an integer"),
        ("signal = SIGNONE", 9, "SIGNONE is not a signal"),
        ("tool = a; drop table", 10, "expected `and` or `or`"),
    ],
)
def test_a_mistake_is_shown_at_its_place(text: str, at: int, words: str) -> None:
    with pytest.raises(ValueError, match="\n") as caught:
        parse_where(text)
    sentence, quoted, mark = str(caught.value).split("\n")
    assert words in sentence
    assert quoted == f"  {text}"
    assert mark == " " * (2 + at) + "^"


PIECES = (
    *("tool", "args.x", "=", "~", "in", "is", "not", "null"),
    *("and", "(", ")", ",", "a", "'", '"'),
)


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=3)).map(" ".join))
def test_any_text_is_a_condition_or_a_mistake(text: str) -> None:
    with suppress(ValueError):
        parse_where(text)


@pytest.fixture
def recorded(database: str, tmp_path: Path) -> Cli:
    """A store with five calls."""
    spool = tmp_path / "spool"
    with (
        create_store(database, artifacts=str(tmp_path / "a"), spool=spool) as store,
        store.open_session(name="nightly") as session,
    ):
        for n, command in enumerate(("make all", "make test", "ls", "make docs")):
            call = ToolCall.of("Bash", {"command": command, "n": n})
            run_command(session, b"x" * n * 30_000, exit_status=n % 2, call=call)
        fail_tool(session, kind="permission_denied")
    return Cli(database, {"TOOLTRAIL_SPOOL": str(spool)})


@pytest.mark.both_engines
def test_the_log_shows_what_fits(recorded: Cli) -> None:
    for where, seqs in (
        (('arguments.command ~ "make" and result.exit_status != 0',), [4, 2]),
        (("size >= 60kB", "tool = Read"), [5, 4, 3]),
        (("cut is not null",), [4, 3]),
        (("error.kind = permission_denied",), [5]),
        (("not family = command",), [5]),
        (("session = nightly and args.n in (0, 2)",), [3, 1]),
    ):
        options = [word for one in where for word in ("--where", one)]
        assert [row["seq"] for row in recorded.ok("log", "--json", *options).records] == seqs
        first = recorded.ok("log", "--json", *options, "-n", "1")
        assert [row["seq"] for row in first.records] == seqs[:1]
        if len(seqs) > 1:
            assert first.message.startswith("1 listed; -n 0 for all, --cursor ")
            cursor = first.message.split()[-4]
            more = recorded.ok("log", "--json", *options, "--cursor", cursor).records
            assert [row["seq"] for row in more] == seqs[1:]


def test_a_session_has_the_same_names_as_in_its_option(recorded: Cli) -> None:
    (session,) = recorded.ok("session", "ls", "--json").records
    for name in ("nightly", "@last", session["id"], session["id"][-8:]):
        rows = recorded.ok("log", "--json", "--where", f"session = {name}").records
        assert [row["seq"] for row in rows] == [5, 4, 3, 2, 1]
        assert recorded.ok("log", "--json", "--where", f"session != {name}").records == []
    by_option = recorded.run("log", "--session", "nosuch")
    assert recorded.run("log", "--where", "session = nosuch") == by_option
    assert by_option.code == 3


def test_a_mistake_is_a_usage_error(recorded: Cli) -> None:
    ended = recorded.run("log", "--where", "tool = \x1b[31m")
    assert ended.code == 2
    assert "\x1b" not in ended.message
    assert "Invalid value for '--where': expected" in ended.message
    for hostile in ("not " * 9_000 + "tool = a", " or ".join(["tool = a"] * 600)):
        ended = recorded.run("log", "--where", hostile)
        assert ended.code == 2
        assert "a condition has " in ended.message
    deep = "(" * 15 + "tool = Read" + ")" * 15
    assert [row["seq"] for row in recorded.ok("log", "--json", "--where", deep).records] == [5]


@pytest.mark.both_engines
def test_the_longest_largest_and_most_cut_come_first(recorded: Cli) -> None:
    for sort, least in (("size", [1, 2, 3, 4]), ("cut", [3, 4])):
        listed = ("log", "--sort", sort, "--json", "--tool", "Bash")
        assert [row["seq"] for row in recorded.ok(*listed, "--reverse").records] == least
        assert [row["seq"] for row in recorded.ok(*listed).records] == least[::-1]
        ended = recorded.ok(*listed, "-n", "1")
        assert [row["seq"] for row in ended.records] == [4]
        assert ended.message == "1 listed; -n 0 for all\n"
    rows = recorded.ok("log", "--sort", "duration", "--json").records
    durations = [row["duration_ms"] for row in rows]
    assert durations == sorted(durations, reverse=True)


@pytest.mark.parametrize("column", ["duration_ms", "output_size"])
def test_a_text_in_a_column_of_numbers_has_no_rank_and_hides_no_other_call(
    recorded: Cli, column: str
) -> None:
    with sqlite3.connect(recorded.database) as raw:
        for (name,) in raw.execute(
            "SELECT name FROM sqlite_master WHERE type = 'trigger'"
        ).fetchall():
            raw.execute(f'DROP TRIGGER "{name}"')
        raw.execute(f"UPDATE invocations SET {column} = 'much' WHERE seq = 2")
    for more in ((), ("--reverse",), ("-n", "100")):
        sort = column.partition("_")[0].replace("output", "size")
        ended = recorded.run("log", "--sort", sort, "--json", *more)
        seqs = [row["seq"] for row in json.loads(ended.stdout)]
        assert len(seqs) > 1
        assert 2 not in seqs


def test_values_that_no_call_has_are_named(recorded: Cli) -> None:
    ended = recorded.run("log", "--where", "tool = Bsh and size > 1")
    assert "no tool `Bsh`; nearest: `Bash`" in ended.message
    folder = Path.cwd()
    assert recorded.ok("log", "--json", "--where", f"cwd = '{folder}'").records
    assert recorded.ok("log", "--json", "--where", f"not cwd ~ '{folder}'").records == []


def test_what_was_cut_is_printed_when_it_decides(recorded: Cli) -> None:
    rows = recorded.ok("log", "--sort", "cut", "--json").records
    with open_store(recorded.database) as store:
        for row in rows:
            omissions = store.reader.invocation(row["id"]).omissions
            cut = sum(one.before - one.after for one in omissions if one.unit == "bytes")
            assert row["cut_size"] == cut > 0
    header, first, _ = recorded.ok("log", "--sort", "cut").lines
    assert header.split()[-2:] == ["CUT", "CALL"]
    assert "kB" in first


def test_sessions_are_listed_by_their_calls(recorded: Cli) -> None:
    spool = Path(recorded.environment["TOOLTRAIL_SPOOL"])
    with (
        open_store(recorded.database, spool=spool) as store,
        store.open_session(title="other") as session,
    ):
        run_command(session)
        store.open_session(title="empty")

    def titles(*options: str) -> list[str | None]:
        return [one["title"] for one in recorded.ok("session", "ls", "--json", *options).records]

    assert titles() == ["empty", "other", None]
    assert titles("--tool", "Bash") == titles("--tool", "Bash", "-n", "0") == ["other", None]
    assert titles("--tool", "Bash", "-n", "1") == ["other"]
    assert titles("--tool", "Read") == [None]
    assert titles("--tool", "Read", "--exit-code", "0") == []
    assert titles("--where", "args.n > 1 and exit_status = 1") == [None]
    assert titles("--session", "@last") == []
