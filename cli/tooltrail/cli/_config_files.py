"""Reads a configuration that a user names: a regular file, since a pipe would wait for a writer."""

import errno
import os
import stat

MOST_BYTES = 1 << 20
"""Maximum size of a configuration. A device such as `/dev/zero` has no end."""


def read_config(path: str) -> bytes:
    """The content of a configuration.

    Raises:
        OSError: the file cannot be read, is not a regular file, or is larger than `MOST_BYTES`.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise OSError(errno.EFBIG, f"larger than {MOST_BYTES >> 20} MiB")
    return content
