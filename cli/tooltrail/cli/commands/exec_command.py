"""`tooltrail exec` for click, with a help text from the table in `_exec_options`.

The program calls `tooltrail.cli._exec.main` directly, before click is imported.
"""

from typing import Any

import click

from tooltrail.cli._exec import main
from tooltrail.cli._exec_options import ARGUMENTS, OPTIONS, UsageProblem, read_request


class ExecCommand(click.Command):
    """A command that prints its help text, and passes all other arguments to `main`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Pass the arguments on unchanged, unless they request the help text."""
        ctx.meta[__name__] = list(args)
        try:
            is_help = read_request(args, {}) is None
        except UsageProblem:
            is_help = False
        return super().parse_args(ctx, ["--help"]) if is_help else []

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        return main(ctx.meta[__name__])


def _parameters() -> list[click.Parameter]:
    options = [
        click.Option([one.flag], metavar=one.metavar, is_flag=one.metavar is None, help=one.help)
        for one in OPTIONS
    ]
    return [*options, click.Argument(["argv"], metavar=ARGUMENTS, nargs=-1, required=True)]


command = ExecCommand(
    "exec",
    params=_parameters(),
    help="""Run COMMAND and record its output byte for byte.

    Output passes through unchanged while the command runs: stdout and stderr separately, or as one
    stream on a terminal. Signals are forwarded: HUP, INT, QUIT, TERM, USR1, USR2, ALRM, TSTP, CONT
    and WINCH. The start is recorded before the command runs. If
    that fails, the command is not run and the exit status is 5. Otherwise, the exit status is that
    of COMMAND: 128+N if signal N ended the command, 124 after a timeout, 126 or 127 if the command
    could not be started. The record waits in the journal of the spool until the store is read.
    """,
)
