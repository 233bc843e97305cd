r"""A terminal for the child, so that it prints as without us: colours, progress, prompts.

The child leads its own session on the pseudo-terminal. Meanwhile our terminal is in raw mode if it
is our input: each key goes to the pseudo-terminal, which converts Ctrl-C and Ctrl-\ to signals as
ours would.
"""

import fcntl
import os
import selectors
import signal
import termios
import tty
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from tooltrail.cli._process.child import Child
from tooltrail.cli._process.jobs import Job, is_in_foreground
from tooltrail.cli._process.relay import stop_self

_STDIN: Final = 0
_STDOUT: Final = 1
_MOST_TYPED: Final = 4096
_OUTPUT_FLAGS: Final = 1
_LOCAL_FLAGS: Final = 3
_CHARACTERS: Final = 6
"""Indexes of the members that `tcgetattr` returns."""


class PseudoTerminal:
    """The terminal of the child, which gets the input of our terminal. Not thread-safe."""

    def __init__(self, selector: selectors.BaseSelector) -> None:
        """Open the pseudo-terminal, with the size and the modes of our terminal.

        Raises:
            OSError: the system has no pseudo-terminal left.
        """
        self._selector = selector
        self._master, self._slave = os.openpty()
        self._keys = os.dup(self._master)
        os.set_blocking(self._keys, False)
        self._typed = b""
        self._leader = -1
        self._modes: list[Any] | None = None
        with suppress(termios.error):
            modes = termios.tcgetattr(_STDOUT)
            if not os.isatty(_STDIN):
                # Our terminal does not become raw: it converts the ends of lines itself.
                modes[_OUTPUT_FLAGS] &= ~termios.OPOST
            termios.tcsetattr(self._slave, termios.TCSANOW, modes)
        self.copy_size()

    def plan(self) -> dict[str, Any]:
        """Arguments of `Popen`. The child reads our standard input unless that is a terminal."""
        slave = self._slave
        return {
            "stdin": slave if os.isatty(_STDIN) else None,
            "stdout": slave,
            "stderr": slave,
            "start_new_session": True,
            "preexec_fn": lambda: fcntl.ioctl(slave, termios.TIOCSCTTY, 0),
        }

    def start_reading(self) -> int:
        """Return the descriptor of the child's output, which the caller must close."""
        os.close(self._slave)
        self._slave = -1
        master, self._master = self._master, -1
        os.set_blocking(master, False)
        return master

    def job(self, child: Child) -> Job:
        """Return the job of the child, which leads the session of the pseudo-terminal."""
        self._leader = child.pid
        return PseudoTerminalJob(child, self)

    def copy_size(self) -> None:
        """Copy the size of our terminal to the pseudo-terminal."""
        with suppress(OSError):
            size = fcntl.ioctl(_STDOUT, termios.TIOCGWINSZ, bytes(8))
            fcntl.ioctl(self._keys, termios.TIOCSWINSZ, size)

    def start_typing(self, suspend: Callable[[], None]) -> None:
        """Send each key to the child, if our input is a terminal and we are in its foreground.

        Args:
            suspend: function to call on Ctrl-Z, unless a job of the child is in the foreground.
        """
        if self._modes is not None or not is_in_foreground(_STDIN):
            return
        try:
            self._modes = termios.tcgetattr(_STDIN)
            tty.setraw(_STDIN, termios.TCSADRAIN)
        except termios.error:
            return
        self._listen(suspend)

    def stop_typing(self) -> None:
        """Restore the modes of our terminal."""
        modes, self._modes = self._modes, None
        if modes is None:
            return
        for fd in (_STDIN, self._keys):
            if fd in self._selector.get_map():
                self._selector.unregister(fd)
        with suppress(termios.error):  # hung up
            termios.tcsetattr(_STDIN, termios.TCSADRAIN, modes)

    def close(self) -> None:
        """Restore our terminal, and close all descriptors."""
        self.stop_typing()
        for fd in (self._master, self._slave, self._keys):
            if fd >= 0:
                os.close(fd)

    def _listen(self, suspend: Callable[[], None]) -> None:
        ready = lambda: self._on_keys(suspend)  # noqa: E731  the selector's `data`
        self._selector.register(_STDIN, selectors.EVENT_READ, ready)

    def _on_keys(self, suspend: Callable[[], None]) -> None:
        try:
            typed = os.read(_STDIN, _MOST_TYPED)
        except OSError:
            typed = b""
        if not typed:  # hung up
            self._selector.unregister(_STDIN)
            return
        key = self._suspend_key()
        if key and key in typed and self._foreground() == self._leader:
            suspend()  # other keys are dropped, as on a terminal
            return
        self._typed = typed
        self._selector.unregister(_STDIN)
        self._send(suspend)

    def _send(self, suspend: Callable[[], None]) -> None:
        """Write keys to the child. If its buffer is full, no further keys are read."""
        try:
            self._typed = self._typed[os.write(self._keys, self._typed) :]
        except BlockingIOError:
            pass
        except OSError:
            self._typed = b""  # the child has closed its terminal
        is_waiting = self._keys in self._selector.get_map()
        if self._typed and not is_waiting:
            ready = lambda: self._send(suspend)  # noqa: E731  the selector's `data`
            self._selector.register(self._keys, selectors.EVENT_WRITE, ready)
        elif not self._typed:
            if is_waiting:
                self._selector.unregister(self._keys)
            self._listen(suspend)

    def _foreground(self) -> int:
        """The group that gets the signals of keys: the child's, or that of a job of a shell."""
        try:
            return os.tcgetpgrp(self._keys)
        except OSError:
            return self._leader

    def _suspend_key(self) -> bytes:
        """The key that stops a job; empty if the child reads keys without signals."""
        modes = termios.tcgetattr(self._keys)
        return modes[_CHARACTERS][termios.VSUSP] if modes[_LOCAL_FLAGS] & termios.ISIG else b""


class PseudoTerminalJob(Job):
    """The child on a pseudo-terminal, in its own session, which our shell does not see."""

    def __init__(self, child: Child, pty: PseudoTerminal) -> None:
        super().__init__(child, None)
        self._pty = pty

    def start(self) -> None:
        """Start sending keys to the child."""
        self._pty.start_typing(self.suspend)

    def on_child_changed(self) -> None:
        """Do nothing: no terminal stops a child that leads its session."""

    def resume(self) -> None:
        """Continue the child, with our terminal in raw mode again."""
        self._pty.start_typing(self.suspend)
        self._pty.copy_size()
        self._child.send(signal.SIGCONT)

    def suspend(self) -> None:
        """Stop the child, and then ourselves until SIGCONT."""
        # SIGTSTP lets a program clean up. It does not stop a session without a shell; SIGSTOP does.
        self._child.send(signal.SIGTSTP)
        self._child.send(signal.SIGSTOP)
        self._pty.stop_typing()
        stop_self(whole_group=True)
        self.resume()

    def resize(self) -> None:
        """Copy the new size of our terminal to the child."""
        self._pty.copy_size()

    def finish(self) -> None:
        """Stop sending keys, and restore the modes of our terminal."""
        self._pty.stop_typing()
