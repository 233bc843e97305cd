"""`tooltrail tools`: the tools that models were offered, and how any provider spells them."""

from pathlib import Path

import click

from tooltrail.cli._exit_codes import ExitCode
from tooltrail.cli._export_options import (
    PROVIDERS,
    refuse_same_file,
    report_option,
    strict_option,
    tell_report,
    write_report,
)
from tooltrail.cli._location import Location
from tooltrail.cli._offers import TOOL_FIELDS, WantedTools, tool_records, wanted_tools_options
from tooltrail.cli._options import output_options, store_options, time_option
from tooltrail.cli._output import print_records, print_table, say, write
from tooltrail.cli._times import shown

_DIGEST_CHARS = 19
"""Of a digest in a table: its algorithm and twelve digits."""


@click.group("tools")
def command() -> None:
    """List and export the tools that were offered to models."""


@command.command("ls")
@store_options
@wanted_tools_options
@output_options
@time_option
def ls(
    *, location: Location, wanted: WantedTools, style: str | None, fields: str | None, utc: bool
) -> None:
    """List the versions of all tools, or the tools that a session offered last.

    A version is named by the digest of its definition. Each version is listed once per store.
    """
    with location.open() as store:
        tools = wanted.read(store.reader)
    if style or fields:
        print_records(tool_records(tools), style or "json", fields, names=TOOL_FIELDS)
        return
    rows = [
        (
            tool.digest[:_DIGEST_CHARS],
            tool.name,
            tool.family or "-",
            shown(tool.offered_at, utc=utc),
            " ".join((tool.definition.description or "").split()),
        )
        for tool in tools
    ]
    print_table(("DIGEST", "NAME", "FAMILY", "OFFERED", "DESCRIPTION"), rows)


@command.command("export")
@store_options
@click.option(
    "--format",
    "style",
    type=click.Choice((*PROVIDERS, "mcp")),
    required=True,
    help="Wire format of the provider.",
)
@wanted_tools_options
@strict_option
@report_option
def export(
    *, location: Location, style: str, wanted: WantedTools, strict: bool, report: Path | None
) -> ExitCode:
    """Print tool definitions as part of a request to a provider.

    For each tool, the version that was offered last is printed. With --session, the tools that
    this session offered last are printed. Differences from the record are counted on stderr.
    """
    from tooltrail.transcripts import write_export
    from tooltrail.wire import ExportRefusedError, wire_format

    if report is not None:
        refuse_same_file(report, None)
    with location.open() as store:
        tools = wanted.read(store.reader, latest=True)
    written = wire_format(style).write_tools([tool.definition for tool in tools])
    write_report(written.report, report)
    tell_report(written.report, report)
    if strict and written.report:
        say(f"tooltrail: {ExportRefusedError(written.report)}")
        return ExitCode.DAMAGED
    for piece in write_export(written):
        write(piece)
    return ExitCode.OK
