"""`tooltrail search`: find words, patterns and paths in everything that was recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tooltrail.cli._filters import filter_options
from tooltrail.cli._location import Location
from tooltrail.cli._options import Number, count_option, output_options, store_options, time_option
from tooltrail.cli._output import Listing

if TYPE_CHECKING:
    from tooltrail.store import InvocationFilter


class _SearchCommand(click.Command):
    """Explains how to search for a text that begins with a dash."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; an unknown option may be a text."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            hint = f"To search for this text: tooltrail search -- {error.option_name}"
            raise click.UsageError(f"{error.format_message()} {hint}", error.ctx) from error


@click.command("search", cls=_SearchCommand)
@store_options
@click.argument("texts", metavar="[TEXT]...", nargs=-1)
@click.option("--regex", metavar="RE", help="Find lines that match this regular expression.")
@click.option("--literal", metavar="TEXT", help="Find lines that contain exactly this text.")
@click.option("--path", metavar="PATH", help="Find calls that touched this file or folder.")
@click.option(
    "-i",
    "--ignore-case",
    is_flag=True,
    help="With --regex and --literal: ignore the case of ASCII.",
)
@filter_options
@count_option
@click.option(
    "--cursor", metavar="CURSOR", help="Continue after the page that printed this cursor."
)
@click.option("--reverse", "oldest_first", is_flag=True, help="List the oldest first.")
@click.option("--rank", is_flag=True, help="List the most relevant of the newest 1,000 first.")
@click.option(
    "-C",
    "--context",
    metavar="N",
    type=Number(0, 1000),
    default=0,
    help="Lines of context to show.",
)
@output_options
@time_option
def command(
    *,
    location: Location,
    where: InvocationFilter,
    texts: tuple[str, ...],
    regex: str | None,
    literal: str | None,
    path: str | None,
    ignore_case: bool,
    output: Listing,
    **how: Any,
) -> int:
    """Find calls and messages by their texts, newest first.

    Each TEXT is a word or, in quotes of the shell, several words that follow each other: "no such
    file". A hit has every TEXT. Case is ignored, foo also finds foo_bar and /usr/foo, and foo*
    finds foobar. Write -- before a TEXT that begins with a dash.

    Words are found in arguments with their keys, receipts, summaries, errors, results, streams, and
    messages with their thinking. Streams of up to 64 KiB are searched completely; of longer ones,
    the first and last 32 KiB. --regex and --literal read all of every stream and need no index.

    --path finds calls whose arguments or changed files name PATH or a file below PATH, and calls
    that ran there. A name may be relative to any folder: a.py and src/a.py may be /repo/src/a.py,
    lib/a.py is another file. A call that used *.py is found by --path '*.py', not by --path a.py.

    Filters such as --tool and --failed leave messages out.

    A hit says where the text stands, and the command that opens it. Exits with 3 if nothing is
    found. Exits with 4 if a text that may be a hit could not be read, such as the output of a
    running call. For TEXT and for --path, the index says whether a lost text may be a hit.
    """
    from tooltrail.cli._searching import make_query, print_hits

    query = make_query(texts, regex=regex, literal=literal, path=path, ignore_case=ignore_case)
    return print_hits(location, query, where, output, **how)
