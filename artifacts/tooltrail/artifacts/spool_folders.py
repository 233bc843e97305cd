"""The captured streams in a call's folder of the spool: one file `<role>.zst` per stream."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tooltrail.records.errors import UnavailableError

_SUFFIX: Final = ".zst"

SCRATCH_PREFIX: Final = "tooltrail-"
"""Prefix of temporary files and folders, which exist while an artifact is published."""


def spooled_streams(folder: Path) -> dict[str, Path]:
    """The files of the streams in a call's folder, by role.

    Raises:
        UnavailableError: the folder cannot be read. A missing folder has no streams.
    """
    try:
        files = sorted(path for path in _files_below(folder) if path.name.endswith(_SUFFIX))
    except OSError as error:
        raise UnavailableError(f"{folder} cannot be read: {error.strerror}") from error
    named = {path.relative_to(folder).as_posix().removesuffix(_SUFFIX): path for path in files}
    return {role: path for role, path in named.items() if not role.startswith(SCRATCH_PREFIX)}


def _files_below(folder: Path) -> Iterator[Path]:
    """Every file except temporary ones, whose folders appear and disappear."""
    for parent, folders, names in os.walk(folder, onerror=_raise_unless_gone):
        if parent == str(folder):
            folders[:] = [name for name in folders if not name.startswith(SCRATCH_PREFIX)]
        yield from (path for name in names if (path := Path(parent, name)).is_file())


def _raise_unless_gone(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        raise error
