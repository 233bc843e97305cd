"""Everything below a folder, in the order of its names, and never through a symbolic link."""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tooltrail.agents.workspace._folder import Parts, WorkspaceFolder, open_folder

MAX_LEVELS = 100
"""Folders inside of each other that are gone into; each of them is held open meanwhile."""

UNVISITED = frozenset({".git"})
"""Folders that are named and not gone into: what is in them is not what people wrote."""


@dataclass(frozen=True, slots=True)
class Entry:
    """Something in a folder.

    Attributes:
        mode: its kind, as `lstat` tells it.
        folder: the descriptor of the folder that it is in, open until the next entry is asked for.
        is_unread: whether it is a folder that could not be gone into, or is too deep for it.
    """

    parts: Parts
    mode: int
    folder: int
    is_unread: bool = False


def iter_entries(workspace: WorkspaceFolder, parts: Parts, *, deep: bool) -> Iterator[Entry]:
    """What is in a folder, each folder before what is in it.

    Args:
        workspace: that the folder is in.
        parts: its path.
        deep: whether the folders in it are gone into.

    Raises:
        OSError: the folder itself is not there, or cannot be listed.
    """
    with workspace.opened(parts) as folder:
        yield from _iter_below(folder, parts, MAX_LEVELS if deep else 0)


def _iter_below(folder: int, parts: Parts, levels: int) -> Iterator[Entry]:
    for name in sorted(os.listdir(folder)):
        try:
            mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
        except FileNotFoundError:
            continue  # somebody deleted it meanwhile
        entry = Entry((*parts, name), mode, folder)
        if levels == 0 or not stat.S_ISDIR(mode) or name in UNVISITED:
            yield entry
        else:
            yield from _iter_folder(entry, levels)


def _iter_folder(entry: Entry, levels: int) -> Iterator[Entry]:
    if levels == 1:
        yield replace(entry, is_unread=True)
        return
    try:
        inner = open_folder(entry.parts, entry.folder)
    except OSError:
        yield replace(entry, is_unread=True)
        return
    try:
        yield entry
        yield from _iter_below(inner, entry.parts, levels - 1)
    finally:
        os.close(inner)
