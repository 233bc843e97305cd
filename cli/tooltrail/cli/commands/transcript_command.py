"""`tooltrail transcript`: a session read back."""

from typing import BinaryIO

import click

from tooltrail.cli._location import Location
from tooltrail.cli._options import store_options
from tooltrail.cli._output import write
from tooltrail.transcripts import FORMATS, load_conversation


@click.command("transcript")
@store_options
@click.argument("session", default="@last", envvar="TOOLTRAIL_SESSION")
@click.option(
    "--format", "style", type=click.Choice(list(FORMATS)), default="text", show_default=True
)
@click.option("--json", "style", flag_value="json", help="The same as --format json.")
@click.option("-o", "--output", type=click.File("wb", atomic=True), help="Write to this file.")
def command(location: Location, session: str, style: str, output: BinaryIO | None) -> None:
    """Print a session as the conversation that it was, each tool call with what the model saw.

    SESSION is an id, a unique beginning or end of one, or @last (the default).
    """
    with location.open() as store:
        conversation = load_conversation(store.reader, session)
    for piece in FORMATS[style](conversation):
        if output is None:
            write(piece)
        else:
            output.write(piece.encode("utf-8", "backslashreplace"))
