"""Facts about files and folders, in one form for all file systems of fsspec."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from tooltrail.records.frozen import Frozen

Info = dict[str, Any]
"""The facts of fsspec about one name: `name`, `type`, `size`, and keys of each file system."""

_TIMES = ("mtime", "LastModified", "last_modified", "created")
"""Keys of the time: local disks and Google, S3, Azure, memory. An object is modified once."""


class FileFacts(Frozen):
    """The size of one file in bytes, and the time when it was written, in UTC."""

    size: int
    modified_at: datetime


def facts_of(info: Info) -> FileFacts:
    """The facts about one file.

    Raises:
        FileNotFoundError: the name is not a regular file.
    """
    if info["type"] != "file":
        raise FileNotFoundError(info["name"])
    return FileFacts(int(info["size"]), _modified_at(info))


def children(infos: Iterable[Info], folder: str) -> Iterator[tuple[str, FileFacts | None]]:
    """The names in a folder with their facts, None for a folder; `folder` ends in a slash.

    Stores without folders may list the folder itself, or an object with its name, and local disks
    may contain symbolic links. No sink makes any of these, so they are skipped.
    """
    for info in infos:
        name = str(info["name"]).removeprefix(folder)
        if info["type"] == "directory":
            name = name.rstrip("/")
        if not name or "/" in name:
            continue
        if info["type"] == "directory":
            yield name, None
        elif info["type"] == "file":
            yield name, facts_of(info)


def _modified_at(info: Info) -> datetime:
    moment = next(info[name] for name in _TIMES if info.get(name) is not None)
    if isinstance(moment, datetime):
        return moment.astimezone(UTC)
    return datetime.fromtimestamp(moment, UTC)
