"""Starts the child, and reports exactly why a child could not be started.

The child inherits what it would have without us: our standard input, our inherited descriptors,
default signal handling, and ignored signals only if we were started with them ignored, as under
`nohup`. Differences: its standard output and error are our pipes or a pseudo-terminal, it has its
own process group, and SIGPIPE and SIGXFSZ are never ignored. Python ignores these two when it
starts, and does not tell whether they were ignored before.
"""

import errno
import fcntl
import os
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from tooltrail.cli._process.child import Child
from tooltrail.cli._process.outcome import CANNOT_RUN, NOT_FOUND, SpawnFailure, StreamName

if TYPE_CHECKING:
    from tooltrail.cli._process.pseudo_terminal import PseudoTerminal

# Linux allows an unprivileged user 1 MiB per pipe, and less after many pipes.
_PIPE_SIZES = (1 << 20, 1 << 18)
_DEFAULT_PIPE_SIZE = 1 << 16


class Source(NamedTuple):
    """The read end of a pipe or a terminal, non-blocking, and how many bytes it holds."""

    fd: int
    capacity: int


def spawn(
    argv: Sequence[str], cwd: str | None, pty: "PseudoTerminal | None"
) -> tuple[Child, dict[StreamName, Source]]:
    """Start `argv` in its own process group, on the pseudo-terminal if there is one.

    Returns:
        The child, and the sources of its output, which the caller must close.

    Raises:
        SpawnFailure: the folder or the command is wrong, or the system has no resources left.
    """
    fds: list[int] = []
    try:
        if pty is not None:
            child = Child(_popen(argv, cwd, **pty.plan()))
            return child, {"stdout": Source(pty.start_reading(), _DEFAULT_PIPE_SIZE)}
        for _ in range(2):
            fds += os.pipe()
        child = Child(_popen(argv, cwd, stdout=fds[1], stderr=fds[3], process_group=0))
        return child, {"stdout": _source(fds.pop(0)), "stderr": _source(fds.pop(1))}
    except OSError as error:
        raise failure_of(error, argv, cwd) from error
    except ValueError as error:
        raise _refusal(error, argv, cwd) from error
    finally:
        for fd in fds:
            os.close(fd)


def _popen(argv: Sequence[str], cwd: str | None, **plan: Any) -> subprocess.Popen[bytes]:
    if not argv:
        raise ValueError("there is no command")
    # Shells pass descriptors by number: `diff <(a) <(b)`, make's job server. Descriptors that we
    # open are close-on-exec, so the child does not inherit them.
    return subprocess.Popen[bytes](
        list(argv), cwd=cwd, restore_signals=True, close_fds=False, **plan
    )


def _source(fd: int) -> Source:
    os.set_blocking(fd, False)
    return Source(fd, _enlarge(fd))


def _enlarge(fd: int) -> int:
    if not hasattr(fcntl, "F_SETPIPE_SZ"):
        return _DEFAULT_PIPE_SIZE
    for size in _PIPE_SIZES:
        with suppress(OSError):
            return fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, size)
    return fcntl.fcntl(fd, fcntl.F_GETPIPE_SZ)


def _refusal(error: ValueError, argv: Sequence[str], cwd: str | None) -> SpawnFailure:
    """The failure for invalid arguments, such as an argument that contains NUL."""
    if cwd is not None and "\0" in cwd:
        message = f"the working folder {cwd!r} cannot exist: {error}"
        return SpawnFailure("workdir_not_found", CANNOT_RUN, message)
    name = repr(argv[0]) if argv else "nothing"
    return SpawnFailure("command_spawn_failed", CANNOT_RUN, f"cannot run {name}: {error}")


def failure_of(error: OSError, argv: Sequence[str], cwd: str | None) -> SpawnFailure:
    """The failure for an error of the system, with the exit code of a shell."""
    # Popen sets `filename` to the folder or the command. Both can have the same name.
    if cwd is not None and error.filename == cwd and not _can_enter(cwd):
        message = f"cannot enter the working folder {cwd!r}: {_reason(error)}"
        return SpawnFailure("workdir_not_found", CANNOT_RUN, message)
    program = argv[0]
    if error.errno == errno.EACCES and not _is_seen(program):
        # EACCES came from a folder of PATH that we cannot enter. Shells report "not found" too.
        return SpawnFailure("command_spawn_failed", NOT_FOUND, f"command {program!r} is not found")
    if error.errno == errno.ENOEXEC:
        import shlex  # noqa: PLC0415  only after a failure

        message = (
            f"cannot run {program!r}: {_reason(error)}; "
            f"if it is a script without #!, run it with `sh {shlex.quote(program)}`"
        )
        return SpawnFailure("command_spawn_failed", CANNOT_RUN, message)
    # Popen searches PATH for an empty name and finds the folders themselves.
    if error.errno != errno.ENOENT and program:
        message = f"cannot run {program!r}: {_reason(error)}"
        return SpawnFailure("command_spawn_failed", CANNOT_RUN, message)
    if _is_there(program, cwd):
        message = f"cannot run {program!r}: the interpreter that it names is not found"
        return SpawnFailure("command_spawn_failed", CANNOT_RUN, message)
    return SpawnFailure("command_spawn_failed", NOT_FOUND, f"command {program!r} is not found")


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


def _can_enter(folder: str) -> bool:
    return os.path.isdir(folder) and os.access(folder, os.X_OK)  # noqa: PTH112 - plain strings here


def _is_seen(program: str) -> bool:
    """Whether the program is a path, or a folder of PATH contains a file with its name."""
    if not program or "/" in program:
        return True
    return any(os.path.exists(os.path.join(f, program)) for f in os.get_exec_path())  # noqa: PTH110, PTH118 - the same


def _is_there(program: str, cwd: str | None) -> bool:
    if not program:
        return False
    if "/" in program:
        return os.path.exists(os.path.join(cwd or "", program))  # noqa: PTH110, PTH118 - the same
    import shutil  # noqa: PLC0415  only after a failure

    return shutil.which(program) is not None
