r"""A terminal for the child, so that it prints as it would without us: colours, progress, prompts.

The child leads a session of its own on the pseudo-terminal. Our terminal is in raw mode meanwhile:
each key goes to the pseudo-terminal, which makes signals of Ctrl-C and Ctrl-\ as ours would.
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
_LOCAL_FLAGS: Final = 3
_CHARACTERS: Final = 6
"""Members of what `tcgetattr` gives."""


class PseudoTerminal:
    """The child's terminal, and our own while it serves the child. Not thread-safe."""

    def __init__(self, selector: selectors.BaseSelector) -> None:
        """Open the pseudo-terminal, with the size and the modes of ours.

        Raises:
            OSError: the system has none left.
        """
        self._selector = selector
        self._master, self._slave = os.openpty()
        self._keys = os.dup(self._master)
        os.set_blocking(self._keys, False)
        self._typed = b""
        self._modes: list[Any] | None = None
        with suppress(termios.error):
            termios.tcsetattr(self._slave, termios.TCSANOW, termios.tcgetattr(_STDOUT))
        self.copy_size()

    def plan(self) -> dict[str, Any]:
        """How `Popen` starts the child. It reads our input unless that is a terminal."""
        slave = self._slave
        return {
            "stdin": slave if os.isatty(_STDIN) else None,
            "stdout": slave,
            "stderr": slave,
            "start_new_session": True,
            "preexec_fn": lambda: fcntl.ioctl(slave, termios.TIOCSCTTY, 0),
        }

    def start_reading(self) -> int:
        """The descriptor that the child's output comes from; the caller closes it."""
        os.close(self._slave)
        self._slave = -1
        master, self._master = self._master, -1
        os.set_blocking(master, False)
        return master

    def job(self, child: Child) -> Job:
        """The child as a job."""
        return PseudoTerminalJob(child, self)

    def copy_size(self) -> None:
        """Give the pseudo-terminal the size of our terminal."""
        with suppress(OSError):
            size = fcntl.ioctl(_STDOUT, termios.TIOCGWINSZ, bytes(8))
            fcntl.ioctl(self._keys, termios.TIOCSWINSZ, size)

    def start_typing(self, suspend: Callable[[], None]) -> None:
        """Send each key to the child, if we read a terminal and are in its foreground.

        Args:
            suspend: called for Ctrl-Z.
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
        """Give our terminal its modes back."""
        modes, self._modes = self._modes, None
        if modes is None:
            return
        for fd in (_STDIN, self._keys):
            if fd in self._selector.get_map():
                self._selector.unregister(fd)
        with suppress(termios.error):  # hung up
            termios.tcsetattr(_STDIN, termios.TCSADRAIN, modes)

    def close(self) -> None:
        """Give everything back."""
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
        if key and key in typed:
            suspend()  # as in a terminal, what else was typed is dropped
            return
        self._typed = typed
        self._selector.unregister(_STDIN)
        self._send(suspend)

    def _send(self, suspend: Callable[[], None]) -> None:
        """Write keys; what the child has no room for waits, and so does who types."""
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

    def _suspend_key(self) -> bytes:
        """The key that stops a job now; none while the child takes all keys as they are."""
        modes = termios.tcgetattr(self._keys)
        return modes[_CHARACTERS][termios.VSUSP] if modes[_LOCAL_FLAGS] & termios.ISIG else b""


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
