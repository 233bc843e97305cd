"""`tooltrail transcript`: a session read back."""

import sys
from pathlib import Path

import click

from tooltrail.cli._location import Location
from tooltrail.cli._options import store_options
from tooltrail.cli._output import on_terminal, write, write_file

STYLES = ("text", "markdown", "json")
"""The names of all formats of `tooltrail.transcripts`, known before they are imported."""

_STDOUT = Path("-")


@click.command("transcript")
@store_options
@click.argument("session", default="@last", envvar="TOOLTRAIL_SESSION")
@click.option(
    "--format",
    "style",
    type=click.Choice(STYLES),
    default="text",
    show_default=True,
    help="For people, for Markdown, for programs.",
)
@click.option("--json", "style", flag_value="json", help="The same as --format json.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, allow_dash=True, dir_okay=False),
    metavar="FILENAME",
    help="Write to this file.",
)
def command(location: Location, session: str, style: str, output: Path | None) -> None:
    """Print a session as the conversation that it was, each tool call with what the model saw.

    SESSION is an id, a unique beginning or end of one, or @last; by default $TOOLTRAIL_SESSION,
    else @last. On a terminal control characters of the output do nothing.
    """
    from tooltrail.transcripts import FORMATS, load_conversation

    with location.open() as store:
        conversation = load_conversation(store.reader, session)
    pieces = FORMATS[style](conversation)
    if output is not None and output != _STDOUT:
        write_file(output, pieces)
        return
    for piece in pieces:
        write(on_terminal(piece) if sys.stdout.isatty() else piece)
