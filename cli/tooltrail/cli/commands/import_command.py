"""`tooltrail import`: record the sessions that agents left as files."""

from pathlib import Path

import click

from tooltrail.cli._location import Location
from tooltrail.cli._options import json_option, store_options


@click.command("import")
@click.argument(
    "paths", metavar="[PATH]...", nargs=-1, type=click.Path(path_type=Path, readable=False)
)
@store_options
@click.option("--format", "format_name", metavar="NAME", help="Read every file as this format.")
@click.option("--dry-run", is_flag=True, help="Only print what would be imported.")
@click.option("--no-redact", is_flag=True, help="Keep credentials as they are.")
@click.option(
    "--hooks", is_flag=True, help="Only import the events that `tooltrail hook` has logged."
)
@json_option
def command(
    *,
    paths: tuple[Path, ...],
    location: Location,
    format_name: str | None,
    dry_run: bool,
    no_redact: bool,
    hooks: bool,
    as_json: bool,
) -> int:
    """Record the sessions that agents left as files: their calls, results and messages.

    PATH is a file, or a folder that is searched for .json, .jsonl, .eval and .traj files. Without
    PATH, the usual folders of all known agents are searched. The format of a file is recognized by
    its content: claude-code, codex, copilot-cli, gemini-cli, opencode, pi, mini-swe-agent,
    swe-agent, openhands, inspect, openai-chat, atif.

    Importing a file again adds only what is new in it. Credentials of well-known formats are
    replaced by [REDACTED:RULE] before anything is stored. A surface that the file does not have is
    not recorded: it is never made up. A damaged line costs only itself; the report names it.

    Exits with 3 if a file is missing or has no known format, and with 4 if lines are damaged. Exits
    with 5 if a file cannot be read. The other files are still imported.
    """
    from tooltrail.cli._hook_events import import_hook_events
    from tooltrail.cli._importing import import_with_bar, print_report, say_found

    if hooks:
        if paths or format_name or dry_run or no_redact:
            raise click.UsageError("--hooks has no path and no other option of an import")
        waiting = import_hook_events(location.spool_folder, is_waiting=True)
        return print_report(*waiting, as_json=as_json, is_dry_run=False)
    found = say_found(paths, format_name)
    done = import_with_bar(location, found, is_redacting=not no_redact, is_dry_run=dry_run)
    return print_report(*done, as_json=as_json, is_dry_run=dry_run)
