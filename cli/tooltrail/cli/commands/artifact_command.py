"""`tooltrail artifact`: list, read, search and verify stored objects."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from tooltrail.cli._exit_codes import ExitCode
from tooltrail.cli._location import Location
from tooltrail.cli._options import (
    json_option,
    output_options,
    store_options,
    time_option,
)
from tooltrail.cli._output import (
    Listing,
    attributes,
    copy_blocks,
    copy_stream,
    counted,
    print_array,
    say,
    size_of,
    write,
)
from tooltrail.cli._ranges import LineCount, Range, RangeType
from tooltrail.cli._tables import print_table
from tooltrail.cli._times import shown
from tooltrail.cli.commands.relocate_command import relocate

if TYPE_CHECKING:
    from tooltrail.store import ArtifactView

NUMBER = click.IntRange(min=0)
LINES = LineCount(min=0)
PATH_HELP = "PATH is a path from `artifact ls`, a digest, or a unique beginning of a digest."
GREP_HELP = (
    "PATTERN is a regular expression of Python's `re` over bytes. Exits with 3 if no line matches."
)


@click.group("artifact")
def command() -> None:
    """Read, search and verify stored artifacts."""


command.add_command(relocate)


@command.command("ls")
@store_options
@click.option("--invocation", metavar="INVOCATION", help="List artifacts of this invocation.")
@click.option("--session", metavar="SESSION", help="List artifacts of this session.")
@click.option("-n", "count", type=NUMBER, default=0, help="Number of artifacts, 0 for all.")
@click.option("--cursor", metavar="PATH", help="Continue after this path.")
@output_options
@time_option
def ls(
    *,
    location: Location,
    invocation: str | None,
    session: str | None,
    count: int,
    cursor: str | None,
    output: Listing,
    utc: bool,
) -> None:
    """List artifacts by path."""
    from tooltrail.store import ArtifactView

    with location.open() as store:
        reader = store.reader
        views = reader.artifacts(
            invocation=reader.invocation(invocation).summary.id if invocation else None,
            session=reader.session(session).id if session else None,
            limit=count + 1 if count else None,
            cursor=cursor,
        )
    if count and len(views) > count:
        views = views[:count]
        say(f"{count:,} listed; --cursor {views[-1].path} for the next")
    if not output.print_records(views, attributes(*ArtifactView.__slots__)):
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
@click.option(
    "--bytes",
    "part",
    type=RangeType(0, is_inclusive=False),
    metavar="A:B",
    help="Bytes from A up to, but not including, B, counted from 0. Also A:, :B, and A alone.",
)
@click.option(
    "--lines",
    type=RangeType(1, is_inclusive=True),
    metavar="A:B",
    help="Lines from A to B, both included, counted from 1. Also A:, :B, and A alone.",
)
def cat(location: Location, path: str, part: Range | None, lines: Range | None) -> None:
    """Print all bytes of an artifact, or a range of bytes or lines."""
    if part and lines:
        raise click.UsageError("--bytes cannot be combined with --lines")
    from tooltrail.cli._artifacts import artifact_reader, open_complete, read_through

    if part or lines:
        first, last = part or (0, None)
        with artifact_reader(location, path, is_checked=True) as reader:
            blocks = reader.iter_line_bytes(*lines) if lines else reader.iter_bytes(first, last)
            copy_blocks(blocks, sys.stdout.buffer)
        return
    with location.open() as store:
        with open_complete(store, path) as source:
            read_through(source)
        with open_complete(store, path) as source:
            copy_stream(source, sys.stdout.buffer)


@command.command(epilog=PATH_HELP)
@store_options
@click.argument("path")
@click.option("-n", "lines", type=LINES, default=10, show_default=True, help="Number of lines.")
def head(location: Location, path: str, lines: int) -> None:
    """Print the first lines of an artifact."""
    from tooltrail.cli._artifacts import artifact_reader

    with artifact_reader(location, path, is_checked=True) as reader:
        copy_blocks(reader.iter_head(lines), sys.stdout.buffer)


@command.command(epilog=PATH_HELP)
@store_options
@click.argument("path")
@click.option("-n", "lines", type=LINES, default=10, show_default=True, help="Number of lines.")
@click.option("-f", "follow", is_flag=True, help="Follow the output until the invocation ends.")
@click.option(
    "--stream", "role", metavar="ROLE", help="With -f: print only this stream, on stdout."
)
def tail(location: Location, path: str, lines: int, follow: bool, role: str | None) -> int:
    """Print the last lines of an artifact.

    With -f, PATH may also name an invocation. Its output is printed until the invocation ends.
    Recorded stderr is printed on stderr.
    """
    from tooltrail.cli._artifacts import artifact_reader

    if follow or role is not None:
        from tooltrail.cli._following import follow_output

        return follow_output(location, path, lines, role, follow=follow)
    from tooltrail.records.errors import InvalidRecordError, NotFoundError

    try:
        with artifact_reader(location, path, is_checked=True) as reader:
            copy_blocks(reader.iter_tail(lines), sys.stdout.buffer)
    except (InvalidRecordError, NotFoundError):
        from tooltrail.cli._following import refuse_invocation

        refuse_invocation(location, path)
        raise
    return ExitCode.OK


@command.command(epilog=f"{PATH_HELP} {GREP_HELP}")
@store_options
@click.argument("pattern")
@click.argument("path")
@click.option(
    "-F", "--fixed-strings", "literal", is_flag=True, help="Search for PATTERN as plain text."
)
@click.option("-i", "--ignore-case", is_flag=True, help="Ignore the case of ASCII letters.")
@click.option(
    "-v", "--invert-match", "invert", is_flag=True, help="Print the lines that do not match."
)
@click.option(
    "-B", "--before-context", "before", type=NUMBER, help="Lines of context before each match."
)
@click.option(
    "-A", "--after-context", "after", type=NUMBER, help="Lines of context after each match."
)
@click.option(
    "-C", "--context", "around", type=NUMBER, default=0, help="Lines of context before and after."
)
@click.option("-m", "--max-count", type=NUMBER, help="Stop after this many matches.")
@click.option(
    "-c", "--count", "only_count", is_flag=True, help="Print the number of matching lines."
)
@click.option("-n", "--line-number", "numbers", is_flag=True, help="Print the number of each line.")
@click.option(
    "-b", "--byte-offset", "offsets", is_flag=True, help="Print the byte offset of each line."
)
@json_option
def grep(
    *,
    location: Location,
    pattern: str,
    path: str,
    before: int | None,
    after: int | None,
    around: int,
    only_count: bool,
    numbers: bool,
    offsets: bool,
    as_json: bool,
    **search: Any,
) -> int:
    """Print the lines of an artifact that match a regular expression or a plain text."""
    from tooltrail.cli._artifacts import artifact_reader
    from tooltrail.cli._matches import Style, print_count, print_lines, print_lines_as_json

    # `search` holds the other keyword arguments of `ArtifactReader.grep`.
    before = around if before is None else before
    after = around if after is None else after
    with artifact_reader(location, path) as reader:
        if only_count:
            found = print_count(reader.count_matches(pattern, **search), as_json=as_json)
        else:
            matches = reader.grep(pattern, before=before, after=after, **search)
            style = Style(numbers, offsets, separated=before + after > 0)
            found = print_lines_as_json(matches) if as_json else print_lines(matches, style)
    return ExitCode.OK if found else ExitCode.NOT_FOUND


@command.command(epilog=PATH_HELP)
@store_options
@click.argument("path")
@json_option
@time_option
def stat(location: Location, path: str, as_json: bool, utc: bool) -> None:
    """Print the digest and the sizes of an artifact, and the records that refer to it."""
    from tooltrail.cli._artifacts import fact_lines, facts_of, find_artifact

    with location.open() as store:
        facts = facts_of(store, find_artifact(store, path))
    if as_json:
        print_array([facts])
        return
    for line in fact_lines(facts, utc=utc):
        write(f"{line}\n")


@command.command(epilog="Without PATH, every artifact of the store is verified.")
@store_options
@click.argument("paths", metavar="[PATH]...", nargs=-1)
@json_option
def verify(location: Location, paths: tuple[str, ...], as_json: bool) -> int:
    """Read complete artifacts, and compare them with their digests, sizes and indexes."""
    from tooltrail.cli._artifacts import find_artifact, states_of, verify_artifacts

    with location.open() as store:
        verdicts = verify_artifacts(store, [find_artifact(store, path) for path in paths])
    bad = [verdict for verdict in verdicts if verdict.state != "ok"]
    if as_json:
        print_array(map(asdict, verdicts))
    else:
        for verdict in bad:
            write(f"{verdict.state:10} {verdict.path}: {verdict.reason}\n")
    total = sum(verdict.size for verdict in verdicts)
    found = counted(len(verdicts), "artifact")
    say(f"{found}, {size_of(total)}: {states_of(bad)}")
    states = {verdict.state for verdict in bad}
    if "unreadable" in states and "damaged" not in states:
        return ExitCode.UNAVAILABLE
    return ExitCode.of_damage(is_damaged="damaged" in states, is_incomplete=bool(bad))
