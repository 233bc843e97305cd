"""The command line of `tooltrail exec`: a table of options, and a parser for them.

`exec` does not import click, because the import takes longer than a short command. The help text
is generated from the same table; see `commands/exec_command.py`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from tooltrail.cli._amounts import read_byte_count, read_seconds, read_timeout
from tooltrail.records.frozen import Frozen
from tooltrail.records.ids import MAX_KEY_CHARS

_MOST_NAME_CHARS: Final = 256
"""Maximum characters of a tool name in a record."""

ARGUMENTS: Final = "-- COMMAND [ARG]..."
HELP_OPTIONS: Final = ("-h", "--help")


class UsageProblem(Exception):  # noqa: N818  a mistake of the user, which `main` prints
    """The command line is invalid; the message contains the reason."""


class Request(Frozen):
    """The command to run, and how to record the command. Members are named after the options."""

    argv: tuple[str, ...]
    db: str | None = None
    artifacts: str | None = None
    spool: str | None = None
    session: str | None = None
    tool: str = "exec"
    call_id: str | None = None
    cwd: str | None = None
    timeout: float | None = None
    grace: float = 5.0
    tty: str = "auto"
    policy: str | None = None
    free_bytes: int | None = None
    acknowledge: str = "journal"
    no_redact: bool = False
    v: bool = False

    @property
    def timeout_ms(self) -> int | None:
        """The timeout in milliseconds, for the record."""
        return None if self.timeout is None else round(self.timeout * 1000)


class Option(NamedTuple):
    """One option.

    Attributes:
        flag: the option with its dashes.
        metavar: name of the value in the help text; None for an option without a value.
        help: help text, one or two sentences.
        variable: environment variable that is used if the option is not given.
        read: converts the text to the value; raises `ValueError` if the text is invalid.
    """

    flag: str
    metavar: str | None
    help: str
    variable: str | None = None
    read: Callable[[str], object] = str

    @property
    def is_name(self) -> bool:
        """Whether an empty value counts as not given."""
        return self.variable is not None and self.read in (str, read_session)

    @property
    def member(self) -> str:
        """The name of the `Request` member that holds the value."""
        return self.flag.lstrip("-").replace("-", "_")


def read_tool_name(text: str) -> str:
    """Check a tool name against the limits of a record."""
    if not 1 <= len(text) <= _MOST_NAME_CHARS or text.isspace():
        raise ValueError(f"a tool name has 1 to {_MOST_NAME_CHARS} characters, not all white space")
    if text != text.encode("utf-8", "replace").decode():
        raise ValueError(f"{text!r} is not valid UTF-8")
    return text


def read_session(text: str) -> str:
    """Check the id or name of a session to record into.

    A session named `@last` could not be found: reading commands take this for the newest session.
    """
    if text.partition(":")[0] in ("@last", "@running"):
        raise ValueError(
            f"{text!r} means the newest one in reading commands; use an id or another name"
        )
    if not 1 <= len(text) <= MAX_KEY_CHARS or text.isspace():
        most = f"{MAX_KEY_CHARS:,}"
        raise ValueError(f"a session's name has 1 to {most} characters, not all white space")
    return text


def one_of(*choices: str) -> Callable[[str], str]:
    """A parser that accepts only these words."""

    def read(text: str) -> str:
        if text not in choices:
            raise ValueError(f"{text!r} is not one of {', '.join(choices)}")
        return text

    return read


OPTIONS: Final = (
    Option(
        "--db",
        "PATH|URL",
        "Database of the store: a file, sqlite:///PATH or postgresql://… ($TOOLTRAIL_DB).",
        "TOOLTRAIL_DB",
    ),
    Option(
        "--artifacts",
        "PATH|URL",
        "Artifact root of a new store, or new location of a moved root ($TOOLTRAIL_ARTIFACTS).",
        "TOOLTRAIL_ARTIFACTS",
    ),
    Option(
        "--spool",
        "PATH",
        "Local folder of the journal and of output during capture ($TOOLTRAIL_SPOOL).",
        "TOOLTRAIL_SPOOL",
    ),
    Option(
        "--session",
        "ID|NAME",
        "Session to record into: an id or a name. A new name opens a session"
        " ($TOOLTRAIL_SESSION). By default, a new session for this command.",
        "TOOLTRAIL_SESSION",
        read=read_session,
    ),
    Option("--tool", "NAME", "Tool name to record.  [default: exec]", read=read_tool_name),
    Option("--call-id", "ID", "Id of the call at its provider."),
    Option("--cwd", "PATH", "Working directory of the command."),
    Option(
        "--timeout",
        "DURATION",
        "Time limit of the command, such as 30s, 5m or 1.5h. A number alone is seconds.",
        read=read_timeout,
    ),
    Option(
        "--grace",
        "DURATION",
        "Time between SIGTERM and SIGKILL after the timeout.  [default: 5s]",
        read=read_seconds,
    ),
    Option(
        "--tty",
        "[auto|always|never]",
        "Run the command on a terminal, with stdout and stderr as one stream. auto: if both go to a"
        " terminal.  [default: auto]",
        read=one_of("auto", "always", "never"),
    ),
    Option(
        "--policy",
        "FILE",
        "TOML file with the budgets of results and receipts ($TOOLTRAIL_POLICY).",
        "TOOLTRAIL_POLICY",
    ),
    Option(
        "--free-bytes",
        "SIZE",
        "Bytes to keep free on the disk of the spool. By default, 1/1000 of the disk, at most"
        " 64 MiB. 64K and 64KiB are 65,536 bytes, 64kB is 64,000 ($TOOLTRAIL_FREE_BYTES).",
        "TOOLTRAIL_FREE_BYTES",
        read=read_byte_count,
    ),
    Option(
        "--acknowledge",
        "[journal|process]",
        "What the record survives: a power loss (journal), or only the end of this program"
        " (process) ($TOOLTRAIL_ACKNOWLEDGE).  [default: journal]",
        "TOOLTRAIL_ACKNOWLEDGE",
        read=one_of("journal", "process"),
    ),
    Option("--no-redact", None, "Keep credentials as they are."),
    Option("-v", None, "Print the id of the invocation on stderr."),
)

_BY_FLAG: Final = {option.flag: option for option in OPTIONS}


def read_request(arguments: Sequence[str], environment: Mapping[str, str]) -> Request | None:
    """Parse the arguments after `exec`. Options end at `--`, or at the first other argument.

    Returns:
        The request; None if the arguments request the help text.

    Raises:
        UsageProblem: an option is unknown, its value is missing or invalid, or there is no command.
    """
    given: dict[str, str] = {}
    waiting = list(arguments)
    while waiting and waiting[0].startswith("-") and waiting[0] != "-":
        word = waiting.pop(0)
        if word == "--":
            break
        if word in HELP_OPTIONS:
            return None
        option, value = _split(word)
        if option.metavar is not None and value is None:
            if not waiting:
                raise UsageProblem(f"Option {option.flag!r} requires an argument.")
            value = waiting.pop(0)
        given[option.flag] = value or ""
    members = dict(_members(given, environment))
    if not waiting:
        raise UsageProblem(f"Missing argument {ARGUMENTS!r}.")
    return Request(argv=tuple(waiting), **members)


def _members(given: Mapping[str, str], environment: Mapping[str, str]) -> list[tuple[str, Any]]:
    """Names and values of the options from the command line or the environment."""
    members: list[tuple[str, Any]] = []
    for option in OPTIONS:
        text = given.get(option.flag)
        if text is None or (option.is_name and not text):
            text = environment.get(option.variable or "") or None
        if text is None:
            continue
        try:
            value = True if option.metavar is None else option.read(text)
        except ValueError as error:
            raise UsageProblem(f"Invalid value for {option.flag!r}: {error}.") from error
        members.append((option.member, value))
    return members


def _split(word: str) -> tuple[Option, str | None]:
    """The option that a word names, and the value after `=`."""
    flag, separator, value = word.partition("=") if word.startswith("--") else (word, "", "")
    option = _BY_FLAG.get(flag)
    if option is None:
        raise UsageProblem(f"No such option {flag!r}.{_similar(flag)}")
    if separator and option.metavar is None:
        raise UsageProblem(f"Option {flag!r} does not take a value.")
    return option, value if separator else None


def _similar(flag: str) -> str:
    import difflib  # noqa: PLC0415  only unknown options need it

    found = difflib.get_close_matches(flag, _BY_FLAG, n=1)
    return f" Did you mean {found[0]!r}?" if found else ""
