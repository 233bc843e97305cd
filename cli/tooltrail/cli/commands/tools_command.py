"""`tooltrail tools`: the tools that models were offered, and how any provider spells them."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

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
from tooltrail.cli._options import (
    gathered,
    output_options,
    stacked,
    store_options,
    time_option,
)
from tooltrail.cli._output import (
    Listing,
    Members,
    attributes,
    print_table,
    say,
    short_digest,
    write,
)
from tooltrail.cli._times import shown

if TYPE_CHECKING:
    from tooltrail.store import Reader, ToolView


@dataclass(frozen=True, slots=True)
class WantedTools:
    """What was asked for.

    Attributes:
        session: whose latest offer it is to be; None for all that the store has.
        names: of the tools; none for all of them.
    """

    session: str | None
    names: tuple[str, ...]

    def read(self, reader: "Reader", *, latest: bool = False) -> "list[ToolView]":
        """The versions of these tools.

        Args:
            reader: of the store.
            latest: whether to leave out all but the latest version of each. What a session offered
                last is the latest, also where it has a name twice.

        Raises:
            NotFoundError: there is no such session, or no tool of a name that was asked for.
        """
        from tooltrail.records import NotFoundError

        if self.session is None:
            found = reader.tools(latest=latest)
        else:
            found = reader.offered_tools(self.session)
        missing = [name for name in self.names if all(tool.name != name for tool in found)]
        if missing:
            where = "" if self.session is None else f" by session {self.session}"
            raise NotFoundError(f"no tool {missing[0]!r} was offered{where}")
        return [tool for tool in found if not self.names or tool.name in self.names]


TOOL_MEMBERS: Members = {
    **attributes("digest", "name", "family", "offered_at"),
    "definition": lambda tool: tool.definition.model_dump(exclude_defaults=True),
}
"""JSON fields of a version of a tool."""

wanted_tools_options = stacked(
    click.option(
        "--session",
        metavar="SESSION",
        help="Tools that this session offered last: an id, a name, a part of an id, or @last.",
    ),
    click.option(
        "--tool",
        "names",
        metavar="NAME",
        multiple=True,
        help="Tools of this name. May be repeated.",
    ),
    gathered("wanted", WantedTools),
)
"""`--session` and `--tool`, handed on as one `wanted`."""


@click.group("tools")
def command() -> None:
    """List and export the tools that were offered to models."""


@command.command("ls")
@store_options
@wanted_tools_options
@output_options
@time_option
def ls(*, location: Location, wanted: WantedTools, output: Listing, utc: bool) -> None:
    """List the versions of all tools, or the tools that a session offered last.

    A version is named by the digest of its definition. Each version is listed once per store.
    """
    with location.open() as store:
        tools = wanted.read(store.reader)
    if output.print_records(tools, TOOL_MEMBERS):
        return
    rows = [
        (
            short_digest(tool.digest),
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
