"""`tooltrail agents`: check, run, measure and compare agents with structured results."""

import sys
from datetime import datetime
from pathlib import Path

import click

from tooltrail.cli._agent_options import Endpoint, endpoint_options
from tooltrail.cli._exit_codes import ExitCode
from tooltrail.cli._location import Location
from tooltrail.cli._options import json_option, output_options, store_options, time_option
from tooltrail.cli._output import Listing, counted, printable, say, say_damage
from tooltrail.cli._tables import print_list
from tooltrail.cli._times import MOMENT


@click.group("agents")
def command() -> None:
    """Check, run and compare agents with structured results."""


@command.command("check")
@click.argument(
    "paths",
    metavar="PATH...",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, path_type=Path),
)
@click.option(
    "--strict", is_flag=True, help="Refuse unknown sections instead of warning about them."
)
@output_options
def check(*, paths: tuple[Path, ...], strict: bool, output: Listing) -> ExitCode:
    """Check all agent configurations in files and below folders.

    In the root of a project, the files .kb/agents/**/agent.yml are checked. Each problem is printed
    with its file, line and path. Exits with 1 if there is a problem.
    """
    from tooltrail.cli._agent_lists import CHECK_COLUMNS, CHECK_MEMBERS, check_paths

    checked = check_paths(paths, strict=strict)
    print_list(checked, output, CHECK_MEMBERS, CHECK_COLUMNS)
    for one in checked:
        for problem in one.problems:
            say(printable(str(problem)))
        for warning in one.warnings:
            say(printable(f"warning: {warning}"))
    return ExitCode.DAMAGED if any(one.problems for one in checked) else ExitCode.OK


@command.command("run")
@store_options
@click.argument("config", metavar="CONFIG", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--task", required=True, metavar="TEXT", help="Task of the agent. - reads the task from stdin."
)
@endpoint_options
@click.option(
    "--root",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=".",
    help="Folder in which the tools work. By default, the current folder.",
)
@click.option("--allow-writes", is_flag=True, help="Let the agent write files in that folder.")
@click.option(
    "--allow-commands", is_flag=True, help="Let the agent run commands. A command can do anything."
)
@click.option("--parent", metavar="SESSION", help="Session that starts the run.")
@json_option
@click.option("-q", "--quiet", is_flag=True, help="Print no progress.")
def run(
    *,
    location: Location,
    config: Path,
    task: str,
    endpoint: Endpoint,
    root: Path,
    allow_writes: bool,
    allow_commands: bool,
    parent: str | None,
    as_json: bool,
    quiet: bool,
) -> ExitCode:
    """Run the agent of a configuration, and print its result.

    Each leg is recorded, each call before it runs, and each submitted result with its verdict.
    Exits with 4 if the agent returned no result.
    """
    from tooltrail.agents import run_agent
    from tooltrail.cli._agent_lists import load_config
    from tooltrail.cli._agent_running import (
        print_run,
        run_until_signal,
        say_event,
        say_outcome,
    )
    from tooltrail.workspace import workspace_tools

    agent = endpoint.applied(load_config(config))
    tools = workspace_tools(root, allow_writes=allow_writes, allow_commands=allow_commands)
    text = sys.stdin.read() if task == "-" else task
    with location.open(create=True) as store:
        asked_by = None if parent is None else store.reader.session(parent).id
        work = run_agent(
            agent,
            text,
            endpoint.model_of,
            tools,
            store,
            parent=asked_by,
            observer=None if quiet else say_event,
        )
        ended = run_until_signal(work)
    if ended is None:
        return ExitCode.INTERRUPTED
    if not quiet:
        say_outcome(ended)
    print_run(ended, as_json=as_json)
    return ExitCode.OK if ended.is_success else ExitCode.INCOMPLETE


@command.command("stats")
@store_options
@click.option("--agent", metavar="ID", help="Only this agent.")
@click.option(
    "--since",
    type=MOMENT,
    help="Runs that started at this time or later: 2h, 3d, yesterday, a date.",
)
@click.option("--until", type=MOMENT, help="Runs that started before this time.")
@output_options
def stats(
    *,
    location: Location,
    agent: str | None,
    since: datetime | None,
    until: datetime | None,
    output: Listing,
) -> ExitCode:
    """Count the outcomes of agent runs.

    Prints successes, first tries, missing results, errors and escalations. A run whose program was
    killed is not a success. A run that may still be running counts as open.
    """
    from datetime import UTC

    from tooltrail.agents import agent_statistics
    from tooltrail.cli._agent_lists import STATISTICS_MEMBERS, print_statistics
    from tooltrail.records import TooltrailError

    unread: list[TooltrailError] = []
    with location.open() as store:
        now = datetime.now(UTC)
        found = agent_statistics(
            store.reader,
            now=now,
            agent=agent,
            since=since,
            until=until,
            on_error=unread.append,
        )
    if not output.print_records(found, STATISTICS_MEMBERS):
        print_statistics(found)
    return say_damage(unread)


@command.command("ls")
@store_options
@click.option("--agent", metavar="ID", help="Only this agent.")
@output_options
@time_option
def ls(*, location: Location, agent: str | None, output: Listing) -> ExitCode:
    """List the recorded versions of agents. The versions of one agent are listed oldest first."""
    from tooltrail.cli._agent_lists import VERSION_COLUMNS, VERSION_MEMBERS, recorded_versions
    from tooltrail.records import TooltrailError

    unread: list[TooltrailError] = []
    with location.open() as store:
        found = recorded_versions(store.reader, agent, unread.append)
    print_list(found, output, VERSION_MEMBERS, VERSION_COLUMNS)
    return say_damage(unread)


@command.command("diff")
@store_options
@click.argument("old", metavar="OLD")
@click.argument("new", metavar="NEW")
@click.option("--stored", is_flag=True, help="Also validate all recorded results against NEW.")
@output_options
def diff(*, location: Location, old: str, new: str, stored: bool, output: Listing) -> ExitCode:
    """Compare the result schemas of two agent versions.

    OLD and NEW are files, folders, or digests of recorded versions. Exits with 1 if a result that
    was valid for OLD may be invalid for NEW.
    """
    from tooltrail.cli._agent_lists import CHANGE_COLUMNS, CHANGE_MEMBERS, compare_agents

    changes, refused, count = compare_agents(old, new, location, stored=stored)
    print_list(changes, output, CHANGE_MEMBERS, CHANGE_COLUMNS)
    if stored:
        say(f"{counted(count, 'recorded result')}, {len(refused):,} refused")
    for invocation in refused:
        say(f"refused: {invocation}")
    is_breaking = bool(refused) or any(one.effect == "breaking" for one in changes)
    return ExitCode.DAMAGED if is_breaking else ExitCode.OK
