"""The direct child and its process group.

The child stays a zombie until its output has been read to the end. Until the child is reaped, its
process id, which is also the id of its group, cannot be reused. So a forwarded signal cannot go to
an unrelated process.
"""

import os
import signal
import subprocess
from contextlib import suppress

# A status as in subprocess, where -n means killed by signal n. There is no signal 1000.
_REAPED_BY_OTHERS = -1000


class Child:
    """A started command, which leads its own process group. Not thread-safe."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self.pid = process.pid
        self._status: int | None = None
        self._stopped_by: int | None = None

    @property
    def exit_status(self) -> int | None:
        """The exit status of a reaped child that was not killed by a signal."""
        status = self._status
        return None if status is None or status < 0 else status

    @property
    def signal(self) -> int | None:
        """The signal that killed a reaped child."""
        status = self._status
        return None if status is None or status >= 0 or status == _REAPED_BY_OTHERS else -status

    def send(self, signum: int) -> None:
        """Signal the group. Ignores a group that is gone or that we may not signal."""
        # If only zombies are left, Linux returns ESRCH and macOS returns EPERM.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signum)

    def has_ended(self) -> bool:
        """Whether the direct child has ended. Reaps the child only on systems without `waitid`."""
        if self._status is not None:
            return True
        if not hasattr(os, "waitid"):
            return self.reap()
        try:
            found = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return self.reap()
        return found is not None

    def poll_stop(self) -> int | None:
        """The signal that stopped the child since the last call; None if it was not stopped."""
        if self._status is not None:
            return None
        if hasattr(os, "waitid"):
            # ECHILD means a zombie, which cannot be stopped.
            with suppress(ChildProcessError):
                found = os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WNOHANG)
                return None if found is None else found.si_status
            return None
        self._wait(os.WNOHANG | os.WUNTRACED)
        stopped_by, self._stopped_by = self._stopped_by, None
        return stopped_by

    def reap(self) -> bool:
        """Read the exit status if the child has ended; return whether the child has ended."""
        return self._status is not None or self._wait(os.WNOHANG)

    def destroy(self) -> None:
        """Kill the group and reap the child, unless the child is already reaped."""
        if not self.has_ended():
            self.send(signal.SIGKILL)
        if self._status is None:
            self._wait(0)

    def _wait(self, options: int) -> bool:
        try:
            pid, raw = os.waitpid(self.pid, options)
        except ChildProcessError:
            return self._end(_REAPED_BY_OTHERS)
        if pid == 0:
            return False
        if os.WIFSTOPPED(raw):
            self._stopped_by = os.WSTOPSIG(raw)
            return False
        return self._end(os.waitstatus_to_exitcode(raw))

    def _end(self, status: int) -> bool:
        self._status = status
        # Otherwise Popen would wait again, or warn that the child still runs.
        self._process.returncode = status
        return True
