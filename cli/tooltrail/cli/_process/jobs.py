"""Job control: who has the terminal, and what we do when the child is stopped or we are continued.

Only the foreground group of a terminal may read it, and Ctrl-C goes to that group alone. There are
two ways to lend ours. A command run from a shell's prompt, alone in its job, gets the terminal at
once. In scripts and pipelines other members of our group need it, for Ctrl-C or as a pager; there
the child gets it when it first asks, which it does by being stopped with SIGTTIN or SIGTTOU.
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
        is_lent: the child's group has it.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._modes: list[Any] = []
        self.is_lent = False

    def is_ours(self) -> bool:
        """Whether our own group is in the foreground."""
        return self._foreground() == os.getpgrp()

    def lend(self, group: int) -> bool:
        """Put `group` into the foreground if we are; whether it is there now."""
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
            reset_modes: undo what the child did to echo and line editing, as shells do after a
                command that was killed in the middle.
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
        # The group may be gone already, and the terminal, too.
        with suppress(OSError):
            os.tcsetpgrp(self._fd, group)

    def _mark_lent(self, *, lent: bool) -> None:
        # While it is lent we write to it from the background; under `stty tostop` that stops us.
        _block_background_writes(block=lent)
        self.is_lent = lent


class Job:
    """The child as a part of our own job, as the shell that started us sees it."""

    def __init__(self, child: Child, terminal: Terminal | None) -> None:
        self._child = child
        self._terminal = terminal
        self._wants_terminal = False

    def start(self) -> None:
        """Lend the terminal at once to a child that has the job to itself."""
        self._wants_terminal = has_job_to_itself()
        if self._wants_terminal:
            self.resume()

    def on_child_changed(self) -> None:
        """Follow a child that was stopped: lend it what it waits for, or stop with it."""
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
        """Let the child go on, in the foreground if that is where it was and we are."""
        if self._terminal is not None and self._wants_terminal:
            self._terminal.lend(self._child.pid)
        # Also after a hand-over: the child may have reached for the terminal a moment too early.
        self._child.send(signal.SIGCONT)

    def suspend(self) -> None:
        """Nothing: the child gets the signal and stops, and we follow."""

    def resize(self) -> None:
        """Nothing: the child reads the size of the terminal itself."""

    def finish(self) -> None:
        """Take the terminal back."""
        if self._terminal is not None:
            self._terminal.take_back(reset_modes=self._child.signal is not None)

    def _stop_along(self, terminal: Terminal, *, asks: bool) -> None:
        # Ctrl-Z reached the child alone if it had the terminal, else the whole of our group.
        whole_group = asks or terminal.is_lent
        terminal.take_back()
        stopped = stop_self(whole_group=whole_group)
        if asks and not stopped:
            # No shell could ever give it the terminal. The system does this to orphaned groups.
            self._child.send(signal.SIGHUP)
        self.resume()


@contextmanager
def open_terminal() -> Generator[Terminal | None]:
    """The controlling terminal, None when there is none (daemons, CI, most agents)."""
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
    """Whether this process leads its group, reads the terminal, and feeds no pipe."""
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
