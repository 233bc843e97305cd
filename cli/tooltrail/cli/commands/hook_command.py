"""`tooltrail hook`: record what Claude Code and Codex run, event by event."""

import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import click
from click.core import ParameterSource

from tooltrail.cli._exit_codes import ExitCode
from tooltrail.cli._failures import code_of, say_error
from tooltrail.cli._location import Location
from tooltrail.cli._options import json_option, store_options
from tooltrail.cli._output import print_array, say
from tooltrail.cli._tables import print_table
from tooltrail.importers.hook_log import AGENTS

_INSTALLED = "installed"
_NOT_INSTALLED = "not installed"

_agent_argument = click.argument("agent", metavar="AGENT", type=click.Choice(AGENTS))
_scope_option = click.option(
    "--project/--user",
    "of_project",
    help="Use the settings of the project in the current folder, or your own.  [default: --user]",
)


# The program reads these options without click; see `_hook`.
@click.group("hook", subcommand_metavar="[COMMAND]")
@click.option(
    "--agent",
    type=click.Choice(AGENTS),
    default=AGENTS[0],
    show_default=True,
    help="The agent that sends the event.",
)
@click.option("--spool", metavar="PATH", help="Spool of the store.")
@click.option("--no-redact", is_flag=True, help="Keep credentials as they are.")
def command(**_: object) -> None:
    """Record one event of Claude Code or Codex: one JSON object on standard input.

    `tooltrail hook install` lets an agent run this command for each event. The event is kept in the
    spool at once. Reading commands record it, together with the transcript that it names.

    Always exits with 0 and prints nothing on standard output: an agent must not wait or stop
    because of its record. A problem is printed on standard error.
    """


@command.command()
@_agent_argument
@_scope_option
@click.option("--no-redact", is_flag=True, help="Keep credentials as they are.")
@store_options
def install(*, agent: str, of_project: bool, no_redact: bool, location: Location) -> None:
    """Let an agent record everything that it runs from now on.

    AGENT is claude-code or codex. Adds one entry for each event to the agent's settings, and
    changes nothing else in the file: comments, other hooks and unknown members stay as they are. A
    copy of the file without these entries is kept beside it, with the ending .before-tooltrail.

    The settings of a project are often shared. So their entry names no folder of this machine,
    unless --db or --spool is given on the command line: each user records into their own store.
    """
    from tooltrail.cli._hook_settings import AGENT_SETTINGS, Settings

    path = AGENT_SETTINGS[agent].settings(of_project=of_project)
    command = _command(agent, location, is_portable=of_project, is_redacting=not no_redact)
    if Settings(path).replace_ours(dict.fromkeys(AGENT_SETTINGS[agent].events, command)):
        say(f"installed the hook of {agent} in {path}")
        say(f"new sessions of {agent} are recorded")
    else:
        say(f"the hook of {agent} is installed in {path} already; nothing was changed")
    if (off := AGENT_SETTINGS[agent].switched_off_in()) is not None:
        say(f"no hook of {agent} runs: disableAllHooks in {off} is true; remove it")
    if agent == "codex":
        say(
            "codex asks once whether you trust new hooks; an older version also needs"
            " `hooks = true` under [features] in config.toml"
        )


@command.command()
@_agent_argument
@_scope_option
def uninstall(*, agent: str, of_project: bool) -> None:
    """Remove the entries of `hook install` from an agent's settings, and change nothing else."""
    from tooltrail.cli._hook_settings import AGENT_SETTINGS, Settings

    path = AGENT_SETTINGS[agent].settings(of_project=of_project)
    if Settings(path).replace_ours({}):
        say(f"removed the hook of {agent} from {path}")
    else:
        say(f"there is no hook of tooltrail in {path}; nothing was changed")


@command.command()
@click.argument("agents", metavar="[AGENT]...", nargs=-1, type=click.Choice(AGENTS))
@json_option
def status(*, agents: tuple[str, ...], as_json: bool) -> int:
    """Print where the hook is installed, and for how many events.

    Exits with 4 if some events of an agent have the hook and others do not, or if the program of
    the hook does not exist. The code is also 4 if `disableAllHooks` of Claude Code switches off all
    hooks. Exits with 2 if a settings file is not JSON in the form of the agent, and with 5 if it
    cannot be read. If a file cannot be read, its code (2 or 5) is returned instead of 4.
    """
    from tooltrail.cli._hook_settings import AGENT_SETTINGS, Settings
    from tooltrail.records.errors import TooltrailError

    rows: list[dict[str, object]] = []
    failures: list[ExitCode] = []
    for name in agents or AGENTS:
        agent = AGENT_SETTINGS[name]
        for of_project in (False, True):
            path = agent.settings(of_project=of_project)
            row = {"agent": name, "settings": "project" if of_project else "user"}
            try:
                found = Settings(path).installed()
                is_off = bool(found) and agent.switched_off_in() is not None
                state, count = _state_of(found, agent.events, is_off=is_off), len(found)
            except TooltrailError as error:
                say_error(error)
                state, count = "cannot be read", 0
                failures.append(code_of(error))
            rows.append({**row, "hook": state, "events": count, "file": str(path)})
    if as_json:
        print_array(rows)
    else:
        cells = [[*map(str, row.values())] for row in rows]
        print_table(["AGENT", "SETTINGS", "HOOK", "EVENTS", "FILE"], cells, right=["EVENTS"])
    if failures:  # until a file can be read, the state of its hook is not known
        return failures[0]
    states = {row["hook"] for row in rows}
    return ExitCode.OK if states <= {_INSTALLED, _NOT_INSTALLED} else ExitCode.INCOMPLETE


def _state_of(found: Mapping[str, str], events: Sequence[str], *, is_off: bool) -> str:
    """The state of our hook by its command for each event."""
    if is_off:
        return "switched off: disableAllHooks"
    for command in found.values():
        program = command
        with suppress(ValueError):  # a quote has no end
            program = shlex.split(command)[0]
        # A shell runs the command: `~`, a variable, or an assignment before it is not looked up.
        if not set(program) & set("~$=") and shutil.which(program) is None:
            return f"no such program: {program}"
    missing = [one for one in events if one not in found]
    if missing and found:
        return f"missing: {', '.join(missing)}"
    return _INSTALLED if found else _NOT_INSTALLED


def _command(agent: str, location: Location, *, is_portable: bool, is_redacting: bool) -> str:
    """The command line that an agent runs for each event."""
    context = click.get_current_context()
    named = (context.get_parameter_source(one) for one in ("db", "spool"))
    is_portable = is_portable and ParameterSource.COMMANDLINE not in named
    words, spool = ["tooltrail"], list[str]()
    if not is_portable:  # by absolute paths: an agent may have another search path
        beside = Path(sys.executable).with_name("tooltrail")
        found = str(beside) if beside.exists() else shutil.which("tooltrail")
        words = [found] if found else [sys.executable, "-m", "tooltrail.cli"]
        spool = ["--spool", str(location.recording_spool().absolute())]
    words += ["hook", "--agent", agent, *spool]
    return shlex.join(words if is_redacting else [*words, "--no-redact"])
