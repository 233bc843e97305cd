"""What a spool holds of each invocation whose record has not ended.

Of each there is the link of its owner, see `spool_owner`, and, when it has captured anything, a
folder with a file `<role>.zst` for each stream; while artifacts are published, also files
`tooltrail-…` in it for a moment (folders of that name are of earlier versions).
"""

import contextlib
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from tooltrail.artifacts.spool_owner import LINK_SUFFIX, OWNER, is_held, names_in
from tooltrail.artifacts.spool_presence import mode_of
from tooltrail.records.errors import UnavailableError

_SUFFIX = ".zst"

SCRATCH_PREFIX = "tooltrail-"
"""Begins the names of what is there for a moment, and is no stream."""


class SpoolFolder(NamedTuple):
    """One invocation in a spool.

    Attributes:
        path: of its folder, which need not be there.
        invocation_id: the name of the folder.
        store_id: of the store that the invocation is recorded in; None where nobody said so.
        is_running: whether the process that it is of lives.
    """

    path: Path
    invocation_id: UUID
    store_id: str | None
    is_running: bool


def iter_spool_folders(spool: Path) -> Iterator[SpoolFolder]:
    """Every invocation in a spool, the oldest first; whatever else lies there is passed over.

    What goes meanwhile is there as running, or not at all; what comes meanwhile may be missing.

    Raises:
        UnavailableError: the spool cannot be read. One that is not there is empty.
    """
    known: dict[str, bool] = {}
    for name in sorted({name.removesuffix(LINK_SUFFIX) for name in names_in(spool)}):
        with contextlib.suppress(ValueError):
            invocation_id = UUID(name)
            if str(invocation_id) == name:
                folder = _folder(spool, invocation_id, known)
                # It may have ended, and its process too, since it was listed.
                if folder.is_running or not _is_gone(folder.path):
                    yield folder


def is_in_use(folder: Path) -> bool:
    """Whether the process lives that an invocation is of; False when it is gone, or all is done.

    Args:
        folder: of the invocation, whether it is there or not.
    """
    owner = _owner_of(folder)
    return owner is not None and is_held(folder.with_name(owner))


def is_spooled(folder: Path) -> bool:
    """Whether there is anything of an invocation in the spool, its folder or its owner's link.

    Raises:
        UnavailableError: nobody can tell, since the spool may not be searched.
    """
    return os.path.lexists(_link_of(folder)) or stat.S_ISDIR(mode_of(folder, str(folder)))


def is_stream_spooled(folder: Path, role: str) -> bool:
    """Whether a stream of an invocation is in its folder.

    Raises:
        UnavailableError: nobody can tell, since the folder or the spool may not be searched.
    """
    return stat.S_ISREG(mode_of(folder / f"{role}{_SUFFIX}", str(folder)))


def remove_spool_folder(folder: Path) -> None:
    """Delete all that there is of an invocation, as far as that can be done; the link goes last.

    Left-overs are found by their place, so no failure is worth breaking anybody.
    """
    with contextlib.suppress(OSError):
        if folder.is_dir():
            shutil.rmtree(folder)
        os.unlink(f"{folder}{LINK_SUFFIX}")  # noqa: PTH108  for each record, see `claim`


def release_spool_folder(folder: Path) -> None:
    """Say that nobody writes to the folder of an invocation any more; what is in it stays.

    Raises:
        UnavailableError: the link of its owner cannot be removed.
    """
    try:
        _link_of(folder).unlink(missing_ok=True)
    except OSError as error:
        raise UnavailableError(f"{folder} cannot be released: {error.strerror}") from error


def spooled_streams(folder: Path) -> dict[str, Path]:
    """The files of the streams in the folder of an invocation, by role.

    Raises:
        UnavailableError: the folder cannot be read. One that is not there has none.
    """
    try:
        files = sorted(path for path in _files_below(folder) if path.name.endswith(_SUFFIX))
    except OSError as error:
        raise UnavailableError(f"{folder} cannot be read: {error.strerror}") from error
    named = {path.relative_to(folder).as_posix().removesuffix(_SUFFIX): path for path in files}
    return {role: path for role, path in named.items() if not role.startswith(SCRATCH_PREFIX)}


def _files_below(folder: Path) -> Iterator[Path]:
    """Every file but those of publications, whose folders come and go meanwhile."""
    for parent, folders, names in os.walk(folder, onerror=_raise_unless_gone):
        if parent == str(folder):
            folders[:] = [name for name in folders if not name.startswith(SCRATCH_PREFIX)]
        yield from (path for name in names if (path := Path(parent, name)).is_file())


def _raise_unless_gone(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        raise error


def _folder(spool: Path, invocation_id: UUID, known: dict[str, bool]) -> SpoolFolder:
    folder = spool / str(invocation_id)
    owner = _owner_of(folder)
    if owner is None:
        return SpoolFolder(folder, invocation_id, None, is_running=False)
    if owner not in known:
        known[owner] = is_held(spool / owner)
    match = OWNER.fullmatch(owner)
    assert match is not None
    return SpoolFolder(folder, invocation_id, match[1], known[owner])


def _is_gone(folder: Path) -> bool:
    """Whether there is nothing of an invocation; False when that cannot be found out."""
    for path in (_link_of(folder), folder):
        try:
            path.lstat()
        except FileNotFoundError:
            continue
        except OSError:
            pass
        return False
    return True


def _owner_of(folder: Path) -> str | None:
    """The name of the owner's file; None when there is no link, or one of somebody else's."""
    try:
        name = str(_link_of(folder).readlink())
    except OSError:
        return None
    return name if OWNER.fullmatch(name) else None


def _link_of(folder: Path) -> Path:
    return folder.with_name(folder.name + LINK_SUFFIX)
