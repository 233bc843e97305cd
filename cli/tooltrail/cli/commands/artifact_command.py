"""`tooltrail artifact`: list, read, search and verify stored objects."""

from __future__ import annotations

from contextlib import ExitStack
from operator import attrgetter
from typing import Any, Final

import click

from tooltrail.cli._exit_codes import ExitCode
from tooltrail.cli._location import Location
from tooltrail.cli._options import (
    Number,
    json_option,
    output_options,
    raw_option,
    store_options,
    time_option,
)
from tooltrail.cli._output import (
    Listing,
    attributes,
    copy_blocks,
    counted,
    print_array,
    printable,
    say,
    size_of,
    write,
)
from tooltrail.cli._ranges import LINE_COUNT, Range, range_type
from tooltrail.cli._tables import Columns, count_damaged, print_list
from tooltrail.cli._times import shown
from tooltrail.cli.commands.relocate_command import relocate

NUMBER = Number(min=0)
NAME_HELP = (
    "NAME is an invocation as in `tooltrail show`, or an artifact: a path from `artifact ls`, a "
    "digest, or a unique beginning of a digest."
)
STDERR_HELP = "Recorded stderr goes to stderr. Exits with 4 if some of the output was not kept."
PATH_HELP = "PATH is a path from `artifact ls`, a digest, or a unique beginning of a digest."
GREP_HELP = (
    "PATTERN is a regular expression of Python's `re` over bytes. Exits with 3 if no line matches."
)

_COLUMNS: Final[Columns] = {
    "SIZE": lambda view: size_of(view.size),
    "STORED": lambda view: size_of(view.stored_size),
    "LINES": lambda view: f"{view.line_count:,}",
    "CREATED": lambda view: shown(view.created_at),
    "PATH": attrgetter("path"),
}

_LEAST: Final = 24
"""Characters of a path that name an artifact: its folders, and some digits of its digest."""

stream_option = click.option(
    "--stream", "role", metavar="ROLE", help="Only this stream of an invocation, on stdout."
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
) -> None:
    """List artifacts by path."""
    from tooltrail.store import ArtifactView

    with location.open() as store:
        reader = store.reader
        views = reader.artifacts(
            invocation=reader.invocation_id(invocation) if invocation else None,
            session=reader.session(session).id if session else None,
            limit=count + 1 if count else None,
            cursor=cursor,
        )
    listed = views[: count or None]
    members = attributes(*ArtifactView.member_types)
    right, spare = ("SIZE", "STORED", "LINES"), ("CREATED", "LINES", "STORED")
    print_list(listed, output, members, _COLUMNS, right=right, spare=spare, least=_LEAST)
    count_damaged(listed, output)
    if len(listed) < len(views):
        paths = [view.path for view in listed if view.path]
        following = f", --cursor {paths[-1]} for the next" if paths else ""
        say(f"{count:,} listed; -n 0 for all{following}")


@command.command(epilog=f"{NAME_HELP} {STDERR_HELP}")
@store_options
@click.argument("name", metavar="NAME")
@click.option(
    "--bytes",
    "part",
    type=range_type(0, is_inclusive=False),
    metavar="A:B",
    help="Bytes from A up to, but not including, B, counted from 0. Also A:, :B, and A alone.",
)
@click.option(
    "--lines",
    type=range_type(1, is_inclusive=True),
    metavar="A:B",
    help="Lines from A to B, both included, counted from 1. Also A:, :B, and A alone.",
)
@stream_option
@raw_option
def cat(
    location: Location, name: str, part: Range | None, lines: Range | None, role: str | None
) -> int:
    """Print all bytes of an artifact or of the output of an invocation, or a range of them."""
    if part and lines:
        raise click.UsageError("--bytes cannot be combined with --lines")
    from tooltrail.cli._texts import print_output, say_incomplete, target_of, texts_of

    first, last = part or (0, None)
    with location.open() as store:
        texts, detail = texts_of(store, name, role)
        if not (part or lines):
            return print_output(store, texts, detail, role)
        for text in texts:
            blocks = text.part(
                lambda one: one.iter_line_bytes(*lines) if lines else one.iter_bytes(first, last)
            )
            copy_blocks(blocks, target_of(text.role, role))
        return say_incomplete(store, detail, role)


