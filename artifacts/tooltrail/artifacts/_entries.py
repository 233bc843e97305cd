"""What file systems tell about files and folders, made equal for all of them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

Info = dict[str, Any]
"""What fsspec tells of one name; beside `name`, `type` and `size` each file system has its own."""

_TIMES = ("mtime", "LastModified", "last_modified", "created")
"""Where times stand: local disks and Google, S3, Azure, memory. An object is modified once."""


@dataclass(frozen=True, slots=True)
class FileFacts:
    """What is known of one file: its size in bytes and when it was written, in UTC."""

    size: int
    modified_at: datetime


def facts_of(info: Info) -> FileFacts:
    """What is known of one file.

    Raises:
        FileNotFoundError: it is a folder, or something that no sink has made.
    """
    if info["type"] != "file":
        raise FileNotFoundError(info["name"])
    return FileFacts(int(info["size"]), _modified_at(info))


def children(infos: Iterable[Info], folder: str) -> Iterator[tuple[str, FileFacts | None]]:
    """The names in a folder with their facts, None for a folder; `folder` ends in a slash.

    Stores that know no folders may tell of the folder itself, or of an object with its name, and
    local disks know symbolic links. No sink has made any of these in this folder.
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
