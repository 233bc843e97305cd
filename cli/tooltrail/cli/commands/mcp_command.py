"""`tooltrail mcp`: let an agent read its own record over MCP."""

import click

from tooltrail.cli._location import Location
from tooltrail.cli._options import store_options


@click.command("mcp")
@store_options
def command(*, location: Location) -> None:
    """Serve the record to an agent over MCP, on standard input and output.

    An agent starts this command. The tools only read: list calls, show a call, read and search
    artifacts, streams and transcripts. Needs pip install 'tooltrail[mcp]'.
    """
    from tooltrail.cli._mcp_server import serve

    serve(location)
