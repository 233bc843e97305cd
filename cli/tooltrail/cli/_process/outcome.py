"""What a run of a child process gives back, and what it raises when there was no run."""

from collections.abc import Callable
from typing import Literal, NamedTuple

StreamName = Literal["stdout", "stderr"]

ChunkHandler = Callable[[StreamName, bytes], None]
"""Takes one chunk as it came out of the child; chunks of both streams come in order of arrival."""

SpawnFailureKind = Literal["workdir_not_found", "command_spawn_failed"]

CANNOT_RUN = 126
NOT_FOUND = 127
TIMED_OUT = 124
_SIGNAL_BASE = 128
_UNKNOWN_STATUS = 255


class SpawnFailure(Exception):  # noqa: N818 - a recorded outcome of the tool, not a fault of ours
    """The command could not be started; nothing of it ran.

    Attributes:
        kind: which half of the request was wrong, the working folder or the command.
        exit_code: what a shell would exit with: 127 for a program that is not found, else 126.
        message: one sentence for a person.
    """

    def __init__(self, kind: SpawnFailureKind, exit_code: int, message: str) -> None:
        super().__init__(message)
        self.kind: SpawnFailureKind = kind
        self.exit_code = exit_code
        self.message = message


class ChildExit(NamedTuple):
    """How a child ended and how well it could be followed.

    Invariant: `exit_status` and `signal` are never both set. Neither is when somebody else
    reaped the child, for instance because SIGCHLD is ignored in this process.

    Attributes:
        exit_status: what it exited with, None when a signal killed it.
        signal: the signal that killed it, else None.
        timed_out: it outlived its time limit; set even when it then ended politely.
        duration_ms: from the start until the child had ended and its output was read.
        tee_closed: the streams that could not be passed on to their end, because the reader of
            ours went away or because writing failed; `tee_error` is set in the second case.
        tee_error: the first failure to write that is not a reader's going away (a full disk).
        recorder_error: the first exception of a callback; no callback was called after it.
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
        """The exit code that tells our caller the same: 124 for a timeout, 128+n for a signal."""
        if self.timed_out:
            return TIMED_OUT
        if self.signal is not None:
            return _SIGNAL_BASE + self.signal
        return _UNKNOWN_STATUS if self.exit_status is None else self.exit_status
