"""The log of hook events: `<spool>/hooks/AGENT-DAY.jsonl`, one line for each event.

An agent waits for its hooks. So a hook only appends its event here, and `tooltrail.importers.hooks`
makes facts of it later. This module imports nothing that takes time.
"""

import errno
import os
import time

AGENTS = ("claude-code", "codex")
"""The agents with hooks."""

FOLDER = "hooks"
UNREDACTED = ".unredacted"
"""In the names of logs whose events keep their secrets."""


def append_event(spool: str, agent: str, event: bytes, *, is_redacted: bool = True) -> None:
    """Append an event to the log of an agent, and make it durable.

    Args:
        spool: folder of the spool, created if missing.
        agent: one of `AGENTS`.
        event: one JSON value.
        is_redacted: whether secrets were replaced in it.

    Raises:
        OSError: the log cannot be written.
    """
    folder = f"{spool}/{FOLDER}"
    os.makedirs(folder, mode=0o700, exist_ok=True)  # noqa: PTH103  pathlib takes 5 ms
    day = time.strftime("%Y-%m-%d", time.gmtime())
    name = f"{agent}-{day}{'' if is_redacted else UNREDACTED}.jsonl"
    # A newline in JSON is never inside a text.
    line = b'{"at":%.6f,"event":%b}\n' % (time.time(), event.replace(b"\n", b" "))
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
    path = f"{folder}/{name}"
    descriptor = os.open(path, flags, 0o600)
    try:
        is_new = os.fstat(descriptor).st_size == 0
        _append(descriptor, line)
    except OSError as error:
        error.filename = path
        raise
    finally:
        os.close(descriptor)
    if is_new:
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _append(descriptor: int, line: bytes) -> None:
    # In one write: hooks append at the same time. The next event makes a torn one damaged.
    if os.write(descriptor, line) < len(line):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    os.fsync(descriptor)
