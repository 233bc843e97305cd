"""The program `tooltrail`; also `python -m tooltrail.cli`."""

import signal
import sys


def main() -> None:
    """Run the command line and exit with its documented code."""
    # Ctrl-C ends the program as it ends any other, also while modules are still being imported;
    # Python's own handler would print a traceback. `exec` installs handlers of its own.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from tooltrail.cli._app import app  # noqa: PLC0415  not before the line above
    from tooltrail.cli._failures import run  # noqa: PLC0415

    sys.exit(run(app))


if __name__ == "__main__":
    main()
