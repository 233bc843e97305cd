"""From an error to one sentence and an exit code; never a traceback."""

import os
import sys
from typing import TYPE_CHECKING

import click

from tooltrail.cli._exit_codes import ExitCode

if TYPE_CHECKING:
    from tooltrail.records import TooltrailError


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
    except BrokenPipeError:
        _abandon_stdout()
        return ExitCode.BROKEN_PIPE
    except (click.Abort, KeyboardInterrupt):
        return ExitCode.INTERRUPTED
    except Exception as error:  # noqa: BLE001  what is not ours is raised again
        return _reported(error)
    return result if isinstance(result, int) else ExitCode.OK


def say_error(error: "TooltrailError") -> None:
    """Print an error the way all are printed."""
    click.echo(f"tooltrail: {error}", err=True)


def code_of(error: "TooltrailError") -> ExitCode:
    """The exit code of an error."""
    # Imported here, so that `tooltrail --version` does not pay for what it never needs.
    from tooltrail.records import errors  # noqa: PLC0415

    # The first class that fits decides, so a leaf stands before its branch.
    codes = (
        (errors.StoreNotFoundError, ExitCode.UNAVAILABLE),
        (errors.AmbiguousNameError, ExitCode.USAGE),
        (errors.NotFoundError, ExitCode.NOT_FOUND),
        (errors.InvalidRecordError, ExitCode.USAGE),
        (errors.MissingArtifactError, ExitCode.INCOMPLETE),
        (errors.DamageError, ExitCode.DAMAGED),
        (errors.SchemaMismatchError, ExitCode.UNAVAILABLE),
        (errors.UnavailableError, ExitCode.UNAVAILABLE),
    )
    return next((code for kind, code in codes if isinstance(error, kind)), ExitCode.USAGE)


def _reported(error: Exception) -> ExitCode:
    """Say an error of ours and give its code; raise any other, which is a fault of the program."""
    from tooltrail.records import TooltrailError  # noqa: PLC0415

    if not isinstance(error, TooltrailError):
        raise error
    say_error(error)
    return code_of(error)


def _abandon_stdout() -> None:
    # Python flushes stdout once more at exit; on a closed pipe that would print a warning.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
