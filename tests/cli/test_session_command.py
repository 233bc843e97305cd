"""Sessions that scripts hold across many commands."""

import csv
import io

from tests.support.altering import alter
from tests.support.cli import Cli
from tests.support.recording import run_command

from tooltrail.records import ToolCall


def test_a_session_is_opened_listed_and_closed(cli: Cli) -> None:
    opened = cli.ok("session", "open", "--title", "nightly build", "--agent", "Ada")
    name = opened.text.strip()
    assert (opened.text, opened.message) == (f"{name}\n", "")
    with cli.open() as store:
        session = store.join_session(store.reader.session(name).id)
        run_command(session)
        session.start(ToolCall(tool_name="Bash"))
        header, row = cli.ok("session", "ls", "--utc").lines
    assert header.split() == ["SESSION", "OPENED", "CLOSED", "CALLS", "OPEN", "AGENT", "TITLE"]
    assert row.startswith(f"{name[-8:]}  ")
    assert row.split()[3:] == ["2", "1", "Ada", "nightly", "build"]
    closed = cli.ok("session", "close", name[-6:])
    assert (closed.text, closed.message) == ("", f"closed session {name}\n")
    (view,) = cli.ok("session", "ls", "--json").records
    assert view["opened_at"] < view["closed_at"]
    assert (view["title"], view["agent"], view["parent_id"]) == ("nightly build", "Ada", None)


def test_a_closed_session_is_not_closed_twice(cli: Cli) -> None:
    name = cli.ok("session", "open").text.strip()
    cli.ok("session", "close", name)
    ended = cli.run("session", "close", name)
    assert (ended.code, ended.sentence) == (2, f"session {name} is already closed")


def test_a_name_with_the_form_of_an_id_is_refused(cli: Cli) -> None:
    cli.exec("--", "true")
    name = "01a21f48-ffff-7000-b594-440f7916728c"
    ended = cli.run("session", "open", "--name", name)
    assert (ended.code, ended.text) == (2, "")
    assert f"Invalid value for '--name': '{name}' has the form of an id" in ended.message
    assert len(cli.ok("session", "ls", "--json").records) == 1


def test_the_session_to_close_may_be_in_the_environment(cli: Cli) -> None:
    name = cli.environment["TOOLTRAIL_SESSION"] = cli.ok("session", "open").text.strip()
    assert cli.ok("session", "close").message == f"closed session {name}\n"
    del cli.environment["TOOLTRAIL_SESSION"]
    ended = cli.run("session", "close")
    assert (ended.code, ended.usage_error) == (2, "name a session, or set TOOLTRAIL_SESSION")


def test_a_session_of_a_sub_agent_names_its_parent(cli: Cli) -> None:
    parent = cli.ok("session", "open").text.strip()
    cli.ok("session", "open", "--parent", "@last")
    cli.ok("session", "open", "--name", "nightly", "--title", "the build")
    assert cli.ok("session", "ls").lines[1].endswith("  nightly: the build")
    views = cli.ok("session", "ls", "--json").records[1:]
    assert [view["parent_id"] for view in views] == [parent, None]


def test_sessions_are_listed_newest_first_as_many_as_asked_for(cli: Cli) -> None:
    for n in range(25):
        cli.ok("session", "open", "--title", str(n))
    ended = cli.ok("session", "ls")
    assert len(ended.lines) == 1 + 20
    assert ended.message.startswith("20 listed; -n 0 for all, --cursor ")
    assert cli.ok("session", "ls", "-n", "25").message == ""
    rows = list(csv.DictReader(io.StringIO(cli.ok("session", "ls", "-n", "0", "--csv").text)))
    assert [row["title"] for row in rows] == [str(n) for n in reversed(range(25))]
    assert cli.ok("session", "ls", "-n", "2", "--ndjson", "--fields", "title").lines == [
        '{"title": "24"}',
        '{"title": "23"}',
    ]


def test_a_title_cannot_disturb_the_table(cli: Cli) -> None:
    cli.ok("session", "open", "--title", "a\nb\x1b]0;owned\x07")
    assert cli.ok("session", "ls").lines[1].endswith("a�b�]0;owned�")
    with cli.open() as store:
        store.open_session(title="x" * 1_000_000)
    assert cli.ok("session", "ls").lines[1].endswith(f" {'x' * 1_000}…")


def test_a_session_without_a_title_is_listed_with_its_name(cli: Cli) -> None:
    cli.ok("exec", "--session", "nightly-build", "--", "true")
    assert cli.ok("session", "ls").lines[1].split()[-1] == "nightly-build"


def test_a_list_says_how_many_rows_are_damaged(cli: Cli) -> None:
    cli.ok("exec", "--", "true")
    with cli.open() as store:
        store.ingest()
        alter(
            store, "UPDATE sessions SET opened_at = 'x'", "UPDATE invocations SET started_at = 'x'"
        )
    for command in ("log", "session ls"):
        message = cli.ok(*command.split()).message
        assert message == "1 row with damaged values; `tooltrail verify` names them\n"
