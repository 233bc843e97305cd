"""The result of running a child process, and the error if it could not be started."""

from collections.abc import Callable
from typing import Literal, NamedTuple

StreamName = Literal["stdout", "stderr"]

ChunkHandler = Callable[[StreamName, bytes], None]
"""Receives each chunk of output, with the chunks of both streams in order of arrival."""

SpawnFailureKind = Literal["workdir_not_found", "command_spawn_failed"]

CANNOT_RUN = 126
NOT_FOUND = 127
TIMED_OUT = 124
_SIGNAL_BASE = 128
_UNKNOWN_STATUS = 255


class SpawnFailure(Exception):  # noqa: N818 - a recorded outcome of the tool, not our error
    """The command could not be started, and did not run.

    Attributes:
        kind: whether the working folder or the command was wrong.
        exit_code: exit code of a shell: 127 for a program that is not found, else 126.
        message: one sentence for the user.
    """

    def __init__(self, kind: SpawnFailureKind, exit_code: int, message: str) -> None:
        super().__init__(message)
        self.kind: SpawnFailureKind = kind
        self.exit_code = exit_code
        self.message = message


class ChildExit(NamedTuple):
    """How a child ended, and whether its output was passed on and recorded.

    Invariant: `exit_status` and `signal` are never both set. Both are None if other code reaped
    the child, for example because SIGCHLD is ignored in this process.

    Attributes:
        exit_status: exit status of the child; None if a signal killed it.
        signal: signal that killed the child, else None.
        timed_out: whether the child ran longer than its time limit, even if it then exited.
        duration_ms: time from the start until the child had ended and its output was read.
        tee_closed: streams that could not be passed on to their end, because our reader closed
            the pipe or because a write failed; `tee_error` is set in the second case.
        tee_error: first write error that is not a closed pipe, for example a full disk. It is
            EBADF if our output was closed at the start.
        recorder_error: first exception of a callback; no callback was called after it.
    """

    exit_status: int | None
    signal: int | None
    timed_out: bool
    duration_ms: int
    tee_closed: tuple[StreamName, ...] = ()
    tee_error: OSError | None = None
    recorder_error: Exception | None = None

    @property
    def mirrored(self) -> int:
        """Our exit code for this outcome: 124 for a timeout, 128+n for a signal."""
        if self.timed_out:
            return TIMED_OUT
        if self.signal is not None:
            return _SIGNAL_BASE + self.signal
        return _UNKNOWN_STATUS if self.exit_status is None else self.exit_status
