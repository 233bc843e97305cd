"""`tooltrail artifact`: stored objects, read through and checked."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from tooltrail.cli._exit_codes import ExitCode
from tooltrail.cli._location import Location
from tooltrail.cli._options import (
    follow_options,
    json_option,
    output_options,
    store_options,
    time_option,
)
from tooltrail.cli._output import (
    copy_stream,
    counted,
    print_records,
    print_table,
    print_views,
    say,
    size_of,
    write,
)
from tooltrail.cli._times import shown
from tooltrail.cli.commands.relocate_command import relocate

if TYPE_CHECKING:
    from tooltrail.store import ArtifactView

LINES = click.IntRange(min=0)
PATH_HELP = "PATH is a path of `artifact ls`, or a unique beginning of its digest."


@click.group("artifact")
def command() -> None:
    """Read and verify stored artifacts."""


command.add_command(relocate)


@command.command("ls")
@store_options
@click.option("--invocation", metavar="INVOCATION", help="Of this invocation.")
@click.option("--session", metavar="SESSION", help="Of this session.")
@output_options
@time_option
def ls(
    *,
    location: Location,
    invocation: str | None,
    session: str | None,
    style: str | None,
    fields: str | None,
    utc: bool,
) -> None:
    """List artifacts."""
    from tooltrail.store import ArtifactView

    with location.open() as store:
        reader = store.reader
        views = reader.artifacts(
            invocation=reader.invocation(invocation).summary.id if invocation else None,
            session=reader.session(session).id if session else None,
        )
    if style or fields:
        print_views(views, ArtifactView, style or "json", fields)
        return
    header = ("SIZE", "STORED", "LINES", "CREATED", "PATH")
    print_table(header, [_row(view, utc) for view in views], right=header[:3])


def _row(view: ArtifactView, utc: bool) -> tuple[str, ...]:
    return (
        size_of(view.size),
        size_of(view.stored_size),
        f"{view.line_count:,}",
        shown(view.created_at, utc=utc),
        view.path,
    )


@command.command(epilog=PATH_HELP)
@store_options
@click.argument("path")
def cat(location: Location, path: str) -> None:
    """Print an artifact's bytes, exactly as they were captured."""
    from tooltrail.cli._artifacts import find_artifact

    with location.open() as store, store.archive.open(find_artifact(store, path)) as source:
        copy_stream(source, sys.stdout.buffer)


@command.command(epilog=PATH_HELP)
@store_options
@click.argument("path")
@click.option("-n", "lines", type=LINES, default=10, show_default=True, help="Lines.")
def head(location: Location, path: str, lines: int) -> None:
    """Print an artifact's first lines."""
    from tooltrail.cli._artifacts import copy_head, find_artifact

    with location.open() as store, store.archive.open(find_artifact(store, path)) as source:
        copy_head(source, sys.stdout.buffer, lines)


@command.command(epilog=PATH_HELP)
@store_options
@click.argument("path")
@click.option("-n", "lines", type=LINES, default=10, show_default=True, help="Lines.")
@follow_options
def tail(location: Location, path: str, lines: int, follow: bool, role: str | None) -> int:
    """Print an artifact's last lines.

    With -f PATH may name an invocation: what it prints is shown until it ends, stderr on stderr.
    """
    from tooltrail.cli._artifacts import copy_tail, find_artifact

    if follow or role is not None:
        from tooltrail.cli._following import follow_output

        return follow_output(location, path, lines, role, follow=follow)
    with location.open() as store:
        copy_tail(store, find_artifact(store, path), sys.stdout.buffer, lines)
    return ExitCode.OK


@command.command(epilog=PATH_HELP)
@store_options
@click.argument("path")
@json_option
@time_option
def stat(location: Location, path: str, as_json: bool, utc: bool) -> None:
    """Say what is known of an artifact, and who refers to it."""
    from tooltrail.cli._artifacts import fact_lines, facts_of, find_artifact

    with location.open() as store:
        facts = facts_of(store, find_artifact(store, path))
    if as_json:
        print_records([facts], "json")
        return
    for line in fact_lines(facts, utc=utc):
        write(f"{line}\n")


@command.command(epilog="Without a PATH: every artifact that the store refers to.")
@store_options
@click.argument("paths", metavar="[PATH]...", nargs=-1)
@json_option
def verify(location: Location, paths: tuple[str, ...], as_json: bool) -> int:
    """Read artifacts through and compare them with their digests and sizes."""
    from tooltrail.cli._artifacts import find_artifact, verify_artifacts

    with location.open() as store:
        verdicts = verify_artifacts(store, [find_artifact(store, path) for path in paths])
    bad = [verdict for verdict in verdicts if verdict.state != "ok"]
    if as_json:
        print_records([asdict(verdict) for verdict in verdicts], "json")
    else:
        for verdict in bad:
            write(f"{verdict.state:10} {verdict.path}: {verdict.reason}\n")
    total = sum(verdict.size for verdict in verdicts)
    found = counted(len(verdicts), "artifact")
    say(f"{found}, {size_of(total)}: {len(bad):,} damaged or missing")
    states = {verdict.state for verdict in bad}
    if "damaged" in states:
        return ExitCode.DAMAGED
    if "unreadable" in states:
        return ExitCode.UNAVAILABLE
    return ExitCode.INCOMPLETE if bad else ExitCode.OK
