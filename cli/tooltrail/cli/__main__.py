"""The program `tooltrail`; also `python -m tooltrail.cli`."""

import sys

from tooltrail.cli._app import app
from tooltrail.cli._failures import run


def main() -> None:
    """Run the command line and exit with its documented code."""
    sys.exit(run(app))


if __name__ == "__main__":
    main()
