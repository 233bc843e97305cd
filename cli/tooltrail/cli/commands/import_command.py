"""`tooltrail import`: record the sessions that agents left as files."""

from datetime import datetime
from pathlib import Path

import click

from tooltrail.cli._location import Location
from tooltrail.cli._options import SourcePath, format_option, json_option, store_options
from tooltrail.cli._output import counted, printable, write
from tooltrail.cli._times import MOMENT


@click.command("import")
@click.argument(
    "paths", metavar="[PATH]...", nargs=-1, type=SourcePath(path_type=Path, readable=False)
)
@store_options
@format_option
@click.option("-f", "--follow", is_flag=True, help="Go on importing what agents write.")
@click.option(
    "--since", type=MOMENT, help="Only files that changed since: 2h, 3d, yesterday, a date."
)
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
    follow: bool,
    since: datetime | None,
    dry_run: bool,
    no_redact: bool,
    hooks: bool,
    as_json: bool,
) -> int:
    """Record the sessions that agents left as files: their calls, results and messages.

    PATH is a file, or a folder that is searched for .json, .jsonl, .eval and .traj files. Without
    PATH, the usual folders of all known agents are searched. The format of a file is recognized by
    its content: claude-code, codex, copilot-cli, gemini-cli, opencode, pi, mini-swe-agent,
    swe-agent, openhands, inspect, openai-chat, atif, otlp-json.

    Importing a file again adds only what is new in it. Credentials of well-known formats are
    replaced by [REDACTED:RULE] before anything is stored. A surface that the file does not have is
    not recorded: it is never made up. A damaged line costs only itself; the report names it. Files
    of no known format in a folder are counted and skipped.

    With --follow, prints a line for each file that has something new, until it is interrupted. Hook
    events are imported, too, and everything is ingested at once.

    Exits with 3 if a file is missing, has no known format, or has no session of the --format. Exits
    with 4 if lines or archives are damaged, and with 5 if a file cannot be read or the disk is
    full. A full disk ends the import; otherwise the other files are still imported.
    """
    from tooltrail.cli import _importing as importing
    from tooltrail.cli._hook_events import import_hook_events
    from tooltrail.cli._redaction import used_rules

    if hooks:
        if paths or format_name or follow or since or dry_run or no_redact:
            raise click.UsageError("--hooks has no path and no other option of an import")
        done = import_hook_events(location.spool_folder, is_waiting=True)
        return importing.print_report(done, as_json=as_json, is_dry_run=False)
    rules = None if no_redact else used_rules()
    if follow:
        if since or dry_run or as_json:
            raise click.UsageError("--follow cannot be combined with --since, --dry-run or --json")
        for one in importing.follow(location, paths, format_name, rules):
            new = counted(one.counts["new"], "new fact")
            write(f"{new} of {one.format} in {printable(str(one.path))}\n")
    done, _ = importing.import_with_bar(
        location.recording_spool(), paths, format_name, rules, since=since, is_dry_run=dry_run
    )
    return importing.print_report(done, as_json=as_json, is_dry_run=dry_run)
