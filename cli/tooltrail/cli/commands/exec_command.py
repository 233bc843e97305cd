"""`tooltrail exec`: run a command as if tooltrail were not there, and record it whole."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tooltrail.cli._location import Location
from tooltrail.cli._options import ByteCount, policy_option, store_options

if TYPE_CHECKING:
    from tooltrail.store import Durability

_MAX_NAME = 256
"""Characters of a tool name that a record takes."""

_MAX_SECONDS = 1_000_000_000.0
"""Some thirty years; more than a clock of milliseconds need carry."""


class Seconds(click.FloatRange):
    """A number of seconds that a timer can be set to."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Read a number, or fail as a usage error."""
        seconds = float(super().convert(value, param, ctx))
        # Asked so that NaN fails too, which no range refuses.
        if not seconds <= _MAX_SECONDS:
            self.fail(f"{value!r} is no number of seconds up to {_MAX_SECONDS:,.0f}", param, ctx)
        return seconds


class ToolName(click.ParamType[str]):
    """A name that a record can hold."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Take a name, or fail as a usage error."""
        text = str(value)
        if not 1 <= len(text) <= _MAX_NAME:
            self.fail(f"a tool name has 1 to {_MAX_NAME} characters", param, ctx)
        if text != text.encode("utf-8", "replace").decode():
            self.fail(f"{text!r} is not valid UTF-8", param, ctx)
        return text


@click.command(
    "exec",
    # What follows the command belongs to it; an unknown option before it is a slip of the pen.
    context_settings={"allow_interspersed_args": False},
)
@store_options
@click.option(
    "--session",
    envvar="TOOLTRAIL_SESSION",
    metavar="SESSION",
    help="Record into this session ($TOOLTRAIL_SESSION); else into one of its own.",
)
@click.option(
    "--tool",
    type=ToolName(),
    default="exec",
    show_default=True,
    help="The tool name to record.",
)
@click.option("--call-id", help="The provider's id of the call.")
@click.option("--cwd", metavar="PATH", help="The folder to run in.")
@click.option("--timeout", type=Seconds(min=0, min_open=True), help="Seconds it may run.")
@click.option(
    "--grace",
    type=Seconds(min=0),
    default=5.0,
    show_default=True,
    help="Seconds between SIGTERM and SIGKILL at the timeout.",
)
@policy_option
@click.option(
    "--free-bytes",
    type=ByteCount(),
    metavar="BYTES",
    envvar="TOOLTRAIL_FREE_BYTES",
    help="Bytes that stay free on the spool's disk; by default a thousandth of it, at most 64 MiB."
    " 64K, 200M, 1G, 2T are powers of 1024 ($TOOLTRAIL_FREE_BYTES).",
)
@click.option(
    "--durability",
    type=click.Choice(["full", "process"]),
    default="full",
    show_default=True,
    envvar="TOOLTRAIL_DURABILITY",
    help="What the record survives once the command goes on: the loss of power, or the end of the"
    " program alone ($TOOLTRAIL_DURABILITY).",
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
    policy: Path | None,
    free_bytes: int | None,
    durability: "Durability",
    verbose: bool,
    argv: tuple[str, ...],
) -> int:
    """Run COMMAND and record its output byte for byte.

    Its bytes pass through untouched and live, its streams stay apart, signals reach it, and its
    exit status becomes that of exec: 128+N when signal N ended it, 124 at the timeout, 126 or 127
    when it cannot be started. The start is in the store before it runs; while the store is away,
    start and end wait in the outbox of the spool, which `repair` or the next exec delivers.
    """
    from tooltrail.cli._policy import read_policy
    from tooltrail.cli._recording import Request, run_recorded
    from tooltrail.store import StoreLimits

    request = Request(
        argv=argv,
        cwd=cwd,
        timeout_s=timeout,
        grace_s=grace,
        tool_name=tool,
        call_id=call_id,
        policy=read_policy(policy, tool),
        limits=StoreLimits(free_bytes),
        durability=durability,
    )
    return run_recorded(location, session, request, verbose=verbose)
