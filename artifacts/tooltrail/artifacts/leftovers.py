"""Parts of objects that a killed process left in a folder; sinks do not list them.

Only local publishing makes parts, and only if it must copy. A part is named `<name of the
object>.<16 hex digits>.part` and is in the folder of the object. Object stores have no parts.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from tooltrail.artifacts.sink import ArtifactSink, ObjectStat
from tooltrail.records.errors import InvalidRecordError, UnavailableError

_LOCAL = "file://"
_PART = re.compile(r"(?:sha256/[0-9a-f]{2}|damaged)/[^/]+\.zst\.[0-9a-f]{16}\.part")


def iter_leftovers(sink: ArtifactSink) -> Iterator[ObjectStat]:
    """Every part in a sink, sorted by path; `modified_at` is the time of its last write.

    A part with a recent time may belong to a publication that is in progress.

    Raises:
        UnavailableError: the folder cannot be read.
    """
    if not sink.url.startswith(_LOCAL):
        return
    root = _folder(sink)
    try:
        # Only the folders of objects: foreign folders are not read.
        folders = [*sorted(root.glob("sha256/??")), root / "damaged"]
        for folder in filter(Path.is_dir, folders):
            for file in sorted(folder.iterdir()):
                path = file.relative_to(root).as_posix()
                if _PART.fullmatch(path) and (found := _stat(root, path)):
                    yield found
    except OSError as error:
        raise UnavailableError(f"cannot list {sink.url}: {error.strerror}") from error


def remove_leftover(sink: ArtifactSink, path: str) -> bool:
    """Remove one part that `iter_leftovers` returned; False if the part no longer exists.

    Raises:
        InvalidRecordError: `path` is not the path of a part.
        UnavailableError: the part cannot be removed.
    """
    if not _PART.fullmatch(path) or not sink.url.startswith(_LOCAL):
        raise InvalidRecordError(f"not a part of an object: {path[:200]!r}")
    try:
        (_folder(sink) / path).unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise UnavailableError(f"cannot delete {path}: {error.strerror}") from error
    return True


def _folder(sink: ArtifactSink) -> Path:
    return Path(sink.url.removeprefix(_LOCAL))


def _stat(root: Path, path: str) -> ObjectStat | None:
    try:
        status = (root / path).lstat()
    except FileNotFoundError:  # published or removed since its name was read
        return None
    return ObjectStat(path, status.st_size, datetime.fromtimestamp(status.st_mtime, UTC))
