"""Job control: lends the terminal to the child, and handles a stopped child and SIGCONT.

Only the foreground process group of a terminal can read it, and only this group gets Ctrl-C. A
command that is run from a shell prompt, alone in its job, gets the terminal at once. In scripts and
pipelines, other members of our group need the terminal, for Ctrl-C or as a pager. There, the child
gets the terminal on its first access, at which the system stops it with SIGTTIN or SIGTTOU.
"""

import os
import signal
import stat
import termios
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Any

from tooltrail.cli._process.child import Child
from tooltrail.cli._process.outcome import StreamName
from tooltrail.cli._process.outlet import STANDARD_FDS, stat_standard
from tooltrail.cli._process.relay import stop_self

_WANTS_TERMINAL = frozenset({signal.SIGTTIN, signal.SIGTTOU})


class Terminal:
    """The controlling terminal. Not thread-safe.

    Attributes:
        is_lent: whether the group of the child has the terminal.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._modes: list[Any] = []
        self.is_lent = False

    def is_ours(self) -> bool:
        """Whether our own group is in the foreground."""
        return self._foreground() == os.getpgrp()

    def lend(self, group: int) -> bool:
        """Move `group` to the foreground if we are there; return whether it is there now."""
        if self.is_ours():
            with suppress(termios.error):
                self._modes = termios.tcgetattr(self._fd)
            self._set_foreground(group)
        lent = self._foreground() == group
        self._mark_lent(lent=lent)
        return lent

    def take_back(self, *, reset_modes: bool = False) -> None:
        """Return to the foreground if the terminal is lent.

        Args:
            reset_modes: restore echo and line editing, as shells do after a command that was
                killed.
        """
        if not self.is_lent:
            return
        self._set_foreground(os.getpgrp())
        if reset_modes and self._modes:
            with suppress(termios.error):
                termios.tcsetattr(self._fd, termios.TCSADRAIN, self._modes)
        self._mark_lent(lent=False)

    def _foreground(self) -> int | None:
        try:
            return os.tcgetpgrp(self._fd)
        except OSError:
            return None  # hung up

    def _set_foreground(self, group: int) -> None:
        _block_background_writes(block=True)
        # The group or the terminal may no longer exist.
        with suppress(OSError):
            os.tcsetpgrp(self._fd, group)

    def _mark_lent(self, *, lent: bool) -> None:
        # While lent, we write from the background. `stty tostop` must not stop us for that.
        _block_background_writes(block=lent)
        self.is_lent = lent


class Job:
    """The child as a member of our own job in the shell that started us."""

    def __init__(self, child: Child, terminal: Terminal | None) -> None:
        self._child = child
        self._terminal = terminal
        self._wants_terminal = False

    def start(self) -> None:
        """Lend the terminal at once if we are alone in our job."""
        self._wants_terminal = has_job_to_itself()
        if self._wants_terminal:
            self.resume()

    def on_child_changed(self) -> None:
        """Handle a stopped child: lend it the terminal if it waits for that, or stop too."""
        terminal = self._terminal
        if terminal is None or (stopped_by := self._child.poll_stop()) is None:
            return
        asks = stopped_by in _WANTS_TERMINAL
        self._wants_terminal |= asks
        if asks and terminal.lend(self._child.pid):
            self._child.send(signal.SIGCONT)
        elif asks or stopped_by == signal.SIGTSTP or terminal.is_lent:
            self._stop_along(terminal, asks=asks)

    def resume(self) -> None:
        """Continue the child, with the terminal if it wants the terminal and we have it."""
        if self._terminal is not None and self._wants_terminal:
            self._terminal.lend(self._child.pid)
        # Needed after lending too: the child may have been stopped just before that.
        self._child.send(signal.SIGCONT)

    def suspend(self) -> None:
        """Do nothing: the child gets the signal and stops, and then we stop."""

    def resize(self) -> None:
        """Tell the child, which is in the background here: the system tells the foreground."""
        self._child.send(signal.SIGWINCH)

    def finish(self) -> None:
        """Take the terminal back."""
        if self._terminal is not None:
            self._terminal.take_back(reset_modes=self._child.signal is not None)

    def _stop_along(self, terminal: Terminal, *, asks: bool) -> None:
        # Ctrl-Z stopped only the child if it had the terminal, else our complete group.
        whole_group = asks or terminal.is_lent
        terminal.take_back()
        stopped = stop_self(whole_group=whole_group)
        if asks and not stopped:
            # No shell can ever give it the terminal. The kernel sends orphaned groups SIGHUP.
            self._child.send(signal.SIGHUP)
        self.resume()


@contextmanager
def open_terminal() -> Generator[Terminal | None]:
    """Open the controlling terminal; None without one (daemons, CI, most agents)."""
    try:
        fd = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        yield None
        return
    try:
        yield Terminal(fd)
    finally:
        os.close(fd)


def has_job_to_itself() -> bool:
    """Whether this process leads its group, reads a terminal, and writes to no pipe."""
    is_leader = os.getpgrp() == os.getpid()
    return is_leader and os.isatty(0) and not any(map(_is_pipe, STANDARD_FDS))


def _is_pipe(name: StreamName) -> bool:
    found = stat_standard(name)
    return found is not None and (stat.S_ISFIFO(found.st_mode) or stat.S_ISSOCK(found.st_mode))


def _block_background_writes(*, block: bool) -> None:
    how = signal.SIG_BLOCK if block else signal.SIG_UNBLOCK
    signal.pthread_sigmask(how, {signal.SIGTTOU})


def is_in_foreground(fd: int) -> bool:
    """Whether a descriptor is a terminal, and our process group may read it."""
    try:
        return os.isatty(fd) and os.tcgetpgrp(fd) == os.getpgrp()
    except OSError:
        return False
