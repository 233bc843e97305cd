"""The work of `tooltrail hook`: append the event of an agent to the log of hook events, and end.

The agent waits for this program. So only what is needed is imported: neither click nor the journal.
"""

import errno
import os
import re
import sys
from collections.abc import Sequence

from tooltrail.cli._default_database import default_database
from tooltrail.importers.hook_log import AGENTS, append_event

_IMPORTED_AT_ONCE = re.compile(
    rb'"hook_event_name"\s*:\s*"(?:SessionEnd|Stop|SubagentStop)"|"persistedOutputPath"\s*:'
)
"""An event after which the transcript has something new, or a file that the agent deletes later."""


def is_event(arguments: Sequence[str]) -> bool:
    """Whether `tooltrail hook` has these arguments to record an event.

    A person who types `tooltrail hook` has no event, and gets the help.
    """
    if not arguments:
        return not os.isatty(0)
    return arguments[0].startswith("-") and arguments[0] not in {"-h", "--help"}


def main(arguments: Sequence[str]) -> None:
    """Append the event on stdin to the log. A problem is printed on stderr, and never raised."""
    try:
        _record(*_options(arguments))
    except Exception as error:  # noqa: BLE001  a recorder must not stop the agent
        from tooltrail.cli._output import say  # noqa: PLC0415  takes time

        named = f"{error.filename}: " if isinstance(error, OSError) and error.filename else ""
        problem = f"{named}{getattr(error, 'strerror', None) or error}"
        if isinstance(error, OSError) and error.errno in {errno.ENOSPC, errno.EDQUOT}:
            problem += "; free disk space, then import the transcript of the session"
        say(f"tooltrail: the hook event is not recorded: {problem}")


def _options(arguments: Sequence[str]) -> tuple[dict[str, str], bool]:
    """The options with values, and whether secrets are replaced."""
    given = {"--agent": AGENTS[0], "--spool": "", "--db": "", "--artifacts": ""}
    is_redacting, rest = True, list(arguments)
    while rest:
        name, _, value = rest.pop(0).partition("=")
        if name == "--no-redact":
            is_redacting = False
        elif name in given:
            given[name] = value or (rest.pop(0) if rest else "")
        else:
            raise ValueError(f"no option {name}")
    if given["--agent"] not in AGENTS:
        raise ValueError(f"no agent {given['--agent']}; the agents are {', '.join(AGENTS)}")
    return given, is_redacting


def _record(given: dict[str, str], is_redacting: bool) -> None:
    if sys.stdin is None:
        raise ValueError("standard input is closed")
    event = sys.stdin.buffer.read()
    if not event.strip():
        return
    os.umask(0o077)  # the log is for its owner alone
    spool = given["--spool"] or os.environ.get("TOOLTRAIL_SPOOL") or _default_spool(given["--db"])
    if is_redacting:
        from tooltrail.cli._redaction import used_rules  # noqa: PLC0415  see `--no-redact`

        rules = used_rules()
        if rules.may_match(event):
            from tooltrail.redaction.redactor import redact_json  # noqa: PLC0415  rarely needed

            event = redact_json(event, rules).data
    append_event(spool, given["--agent"], event, is_redacted=is_redacting)
    if _IMPORTED_AT_ONCE.search(event):
        _import_in_background(spool)


def _default_spool(database: str) -> str:
    database = database or os.environ.get("TOOLTRAIL_DB", "")
    if not database:
        return f"{os.path.realpath(default_database())}-spool"
    # These imports take as long as everything else.
    from tooltrail.cli._location import Location  # noqa: PLC0415

    return str(Location(database).spool_folder)


def _import_in_background(spool: str) -> None:
    """Start `tooltrail import --hooks`, which goes on when the agent has ended."""
    command = [sys.executable, "-m", "tooltrail.cli", "import", "--hooks", "--spool", spool]
    nowhere = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3)]
    os.posix_spawn(sys.executable, command, os.environ, file_actions=nowhere, setsid=True)
