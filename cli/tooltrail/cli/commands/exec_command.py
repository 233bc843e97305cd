"""`tooltrail exec`: run a command as if tooltrail were not there, and record it whole."""

import click

from tooltrail.cli._location import Location
from tooltrail.cli._options import store_options
from tooltrail.cli._recording import Request, run_recorded


@click.command(
    "exec",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@store_options
@click.option(
    "--session",
    envvar="TOOLTRAIL_SESSION",
    metavar="SESSION",
    help="Record into this session ($TOOLTRAIL_SESSION); else into one of its own.",
)
@click.option("--tool", default="exec", show_default=True, help="The tool name to record.")
@click.option("--call-id", help="The provider's id of the call.")
@click.option("--cwd", metavar="PATH", help="The folder to run in.")
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), help="Seconds it may run.")
@click.option(
    "--grace",
    type=click.FloatRange(min=0),
    default=5.0,
    show_default=True,
    help="Seconds between SIGTERM and SIGKILL at the timeout.",
)
@click.option("-v", "verbose", is_flag=True, help="Say on stderr which invocation it became.")
@click.argument("argv", metavar="-- COMMAND [ARG]...", nargs=-1, required=True)
def command(
    *,
    location: Location,
    session: str | None,
    tool: str,
    call_id: str | None,
    cwd: str | None,
    timeout: float | None,
    grace: float,
    verbose: bool,
    argv: tuple[str, ...],
) -> int:
    """Run COMMAND and record its output byte for byte.

    Its bytes pass through untouched and live, its streams stay apart, signals reach it, and its
    exit status becomes that of exec: 128+N when signal N ended it, 124 at the timeout, 126 or 127
    when it cannot be started. The start is in the store before it runs.
    """
    request = Request(
        argv=argv, cwd=cwd, timeout_s=timeout, grace_s=grace, tool_name=tool, call_id=call_id
    )
    return run_recorded(location, session, request, verbose=verbose)
