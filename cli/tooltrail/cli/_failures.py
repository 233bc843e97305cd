"""From an error to one sentence and an exit code; never a traceback."""

import os
import sys

import click

from tooltrail.cli._exit_codes import ExitCode
from tooltrail.records.errors import (
    AmbiguousNameError,
    DamageError,
    InvalidRecordError,
    MissingArtifactError,
    NotFoundError,
    SchemaMismatchError,
    StoreNotFoundError,
    TooltrailError,
    UnavailableError,
)

# The first class that fits decides, so a leaf stands before its branch.
_CODES: tuple[tuple[type[TooltrailError], ExitCode], ...] = (
    (StoreNotFoundError, ExitCode.UNAVAILABLE),
    (AmbiguousNameError, ExitCode.USAGE),
    (NotFoundError, ExitCode.NOT_FOUND),
    (InvalidRecordError, ExitCode.USAGE),
    (MissingArtifactError, ExitCode.INCOMPLETE),
    (DamageError, ExitCode.DAMAGED),
    (SchemaMismatchError, ExitCode.UNAVAILABLE),
    (UnavailableError, ExitCode.UNAVAILABLE),
)


def run(command: click.Command) -> int:
    """Run a command and give its exit code; what went wrong goes to stderr in one sentence."""
    try:
        result: object = command.main(standalone_mode=False, prog_name="tooltrail")
        sys.stdout.flush()
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except TooltrailError as error:
        say_error(error)
        return code_of(error)
    except BrokenPipeError:
        _abandon_stdout()
        return ExitCode.BROKEN_PIPE
    except (click.Abort, KeyboardInterrupt):
        return ExitCode.INTERRUPTED
    return result if isinstance(result, int) else ExitCode.OK


def say_error(error: TooltrailError) -> None:
    """Print an error the way all are printed."""
    click.echo(f"tooltrail: {error}", err=True)


def code_of(error: TooltrailError) -> ExitCode:
    """The exit code of an error."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), ExitCode.USAGE)


def _abandon_stdout() -> None:
    # Python flushes stdout once more at exit; on a closed pipe that would print a warning.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
