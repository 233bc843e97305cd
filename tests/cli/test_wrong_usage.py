"""Wrong usage: exit code 2, nothing on stdout, and a sentence that says what is right."""

import shlex

import pytest
from tests.support.cli import Cli

SIDES = "name A and B, or only A with one of --same-args and --surfaces"
SURFACES = "choose one of --surface, --stream and "
RANGE = "is not one of A:B, A:, :B, A"
GROUPS = "is not one of tool, family, agent, session, outcome, day, hour"
TIMEOUT, GRACE = ("Invalid value for '--timeout'", "Invalid value for '--grace'")
SESSION = "a session's name has 1 to 1,000 characters, not all white space"
SESSIONS = {
    "@last": "'@last' means the newest one in reading commands; use an id or another name",
    "@running:Bash": "'@running:Bash' means the newest one",
    "' '": SESSION,
    "x" * 1_001: SESSION,
}
NAME = "a tool name has 1 to 256 characters"
FOLLOWING = "--follow cannot be combined with --since, --dry-run or --json"
WRONG = {
    "diff @last": SIDES,
    "diff @last @last @last": SIDES,
    "diff @last @last --same-args": SIDES,
    "diff @last --same-args --surfaces": SIDES,
    "diff @last --same-args --session": SIDES,
    "diff --brief --surfaces @last": "--brief cannot be combined with --surfaces",
    "show --json --surface receipt": SURFACES,
    "show --json --stream stdout": SURFACES,
    "show --stream x --surface input": SURFACES,
    "show --rerender --surface receipt": SURFACES,
    "show --rerender --json --stream stdout": SURFACES,
    "log --state odd": "'--state'",
    "log --outcome odd": "'--outcome'",
    "log --exit-code 256": "'--exit-code'",
    "log --exit-code x": "'--exit-code'",
    "log --exit-code !=256": "'--exit-code'",
    "log --signal SIGODD": "'--signal'",
    "log --signal 0": "'--signal'",
    "log --min-size -1": "'--min-size'",
    "log --min-size 1XB": "'1XB' is not a size such as 512, 64K, 10kB or 1.5GiB",
    "log -n x": "'x' is not a valid whole number",
    "transcript --compact 1.5k": "'1.5k' is not a valid whole number",
    "log --json --csv": "--json cannot be combined with --csv",
    "stats --csv --ndjson": "--ndjson cannot be combined with --csv",
    "log -n -1": "'-n'",
    "log -f --json": "-f ",
    "log -f --csv": "-f ",
    "log -f --cursor 3": "-f ",
    "log -f --reverse": "-f ",
    "log --sort size --cursor 3": "--cursor needs --sort started",
    "log --sort size -f": "-f cannot be combined with",
    "cat abcd --bytes=9:3": "Invalid value for '--bytes': '9:3' ends before it begins",
    "cat abcd --lines=9:3": "Invalid value for '--lines': '9:3' ends before it begins",
    "cat abcd --lines=0:3": "Invalid value for '--lines': '0:3' begins before 1",
    "cat abcd --lines=0": "Invalid value for '--lines': '0' begins before 1",
    "cat abcd --lines=:0": "Invalid value for '--lines': ':0' ends before it begins",
    "cat abcd --bytes=": f"Invalid value for '--bytes': '' {RANGE}",
    "cat abcd --bytes=:": f"Invalid value for '--bytes': ':' {RANGE}",
    "cat abcd --bytes=1-2": f"Invalid value for '--bytes': '1-2' {RANGE}",
    "cat abcd --bytes=-3:": f"Invalid value for '--bytes': '-3:' {RANGE}",
    "cat abcd --bytes=1:2:3": f"Invalid value for '--bytes': '1:2:3' {RANGE}",
    "cat abcd --bytes=\u0663": f"Invalid value for '--bytes': '\u0663' {RANGE}",
    f"cat abcd --bytes={'9' * 5_000}": "'--bytes'",
    "cat abcd --bytes 1:2 --lines 1:2": "--bytes cannot be combined with --lines",
    "head abcd -n +5": "'+5' is not a line count; see cat --lines for a range",
    "tail abcd -n +5": "'+5' is not a line count; see cat --lines for a range",
    "head abcd -n -1": "'-n'",
    "tail abcd -n x": "'-n'",
    "artifact grep -A -1 a abcd": "'-A'",
    "artifact grep -A x a abcd": "'-A'",
    "transcript --format html": "'--format'",
    "transcript --compact 0": "'--compact'",
    "transcript --compact -1": "'--compact'",
    "transcript --compact many": "'--compact'",
    "transcript --compact 1.5": "'--compact'",
    "transcript --format openai --text-family klingon": (
        "unknown text format 'klingon'; known formats: anthropic-xml"
    ),
    "stats --by colour": f"'colour' {GROUPS}",
    "stats --by tool,tool": "'tool' is not one of",
    "stats --sort day": "--sort day needs --by day",
    "stats --fields calls": "unknown field calls; there are tool, call_count",
    **{
        f"gc --yes --grace={grace}": "is not a duration"
        for grace in ("", "24", "yesterday", "-1h", "1y", "999999999w", "36501d")
    },
    "exec": "Missing argument '-- COMMAND [ARG]...'.",
    "exec --timout 5 -- touch ran": "No such option '--timout'. Did you mean '--timeout'?",
    **{
        f"exec --timeout {value} -- touch ran": f"{TIMEOUT}: '{value}' is shorter than 1 ms"
        for value in ("0", "0s", "0.4ms")
    },
    **{
        f"exec --timeout {value} -- touch ran": (
            f"{TIMEOUT}: '{value}' is not between 0 and 1,000,000,000 seconds."
        )
        for value in ("-1", "2000w", "nan", "inf")
    },
    **{
        f"exec --timeout {value} -- touch ran": f"{TIMEOUT}: '{value}' is not a duration such as"
        for value in ("soon", "5y", "-1m", "0x10", "m")
    },
    "exec --grace -1 -- touch ran": GRACE,
    "exec --grace nan -- touch ran": GRACE,
    "exec --tool '' -- touch ran": NAME,
    **{
        recording.format(name): says
        for recording in (
            "exec --session {} -- touch ran",
            "mcp-proxy --session {} -- touch ran",
            "session open --name {}",
        )
        for name, says in SESSIONS.items()
    },
    f"exec --tool {'x' * 257} -- touch ran": NAME,
    "exec --tool \udcff -- touch ran": "is not valid UTF-8",
    **{
        f"exec --free-bytes={value!r} -- touch ran": "'--free-bytes'"
        for value in ("-1", "1.", "9000000000G", "1XB", "K", "\u0663", "")
    },
    "import --follow --json": FOLLOWING,
    "import -f --format x": "no format x; ",
    "db backup ''": "TARGET is empty; name a file",
    "search": "say what to find",
    "search a --literal b": "say what to find",
    "search --no-such": "tooltrail search -- --no-such",
    "search a -i": "-i belongs to",
    "redact": "Missing option '--scan'",
}
"""A sentence by the line that it answers."""


@pytest.mark.parametrize("name", ["@last", " "])
def test_no_command_records_into_a_session_of_the_environment_that_has_no_name(
    cli: Cli, name: str
) -> None:
    unnamed = Cli(cli.database, {"TOOLTRAIL_SESSION": name})
    for line in ("exec -- touch ran", "mcp-proxy -- touch ran"):
        ended = unnamed.program(*line.split(), cwd=cli.folder)
        assert (ended.code, ended.stdout) == (2, b"")
        assert ended.usage_error.startswith("Invalid value for '--session'")
    assert not list(cli.folder.rglob("ran"))


def test_wrong_usage_says_what_is_right_and_records_nothing(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(cli.folder)
    ended = {line: cli.run(*shlex.split(line)) for line in WRONG}
    refusals = {line: (one.code, one.stdout, one.usage_error) for line, one in ended.items()}
    assert {line: one for line, one in refusals.items() if one[:2] != (2, b"")} == {}
    assert {line: one[2] for line, one in refusals.items() if WRONG[line] not in one[2]} == {}
    assert cli.ok("session", "ls", "--json").records == []
    assert not list(cli.folder.rglob("ran"))
