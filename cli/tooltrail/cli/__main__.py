"""The program `tooltrail`; also `python -m tooltrail.cli`."""

import gc
import os
import signal
import sys

_STORE_OPTIONS = ("--db", "--artifacts", "--spool")

_FIRST_COLLECTION = 50_000
"""Number of new objects before Python's garbage collector first runs. Imports make fewer objects,
and leave no garbage. With Python's default of 700, collections take a tenth of the import time."""


def main() -> None:
    """Run the command line and exit with its documented code."""
    # Ctrl-C ends the program without a traceback, even while modules are being imported.
    # Python's default handler would print a traceback. `exec` installs its own handlers.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.set_threshold(_FIRST_COLLECTION)
    before, command, arguments = _split(sys.argv[1:])
    if command == "exec":
        # Does not import click, because the import takes longer than a short command.
        from tooltrail.cli._exec import main as run_exec  # noqa: PLC0415  not before SIGINT is set

        code = run_exec([*before, *arguments])
        if code is not None:
            # Everything is written and closed. This skips the slow exit of the interpreter.
            os._exit(code)
    if command == "hook":
        from tooltrail.cli._hook import is_event  # noqa: PLC0415  as above
        from tooltrail.cli._hook import main as record_event  # noqa: PLC0415

        if is_event(arguments):
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # the agent gets it, too
            record_event([*before, *arguments])
            os._exit(0)
    from tooltrail.cli._app import app  # noqa: PLC0415  not for `exec` and `hook`
    from tooltrail.cli._failures import run  # noqa: PLC0415

    code = run(app)
    gc.freeze()  # the collection at the exit would take a sixth of the time of `log`
    sys.exit(code)


def _split(words: list[str]) -> tuple[list[str], str, list[str]]:
    """The options of the store that precede the command, the command, and its arguments."""
    before: list[str] = []
    rest = iter(words)
    for word in rest:
        name, separator, value = word.partition("=")
        if name in _STORE_OPTIONS:
            before += [name, value if separator else next(rest, "")]
        elif word != "--utc":
            return before, word, list(rest)
    return before, "", []


if __name__ == "__main__":
    main()
