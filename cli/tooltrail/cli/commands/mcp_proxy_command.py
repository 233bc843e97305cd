"""`tooltrail mcp-proxy`: record the tool calls between an MCP client and its server."""

import asyncio
import re
import shlex
from urllib.parse import urlsplit

import click

from tooltrail.cli._location import Location
from tooltrail.cli._options import named_option, session_name, store_options


@click.command("mcp-proxy")
@click.argument("argv", metavar="[-- SERVER [ARG]...]", nargs=-1)
@click.option("--url", metavar="URL", help="The server's URL, for streamable HTTP.")
@click.option(
    "--header", "headers", metavar="NAME:VALUE", multiple=True, help="Send this header to --url."
)
@store_options
@named_option("--session", callback=session_name)
@click.option("--server-name", metavar="NAME", help="Record its tools as NAME___TOOL.")
@click.option("--no-redact", is_flag=True, help="Keep credentials as they are.")
def command(
    *,
    argv: tuple[str, ...],
    url: str | None,
    headers: tuple[str, ...],
    location: Location,
    session: str | None,
    server_name: str | None,
    no_redact: bool,
) -> int:
    """Record the tool calls between an MCP client and its server.

    The client runs this program in place of SERVER, and speaks to it on stdin and stdout. With
    --url the server is reached by streamable HTTP, which needs the extra `mcp`. On stdio, every
    byte passes unchanged; with --url, each JSON message does. Each tools/call is recorded with its
    result or failure, and the tools that the server lists. If recording fails, a line on stderr
    says so, and the traffic goes on.

    Credentials of well-known formats are replaced by [REDACTED:RULE] in the record, not in the
    traffic. The exit status is that of SERVER: 128+N if signal N ended the server, 126 or 127 if
    the server could not be started.
    """
    from tooltrail.cli._mcp_proxy import run_stdio
    from tooltrail.cli._mcp_recording import McpRecorder
    from tooltrail.cli._redaction import used_rules

    if bool(argv) == bool(url):
        raise click.UsageError("name one server: either -- SERVER, or --url URL")
    if not all(re.fullmatch(r"[\w-]+:[ -~]*", one, re.ASCII) for one in headers):
        raise click.UsageError("a --header is NAME:VALUE")
    try:
        parts = urlsplit(url or "")
        is_http = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError as error:
        raise click.UsageError(f"--url is not valid: {error}") from error
    if url and not is_http:
        raise click.UsageError(
            "--url is not valid: it must begin with http:// or https://, and a host"
        )
    # Without the parts that may hold a credential.
    shown = parts._replace(netloc=parts.netloc.rpartition("@")[2], query="").geturl()
    with McpRecorder(
        location.recording_spool(),
        shown or shlex.join(argv),
        session=session,
        server_name=server_name,
        rules=None if no_redact else used_rules(),
    ) as recorder:
        if not url:
            return run_stdio(argv, recorder)
        from tooltrail.cli._mcp_http import run_http

        return asyncio.run(run_http(url, headers, recorder))
