"""`tooltrail tools`: list the tools that were offered to models, and export them."""

from collections.abc import Mapping
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from tooltrail.cli._exit_codes import ExitCode
from tooltrail.cli._export_options import (
    PROVIDERS,
    print_export,
    refuse_same_file,
    report_option,
    strict_option,
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
    say_damage,
    short_digest,
    write_recorded,
)
from tooltrail.cli._tables import Columns, print_list
from tooltrail.cli._times import shown

if TYPE_CHECKING:
    from tooltrail.records.digests import Digest
    from tooltrail.store import Reader, ToolCalls, ToolView


class WantedTools(NamedTuple):
    """The selected tools: those of the last offer of a session, those with some names, or all."""

    session: str | None
    names: tuple[str, ...]

    def read(self, reader: "Reader", *, latest: bool = False) -> "list[ToolView]":
        """Read their versions. With `latest` and no session, only the latest version of each."""
        from tooltrail.records import NotFoundError
        from tooltrail.store.read.values import nearest

        if self.session is None:
            found = reader.tools(latest=latest)
        else:
            found = reader.offered_tools(self.session)
        missing = [name for name in self.names if all(tool.name != name for tool in found)]
        if missing:
            where = "" if self.session is None else f" by session {self.session}"
            near = nearest(missing[0], {tool.name: tool.name for tool in found})
            raise NotFoundError(f"no tool {missing[0]!r} was offered{where}{near}")
        return [tool for tool in found if not self.names or tool.name in self.names]


TOOL_MEMBERS: Members = {
    **attributes("digest", "name", "family", "offered_at"),
    "definition": lambda tool: tool.definition.model_dump(exclude_defaults=True),
}
"""JSON fields of a tool version."""

_COLUMNS: Final[Columns] = {
    "DIGEST": lambda tool: short_digest(tool.digest),
    "NAME": attrgetter("name"),
    "FAMILY": lambda tool: tool.family or "-",
    "OFFERED": lambda tool: shown(tool.offered_at),
    "DESCRIPTION": lambda tool: " ".join((tool.definition.description or "").split()),
}

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
"""`--session` and `--tool`, passed to the command as one argument `wanted`."""


@click.group("tools")
def command() -> None:
    """List and export the tools that were offered to models."""


@command.command("ls")
@store_options
@wanted_tools_options
@click.option(
    "--calls",
    "with_calls",
    is_flag=True,
    help="Count the calls of each version, and show when the first and the last began.",
)
@output_options
@time_option
def ls(*, location: Location, wanted: WantedTools, with_calls: bool, output: Listing) -> ExitCode:
    """List the versions of all tools, or the tools that a session offered last.

    A version is named by the digest of its definition. Each version is listed once per store. A
    call counts for the version that its session had offered last when the call began.
    """
    with location.open() as store:
        tools = wanted.read(store.reader)
        calls = store.reader.called_tools() if with_calls else {}
    members, columns = _of_calls(calls) if with_calls else (TOOL_MEMBERS, _COLUMNS)
    print_list(tools, output, members, columns, right=["CALLS"])
    return say_damage(tool.damage for tool in tools)


def _of_calls(calls: "Mapping[Digest, ToolCalls]") -> tuple[Members, Columns]:
    """The fields and the columns of tool versions with their calls."""
    from tooltrail.store.views import ToolCalls

    def calls_of(tool: "ToolView") -> ToolCalls:
        return calls.get(tool.digest, ToolCalls())

    fields: Members = {
        "call_count": lambda tool: calls_of(tool).call_count,
        "first_call_at": lambda tool: calls_of(tool).first_call_at,
        "last_call_at": lambda tool: calls_of(tool).last_call_at,
    }
    columns: Columns = {
        **{name: _COLUMNS[name] for name in ("DIGEST", "NAME")},
        "CALLS": lambda tool: f"{calls_of(tool).call_count:,}",
        "FIRST CALL": lambda tool: shown(calls_of(tool).first_call_at),
        "LAST CALL": lambda tool: shown(calls_of(tool).last_call_at),
    }
    return {**TOOL_MEMBERS, **fields}, columns


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

    Prints the version of each tool that was offered last. With --session, prints the tools that
    this session offered last. Differences from the record are counted on stderr.
    """
    from tooltrail.wire import wire_format

    if report is not None:
        refuse_same_file(report, None)
    with location.open() as store:
        tools = wanted.read(store.reader, latest=True)
    written = wire_format(style).write_tools([tool.definition for tool in tools])
    code = print_export(
        written, lambda pieces: write_recorded("".join(pieces)), report, strict=strict
    )
    return say_damage(tool.damage for tool in tools) or code
