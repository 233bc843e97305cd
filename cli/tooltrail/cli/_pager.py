"""Sends long text on a terminal through a pager, as git does."""

import io
import os
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import subprocess


class PagedOutput(io.TextIOWrapper):
    """Standard output that goes to a pager. It counts as a terminal.

    Attributes:
        code_if_left: the exit code if the user leaves the pager before all is written.
    """

    def __init__(self, pager: "subprocess.Popen[bytes]", code_if_left: int) -> None:
        assert pager.stdin is not None
        super().__init__(pager.stdin, "utf-8", "backslashreplace")
        self.code_if_left = code_if_left
        self._pager = pager
        self._terminal = sys.stdout
        # Ctrl-C is for the pager while it runs.
        self._interrupted = signal.signal(signal.SIGINT, signal.SIG_IGN)

    def isatty(self) -> bool:
        """True: the pager writes to a terminal."""
        return True

    def finish(self) -> None:
        """Wait until the user has left the pager, and write to the terminal from now on."""
        if sys.stdout is self:
            sys.stdout = self._terminal
            with suppress(BrokenPipeError):
                self.close()
            self._pager.wait()
            signal.signal(signal.SIGINT, self._interrupted)


def page_output(code_if_left: int = 0) -> None:
    """Send all further output through `$TOOLTRAIL_PAGER`, `$PAGER` or `less`, on a terminal only.

    `cat`, an empty text or a missing program disables the pager. `code_if_left` is the exit code if
    the user leaves the pager early.
    """
    command = os.environ.get("TOOLTRAIL_PAGER", os.environ.get("PAGER", "less"))
    is_wanted = command.strip() not in ("", "cat") and os.environ.get("TERM") != "dumb"
    if isinstance(sys.stdout, PagedOutput) or not (is_wanted and sys.stdout.isatty()):
        return
    import atexit  # noqa: PLC0415  only for a terminal
    import shutil  # noqa: PLC0415
    import subprocess  # noqa: PLC0415

    if shutil.which(command.split()[0]) is None:
        return
    # As git does: end at once if all fits, and let colours through.
    environment = {"LESS": "FRX", "LV": "-c", **os.environ}
    pager = subprocess.Popen(command, shell=True, stdin=subprocess.PIPE, env=environment)  # noqa: S602  as git does
    paged = PagedOutput(pager, code_if_left)
    sys.stdout = paged
    atexit.register(paged.finish)
