"""Runs a command, and converts an error to one sentence and an exit code.

Docstrings of the command line therefore name an error only if a caller handles it.
"""

import io
import os
import sys
from typing import TYPE_CHECKING

import click

from tooltrail.cli._exit_codes import ExitCode
from tooltrail.cli._output import say
from tooltrail.cli._standard import drop_unwritten, open_missing

if TYPE_CHECKING:
    from tooltrail.records import TooltrailError

_NAME = "tooltrail"
COMPLETION = "_TOOLTRAIL_COMPLETE"
"""Environment variable with which a shell requests completions from click."""


def run(command: click.Command) -> int:
    """Run a command and return its exit code. An error is one sentence on stderr."""
    open_missing()
    try:
        return _guarded(command)
    finally:
        drop_unwritten()


def say_error(error: "TooltrailError") -> None:
    """Print an error, followed by its notes."""
    say(f"{_NAME}: {error}")
    for note in getattr(error, "__notes__", ()):
        say(note)


def code_of(error: "TooltrailError") -> ExitCode:
    """The exit code of an error."""
    # Imported here, since `tooltrail --version` does not need the errors.
    from tooltrail.records import errors  # noqa: PLC0415

    # The first matching class decides, so a subclass comes before its base class.
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


def _guarded(command: click.Command) -> int:
    try:
        result = _invoke(command)
        sys.stdout.flush()
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as error:
        worded = io.StringIO()
        error.show(file=worded)  # the usage, then the error
        for line in worded.getvalue().removesuffix("\n").split("\n"):
            say(line)
        return error.exit_code
    except BrokenPipeError:
        # Leaving the pager early is no error.
        return getattr(sys.stdout, "code_if_left", ExitCode.BROKEN_PIPE)
    except (click.Abort, KeyboardInterrupt):
        return ExitCode.INTERRUPTED
    except Exception as error:  # noqa: BLE001  `_reported` raises unknown errors again
        return _reported(error)
    return result if isinstance(result, int) else ExitCode.OK


def _invoke(command: click.Command) -> object:
    if os.environ.get(COMPLETION):
        from tooltrail.cli._bash import join_words_of_bash  # noqa: PLC0415  for shells alone

        join_words_of_bash()
        return command.main(prog_name=_NAME, complete_var=COMPLETION)
    # Not through `main`, which exits with 1 on a closed pipe. Here, 1 means damage.
    with command.make_context(_NAME, sys.argv[1:]) as context:
        return command.invoke(context)


def _reported(error: Exception) -> ExitCode:
    """Print an error of tooltrail or the system; raise any other, which is a bug."""
    from tooltrail.records import TooltrailError  # noqa: PLC0415

    if isinstance(error, TooltrailError):
        say_error(error)
        return code_of(error)
    if isinstance(error, OSError):
        about = f"{error.filename}: " if error.filename else ""
        say(f"{_NAME}: {about}{error.strerror or error}")
        return ExitCode.UNAVAILABLE
    raise error