@command.command(epilog=f"{NAME_HELP} {STDERR_HELP}")
@store_options
@click.argument("name", metavar="NAME")
@click.option(
    "-n", "lines", type=LINE_COUNT, default=10, show_default=True, help="Number of lines."
)
@stream_option
@raw_option
def head(location: Location, name: str, lines: int, role: str | None) -> int:
    """Print the first lines of an artifact, or of the output of an invocation."""
    from tooltrail.cli._texts import say_incomplete, target_of, texts_of

    with location.open() as store:
        texts, detail = texts_of(store, name, role)
        for text in texts:
            copy_blocks(text.head(lines), target_of(text.role, role))
        return say_incomplete(store, detail, role)


@command.command(epilog=f"{NAME_HELP} {STDERR_HELP}")
@store_options
@click.argument("name", metavar="NAME")
@click.option(
    "-n", "lines", type=LINE_COUNT, default=10, show_default=True, help="Number of lines."
)
@click.option("-f", "follow", is_flag=True, help="Follow the output until the invocation ends.")
@stream_option
@raw_option
def tail(location: Location, name: str, lines: int, follow: bool, role: str | None) -> int:
    """Print the last lines of an artifact, or of an invocation, also while the invocation runs."""
    from tooltrail.cli._following import print_tail

    return print_tail(location, name, lines, role, follow=follow)


@command.command(epilog=f"{NAME_HELP} {GREP_HELP}")
@store_options
@click.argument("pattern")
@click.argument("name", metavar="NAME")
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
@stream_option
@raw_option
@json_option
def grep(
    *,
    location: Location,
    pattern: str,
    name: str,
    role: str | None,
    before: int | None,
    after: int | None,
    around: int,
    only_count: bool,
    numbers: bool,
    offsets: bool,
    as_json: bool,
    **search: Any,
) -> int:
    """Print the lines that match a regular expression or a plain text.

    If an invocation has several streams, each line begins with the role of its stream, and -m
    counts the matches of each stream.
    """
    from tooltrail.cli._matches import Search, print_counts, print_lines, print_lines_as_json
    from tooltrail.cli._texts import say_incomplete, texts_of

    before = around if before is None else before
    after = around if after is None else after
    with ExitStack() as stack:
        store = stack.enter_context(location.open())
        texts, detail = texts_of(store, name, role)
        readers = {one.role: stack.enter_context(one.reader()) for one in texts}
        wanted = Search(readers, pattern, before, after, search)
        if only_count:
            found = print_counts(wanted, as_json=as_json)
        elif as_json:
            found = print_lines_as_json(wanted)
        else:
            found = print_lines(wanted, numbers=numbers, offsets=offsets)
        code = say_incomplete(store, detail, role)
    return code if found or code else ExitCode.NOT_FOUND


@command.command(epilog=PATH_HELP)
@store_options
@click.argument("path")
@json_option
@time_option
def stat(location: Location, path: str, as_json: bool) -> None:
    """Print the digest and the sizes of an artifact, and the records that refer to it."""
    from tooltrail.cli._artifacts import fact_lines, facts_of, find_artifact

    with location.open() as store:
        facts = facts_of(store, find_artifact(store, path))
    if as_json:
        print_array([facts])
        return
    for line in fact_lines(facts):
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
        print_array([one.as_dict() for one in verdicts])
    else:
        for verdict in bad:
            write(printable(f"{verdict.state:10} {verdict.path}: {verdict.reason}") + "\n")
    total = sum(verdict.size for verdict in verdicts)
    found = counted(len(verdicts), "artifact")
    say(f"{found}, {size_of(total)}: {states_of(bad)}")
    states = {verdict.state for verdict in bad}
    if "unreadable" in states and "damaged" not in states:
        return ExitCode.UNAVAILABLE
    return ExitCode.of_damage(is_damaged="damaged" in states, is_incomplete=bool(bad))
