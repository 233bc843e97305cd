"""Job control: what we do when the child is stopped or we are continued."""

import signal

from tooltrail.cli._process.child import Child
from tooltrail.cli._process.pseudo_terminal import PseudoTerminal
from tooltrail.cli._process.relay import stop_self
from tooltrail.cli._process.terminal import Terminal, has_job_to_itself

_WANTS_TERMINAL = frozenset({signal.SIGTTIN, signal.SIGTTOU})


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
            # Nobody could ever give it the terminal: what the system does with orphaned groups.
            self._child.send(signal.SIGHUP)
        self.resume()


class PseudoTerminalJob(Job):
    """The child on a pseudo-terminal, in a session of its own, which our shell does not see."""

    def __init__(self, child: Child, pty: PseudoTerminal) -> None:
        super().__init__(child, None)
        self._pty = pty

    def start(self) -> None:
        """Send what is typed to the child."""
        self._pty.start_typing(self.suspend)

    def on_child_changed(self) -> None:
        """Nothing: no terminal stops a child that leads its session."""

    def resume(self) -> None:
        """Let the child go on, with our terminal as it was."""
        self._pty.start_typing(self.suspend)
        self._pty.copy_size()
        self._child.send(signal.SIGCONT)

    def suspend(self) -> None:
        """Stop the child, and then ourselves, until somebody continues us."""
        # A session without a shell does not stop for SIGTSTP; a program may tidy up for it first.
        self._child.send(signal.SIGTSTP)
        self._child.send(signal.SIGSTOP)
        self._pty.stop_typing()
        stop_self(whole_group=True)
        self.resume()

    def resize(self) -> None:
        """Pass a new size of our terminal on."""
        self._pty.copy_size()

    def finish(self) -> None:
        """Give our terminal its own modes back."""
        self._pty.stop_typing()
