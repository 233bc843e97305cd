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
    help="Session to record into ($TOOLTRAIL_SESSION). By default, a new session.",
)
@click.option(
    "--tool",
    type=ToolName(),
    default="exec",
    show_default=True,
    help="Tool name to record.",
)
@click.option("--call-id", help="Id that the provider gave the call.")
@click.option("--cwd", metavar="PATH", help="Working directory of the command.")
@click.option("--timeout", type=Seconds(min=0, min_open=True), help="Seconds the command may run.")
@click.option(
    "--grace",
    type=Seconds(min=0),
    default=5.0,
    show_default=True,
    help="Seconds between SIGTERM and SIGKILL after the timeout.",
)
@policy_option
@click.option(
    "--free-bytes",
    type=ByteCount(),
    metavar="BYTES",
    envvar="TOOLTRAIL_FREE_BYTES",
    help="Bytes to keep free on the disk of the spool. By default, 1/1000 of the disk, at most"
    " 64 MiB. 64K, 200M, 1G, 2T are powers of 1024 ($TOOLTRAIL_FREE_BYTES).",
)
@click.option(
    "--durability",
    type=click.Choice(["full", "process"]),
    default="full",
    show_default=True,
    envvar="TOOLTRAIL_DURABILITY",
    help="What the record survives: a power loss (full), or only the end of this program (process)"
    " ($TOOLTRAIL_DURABILITY).",
)
@click.option("-v", "verbose", is_flag=True, help="Print the id of the invocation on stderr.")
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

    Output passes through unchanged while the command runs, with stdout and stderr separate.
    Signals are forwarded. The exit status is the exit status of COMMAND: 128+N if signal N ended
    the command, 124 after a timeout, 126 or 127 if the command could not be started. The start is
    recorded before the command runs. While the store is away, start and end wait in the outbox of
    the spool, which `repair` or the next exec delivers.
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
